"""The tables that the dynamic loader reads: names, symbols, hash table, relocations, the dynamic section.

All calls and addresses are bound when the library is loaded (DF_BIND_NOW), so the offset table can be made read-only
afterwards. The hash table is the System V one, which glibc, musl and the BSDs all read.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

from gristmill.objfile import constants as elf
from gristmill.objfile.image import Group, OutputSection


@dataclass(eq=False, slots=True)
class DynamicSymbol:
    """A symbol that the loader sees: an import (no section), or an export with its place."""

    name: str
    binding: int
    kind: int = elf.STT_NOTYPE
    visibility: int = elf.STV_DEFAULT
    section: OutputSection | None = None
    offset: int = 0
    """Offset in the section; the value itself for an absolute symbol."""
    is_absolute: bool = False
    size: int = 0
    index: int = 0

    @property
    def address(self) -> int:
        return self.offset + (self.section.address if self.section else 0)


@dataclass(eq=False, slots=True)
class DynamicRelocation:
    """A word that the loader fills: with a symbol's address, or with where the library lies plus a target in it."""

    kind: int
    section: OutputSection
    offset: int
    symbol: DynamicSymbol | None = None
    target: OutputSection | None = None
    addend: int = 0


class Strings:
    """A string table under construction; equal strings are stored once."""

    def __init__(self) -> None:
        self.data = bytearray(b"\0")
        self._places: dict[str, int] = {"": 0}

    def add(self, text: str) -> int:
        place = self._places.get(text)
        if place is None:
            place = self._places[text] = len(self.data)
            self.data += text.encode() + b"\0"
        return place


def hash_name(name: bytes) -> int:
    """The hash of the System V ABI, chapter 5, "Hash Table"."""
    value = 0
    for byte in name:
        value = (value << 4) + byte
        high = value & 0xF0000000
        value = (value ^ (high >> 24)) & ~high & 0xFFFFFFFF
    return value


@dataclass(eq=False, slots=True)
class DynamicTables:
    """The dynamic sections of one library: sized when made, filled by ``fill`` once all sections have addresses."""

    symbols: Sequence[DynamicSymbol]
    relocations: list[DynamicRelocation]
    soname: str
    relative: int
    """The kind of relocation that adds where the library lies: those come first (DT_RELACOUNT)."""
    strings: Strings = field(default_factory=Strings)
    symbol_section: OutputSection = field(init=False)
    hash_section: OutputSection = field(init=False)
    string_section: OutputSection = field(init=False)
    relocation_section: OutputSection = field(init=False)
    dynamic_section: OutputSection = field(init=False)
    _name_places: list[int] = field(init=False)
    _soname_place: int = field(init=False)

    def __post_init__(self) -> None:
        self._soname_place = self.strings.add(self.soname)
        self._name_places = [self.strings.add(symbol.name) for symbol in self.symbols]
        for index, symbol in enumerate(self.symbols, 1):
            symbol.index = index
        alloc = elf.SHF_ALLOC
        self.string_section = OutputSection(".dynstr", elf.SHT_STRTAB, alloc, Group.READ)
        self.string_section.append(self.strings.data, len(self.strings.data), 1, b"\0")
        self.symbol_section = OutputSection(
            ".dynsym", elf.SHT_DYNSYM, alloc, Group.READ, 8, entry_size=elf.SYMBOL.size, link=self.string_section
        )
        self.symbol_section.info = 1  # the first symbol that is not local
        self.symbol_section.size = (len(self.symbols) + 1) * elf.SYMBOL.size
        self.hash_section = OutputSection(
            ".hash", elf.SHT_HASH, alloc, Group.READ, 8, entry_size=4, link=self.symbol_section
        )
        table = self._hash_table()
        self.hash_section.append(table, len(table), 8, b"\0")
        self.relocation_section = OutputSection(
            ".rela.dyn", elf.SHT_RELA, alloc, Group.READ, 8, entry_size=elf.RELA.size, link=self.symbol_section
        )
        self.relocation_section.size = len(self.relocations) * elf.RELA.size
        self.dynamic_section = OutputSection(
            ".dynamic",
            elf.SHT_DYNAMIC,
            alloc | elf.SHF_WRITE,
            Group.RELRO,
            8,
            entry_size=elf.DYNAMIC.size,
            link=self.string_section,
        )
        self.dynamic_section.size = len(self._dynamic_entries()) * elf.DYNAMIC.size

    def _hash_table(self) -> bytes:
        count = len(self.symbols) + 1
        bucket_count = max(1, len(self.symbols) | 1)
        buckets, chains = [0] * bucket_count, [0] * count
        for symbol in self.symbols:
            if symbol.section is None and not symbol.is_absolute:
                continue  # nobody finds an import here
            bucket = hash_name(symbol.name.encode()) % bucket_count
            chains[symbol.index] = buckets[bucket]
            buckets[bucket] = symbol.index
        return struct.pack(f"<{2 + bucket_count + count}I", bucket_count, count, *buckets, *chains)

    def _dynamic_entries(self) -> list[tuple[int, int]]:
        entries: list[tuple[int, int]] = []
        if self.soname:
            entries.append((elf.DT_SONAME, self._soname_place))
        entries += [
            (elf.DT_FLAGS, elf.DF_BIND_NOW),
            (elf.DT_FLAGS_1, elf.DF_1_NOW),
            (elf.DT_HASH, self.hash_section.address),
            (elf.DT_STRTAB, self.string_section.address),
            (elf.DT_STRSZ, self.string_section.size),
            (elf.DT_SYMTAB, self.symbol_section.address),
            (elf.DT_SYMENT, elf.SYMBOL.size),
        ]
        if self.relocations:
            relative = sum(relocation.kind == self.relative for relocation in self.relocations)
            entries += [
                (elf.DT_RELA, self.relocation_section.address),
                (elf.DT_RELASZ, self.relocation_section.size),
                (elf.DT_RELAENT, elf.RELA.size),
            ]
            if relative:
                entries.append((elf.DT_RELACOUNT, relative))
        entries.append((elf.DT_NULL, 0))
        return entries

    def fill(self) -> None:
        """Writes the contents that speak of addresses."""
        records = [bytes(elf.SYMBOL.size)]
        for symbol, name_place in zip(self.symbols, self._name_places, strict=True):
            section = elf.SHN_ABS if symbol.is_absolute else symbol.section.index if symbol.section else elf.SHN_UNDEF
            info = symbol.binding << 4 | symbol.kind
            records.append(elf.SYMBOL.pack(name_place, info, symbol.visibility, section, symbol.address, symbol.size))
        self.symbol_section.data += b"".join(records)
        rows = []
        for relocation in self.relocations:
            place = relocation.section.address + relocation.offset
            addend = relocation.addend + (relocation.target.address if relocation.target else 0)
            number = relocation.symbol.index if relocation.symbol else 0
            rows.append((relocation.kind != self.relative, number, place, relocation.kind, addend))
        for _, number, place, kind, addend in sorted(rows):
            self.relocation_section.data += elf.RELA.pack(place, number << 32 | kind, addend)
        for tag, value in self._dynamic_entries():
            self.dynamic_section.data += elf.DYNAMIC.pack(tag, value)
