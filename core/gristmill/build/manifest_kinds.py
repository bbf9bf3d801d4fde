"""From the target kinds of plugins to the tables of the manifest, and from its targets back to what the kinds make of them."""

from __future__ import annotations

from collections.abc import Mapping

from gristmill.build.manifest import Manifest
from gristmill.errors import Diagnostic, InternalError, close_match
from gristmill.ir.target import Target
from gristmill.plugin.protocols import TargetKind


def resolve_targets(manifest: Manifest, kinds: Mapping[str, TargetKind]) -> dict[str, Target]:
    """Each target of the manifest, by name, checked and completed by its kind (``native`` becomes a real name).

    Raises UserError with all that the kinds refuse. May be slow: a kind may ask the machine.
    """
    resolved: dict[str, Target] = {}
    refused: list[Diagnostic] = []
    for entry in manifest.targets:
        kind = kinds[entry.target.kind]
        try:
            resolved[entry.name] = kind.resolve(entry.target)
        except ValueError as error:
            refused.append(
                Diagnostic(
                    "GM0119",
                    f"target `{entry.name}` can't be built for: {error}",
                    entry.place,
                    hint=_architecture_hint(entry.target.arch, kind),
                )
            )
        except Exception as error:
            raise InternalError(
                f"target kind `{kind.name}` failed on `{entry.target}`: {type(error).__name__}: {error}",
                place=entry.place,
            ) from error
    if refused:
        raise manifest.error(*refused)
    return resolved


def _architecture_hint(arch: str, kind: TargetKind) -> str:
    near = close_match(arch, kind.architectures) if arch else ""
    if near and near != arch:
        return f"did you mean `{kind.name}:{near}`?"
    return "`gristmill targets` lists the architectures and keys of every kind"
