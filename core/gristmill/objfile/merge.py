"""Merges the sections of several objects into the few sections of a shared object."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from gristmill.errors import Diagnostic, UserError
from gristmill.objfile import constants as elf
from gristmill.objfile.image import Group, OutputSection
from gristmill.objfile.machine import Machine
from gristmill.objfile.reader import ObjectFile, Section
from gristmill.objfile.resolve import Resolution

# Code reaches data by 32-bit distances; a page or two of headers and tables must fit as well.
LARGEST = 2**31 - 2**20

_START_CODE = (".init_array", ".fini_array", ".preinit_array", ".ctors", ".dtors")
_OUTPUTS = {
    ".text": (elf.SHT_PROGBITS, elf.SHF_ALLOC | elf.SHF_EXECINSTR, Group.CODE),
    ".rodata": (elf.SHT_PROGBITS, elf.SHF_ALLOC, Group.READ),
    ".data.rel.ro": (elf.SHT_PROGBITS, elf.SHF_ALLOC | elf.SHF_WRITE, Group.RELRO),
    ".data": (elf.SHT_PROGBITS, elf.SHF_ALLOC | elf.SHF_WRITE, Group.DATA),
    ".bss": (elf.SHT_NOBITS, elf.SHF_ALLOC | elf.SHF_WRITE, Group.DATA),
}


class SectionPlace(NamedTuple):
    """Where an input section went: offset ``offset`` of ``section``."""

    section: OutputSection
    offset: int


@dataclass(slots=True)
class Merged:
    """The output sections by name, and the place of every input section that is kept, by (object, section)."""

    sections: dict[str, OutputSection] = field(default_factory=dict)
    places: dict[tuple[int, int], SectionPlace] = field(default_factory=dict)

    def add(self, output: str, content: memoryview, size: int, alignment: int, machine: Machine) -> SectionPlace:
        section = self.sections.get(output)
        if section is None:
            section = self.sections[output] = OutputSection(output, *_OUTPUTS[output])
        fill = machine.code_fill if section.group == Group.CODE else b"\0"
        return SectionPlace(section, section.append(content, size, alignment, fill))

    def add_common(self, size: int, alignment: int, name: str, machine: Machine) -> int:
        """Room for a common symbol; gives its offset in ``.bss``."""
        if alignment > machine.page_size or size > LARGEST:
            raise _unmergeable(f"common symbol `{name}` of {size} bytes aligned to {alignment}", "is too large")
        offset = self.add(".bss", memoryview(b""), size, max(1, alignment), machine).offset
        self.check_size()
        return offset

    def check_size(self) -> None:
        total = sum(section.size for section in self.sections.values())
        if total > LARGEST:
            raise _unmergeable(f"the objects have {total} bytes of code and data together, which", "is too large")


def merge_sections(objects: Sequence[ObjectFile], resolution: Resolution, machine: Machine) -> Merged:
    """Merges what is loaded: ``.text*``, ``.rodata*``, ``.data*``, ``.bss*``, ``.data.rel.ro*``, by flags and name.

    Raises ``UserError`` GM0707, GM0708 or GM0710 for sections that cannot be part of a library of ours.
    """
    merged = Merged()
    for number, owner in enumerate(objects):
        for section in owner.sections:
            output = _output_of(owner, section, machine)
            if output is None or (number, section.index) in resolution.discarded:
                continue
            merged.places[number, section.index] = merged.add(
                output, section.data, section.size, section.alignment, machine
            )
    merged.check_size()
    return merged


def _unmergeable(subject: str, why: str, hint: str = "") -> UserError:
    hint = hint or "a library of ours holds at most 2 GiB, aligned to a page at most; allocate large arrays at run time"
    return UserError(Diagnostic("GM0710", f"{subject} {why}", hint=hint))


def _output_of(owner: ObjectFile, section: Section, machine: Machine) -> str | None:
    """The output section that ``section`` is merged into, or None where it is dropped."""
    name, kind, flags = section.name, section.kind, section.flags
    if name.startswith(_START_CODE) or kind in (elf.SHT_INIT_ARRAY, elf.SHT_FINI_ARRAY, elf.SHT_PREINIT_ARRAY):
        raise UserError(
            Diagnostic(
                "GM0708",
                f"section {name} of {owner.name} holds code that would run when the library is loaded",
                hint="no constructors, destructors or dynamically initialised globals in kernels",
            )
        )
    subject = f"section {name} of {owner.name}"
    if kind == elf.SHT_REL:
        raise _unmergeable(subject, "holds relocations without addends", "this linker reads relocations with addends")
    if not flags & elf.SHF_ALLOC or flags & elf.SHF_EXCLUDE or kind == elf.SHT_NOTE or name == ".eh_frame":
        return None
    if kind == elf.SHT_X86_64_UNWIND and machine.number == elf.EM_X86_64:
        return None
    if flags & elf.SHF_TLS:
        raise UserError(
            Diagnostic(
                "GM0707",
                f"{subject} is thread-local; packs have no thread-local storage",
                hint="pass per-thread data as an argument",
            )
        )
    if flags & elf.SHF_COMPRESSED or kind not in (elf.SHT_PROGBITS, elf.SHT_NOBITS):
        raise _unmergeable(subject, f"is of a kind ({kind:#x}) that is not linked", "emit plain code and data sections")
    if section.alignment > machine.page_size or section.size > LARGEST:
        raise _unmergeable(f"{subject}, {section.size} bytes aligned to {section.alignment},", "is too large")
    writable, executable, has_bytes = flags & elf.SHF_WRITE, flags & elf.SHF_EXECINSTR, kind == elf.SHT_PROGBITS
    if executable and (writable or not has_bytes):
        raise _unmergeable(subject, "is executable and writable, or has no bytes", "keep code and data apart")
    if executable:
        return ".text"
    if not writable:
        if not has_bytes:
            raise _unmergeable(subject, "is constant but has no bytes", "make it writable or give it contents")
        return ".rodata"
    if not has_bytes:
        return ".bss"
    return ".data.rel.ro" if name == ".data.rel.ro" or name.startswith(".data.rel.ro.") else ".data"
