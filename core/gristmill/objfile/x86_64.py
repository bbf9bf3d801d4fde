"""The relocations of x86-64.

Source: System V ABI, AMD64 Architecture Processor Supplement, version 1.0, section 4.4.1 (table of relocation types)
and appendix B.2 (optimising GOTPCRELX).
"""

from __future__ import annotations

from gristmill.objfile.constants import EM_X86_64
from gristmill.objfile.machine import Machine, Reach, Rule

R_X86_64_64 = 1
R_X86_64_GLOB_DAT = 6
R_X86_64_RELATIVE = 8


def _nothing(buffer: bytearray, offset: int, target: int, place: int) -> None:
    """R_X86_64_NONE changes no byte."""


def _word64(buffer: bytearray, offset: int, target: int, place: int) -> None:
    buffer[offset : offset + 8] = (target & (2**64 - 1)).to_bytes(8, "little")


def _relative64(buffer: bytearray, offset: int, target: int, place: int) -> None:
    _word64(buffer, offset, target - place, place)


def _relative32(buffer: bytearray, offset: int, target: int, place: int) -> None:
    distance = target - place
    if not -(2**31) <= distance < 2**31:
        raise OverflowError(f"a distance of {distance} does not fit 32 bits")
    buffer[offset : offset + 4] = (distance & 0xFFFFFFFF).to_bytes(4, "little")


def _relax(code: bytearray, offset: int, addend: int) -> int | None:
    """``mov x@GOTPCREL(%rip), r`` becomes ``lea x(%rip), r``; indirect ``call`` and ``jmp`` become direct ones."""
    if addend != -4 or offset < 2:
        # Another addend: an immediate follows the displacement, so it is none of the three.
        return None
    opcode, mod_rm = code[offset - 2], code[offset - 1]
    if mod_rm & 0xC7 != 0x05:  # not relative to rip
        return None
    if opcode == 0x8B:  # mov r, m -> lea r, m
        code[offset - 2] = 0x8D
        return offset
    if opcode == 0xFF and mod_rm == 0x15:  # call *m -> addr32 call
        code[offset - 2 : offset] = b"\x67\xe8"
        return offset
    if opcode == 0xFF and mod_rm == 0x25:  # jmp *m -> jmp; nop
        code[offset - 2] = 0xE9
        code[offset + 3] = 0x90
        return offset - 1
    return None


def _write_stub(address: int, slot: int) -> bytes:
    """``jmp *slot(%rip)`` and a two-byte nop."""
    code = bytearray(b"\xff\x25\0\0\0\0\x66\x90")
    _relative32(code, 2, slot - 4, address + 2)
    return bytes(code)


_PC32 = Rule("R_X86_64_PC32", Reach.DIRECT, 4, _relative32)

X86_64 = Machine(
    number=EM_X86_64,
    name="x86-64",
    page_size=4096,
    rules={
        0: Rule("R_X86_64_NONE", Reach.NOTHING, 0, _nothing),
        R_X86_64_64: Rule("R_X86_64_64", Reach.ADDRESS, 8, _word64),
        2: _PC32,
        4: Rule("R_X86_64_PLT32", Reach.CALL, 4, _relative32),
        9: Rule("R_X86_64_GOTPCREL", Reach.TABLE, 4, _relative32),
        24: Rule("R_X86_64_PC64", Reach.DIRECT, 8, _relative64),
        28: Rule("R_X86_64_GOTPCREL64", Reach.TABLE, 8, _relative64),
        41: Rule("R_X86_64_GOTPCRELX", Reach.TABLE, 4, _relative32, _relax),
        42: Rule("R_X86_64_REX_GOTPCRELX", Reach.TABLE, 4, _relative32, _relax),
    },
    direct=_PC32,
    relative=R_X86_64_RELATIVE,
    glob_dat=R_X86_64_GLOB_DAT,
    symbolic=R_X86_64_64,
    stub_size=8,
    write_stub=_write_stub,
    code_fill=b"\xcc",  # int3: running into padding stops instead of sliding on
    thread_local={
        16: "R_X86_64_DTPMOD64",
        17: "R_X86_64_DTPOFF64",
        18: "R_X86_64_TPOFF64",
        19: "R_X86_64_TLSGD",
        20: "R_X86_64_TLSLD",
        21: "R_X86_64_DTPOFF32",
        22: "R_X86_64_GOTTPOFF",
        23: "R_X86_64_TPOFF32",
        34: "R_X86_64_GOTPC32_TLSDESC",
        35: "R_X86_64_TLSDESC_CALL",
        36: "R_X86_64_TLSDESC",
    },
    position_dependent={
        10: "R_X86_64_32",
        11: "R_X86_64_32S",
        12: "R_X86_64_16",
        13: "R_X86_64_PC16",
        14: "R_X86_64_8",
        15: "R_X86_64_PC8",
    },
)
