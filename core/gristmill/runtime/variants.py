"""Choosing among the codes of a pack: for each runtime the best that runs here, and why the others do not."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gristmill.codegen.context_table import DEVICE_KIND
from gristmill.errors import MissingError
from gristmill.pack import Manifest, Member
from gristmill.plugin.protocols import Device, Runtime
from gristmill.runtime.devices import Runtimes


@dataclass(frozen=True, slots=True)
class Refusal:
    """A code of the pack that is not used, and why, in a sentence. ``for_want_of_device``: no runtime refuses the code
    itself; one that takes it has no device."""

    member: Member
    reason: str
    for_want_of_device: bool = False


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
        if DEVICE_KIND in member.requirements:
            # Host functions go with the kernels that they launch.
            continue
        if target not in ("", member.target):
            refused.append(Refusal(member, f"target {target} was asked for"))
            continue
        takers = [runtime for runtime in known if member.kind in runtime.blob_kinds]
        reasons = []
        wants_device = False
        for runtime in takers:
            if runtime.name not in without_device:
                found = runtime.probe()
                without_device[runtime.name] = "" if found.devices else (found.reason or "it found none")
            if without_device[runtime.name]:
                reasons.append(f"the {runtime.name} runtime has no device: {without_device[runtime.name]}")
                wants_device = True
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
            refused.append(Refusal(member, "; ".join(reasons), wants_device))
    chosen = []
    for runtime, members in usable.values():
        preferences = {member.name: runtime.preference(member.target) for member in members}
        members.sort(key=lambda member: (-preferences[member.name], member.name))
        chosen.append((runtime, tuple(members)))
    return Variants(tuple(chosen), tuple(refused))


def fitting_device(device: Device, members: Iterable[Member]) -> tuple[tuple[Member, ...], tuple[Refusal, ...]]:
    """Of codes that a runtime takes, those that this device of it runs, in their order; and why not the others.

    Devices of one runtime may differ; one that knows what it lacks has a method ``refusal`` like its runtime's.
    """
    refusal = getattr(device, "refusal", None)
    fitting, refused = [], []
    for member in members:
        reason = refusal(member.kind, member.target, member.host, member.requirements) if refusal is not None else ""
        if reason:
            refused.append(Refusal(member, str(reason)))
        else:
            fitting.append(member)
    return tuple(fitting), tuple(refused)


def nothing_fits(name: str, manifest: Manifest, refused: Iterable[Refusal], problems: Iterable[str]) -> MissingError:
    """The error for a pack of which nothing runs here: every variant with its reason, and every broken runtime."""
    lines = [f"{name} has no code that runs here"]
    lines += [
        f"  {refusal.member.target or refusal.member.name} ({refusal.member.kind}): {refusal.reason}"
        for refusal in refused
    ]
    if not manifest.blobs:
        lines.append("  it holds no code at all")
    lines += [f"  {problem}" for problem in problems]
    return MissingError(
        "GM0901",
        "\n".join(lines),
        "build the pack for a target of this machine, as `cpu:native`; see `gristmill doctor`",
    )
