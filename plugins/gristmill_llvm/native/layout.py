"""Structures that a support object shares with the runtime that loads it, and the text that tells the runtime of them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gristmill_llvm.writer import ModuleWriter

LAYOUT_SYMBOL = "gristmill_layout"
"""The exported text, ended by a NUL: JSON, ``{"version": NUMBER, "limits": {NAME: NUMBER}, "structures": {NAME: [[FIELD,
TYPE, OFFSET], ...]}}``."""
_SIZES = {"i32": 4, "i64": 8, "ptr": 8}


@dataclass(frozen=True, slots=True)
class Structure:
    """Fields in order, each ``(name, type)`` with the LLVM type ``i32``, ``i64`` or ``ptr``; laid out as C does."""

    name: str
    fields: Sequence[tuple[str, str]]

    def offsets(self) -> dict[str, int]:
        """Where each field begins, in bytes."""
        found: dict[str, int] = {}
        end = 0
        for name, type_ in self.fields:
            size = _SIZES[type_]
            start = -(-end // size) * size
            found[name] = start
            end = start + size
        return found

    @property
    def size(self) -> int:
        """In bytes, with what C adds so that structures can follow each other."""
        end = 0
        for (_, type_), start in zip(self.fields, self.offsets().values(), strict=True):
            end = start + _SIZES[type_]
        largest = max(_SIZES[type_] for _, type_ in self.fields)
        return -(-end // largest) * largest

    def types(self) -> Mapping[str, str]:
        return dict(self.fields)


def layout_text(version: int, limits: Mapping[str, int], structures: Sequence[Structure]) -> str:
    """The text for :data:`LAYOUT_SYMBOL`."""
    described = {
        structure.name: [[name, structure.types()[name], offset] for name, offset in structure.offsets().items()]
        for structure in structures
    }
    found = {"version": version, "limits": dict(limits), "structures": described}
    return json.dumps(found, separators=(",", ":"))


def define_layout(writer: ModuleWriter, text: str) -> None:
    """Export the text under :data:`LAYOUT_SYMBOL`."""
    data = text.encode() + b"\0"
    characters = "".join(chr(byte) if 32 <= byte < 127 and byte not in (34, 92) else f"\\{byte:02X}" for byte in data)
    writer.define_global(f"@{LAYOUT_SYMBOL}", f'constant [{len(data)} x i8] c"{characters}", align 1')


def with_fields(text: str, structures: Sequence[Structure]) -> str:
    """LLVM IR with its accesses of fields written out.

    ``%x = get %pointer STRUCTURE.FIELD`` loads a field, ``put VALUE, %pointer STRUCTURE.FIELD`` stores one; each stands
    in a line of its own.
    """
    by_name = {structure.name: structure for structure in structures}
    lines = []
    for number, line in enumerate(text.splitlines()):
        words = line.split()
        is_get = words[1:3] == ["=", "get"]
        if not is_get and words[:1] != ["put"]:
            lines.append(line)
            continue
        name, _, field = words[-1].partition(".")
        offset, type_ = by_name[name].offsets()[field], by_name[name].types()[field]
        lines.append(f"  %at.{number} = getelementptr i8, ptr {words[-2]}, i64 {offset}")
        access = f"load {type_}, ptr" if is_get else f"store {type_} {words[1].rstrip(',')}, ptr"
        lines.append(f"  {words[0] + ' = ' if is_get else ''}{access} %at.{number}, align 4")
    return "\n".join(lines)
