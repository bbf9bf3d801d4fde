"""Each relocation of x86-64 writes what its table says, and instructions are relaxed only where that is right."""

from __future__ import annotations

import pytest

from gristmill.objfile.dynamic import hash_name
from gristmill.objfile.x86_64 import X86_64


@pytest.mark.parametrize(
    ("kind", "target", "place", "written"),
    [
        (1, 0x1122334455667788, 0, "8877665544332211"),
        (1, -2, 0, "feffffffffffffff"),
        (2, 0x1000, 0x2000, "00f0ffff"),
        (4, 0x2000, 0x1000, "00100000"),
        (9, 0x1000, 0x0FFF, "01000000"),
        (24, 0, 1, "ffffffffffffffff"),
        (28, 2**40, 0, "0000000000010000"),
    ],
)
def test_encodings(kind, target, place, written):
    buffer = bytearray(12)
    X86_64.rules[kind].encode(buffer, 2, target, place)
    assert buffer.hex() == ("0000" + written).ljust(24, "0")


@pytest.mark.parametrize("kind", [2, 4, 9, 41, 42])
def test_32_bits_hold_no_more(kind):
    buffer = bytearray(4)
    X86_64.rules[kind].encode(buffer, 0, 2**31 - 1, 0)
    X86_64.rules[kind].encode(buffer, 0, 0, 2**31)
    with pytest.raises(OverflowError, match="does not fit 32 bits"):
        X86_64.rules[kind].encode(buffer, 0, 2**31, 0)


@pytest.mark.parametrize(
    ("kind", "before", "after", "moved"),
    [
        (42, "488b0d00000000", "488d0d00000000", 0),  # mov x@GOTPCREL(%rip), %rcx
        (42, "4c8b3d00000000", "4c8d3d00000000", 0),  # mov x@GOTPCREL(%rip), %r15
        (41, "90ff1500000000", "9067e800000000", 0),  # call *x@GOTPCREL(%rip)
        (41, "90ff2500000000", "90e92500000090", -1),  # jmp *x@GOTPCREL(%rip): the field moves
    ],
)
def test_relaxed_instructions(kind, before, after, moved):
    code = bytearray.fromhex(before)
    assert X86_64.rules[kind].relax(code, 3, -4) == 3 + moved
    assert code.hex() == after


@pytest.mark.parametrize(
    ("before", "addend"),
    [
        ("48833d00000000", -5),  # cmpq $0, x@GOTPCREL(%rip): an immediate follows
        ("483b0500000000", -4),  # cmp x@GOTPCREL(%rip), %rax
        ("488b8100000000", -4),  # mov x(%rcx), %rax: not relative to rip
        ("90ff3500000000", -4),  # push x@GOTPCREL(%rip)
    ],
)
def test_other_instructions_keep_their_slot(before, addend):
    code = bytearray.fromhex(before)
    assert X86_64.rules[42].relax(code, 3, addend) is None
    assert code.hex() == before


def test_a_field_at_the_start_of_a_section_has_no_instruction_before_it():
    assert X86_64.rules[42].relax(bytearray(8), 1, -4) is None


@pytest.mark.parametrize(("name", "value"), [(b"", 0), (b"printf", 0x077905A6), (b"exit", 0x0006CF04)])
def test_the_hash_is_the_one_of_the_abi(name, value):
    assert hash_name(name) == value
