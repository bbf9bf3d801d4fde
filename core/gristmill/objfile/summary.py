"""Says what a shared object is and wants, as the dynamic loader will see it, and refuses what a pack may not hold.

Everything is taken from the program headers and the dynamic section, as the loader does: section headers are for tools
and may say anything. Of a shared object of a pack we ask that it name no other library, run no code when it is loaded,
have no memory that is both writable and executable, and import nothing but what is listed. This keeps mistakes and
surprises out; it cannot make code harmless: what is in a pack runs with the rights of the process that calls it.
"""

from __future__ import annotations

import struct
from collections.abc import Collection
from dataclasses import dataclass

from gristmill.errors import Diagnostic, UserError
from gristmill.objfile import constants as elf
from gristmill.objfile.reader import CheckedBytes, malformed, read_header, read_text

_RUNS_CODE = {
    elf.DT_INIT: "DT_INIT",
    elf.DT_FINI: "DT_FINI",
    elf.DT_INIT_ARRAY: "DT_INIT_ARRAY",
    elf.DT_FINI_ARRAY: "DT_FINI_ARRAY",
    elf.DT_PREINIT_ARRAY: "DT_PREINIT_ARRAY",
}
_NAMES_LIBRARY = {
    elf.DT_NEEDED: "DT_NEEDED",
    elf.DT_AUDIT: "DT_AUDIT",
    elf.DT_DEPAUDIT: "DT_DEPAUDIT",
    elf.DT_AUXILIARY: "DT_AUXILIARY",
    elf.DT_FILTER: "DT_FILTER",
    elf.DT_RPATH: "DT_RPATH",
    elf.DT_RUNPATH: "DT_RUNPATH",
}
# The kinds of dynamic relocation that call a function of the library while it is loaded, by machine.
_CALLING_RELOCATIONS = {elf.EM_X86_64: (37,), elf.EM_AARCH64: (1032,), elf.EM_386: (42,), elf.EM_RISCV: (58,)}
# The smallest page of a system that loads such files: what lies on one page is protected as one.
_PAGE = 4096


@dataclass(frozen=True, slots=True)
class SegmentSummary:
    """One program header: ``kind`` as readelf calls it, ``flags`` as in ``r-x``, sizes in bytes."""

    kind: str
    flags: str
    address: int
    file_size: int
    memory_size: int


@dataclass(frozen=True, slots=True)
class ElfSummary:
    """What a shared object is and wants."""

    machine: int
    machine_name: str
    flags: int
    os_abi: int
    soname: str
    libraries: tuple[tuple[str, str], ...]
    """Other libraries and search paths that the loader would look at: (DT_NEEDED or the like, name)."""
    exports: tuple[str, ...]
    imports: tuple[str, ...]
    segments: tuple[SegmentSummary, ...]
    runs_code: tuple[str, ...]
    """What would run when the library is loaded or unloaded: DT_INIT_ARRAY, ifunc, ..."""
    writable_code: tuple[str, ...]
    """What makes code writable or data executable: segments, a stack, text relocations."""

    @property
    def needed(self) -> tuple[str, ...]:
        """The names of the DT_NEEDED entries."""
        return tuple(name for tag, name in self.libraries if tag == "DT_NEEDED")


