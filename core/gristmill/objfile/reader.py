"""Reads relocatable ELF objects (ET_REL, 64 bit, little-endian), trusting nothing that the file says.

Every offset, size, count and index is checked before it is used, so that a damaged file gives a ``UserError`` (GM0701:
malformed, GM0702: another kind of file) and never another exception.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from gristmill.errors import Diagnostic, UserError
from gristmill.objfile import constants as elf

# Reading a name costs time in proportion to its length, and many symbols may point at one name.
LONGEST_NAME = 4096


@dataclass(frozen=True, slots=True)
class Section:
    """One section header, with the bytes it describes (empty for SHT_NOBITS)."""

    index: int
    name: str
    kind: int
    flags: int
    size: int
    link: int
    info: int
    alignment: int
    entry_size: int
    data: memoryview


@dataclass(frozen=True, slots=True)
class Symbol:
    """One symbol; ``section`` is an index into the sections, or one of SHN_UNDEF, SHN_ABS, SHN_COMMON."""

    index: int
    name: str
    binding: int
    kind: int
    visibility: int
    section: int
    value: int
    size: int


class Relocation(NamedTuple):
    """One relocation with addend: where in its section, of which kind, against which symbol."""

    offset: int
    kind: int
    symbol: int
    addend: int


@dataclass(frozen=True, slots=True)
class FileHeader:
    """The fields of the ELF file header that mean something for 64-bit little-endian files."""

    kind: int
    machine: int
    flags: int
    os_abi: int
    program_offset: int
    section_offset: int
    program_count: int
    section_count: int
    name_section: int


@dataclass(frozen=True, slots=True)
class ObjectFile:
    """A relocatable object: sections by index, symbols by index, relocations by the section that they change."""

    name: str
    machine: int
    flags: int
    sections: tuple[Section, ...]
    symbols: tuple[Symbol, ...]
    relocations: dict[int, tuple[Relocation, ...]]


def malformed(name: str, what: str) -> UserError:
    """The error for a file whose own tables contradict each other."""
    return UserError(
        Diagnostic("GM0701", f"{name} is not a well-formed ELF file: {what}", hint="the file is damaged; make it again")
    )


class CheckedBytes:
    """Access to a file's bytes that answers a range outside of the file with an error that names it."""

    def __init__(self, data: bytes | memoryview, name: str) -> None:
        self.data = memoryview(data).toreadonly()
        self.name = name

    def take(self, offset: int, size: int, what: str) -> memoryview:
        if offset + size > len(self.data):
            raise malformed(
                self.name, f"{what} is at {offset:#x} to {offset + size:#x}, but the file ends at {len(self.data):#x}"
            )
        return self.data[offset : offset + size]

    def table(self, record: struct.Struct, offset: int, count: int, what: str) -> Iterator[tuple[Any, ...]]:
        return record.iter_unpack(self.take(offset, count * record.size, what))


def read_text(strings: bytes, offset: int, name: str, what: str) -> str:
    """The string at ``offset`` of a string table; it must end inside of the table and be UTF-8."""
    if offset == 0 and not strings:
        return ""
    end = strings.find(b"\0", offset, offset + LONGEST_NAME + 1)
    if offset >= len(strings) or end < 0:
        raise malformed(name, f"the name of {what} does not end inside of its string table")
    try:
        return strings[offset:end].decode()
    except UnicodeDecodeError:
        raise malformed(name, f"the name of {what} is not UTF-8") from None


def read_header(file: CheckedBytes) -> FileHeader:
    """Checks that the file is 64-bit little-endian ELF and gives its header."""
    if bytes(file.data[:4]) != elf.MAGIC:
        raise UserError(Diagnostic("GM0702", f"{file.name} is not an ELF file: it does not begin with 7F 45 4C 46"))
    raw = file.take(0, elf.FILE_HEADER.size, "the file header")
    (ident, kind, machine, version, _, program_offset, section_offset, flags, *sizes) = elf.FILE_HEADER.unpack(raw)
    header_size, program_size, program_count, section_size, section_count, name_section = sizes
    if ident[4] != elf.ELFCLASS64 or ident[5] != elf.ELFDATA2LSB:
        raise UserError(
            Diagnostic(
                "GM0702",
                f"{file.name} is ELF of class {ident[4]}, byte order {ident[5]}; read is 64 bit (2), little-endian (1)",
            )
        )
    if ident[6] != elf.EV_CURRENT or version != elf.EV_CURRENT:
        raise malformed(file.name, f"ELF version is {version}, the only one is 1")
    if header_size != elf.FILE_HEADER.size:
        raise malformed(file.name, f"the file header says that it has {header_size} bytes instead of 64")
    if program_count and program_size != elf.PROGRAM_HEADER.size:
        raise malformed(file.name, f"program headers of {program_size} bytes instead of 56")
    if section_count and section_size != elf.SECTION_HEADER.size:
        raise malformed(file.name, f"section headers of {section_size} bytes instead of 64")
    if section_offset and not section_count:
        raise malformed(file.name, "more than 65,279 sections; Gristmill does not read such files")
    return FileHeader(
        kind,
        machine,
        flags,
        ident[7],
        program_offset,
        section_offset,
        program_count,
        section_count,
        name_section,
    )


