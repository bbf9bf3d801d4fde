"""Links relocatable objects into a shared object, with no linker installed.

``link_shared`` resolves symbols (``resolve``), merges sections (``merge``), gives out offset-table slots and call stubs
for what is imported, lays out the file (``image``) and writes the loader's tables (``dynamic``). What a machine's
relocations mean is in that machine's file. What is left out on purpose: ``.eh_frame``, notes and debug sections are
dropped (kernels raise no exceptions), equal constants of mergeable sections are not folded, and nothing is collected as
garbage.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from gristmill.errors import Diagnostic, UserError
from gristmill.objfile import constants as elf
from gristmill.objfile.dynamic import DynamicRelocation, DynamicSymbol, DynamicTables
from gristmill.objfile.image import Group, OutputSection, place, section_names, write
from gristmill.objfile.machine import Machine, Reach, Rule
from gristmill.objfile.machines import MACHINES
from gristmill.objfile.merge import Merged, SectionPlace, merge_sections
from gristmill.objfile.reader import ObjectFile, Relocation, Symbol, malformed, read_object
from gristmill.objfile.refusals import missing_export, refused_relocation, undefined_symbol
from gristmill.objfile.resolve import Global, Resolution, Strength, resolve
from gristmill.objfile.static_symbols import StaticSymbols


def link_shared(
    objects: Sequence[bytes],
    *,
    exports: Sequence[str] | None = None,
    allowed_imports: Collection[str],
    soname: str = "",
    names: Sequence[str] | None = None,
    symbol_table: bool = False,
) -> bytes:
    """Links ``objects`` (64-bit little-endian ET_REL, position-independent code) into a shared object.

    ``exports`` are the names to be seen from outside; None means every global symbol of default or protected
    visibility. Names that no object defines must be in ``allowed_imports``; the loader then finds them among the
    libraries of the process, for the result names no library (no DT_NEEDED). A weak reference that may not be imported
    is null. ``names`` are what messages call the objects. ``symbol_table`` keeps the names of local symbols for
    debuggers. The same objects give the same bytes.

    Raises ``UserError``: GM0701, GM0702 an object cannot be read; GM0703 undefined symbols; GM0704 symbols defined
    twice; GM0705 an unknown relocation; GM0706 a relocation that is not position independent or does not fit; GM0707
    thread-local storage; GM0708 code that would run at load time; GM0709 an export that nobody defines; GM0710 a
    section that cannot be merged.
    """
    if names is None:
        names = [f"object {number} of {len(objects)}" for number in range(1, len(objects) + 1)]
    read = [read_object(data, name) for data, name in zip(objects, names, strict=True)]
    if not read:
        raise UserError(Diagnostic("GM0702", "there is no object to link", hint="give at least one object file"))
    return _Link(read, _machine_of(read), exports, frozenset(allowed_imports), soname).run(symbol_table)


def _machine_of(objects: Sequence[ObjectFile]) -> Machine:
    first = objects[0]
    for other in objects:
        if other.machine != first.machine:
            raise UserError(
                Diagnostic(
                    "GM0702",
                    f"{other.name} is for {elf.machine_name(other.machine)}, {first.name} for "
                    f"{elf.machine_name(first.machine)}",
                    hint="link objects of one machine at a time",
                )
            )
    machine = MACHINES.get(first.machine)
    if machine is None:
        known = ", ".join(known.name for known in MACHINES.values())
        raise UserError(
            Diagnostic(
                "GM0702",
                f"{first.name} is for {elf.machine_name(first.machine)}, which this linker does not know",
                hint=f"it links: {known}",
            )
        )
    return machine


@dataclass(eq=False, slots=True)
class _Target:
    """What a symbol stands for: a place in an output section, an absolute value (no section), or an import."""

    name: str
    section: OutputSection | None = None
    offset: int = 0
    imported: DynamicSymbol | None = None
    slot: int = -1
    """Offset of its slot in the offset table, once it has one."""
    stub: int = -1
    """Offset of its call stub, once it has one."""

    @property
    def address(self) -> int:
        return self.offset + (self.section.address if self.section else 0)


class _Fixup(NamedTuple):
    """A field to be written when all addresses are known."""

    section: OutputSection
    offset: int
    rule: Rule
    base: OutputSection | None
    displacement: int
    owner: str
    symbol: str


@dataclass(eq=False, slots=True)
class _Link:
    """One run of the linker: the objects, and what has been found out about them so far."""

    objects: Sequence[ObjectFile]
    machine: Machine
    exports: Sequence[str] | None
    allowed_imports: frozenset[str]
    soname: str
    resolution: Resolution = field(init=False)
    merged: Merged = field(init=False)
    globals: dict[str, _Target] = field(default_factory=dict)
    locals: dict[tuple[int, int], _Target] = field(default_factory=dict)
    imports: list[DynamicSymbol] = field(default_factory=list)
    missing: dict[str, Diagnostic] = field(default_factory=dict)
    fixups: list[_Fixup] = field(default_factory=list)
    dynamic: list[DynamicRelocation] = field(default_factory=list)
    table: OutputSection = field(init=False)
    stubs: OutputSection = field(init=False)
    stub_targets: list[_Target] = field(default_factory=list)

    def run(self, symbol_table: bool) -> bytes:
        alloc = elf.SHF_ALLOC
        self.table = OutputSection(".got", elf.SHT_PROGBITS, alloc | elf.SHF_WRITE, Group.RELRO, 8, entry_size=8)
        code = alloc | elf.SHF_EXECINSTR
        self.stubs = OutputSection(".plt", elf.SHT_PROGBITS, code, Group.CODE, 16, entry_size=self.machine.stub_size)
        self.resolution = resolve(self.objects)
        self.merged = merge_sections(self.objects, self.resolution, self.machine)
        exported = self.exported_symbols()
        for (number, section), where in self.merged.places.items():
            for relocation in self.objects[number].relocations.get(section, ()):
                self.scan(number, section, where, relocation)
        if self.missing:
            raise UserError(self.missing.values())
        tables = DynamicTables([*self.imports, *exported], self.dynamic, self.soname, self.machine.relative)
        sections = self.arrange(tables)
        symbols = StaticSymbols(self.objects, self.resolution, self.merged) if symbol_table else None
        if symbols is not None:
            sections += [symbols.table, symbols.strings]
        sections.append(section_names(sections))
        segments = place(sections, self.machine.page_size)
        self.apply()
        tables.fill()
        if symbols is not None:
            symbols.fill()
        return write(sections, segments, self.machine.number, self.objects[0].flags)

    def exported_symbols(self) -> list[DynamicSymbol]:
        """The defined symbols that the outside sees, by name."""
        names = self.resolution.names
        if self.exports is None:
            chosen = [entry for entry in names.values() if entry.strength and entry.is_visible]
        else:
            chosen = []
            for name in dict.fromkeys(self.exports):
                entry = names.get(name)
                if entry is None or not entry.strength or not entry.is_visible:
                    raise missing_export(name, names, self.objects)
                chosen.append(entry)
        found = []
        for entry in sorted(chosen, key=lambda entry: entry.name):
            target = self.global_target(entry)
            symbol = entry.symbol
            assert symbol is not None  # every definition has its symbol
            found.append(
                DynamicSymbol(
                    entry.name,
                    symbol.binding,
                    symbol.kind if symbol.kind <= elf.STT_FUNC else elf.STT_NOTYPE,
                    entry.visibility,
                    target.section,
                    target.offset,
                    target.section is None,
                    max(symbol.size, entry.common_size if entry.strength == Strength.COMMON else 0),
                )
            )
        return found

    def target(self, number: int, symbol: Symbol) -> _Target:
        """What ``symbol`` of object ``number`` stands for in this link."""
        if symbol.binding != elf.STB_LOCAL:
            return self.global_target(self.resolution.names[symbol.name])
        found = self.locals.get((number, symbol.index))
        if found is None:
            found = self.locals[number, symbol.index] = self.place_of(number, symbol)
        return found

    def global_target(self, entry: Global) -> _Target:
        found = self.globals.get(entry.name)
        if found is not None:
            return found
        if entry.strength == Strength.COMMON:
            offset = self.merged.add_common(entry.common_size, entry.common_alignment, entry.name, self.machine)
            found = _Target(entry.name, self.merged.sections[".bss"], offset)
        elif entry.symbol is not None:
            found = self.place_of(entry.owner, entry.symbol)
        elif entry.name in self.allowed_imports and entry.is_visible:
            symbol = DynamicSymbol(entry.name, elf.STB_GLOBAL if entry.wanted else elf.STB_WEAK)
            self.imports.append(symbol)
            found = _Target(entry.name, imported=symbol)
        else:
            if entry.wanted:
                self.missing[entry.name] = undefined_symbol(entry, self.objects, self.allowed_imports)
            found = _Target(entry.name)
        self.globals[entry.name] = found
        return found

    def place_of(self, number: int, symbol: Symbol) -> _Target:
        owner = self.objects[number]
        if symbol.section == elf.SHN_ABS:
            return _Target(symbol.name, None, symbol.value)
        where = self.merged.places.get((number, symbol.section))
        if where is None:
            if symbol.section == elf.SHN_UNDEF and symbol.index == 0:
                return _Target("")
            section = owner.sections[symbol.section].name if symbol.section < len(owner.sections) else "common"
            raise UserError(
                Diagnostic(
                    "GM0710",
                    f"{owner.name} refers to symbol `{symbol.name}` in section `{section}`, which is not linked",
                    hint="code, constants and data are linked; notes, debug sections and unwind tables are not",
                )
            )
        if symbol.value > owner.sections[symbol.section].size:
            raise malformed(owner.name, f"symbol `{symbol.name}` lies at {symbol.value:#x}, outside of its section")
        return _Target(symbol.name, where.section, where.offset + symbol.value)

    def scan(self, number: int, section: int, where: SectionPlace, relocation: Relocation) -> None:
        """Decides how one relocation is met: a field to write later, a slot, a stub, a relocation for the loader."""
        owner = self.objects[number]
        rule = self.machine.rules.get(relocation.kind)
        symbol = owner.symbols[relocation.symbol]
        if rule is None:
            raise refused_relocation(self.machine, owner, section, relocation)
        if rule.reach == Reach.NOTHING:
            return
        if relocation.offset + rule.width > owner.sections[section].size:
            raise malformed(owner.name, f"a relocation at {relocation.offset:#x} of section {section}, beyond its end")
        if where.section.kind == elf.SHT_NOBITS:
            raise malformed(owner.name, f"a relocation in section {section}, which has no bytes")
        target = self.target(number, symbol)
        shown = symbol.name or f"section {symbol.section}"
        offset, addend = where.offset + relocation.offset, relocation.addend
        reach = rule.reach
        if reach == Reach.ADDRESS:
            self.scan_address(owner, where.section, offset, rule, target, addend)
            return
        if reach == Reach.TABLE and rule.relax is not None and target.section is not None:
            relaxed = rule.relax(where.section.data, offset, addend)
            if relaxed is not None:
                self.fix(
                    owner, where.section, relaxed, self.machine.direct, target.section, target.offset + addend, shown
                )
                return
        if reach == Reach.TABLE:
            self.fix(owner, where.section, offset, rule, self.table, self.slot(target) + addend, shown)
        elif reach == Reach.CALL and target.imported is not None:
            self.fix(owner, where.section, offset, rule, self.stubs, self.stub(target) + addend, shown)
        elif reach == Reach.DIRECT and target.section is None and target.name not in self.missing:
            what = "imported" if target.imported is not None else "absolute"
            raise UserError(
                Diagnostic(
                    "GM0706",
                    f"{owner.name} reaches the {what} symbol `{shown}` by {rule.name}, which stays inside one library",
                    hint="generate position-independent code (LLVM: reloc=pic) and declare imports as external",
                )
            )
        else:
            self.fix(owner, where.section, offset, rule, target.section, target.offset + addend, shown)

    def scan_address(
        self, owner: ObjectFile, section: OutputSection, offset: int, rule: Rule, target: _Target, addend: int
    ) -> None:
        if target.section is None and target.imported is None:
            self.fix(owner, section, offset, rule, None, target.offset + addend, target.name)
            return
        if not section.flags & elf.SHF_WRITE:
            raise UserError(
                Diagnostic(
                    "GM0706",
                    f"{owner.name} stores the address of `{target.name}` in {section.name}, which the loader cannot "
                    "write to",
                    hint="generate position-independent code (LLVM: reloc=pic): such constants go to .data.rel.ro",
                )
            )
        if target.imported is not None:
            self.dynamic.append(
                DynamicRelocation(self.machine.symbolic, section, offset, symbol=target.imported, addend=addend)
            )
        else:
            self.dynamic.append(
                DynamicRelocation(
                    self.machine.relative, section, offset, target=target.section, addend=target.offset + addend
                )
            )

    def fix(
        self,
        owner: ObjectFile,
        section: OutputSection,
        offset: int,
        rule: Rule,
        base: OutputSection | None,
        displacement: int,
        symbol: str,
    ) -> None:
        self.fixups.append(_Fixup(section, offset, rule, base, displacement, owner.name, symbol))

    def slot(self, target: _Target) -> int:
        if target.slot < 0:
            target.slot = self.table.append(bytes(8), 8, 8, b"\0")
            if target.imported is not None:
                self.dynamic.append(
                    DynamicRelocation(self.machine.glob_dat, self.table, target.slot, symbol=target.imported)
                )
            elif target.section is not None:
                self.dynamic.append(
                    DynamicRelocation(
                        self.machine.relative, self.table, target.slot, target=target.section, addend=target.offset
                    )
                )
            else:
                word = (target.offset & (2**64 - 1)).to_bytes(8, "little")
                self.table.data[target.slot : target.slot + 8] = word
        return target.slot

    def stub(self, target: _Target) -> int:
        if target.stub < 0:
            self.slot(target)
            size = self.machine.stub_size
            target.stub = self.stubs.append(bytes(size), size, 1, b"\0")
            self.stub_targets.append(target)
        return target.stub

    def arrange(self, tables: DynamicTables) -> list[OutputSection]:
        """The sections in the order of the file: by group, those without bytes last in theirs."""
        merged = self.merged.sections
        order = [
            tables.symbol_section,
            tables.hash_section,
            tables.string_section,
            tables.relocation_section,
            merged.get(".rodata"),
            merged.get(".text"),
            self.stubs,
            merged.get(".data.rel.ro"),
            tables.dynamic_section,
            self.table,
            merged.get(".data"),
            merged.get(".bss"),
        ]
        return [section for section in order if section is not None and section.size]

    def apply(self) -> None:
        """Writes all fields and stubs; every section has its address by now."""
        for target in self.stub_targets:
            start, size = target.stub, self.machine.stub_size
            address = self.stubs.address + start
            self.stubs.data[start : start + size] = self.machine.write_stub(address, self.table.address + target.slot)
        for fixup in self.fixups:
            base = fixup.base.address if fixup.base is not None else 0
            try:
                fixup.rule.encode(
                    fixup.section.data, fixup.offset, base + fixup.displacement, fixup.section.address + fixup.offset
                )
            except OverflowError as error:
                raise UserError(
                    Diagnostic(
                        "GM0706",
                        f"{fixup.owner}: {fixup.rule.name} against `{fixup.symbol}` at {fixup.section.name}+"
                        f"{fixup.offset:#x}: {error}",
                        hint="the code and data of one library must stay below 2 GiB",
                    )
                ) from None
