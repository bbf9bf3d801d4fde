"""Lays out a shared object: output sections, their addresses, segments, and the bytes of the file.

Four loadable segments at most, none both writable and executable: read-only data with the headers; code; data that
only the loader writes (RELRO); data. Each begins on a page of its own in memory, while the file stays dense: an
address and its file offset are equal modulo the page size, so one page of the file may be mapped twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from gristmill.objfile import constants as elf


class Group(IntEnum):
    """The segment that a section is loaded with, in the order of addresses; UNLOADED ones are for tools only."""

    READ = 0
    CODE = 1
    RELRO = 2
    DATA = 3
    UNLOADED = 4


_GROUP_FLAGS = {
    Group.READ: elf.PF_R,
    Group.CODE: elf.PF_R | elf.PF_X,
    Group.RELRO: elf.PF_R | elf.PF_W,
    Group.DATA: elf.PF_R | elf.PF_W,
}


@dataclass(eq=False, slots=True)
class OutputSection:
    """A section of the file to be: filled first (``data``, or ``size`` alone for SHT_NOBITS), then given a place."""

    name: str
    kind: int
    flags: int
    group: Group
    alignment: int = 1
    data: bytearray = field(default_factory=bytearray)
    size: int = 0
    entry_size: int = 0
    link: OutputSection | None = None
    info: int = 0
    address: int = 0
    offset: int = 0
    index: int = 0

    def append(self, content: bytes | bytearray | memoryview, size: int, alignment: int, fill: bytes) -> int:
        """Adds ``size`` bytes at the next multiple of ``alignment`` (no bytes for SHT_NOBITS); gives their offset."""
        start = align(self.size, alignment)
        if self.kind != elf.SHT_NOBITS:
            self.data += fill * ((start - self.size) // len(fill))
            self.data += content
        self.size = start + size
        self.alignment = max(self.alignment, alignment)
        return start


def align(value: int, alignment: int) -> int:
    """The least multiple of ``alignment`` that is not below ``value``."""
    return -(-value // alignment) * alignment


@dataclass(frozen=True, slots=True)
class Segment:
    """One program header to be written."""

    kind: int
    flags: int
    offset: int
    address: int
    file_size: int
    memory_size: int
    alignment: int


def place(sections: Sequence[OutputSection], page_size: int) -> list[Segment]:
    """Gives each section its address, file offset and index, and returns the segments.

    ``sections`` are in the order of their groups, each group's SHT_NOBITS sections last, and have their final sizes.
    """
    loaded = [section for section in sections if section.group != Group.UNLOADED]
    groups = sorted({section.group for section in loaded} | {Group.READ})
    has_relro = Group.RELRO in groups
    # LOADs, DYNAMIC, GNU_STACK, and GNU_RELRO where there is something to protect.
    header_count = len(groups) + 2 + has_relro
    offset = address = elf.FILE_HEADER.size + header_count * elf.PROGRAM_HEADER.size
    segments: list[Segment] = []
    relro: Segment | None = None
    for group in groups:
        if group == Group.READ:
            start_offset = start_address = 0
        else:
            # The same position within a page, one page further on: the file needs no padding.
            address = align(address, page_size) + offset % page_size
            members = [section for section in loaded if section.group == group]
            first = align(address, members[0].alignment)
            offset += first - address
            address = first
            start_offset, start_address = offset, address
        for section in loaded:
            if section.group != group:
                continue
            placed = align(address, section.alignment)
            if section.kind != elf.SHT_NOBITS:
                offset += placed - address
            section.address, section.offset = placed, offset
            address = placed + section.size
            if section.kind != elf.SHT_NOBITS:
                offset += section.size
        segment = Segment(
            elf.PT_LOAD,
            _GROUP_FLAGS[group],
            start_offset,
            start_address,
            offset - start_offset,
            address - start_address,
            page_size,
        )
        segments.append(segment)
        if group == Group.RELRO:
            # Whole pages are protected: up to where the next segment may begin.
            protected = align(address, page_size) - start_address
            relro = Segment(elf.PT_GNU_RELRO, elf.PF_R, start_offset, start_address, segment.file_size, protected, 1)
    for section in sections:
        if section.kind == elf.SHT_DYNAMIC:
            size = section.size
            flags = elf.PF_R | elf.PF_W
            segments.append(Segment(elf.PT_DYNAMIC, flags, section.offset, section.address, size, size, 8))
    if relro is not None:
        segments.append(relro)
    segments.append(Segment(elf.PT_GNU_STACK, elf.PF_R | elf.PF_W, 0, 0, 0, 0, 16))
    for index, section in enumerate(sections, 1):
        section.index = index
        if section.group == Group.UNLOADED:
            offset = align(offset, section.alignment)
            section.offset = offset
            offset += section.size
    return segments


def write(sections: Sequence[OutputSection], segments: Sequence[Segment], machine: int, flags: int) -> bytes:
    """The bytes of a placed shared object; the last section holds the section names."""
    end = max(section.offset + (0 if section.kind == elf.SHT_NOBITS else section.size) for section in sections)
    header_table = align(end, 8)
    count = len(sections) + 1
    image = bytearray(header_table + count * elf.SECTION_HEADER.size)
    ident = elf.MAGIC + bytes((elf.ELFCLASS64, elf.ELFDATA2LSB, elf.EV_CURRENT)) + bytes(9)
    elf.FILE_HEADER.pack_into(
        image,
        0,
        ident,
        elf.ET_DYN,
        machine,
        elf.EV_CURRENT,
        0,
        elf.FILE_HEADER.size,
        header_table,
        flags,
        elf.FILE_HEADER.size,
        elf.PROGRAM_HEADER.size,
        len(segments),
        elf.SECTION_HEADER.size,
        count,
        sections[-1].index,
    )
    for number, segment in enumerate(segments):
        elf.PROGRAM_HEADER.pack_into(
            image,
            elf.FILE_HEADER.size + number * elf.PROGRAM_HEADER.size,
            segment.kind,
            segment.flags,
            segment.offset,
            segment.address,
            segment.address,
            segment.file_size,
            segment.memory_size,
            segment.alignment,
        )
    name_offset = 1
    for section in sections:
        if section.kind != elf.SHT_NOBITS:
            image[section.offset : section.offset + section.size] = section.data
        elf.SECTION_HEADER.pack_into(
            image,
            header_table + section.index * elf.SECTION_HEADER.size,
            name_offset,
            section.kind,
            section.flags,
            section.address,
            section.offset,
            section.size,
            section.link.index if section.link else 0,
            section.info,
            section.alignment,
            section.entry_size,
        )
        name_offset += len(section.name) + 1
    return bytes(image)


def section_names(sections: Sequence[OutputSection]) -> OutputSection:
    """The section of section names for ``sections`` and itself, in the order in which ``write`` counts them."""
    own = OutputSection(".shstrtab", elf.SHT_STRTAB, 0, Group.UNLOADED)
    names = bytearray(b"\0")
    for section in (*sections, own):
        names += section.name.encode() + b"\0"
    own.append(names, len(names), 1, b"\0")
    return own
