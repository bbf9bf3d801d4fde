"""Choosing among the codes of a pack: for each runtime the best that runs here, and why the others do not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from gristmill.codegen.context_table import DEVICE_KIND
from gristmill.errors import Diagnostic, MissingError, UserError
from gristmill.pack import Json, Manifest, Member
from gristmill.plugin.artifacts import KernelArgument, KernelRecord, Scalar
from gristmill.plugin.protocols import Runtime
from gristmill.runtime.devices import Runtimes


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
        if DEVICE_KIND in member.requirements:
            # Host functions go with the kernels that they launch.
            continue
        if target not in ("", member.target):
            refused.append(Refusal(member, f"target {target} was asked for"))
            continue
        takers = [runtime for runtime in known if member.kind in runtime.blob_kinds]
        reasons = []
        for runtime in takers:
            if runtime.name not in without_device:
                found = runtime.probe()
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


def kernel_records(member: Member, pack: str = "the pack") -> tuple[KernelRecord, ...]:
    """The kernel records of a code, from the JSON objects that the pack keeps. Absent parts have their defaults.

    ``pack`` is what messages call the pack. Raises UserError (GM0914) for a record that is malformed, names an entry
    point that the code does not have, or has the name of another.
    """
    found = tuple(
        _Record(record, f"record {number} of `{member.name}` in {pack}").read()
        for number, record in enumerate(member.kernels)
    )
    for record in found:
        if record.entry not in member.entry_points:
            raise _malformed(
                f"the record of `{record.name}` of `{member.name}` in {pack}",
                f"names the entry point `{record.entry}`, which the code does not have",
            )
    names = [record.name for record in found]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise _malformed(f"`{member.name}` in {pack}", f"has two records of `{twice}`")
    return found


@dataclass(frozen=True, slots=True)
class _Record:
    """One record as JSON, and what messages call it."""

    found: Mapping[str, Json]
    named: str

    def read(self) -> KernelRecord:
        return KernelRecord(
            name=self.text("name"),
            entry=self.text("entry"),
            arguments=tuple(self.argument(place, each) for place, each in enumerate(self.items("arguments"))),
            axes=tuple(self.each_text("axes")),
            block=self.block(),
            shared_bytes=self.integer("shared_bytes", self.found.get("shared_bytes", 0)),
            dynamic_shared=self.flag("dynamic_shared", self.found),
            extra=self.scalars("extra"),
        )

    def argument(self, place: int, found: Json) -> KernelArgument:
        if not isinstance(found, dict):
            raise self.wrong(f"arguments[{place}]", "is no object")
        texts = [found.get(key, "") for key in ("name", "kind", "dtype")]
        name, kind, dtype = (text if isinstance(text, str) else "\0" for text in texts)
        if "\0" in name + kind + dtype:
            raise self.wrong(f"arguments[{place}]", "has a name, kind or dtype that is no text")
        return KernelArgument(name, kind, dtype, self.flag("written", found))

    def text(self, key: str) -> str:
        value = self.found.get(key)
        if not isinstance(value, str) or not value or not value.isprintable():
            raise self.wrong(key, "is no printable text")
        return value

    def items(self, key: str) -> Sequence[Json]:
        value = self.found.get(key, [])
        if not isinstance(value, list):
            raise self.wrong(key, "is no list")
        return value

    def each_text(self, key: str) -> Iterable[str]:
        for value in self.items(key):
            if not isinstance(value, str):
                raise self.wrong(key, "is no list of texts")
            yield value

    def block(self) -> tuple[int, int, int]:
        sizes = [self.integer("block", value) for value in self.items("block")] or [0, 0, 0]
        if len(sizes) != 3:
            raise self.wrong("block", "has not three sizes")
        return sizes[0], sizes[1], sizes[2]

    def integer(self, key: str, value: Json) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 32:
            raise self.wrong(key, "is no integer from 0 to 4294967295")
        return value

    def flag(self, key: str, found: Mapping[str, Json]) -> bool:
        value = found.get(key, False)
        if not isinstance(value, bool):
            raise self.wrong(key, "is not true or false")
        return value

    def scalars(self, key: str) -> dict[str, Scalar]:
        value = self.found.get(key, {})
        if not isinstance(value, dict):
            raise self.wrong(key, "is no object")
        scalars: dict[str, Scalar] = {}
        for name, each in value.items():
            if not isinstance(each, (str, int, float)):
                raise self.wrong(f"{key}.{name}", "is no text, number, true or false")
            scalars[name] = each
        return scalars

    def wrong(self, key: str, what: str) -> UserError:
        return _malformed(self.named, f"cannot be read: `{key}` {what}")


def _malformed(named: str, what: str) -> UserError:
    hint = "the pack is damaged, or was not written by Gristmill; build it again"
    return UserError(Diagnostic("GM0914", f"{named} {what}", hint=hint))