class _Loaded(CheckedBytes):
    """The file as the loader maps it: access by address through the PT_LOAD segments."""

    def __init__(self, data: bytes | memoryview, name: str) -> None:
        super().__init__(data, name)
        self.header = read_header(self)
        if self.header.kind != elf.ET_DYN:
            kind = elf.TYPE_NAMES.get(self.header.kind, f"of type {self.header.kind}")
            raise UserError(
                Diagnostic(
                    "GM0702", f"{name} is no shared object, it is {kind}", hint="link it to a shared object first"
                )
            )
        count = self.header.program_count
        self.programs = list(
            self.table(elf.PROGRAM_HEADER, self.header.program_offset, count, "the table of program headers")
        )
        self.loads: list[tuple[int, int, int]] = []
        end = 0
        for kind, _, offset, address, _, file_size, memory_size, alignment in self.programs:
            if kind != elf.PT_LOAD:
                continue
            self.take(offset, file_size, f"the segment at {address:#x}")
            if file_size > memory_size or address + memory_size >= 2**48:
                raise malformed(name, f"the segment at {address:#x} has {file_size} bytes, {memory_size} in memory")
            if alignment > 1 and (alignment & (alignment - 1) or (address - offset) % alignment):
                raise malformed(name, f"the segment at {address:#x}, offset {offset:#x} is not aligned to {alignment}")
            if address // _PAGE * _PAGE < end:
                raise malformed(name, f"the segment at {address:#x} lies on a page of the one before it")
            end = -(-(address + memory_size) // _PAGE) * _PAGE
            self.loads.append((address, file_size, offset))
        if not self.loads:
            raise malformed(name, "it has no loadable segment")

    def at(self, address: int, size: int, what: str) -> memoryview:
        for start, file_size, offset in self.loads:
            if start <= address and address + size <= start + file_size:
                return self.take(offset + address - start, size, what)
        raise malformed(self.name, f"{what} is at address {address:#x}, {size} bytes, in no segment")


def describe(shared: bytes | memoryview, name: str = "the shared object") -> ElfSummary:
    """What the shared object is and wants.

    Raises ``UserError`` GM0701 for a malformed file, GM0702 for one that is not a 64-bit little-endian shared object.
    """
    file = _Loaded(shared, name)
    entries = _dynamic_entries(file)
    values = dict(entries)
    strings = _strings(file, values)
    machine = file.header.machine
    runs_code = [_RUNS_CODE[tag] for tag, _ in entries if tag in _RUNS_CODE]
    relocations = _relocations(file, values)
    calling = _CALLING_RELOCATIONS.get(machine, ())
    if any(kind in calling for kind, _ in relocations):
        runs_code.append("an IRELATIVE relocation")
    exports, imports, has_ifunc = _symbols(file, values, strings, relocations)
    if has_ifunc:
        runs_code.append("an ifunc symbol")
    libraries = [
        (_NAMES_LIBRARY[tag], read_text(strings, value, name, "a library"))
        for tag, value in entries
        if tag in _NAMES_LIBRARY
    ]
    writable_code = []
    for kind, flags, _, address, *_ in file.programs:
        if kind == elf.PT_INTERP:
            libraries.append(("PT_INTERP", "a program interpreter"))
        if kind == elf.PT_LOAD and flags & elf.PF_W and flags & elf.PF_X:
            writable_code.append(f"the segment at {address:#x} is writable and executable")
        if kind == elf.PT_GNU_STACK and flags & elf.PF_X:
            writable_code.append("it asks for an executable stack")
    if elf.DT_TEXTREL in values or values.get(elf.DT_FLAGS, 0) & elf.DF_TEXTREL:
        writable_code.append("it has text relocations: the loader would write into code")
    return ElfSummary(
        machine,
        elf.machine_name(machine),
        file.header.flags,
        file.header.os_abi,
        read_text(strings, values[elf.DT_SONAME], name, "the library") if elf.DT_SONAME in values else "",
        tuple(libraries),
        exports,
        imports,
        tuple(_segment(program) for program in file.programs),
        tuple(runs_code),
        tuple(writable_code),
    )


def check_shared(
    data: bytes | memoryview, machine: int, allowed_imports: Collection[str], name: str = "the shared object"
) -> ElfSummary:
    """Describes a shared object that may be loaded: of ``machine`` (its ELF number), importing only what is allowed.

    Raises ``UserError`` GM0701, GM0702 as ``describe`` does; GM0711 when it names another library or a search path;
    GM0712 when it would run code on loading; GM0713 when memory would be writable and executable; GM0714 for another
    machine; GM0715 for an import that is not allowed.
    """
    found = describe(data, name)
    if found.machine != machine:
        raise UserError(
            Diagnostic(
                "GM0714",
                f"{name} is for {found.machine_name}, but {elf.machine_name(machine)} is needed",
                hint=f"build the pack for {elf.machine_name(machine)} too",
            )
        )
    if found.libraries:
        listed = ", ".join(f"{tag} `{library}`" for tag, library in found.libraries)
        raise UserError(
            Diagnostic(
                "GM0711",
                f"{name} would make the loader look at other files: {listed}",
                hint="link without other libraries; name extern symbols in the manifest",
            )
        )
    if found.runs_code:
        raise UserError(
            Diagnostic(
                "GM0712",
                f"{name} would run code when it is loaded: {', '.join(found.runs_code)}",
                hint="link without constructors, destructors and ifuncs",
            )
        )
    if found.writable_code:
        raise UserError(
            Diagnostic(
                "GM0713",
                f"{name} would have memory that is writable and executable: {'; '.join(found.writable_code)}",
                hint="compile position-independent code and link with separate segments",
            )
        )
    unknown = sorted(set(found.imports).difference(allowed_imports))
    if unknown:
        raise UserError(
            Diagnostic(
                "GM0715",
                f"{name} imports {', '.join(f'`{symbol}`' for symbol in unknown)}, which it may not",
                hint="declare extern symbols with their library in the manifest",
            )
        )
    return found


def _segment(program: tuple[int, ...]) -> SegmentSummary:
    kind, flags, _, address, _, file_size, memory_size, _ = program
    shown = "".join(
        letter if flags & bit else "-" for letter, bit in (("r", elf.PF_R), ("w", elf.PF_W), ("x", elf.PF_X))
    )
    return SegmentSummary(elf.SEGMENT_NAMES.get(kind, f"{kind:#x}"), shown, address, file_size, memory_size)


def _dynamic_entries(file: _Loaded) -> list[tuple[int, int]]:
    programs = [program for program in file.programs if program[0] == elf.PT_DYNAMIC]
    if len(programs) != 1:
        raise malformed(file.name, f"{len(programs)} dynamic segments instead of one")
    address, size = programs[0][3], programs[0][5]
    if size % elf.DYNAMIC.size:
        raise malformed(file.name, f"a dynamic section of {size} bytes in records of 16")
    entries: list[tuple[int, int]] = []
    for tag, value in elf.DYNAMIC.iter_unpack(file.at(address, size, "the dynamic section")):
        if tag == elf.DT_NULL:
            return entries
        entries.append((tag, value))
    raise malformed(file.name, "the dynamic section has no end")


def _strings(file: _Loaded, values: dict[int, int]) -> bytes:
    if elf.DT_STRTAB not in values or elf.DT_STRSZ not in values:
        raise malformed(file.name, "the dynamic section names no string table")
    return bytes(file.at(values[elf.DT_STRTAB], values[elf.DT_STRSZ], "the table of names"))


def _relocations(file: _Loaded, values: dict[int, int]) -> list[tuple[int, int]]:
    """The (kind, symbol index) of every dynamic relocation; those of DT_RELR are all relative ones."""
    if elf.DT_REL in values or values.get(elf.DT_PLTREL, elf.DT_RELA) != elf.DT_RELA:
        raise malformed(file.name, "dynamic relocations without addends")
    found = []
    for place, size in ((elf.DT_RELA, elf.DT_RELASZ), (elf.DT_JMPREL, elf.DT_PLTRELSZ)):
        if place not in values:
            continue
        length = values.get(size, 0)
        if length % elf.RELA.size:
            raise malformed(file.name, f"a table of relocations of {length} bytes in records of 24")
        for _, info, _ in elf.RELA.iter_unpack(file.at(values[place], length, "the table of relocations")):
            found.append((info & 0xFFFFFFFF, info >> 32))
    return found


def _symbols(
    file: _Loaded, values: dict[int, int], strings: bytes, relocations: list[tuple[int, int]]
) -> tuple[tuple[str, ...], tuple[str, ...], bool]:
    """Exported names, imported names, and whether a symbol is chosen by code at load time."""
    if elf.DT_SYMTAB not in values:
        raise malformed(file.name, "the dynamic section names no symbols")
    count = max(_hashed_symbols(file, values), 1 + max((symbol for _, symbol in relocations), default=0))
    exports, imports, has_ifunc = [], [], False
    table = file.at(values[elf.DT_SYMTAB], count * elf.SYMBOL.size, f"the table of {count} symbols")
    for index, (name_offset, info, other, section, _, _) in enumerate(elf.SYMBOL.iter_unpack(table)):
        if index == 0:
            continue
        name = read_text(strings, name_offset, file.name, f"symbol {index}")
        has_ifunc = has_ifunc or info & 15 == elf.STT_GNU_IFUNC
        if info >> 4 == elf.STB_LOCAL:
            continue
        if section == elf.SHN_UNDEF:
            imports.append(name)
        elif other & 3 in (elf.STV_DEFAULT, elf.STV_PROTECTED):
            exports.append(name)
    return tuple(exports), tuple(imports), has_ifunc


def _hashed_symbols(file: _Loaded, values: dict[int, int]) -> int:
    """How many symbols the hash tables speak of; no other table says how many there are."""
    count = 0
    if elf.DT_HASH in values:
        count = int(struct.unpack("<II", file.at(values[elf.DT_HASH], 8, "the hash table"))[1])
    if elf.DT_GNU_HASH in values:
        start = values[elf.DT_GNU_HASH]
        bucket_count, first, bloom_count, _ = struct.unpack("<IIII", file.at(start, 16, "the GNU hash table"))
        buckets_at = start + 16 + 8 * bloom_count
        buckets = file.at(buckets_at, 4 * bucket_count, "the GNU hash table")
        last = max((bucket for (bucket,) in struct.iter_unpack("<I", buckets)), default=0)
        if last < first:
            return max(count, int(first))
        # The chain of the last bucket ends at the word whose lowest bit is set.
        chain_at = buckets_at + 4 * bucket_count
        while (
            not struct.unpack("<I", file.at(chain_at + 4 * (last - first), 4, "a chain of the GNU hash table"))[0] & 1
        ):
            last += 1
        count = max(count, int(last) + 1)
    return count
