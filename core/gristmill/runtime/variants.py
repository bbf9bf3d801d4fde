"""Choosing among the codes of a pack: for each runtime the best that runs here, and why the others do not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from gristmill.errors import MissingError
from gristmill.pack import Json, Manifest, Member
from gristmill.plugin.artifacts import KernelArgument, KernelRecord, Scalar
from gristmill.plugin.protocols import Runtime
from gristmill.runtime.devices import Runtimes, probe


@dataclass(frozen=True, slots=True)
class Refusal:
    """A code of the pack that is not used, and why, in a sentence."""

    member: Member
    reason: str


@dataclass(frozen=True, slots=True)
class Variants:
    """For each runtime that can run some of the codes, these, the best first; and the codes that nothing here runs."""

    usable: tuple[tuple[Runtime, tuple[Member, ...]], ...]
    refused: tuple[Refusal, ...]


def choose(manifest: Manifest, runtimes: Runtimes, only: str = "", target: str = "") -> Variants:
    """What of the pack can run here; ``only`` names the one runtime to consider, ``target`` the one target."""
    usable: dict[str, tuple[Runtime, list[Member]]] = {}
    refused = []
    known = [runtime for runtime in runtimes.all() if only in ("", runtime.name)]
    without_device: dict[str, str] = {}
    for member in manifest.blobs:
        if target not in ("", member.target):
            refused.append(Refusal(member, f"target {target} was asked for"))
            continue
        takers = [runtime for runtime in known if member.kind in runtime.blob_kinds]
        reasons = []
        for runtime in takers:
            if runtime.name not in without_device:
                found = probe(runtime)
                without_device[runtime.name] = "" if found.devices else (found.reason or "it found none")
            if without_device[runtime.name]:
                reasons.append(f"the {runtime.name} runtime has no device: {without_device[runtime.name]}")
                continue
            reason = runtime.refusal(member.kind, member.target, member.host, member.requirements)
            if reason:
                reasons.append(reason)
            else:
                usable.setdefault(runtime.name, (runtime, []))[1].append(member)
        if not takers:
            asked = f"the {only} runtime does not take" if only else "no installed runtime takes"
            reasons = [f"{asked} code of kind {member.kind}"]
        if len(reasons) == max(len(takers), 1):
            refused.append(Refusal(member, "; ".join(reasons)))
    chosen = []
    for runtime, members in usable.values():
        preferences = {member.name: runtime.preference(member.target) for member in members}
        members.sort(key=lambda member: (-preferences[member.name], member.name))
        chosen.append((runtime, tuple(members)))
    return Variants(tuple(chosen), tuple(refused))


def nothing_fits(name: str, manifest: Manifest, variants: Variants, problems: Iterable[str]) -> MissingError:
    """The error for a pack of which nothing runs here: every variant with its reason, and every broken runtime."""
    lines = [f"{name} has no code that runs here"]
    lines += [
        f"  {refusal.member.target or refusal.member.name} ({refusal.member.kind}): {refusal.reason}"
        for refusal in variants.refused
    ]
    if not manifest.blobs:
        lines.append("  it holds no code at all")
    lines += [f"  {problem}" for problem in problems]
    return MissingError(
        "GM0901",
        "\n".join(lines),
        "build the pack for a target of this machine, as `cpu:native`; see `gristmill doctor`",
    )


def kernel_records(member: Member) -> tuple[KernelRecord, ...]:
    """The kernel records of a code, from the JSON objects that the pack keeps. Absent parts have their defaults."""
    return tuple(_record(found) for found in member.kernels)


def _record(found: Mapping[str, Json]) -> KernelRecord:
    block = _integers(found.get("block"))
    return KernelRecord(
        name=_text(found.get("name")),
        entry=_text(found.get("entry")),
        arguments=tuple(
            KernelArgument(
                _text(argument.get("name")),
                _text(argument.get("kind")),
                _text(argument.get("dtype")),
                argument.get("written") is True,
            )
            for argument in _list(found.get("arguments"))
            if isinstance(argument, dict)
        ),
        axes=tuple(_text(axis) for axis in _list(found.get("axes"))),
        block=(block[0], block[1], block[2]) if len(block) == 3 else (0, 0, 0),
        shared_bytes=next(iter(_integers([found.get("shared_bytes")])), 0),
        dynamic_shared=found.get("dynamic_shared") is True,
        extra=_scalars(found.get("extra")),
    )


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""


def _list(value: Json) -> Sequence[Json]:
    return value if isinstance(value, list) else ()


def _integers(value: Json) -> list[int]:
    return [item for item in _list(value) if isinstance(item, int) and not isinstance(item, bool)]


def _scalars(value: Json) -> dict[str, Scalar]:
    if not isinstance(value, dict):
        return {}
    return {key: item for key, item in value.items() if isinstance(item, (str, int, float, bool))}