def read_object(data: bytes | memoryview, name: str = "the object") -> ObjectFile:
    """Reads a relocatable object.

    ``name`` is what messages call the file. Raises ``UserError`` GM0701 for a malformed file, GM0702 for one that is
    not a 64-bit little-endian relocatable object.
    """
    file = CheckedBytes(data, name)
    header = read_header(file)
    if header.kind != elf.ET_REL:
        kind = elf.TYPE_NAMES.get(header.kind, f"of type {header.kind}")
        raise UserError(
            Diagnostic(
                "GM0702",
                f"{name} is no relocatable object, it is {kind}",
                hint="give what the code generator emitted (`.o`), not what a linker made of it",
            )
        )
    sections = _read_sections(file, header)
    tables = [section for section in sections if section.kind == elf.SHT_SYMTAB]
    if len(tables) > 1:
        raise malformed(name, f"{len(tables)} symbol tables")
    symbols = _read_symbols(file, sections, tables[0]) if tables else ()
    relocations = _read_relocations(file, sections, symbols, tables[0].index if tables else 0)
    return ObjectFile(name, header.machine, header.flags, sections, symbols, relocations)


def _read_sections(file: CheckedBytes, header: FileHeader) -> tuple[Section, ...]:
    records = list(
        file.table(elf.SECTION_HEADER, header.section_offset, header.section_count, "the table of section headers")
    )
    if not records:
        return ()
    if header.name_section >= len(records):
        raise malformed(file.name, f"the section of section names has index {header.name_section} of {len(records)}")
    _, kind, _, _, offset, size, *_ = records[header.name_section]
    if kind != elf.SHT_STRTAB:
        raise malformed(file.name, "the section of section names is not a string table")
    strings = bytes(file.take(offset, size, "the section of section names"))
    sections = []
    for index, record in enumerate(records):
        name_offset, kind, flags, _, offset, size, link, info, alignment, entry_size = record
        name = read_text(strings, name_offset, file.name, f"section {index}")
        if alignment & (alignment - 1):
            raise malformed(file.name, f"section {index} ({name}) has alignment {alignment}, not a power of two")
        holds_bytes = kind not in (elf.SHT_NOBITS, elf.SHT_NULL)
        content = file.take(offset, size, f"section {index} ({name})") if holds_bytes else memoryview(b"")
        sections.append(Section(index, name, kind, flags, size, link, info, max(1, alignment), entry_size, content))
    return tuple(sections)


def _read_symbols(file: CheckedBytes, sections: tuple[Section, ...], table: Section) -> tuple[Symbol, ...]:
    if table.entry_size != elf.SYMBOL.size or table.size % elf.SYMBOL.size:
        raise malformed(file.name, f"a symbol table of {table.size} bytes in records of {table.entry_size}")
    if table.link >= len(sections) or sections[table.link].kind != elf.SHT_STRTAB:
        raise malformed(file.name, f"the symbol names are in section {table.link}, which is no string table")
    strings = bytes(sections[table.link].data)
    symbols = []
    for index, (name_offset, info, other, section, value, size) in enumerate(elf.SYMBOL.iter_unpack(table.data)):
        name = read_text(strings, name_offset, file.name, f"symbol {index}")
        if section < elf.SHN_LORESERVE:
            if section >= len(sections):
                raise malformed(file.name, f"symbol `{name}` is in section {section} of {len(sections)}")
        elif section not in (elf.SHN_ABS, elf.SHN_COMMON):
            raise malformed(file.name, f"symbol `{name}` is in a section of reserved index {section:#x}")
        symbols.append(Symbol(index, name, info >> 4, info & 15, other & 3, section, value, size))
    return tuple(symbols)


def _read_relocations(
    file: CheckedBytes, sections: tuple[Section, ...], symbols: tuple[Symbol, ...], symbol_table: int
) -> dict[int, tuple[Relocation, ...]]:
    found: dict[int, tuple[Relocation, ...]] = {}
    for section in sections:
        if section.kind != elf.SHT_RELA:
            continue
        if section.entry_size != elf.RELA.size or section.size % elf.RELA.size:
            raise malformed(file.name, f"relocations ({section.name}) in records of {section.entry_size} bytes")
        if section.info >= len(sections) or section.info == 0 or section.info in found:
            raise malformed(file.name, f"relocations ({section.name}) of section {section.info}")
        if section.link != symbol_table:
            raise malformed(file.name, f"relocations ({section.name}) against symbol table {section.link}")
        entries = []
        for offset, info, addend in elf.RELA.iter_unpack(section.data):
            symbol = info >> 32
            if symbol >= len(symbols):
                raise malformed(file.name, f"a relocation ({section.name}) against symbol {symbol} of {len(symbols)}")
            entries.append(Relocation(offset, info & 0xFFFFFFFF, symbol, addend))
        found[section.info] = tuple(entries)
    return found
