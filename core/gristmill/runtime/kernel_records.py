"""Reading the kernel records of a pack, strictly: they come from a file, and say how code is started."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from gristmill.errors import Diagnostic, UserError
from gristmill.pack import Json, Member
from gristmill.plugin.artifacts import KernelArgument, KernelRecord, Scalar


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
