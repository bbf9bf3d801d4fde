"""What the installed target kinds make of a manifest: its targets resolved, and texts that none of them gives refused."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from gristmill.build.manifest import Manifest, ModuleEntry, ModuleTargetEntry, TargetEntry
from gristmill.build.targets_from_devices import completed_from_device, names_device
from gristmill.errors import Diagnostic, InternalError, Place, UserError, close_match, suggestion
from gristmill.ir.target import Target
from gristmill.plugin.protocols import TargetKind

if TYPE_CHECKING:
    from gristmill.plugin.registry import Registry


def resolve_targets(
    manifest: Manifest,
    kinds: Mapping[str, TargetKind],
    registry: Registry | None = None,
    used: Collection[str] | None = None,
) -> dict[str, Target]:
    """Each target of the manifest, by name, checked and completed by its kind (``native`` becomes a real name).

    ``registry`` has the runtimes that are asked where a target takes its limits from a device; of those targets, only
    the ``used`` ones are resolved, by default all. Raises UserError with all that the kinds refuse, or for a device that
    is not here (GM0121). May be slow: a kind may ask the machine.
    """
    resolved: dict[str, Target] = {}
    refused: list[Diagnostic] = []
    for entry in manifest.targets:
        kind = kinds[entry.target.kind]
        target = entry.target
        try:
            if names_device(target, kind):
                if registry is None or (used is not None and entry.name not in used):
                    continue
                try:
                    target = completed_from_device(entry, kind, manifest, registry)
                except UserError as error:
                    refused += error.diagnostics
                    continue
            resolved[entry.name] = kind.resolve(target)
        except ValueError as error:
            refused.append(
                Diagnostic(
                    "GM0119",
                    f"target `{entry.name}` can't be built for: {error}",
                    entry.place,
                    hint=_architecture_hint(entry.target.arch, kind),
                )
            )
        except InternalError as error:
            error.where.place = entry.place
            raise
        except Exception as error:
            raise InternalError(
                f"target kind `{kind.name}` failed on `{entry.target}`: {type(error).__name__}: {error}",
                place=entry.place,
            ) from error
    if refused:
        raise manifest.error(*refused)
    return resolved


def unknown_texts(manifest: Manifest, kinds: Mapping[str, TargetKind]) -> list[Diagnostic]:
    """A diagnostic for each kind of text that no target of its module can give (GM0120)."""
    found = []
    for module in manifest.modules:
        used = [manifest.targets_by_name[name] for name in module.targets]
        asked: list[tuple[ModuleEntry | ModuleTargetEntry, Collection[str], list[TargetEntry]]] = [
            (module, module.options.texts, used)
        ]
        for name, override in module.overrides.items():
            asked.append((override, override.options.get("texts", ()), [manifest.targets_by_name[name]]))
        for entry, texts, targets in asked:
            whose = f"no target of module `{module.name}` gives"
            known = {text for target in targets for text in kinds[target.target.kind].texts}
            found += _unknown(whose, texts, known, entry.place_of("options", "texts"))
    return found


def refuse_unknown_texts(texts: Collection[str], kinds: Mapping[str, TargetKind]) -> None:
    """Raise UserError (GM0120) for kinds of text that no target kind gives."""
    found = _unknown("no target gives", texts, {text for kind in kinds.values() for text in kind.texts}, None)
    if found:
        raise UserError(found)


def _unknown(whose: str, texts: Collection[str], known: Collection[str], place: Place | None) -> list[Diagnostic]:
    found = []
    for text in texts:
        if text not in known:
            listed = ", ".join(f"`{name}`" for name in sorted(known)) or "none"
            hint = suggestion(text, sorted(known), f"there is: {listed}")
            found.append(Diagnostic("GM0120", f"{whose} the text `{text[:64]}`", place, hint=hint))
    return found


def _architecture_hint(arch: str, kind: TargetKind) -> str:
    near = close_match(arch, kind.architectures) if arch else ""
    if near and near != arch:
        return f"did you mean `{kind.name}:{near}`?"
    return "`gristmill targets` lists the architectures and keys of every kind"
