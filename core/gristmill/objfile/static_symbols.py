"""The symbol table for debuggers and profilers (``.symtab``): all named symbols, local ones too. No loader reads it."""

from __future__ import annotations

from collections.abc import Sequence

from gristmill.objfile import constants as elf
from gristmill.objfile.dynamic import Strings
from gristmill.objfile.image import Group, OutputSection
from gristmill.objfile.merge import Merged, SectionPlace
from gristmill.objfile.reader import ObjectFile, Symbol, malformed
from gristmill.objfile.resolve import Resolution


class StaticSymbols:
    """``.symtab`` and ``.strtab`` of one link: sized when made, filled once all sections have addresses."""

    def __init__(self, objects: Sequence[ObjectFile], resolution: Resolution, merged: Merged) -> None:
        self._symbols = _kept(objects, resolution, merged)
        names = Strings()
        self._name_places = [names.add(symbol.name) for symbol, _ in self._symbols]
        self.strings = OutputSection(".strtab", elf.SHT_STRTAB, 0, Group.UNLOADED)
        self.strings.append(names.data, len(names.data), 1, b"\0")
        self.table = OutputSection(
            ".symtab", elf.SHT_SYMTAB, 0, Group.UNLOADED, 8, entry_size=elf.SYMBOL.size, link=self.strings
        )
        self.table.size = (len(self._symbols) + 1) * elf.SYMBOL.size
        # The index of the first symbol that is not local.
        self.table.info = 1 + sum(symbol.binding == elf.STB_LOCAL for symbol, _ in self._symbols)

    def fill(self) -> None:
        """Writes the symbols with their addresses."""
        self.table.data += bytes(elf.SYMBOL.size)
        for (symbol, where), name_place in zip(self._symbols, self._name_places, strict=True):
            self.table.data += elf.SYMBOL.pack(
                name_place,
                symbol.binding << 4 | symbol.kind,
                symbol.visibility,
                where.section.index,
                where.section.address + where.offset + symbol.value,
                symbol.size,
            )


def _kept(objects: Sequence[ObjectFile], resolution: Resolution, merged: Merged) -> list[tuple[Symbol, SectionPlace]]:
    """The named symbols that lie in merged sections, locals first; those that lost to another object are left out."""
    kept = []
    for number, owner in enumerate(objects):
        for symbol in owner.symbols:
            where = merged.places.get((number, symbol.section))
            if where is None or not symbol.name or symbol.kind in (elf.STT_SECTION, elf.STT_FILE):
                continue
            if symbol.value > owner.sections[symbol.section].size:
                raise malformed(owner.name, f"symbol `{symbol.name}` lies outside of its section")
            if symbol.binding == elf.STB_LOCAL or resolution.names[symbol.name].owner == number:
                kept.append((symbol, where))
    return sorted(kept, key=lambda entry: entry[0].binding != elf.STB_LOCAL)
