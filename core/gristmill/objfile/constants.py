"""The numbers of ELF that Gristmill reads and writes.

Source: System V Application Binary Interface, chapters 4 and 5 ("gABI"), and the GNU extensions in glibc's ``elf.h``.
Names are those of the standard, so that they can be looked up.
"""

from __future__ import annotations

import struct
from typing import Final

MAGIC: Final = b"\x7fELF"
ELFCLASS64: Final = 2
ELFDATA2LSB: Final = 1
EV_CURRENT: Final = 1

ET_REL: Final = 1
ET_DYN: Final = 3
TYPE_NAMES: Final = {1: "a relocatable object", 2: "an executable", 3: "a shared object", 4: "a core dump"}

EM_386: Final = 3
EM_ARM: Final = 40
EM_X86_64: Final = 62
EM_AARCH64: Final = 183
EM_AMDGPU: Final = 224
EM_RISCV: Final = 243
MACHINE_NAMES: Final = {
    EM_386: "i386",
    EM_ARM: "arm",
    EM_X86_64: "x86-64",
    EM_AARCH64: "aarch64",
    EM_AMDGPU: "amdgpu",
    EM_RISCV: "riscv",
}

SHT_NULL: Final = 0
SHT_PROGBITS: Final = 1
SHT_SYMTAB: Final = 2
SHT_STRTAB: Final = 3
SHT_RELA: Final = 4
SHT_HASH: Final = 5
SHT_DYNAMIC: Final = 6
SHT_NOTE: Final = 7
SHT_NOBITS: Final = 8
SHT_REL: Final = 9
SHT_DYNSYM: Final = 11
SHT_INIT_ARRAY: Final = 14
SHT_FINI_ARRAY: Final = 15
SHT_PREINIT_ARRAY: Final = 16
SHT_GROUP: Final = 17
SHT_SYMTAB_SHNDX: Final = 18
SHT_X86_64_UNWIND: Final = 0x70000001

SHF_WRITE: Final = 0x1
SHF_ALLOC: Final = 0x2
SHF_EXECINSTR: Final = 0x4
SHF_INFO_LINK: Final = 0x40
SHF_TLS: Final = 0x400
SHF_COMPRESSED: Final = 0x800
SHF_EXCLUDE: Final = 0x80000000

SHN_UNDEF: Final = 0
SHN_LORESERVE: Final = 0xFF00
SHN_ABS: Final = 0xFFF1
SHN_COMMON: Final = 0xFFF2

GRP_COMDAT: Final = 1

STB_LOCAL: Final = 0
STB_GLOBAL: Final = 1
STB_WEAK: Final = 2

STT_NOTYPE: Final = 0
STT_OBJECT: Final = 1
STT_FUNC: Final = 2
STT_SECTION: Final = 3
STT_FILE: Final = 4
STT_TLS: Final = 6
STT_GNU_IFUNC: Final = 10

STV_DEFAULT: Final = 0
STV_INTERNAL: Final = 1
STV_HIDDEN: Final = 2
STV_PROTECTED: Final = 3

PT_LOAD: Final = 1
PT_DYNAMIC: Final = 2
PT_INTERP: Final = 3
PT_NOTE: Final = 4
PT_PHDR: Final = 6
PT_TLS: Final = 7
PT_GNU_EH_FRAME: Final = 0x6474E550
PT_GNU_STACK: Final = 0x6474E551
PT_GNU_RELRO: Final = 0x6474E552
SEGMENT_NAMES: Final = {
    PT_LOAD: "LOAD",
    PT_DYNAMIC: "DYNAMIC",
    PT_INTERP: "INTERP",
    PT_NOTE: "NOTE",
    PT_PHDR: "PHDR",
    PT_TLS: "TLS",
    PT_GNU_EH_FRAME: "GNU_EH_FRAME",
    PT_GNU_STACK: "GNU_STACK",
    PT_GNU_RELRO: "GNU_RELRO",
}

PF_X: Final = 1
PF_W: Final = 2
PF_R: Final = 4

DT_NULL: Final = 0
DT_NEEDED: Final = 1
DT_PLTRELSZ: Final = 2
DT_HASH: Final = 4
DT_STRTAB: Final = 5
DT_SYMTAB: Final = 6
DT_RELA: Final = 7
DT_RELASZ: Final = 8
DT_RELAENT: Final = 9
DT_STRSZ: Final = 10
DT_SYMENT: Final = 11
DT_INIT: Final = 12
DT_FINI: Final = 13
DT_SONAME: Final = 14
DT_RPATH: Final = 15
DT_REL: Final = 17
DT_PLTREL: Final = 20
DT_TEXTREL: Final = 22
DT_JMPREL: Final = 23
DT_INIT_ARRAY: Final = 25
DT_FINI_ARRAY: Final = 26
DT_RUNPATH: Final = 29
DT_FLAGS: Final = 30
DT_PREINIT_ARRAY: Final = 32
DT_RELR: Final = 36
DT_GNU_HASH: Final = 0x6FFFFEF5
DT_DEPAUDIT: Final = 0x6FFFFEFB
DT_AUDIT: Final = 0x6FFFFEFC
DT_RELACOUNT: Final = 0x6FFFFFF9
DT_FLAGS_1: Final = 0x6FFFFFFB
DT_AUXILIARY: Final = 0x7FFFFFFD
DT_FILTER: Final = 0x7FFFFFFF

DF_TEXTREL: Final = 0x4
DF_BIND_NOW: Final = 0x8
DF_1_NOW: Final = 0x1

# Records of the 64-bit, little-endian format.
FILE_HEADER: Final = struct.Struct("<16sHHIQQQIHHHHHH")
SECTION_HEADER: Final = struct.Struct("<IIQQQQIIQQ")
PROGRAM_HEADER: Final = struct.Struct("<IIQQQQQQ")
SYMBOL: Final = struct.Struct("<IBBHQQ")
RELA: Final = struct.Struct("<QQq")
DYNAMIC: Final = struct.Struct("<QQ")


def machine_name(machine: int) -> str:
    """What people call the machine, or its number where we have no name for it."""
    return MACHINE_NAMES.get(machine, f"machine {machine}")
