"""Texts for people (LLVM IR, assembly) that a pack does not keep, made again from the IR that it keeps."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gristmill.build.generation import Settings, generate
from gristmill.codegen.context_table import HOST_IR, HOST_IR_SUFFIX
from gristmill.errors import Diagnostic, MissingError, PluginError, UserError
from gristmill.ir.parser import parse_module
from gristmill.ir.target import Target, parse_target
from gristmill.pack import Member, PackReader
from gristmill.passes.index_widths import AUTO, WIDTHS
from gristmill.plugin.artifacts import Scalar
from gristmill.plugin.protocols import TargetKind
from gristmill.runtime.kernel_records import kernel_records

if TYPE_CHECKING:
    from gristmill.build.compile import Job
    from gristmill.plugin.registry import Registry

IR_TEXT = "ir-text"
IR_SUFFIX = "gmir"
TEXT_SUFFIXES = {"llvm-ir": "ll", "assembly": "s", "spirv-assembly": "spvasm", HOST_IR: HOST_IR_SUFFIX}
_OPTIONS_PREFIX = "options of "


@dataclass(frozen=True, slots=True)
class MadeText:
    """A text that was made again: the name it would have in the pack, and whether the code is that of the pack.

    ``of_code``: the text was made from that code itself, not from the IR.
    """

    name: str
    text: str
    same_code: bool
    of_code: bool = False


def options_entry(job: Job) -> tuple[str, str]:
    """What a pack's provenance says of the options of a target, so that its texts can be made again: key and JSON text."""
    found: dict[str, Any] = {
        "fast_math": job.fast_math,
        "indices": job.indices,
        "opt_level": job.optimization,
        "passes": list(job.passes),
    }
    if job.target.options:
        found["target"] = dict(job.target.options)
    return _OPTIONS_PREFIX + job.target_name, json.dumps(found, sort_keys=True)


def make_texts(pack: PackReader, kind: str, registry: Registry) -> list[MadeText]:
    """The texts of a kind for each target of the pack; empty where no target's generator gives such texts.

    Raises MissingError (GM0014) where the plugin of a target, or what it needs, is not installed; UserError for a pack
    whose IR is no module.
    """
    found = []
    for member in pack.manifest.texts:
        if member.kind == IR_TEXT:
            try:
                found += _made(pack, member, kind, registry)
            except (MissingError, PluginError, ImportError) as error:
                raise _unavailable(pack, kind, member, str(error)) from error
    return found


def text_name(stem: str, kind: str) -> str:
    """What the member is called that holds a text about ``code/<stem>``."""
    return f"text/{stem}.{TEXT_SUFFIXES.get(kind, 'txt')}"


def _made(pack: PackReader, member: Member, kind: str, registry: Registry) -> list[MadeText]:
    target_name = member.name.removeprefix("ir/").removesuffix(f".{IR_SUFFIX}")
    target = parse_target(member.target)
    kinds = {found.name: found for found in registry.target_kinds()}
    if target.kind not in kinds:
        raise _unavailable(pack, kind, member, f"no installed plugin gives the target kind `{target.kind}`")
    if kind not in kinds[target.kind].texts:
        return []
    if kinds[target.kind].text_of_code is not None:
        return _of_code(pack, member, kind, target_name, kinds[target.kind])
    options = _options(pack.manifest.provenance, target_name)
    target = Target(target.kind, target.arch, target.features, tuple(sorted(options.get("target", {}).items())))
    blobs = generate(
        parse_module(pack.text(member), member.name),
        target,
        registry,
        Settings(
            pack.manifest.module,
            int(options.get("opt_level", 3)),
            bool(options.get("fast_math", False)),
            tuple(map(str, options.get("passes", ()))),
            frozenset((kind,)),
            str(options.get("indices", AUTO)),
        ),
    ).blobs
    kept = [bytes(pack.blob(blob)) for blob in pack.manifest.blobs if blob.target == member.target]
    found = []
    for number, blob in enumerate(blobs):
        stem = target_name if len(blobs) == 1 else f"{target_name}-{number}"
        found += [MadeText(text_name(stem, kind), text, blob.data in kept) for made, text in blob.texts if made == kind]
    return found


def _of_code(pack: PackReader, ir: Member, kind: str, target_name: str, target: TargetKind) -> list[MadeText]:
    """The texts of the code that the pack has for the target of an IR text."""
    assert target.text_of_code is not None
    blobs = [blob for blob in pack.manifest.blobs if blob.target == ir.target and blob.kind in target.blob_kinds]
    found = []
    for number, blob in enumerate(blobs):
        stem = target_name if len(blobs) == 1 else f"{target_name}-{number}"
        records = kernel_records(blob, pack.name)
        try:
            text = target.text_of_code(kind, bytes(pack.blob(blob)), records)
        except ValueError as error:
            hint = "the pack is damaged, or of another version of Gristmill; build it again"
            raise UserError(Diagnostic("GM0007", f"{blob.name} of {pack.name}: {error}", hint=hint)) from error
        found.append(MadeText(text_name(stem, kind), text, same_code=True, of_code=True))
    return found


def _options(provenance: Mapping[str, Scalar], target_name: str) -> dict[str, Any]:
    """The options that the target was built with; the defaults where the pack does not say, or says what cannot be."""
    try:
        found = json.loads(str(provenance.get(_OPTIONS_PREFIX + target_name, "{}")))
    except ValueError:
        return {}
    if not isinstance(found, dict) or not isinstance(found.get("passes", []), list):
        return {}
    target = found.get("target", {})
    if not isinstance(target, dict) or not all(isinstance(value, (str, int, float)) for value in target.values()):
        return {}
    return found if found.get("opt_level", 3) in range(4) and found.get("indices", AUTO) in WIDTHS else {}


def _unavailable(pack: PackReader, kind: str, member: Member, reason: str) -> MissingError:
    return MissingError(
        "GM0014",
        f"{pack.name} does not keep the text `{kind}` for {member.target}, and it cannot be made here: {reason}",
        "install what is missing, or build the pack with `--texts " + kind + "`",
    )
