"""The outside of SPIR-V modules: what is let through, and what is said of each damage."""

from __future__ import annotations

import random
import struct

import pytest

from gristmill.objfile.spirv import GREATEST_BOUND, MAGIC, module_fault

NAME = b"f_kernel\0\0\0\0"
ENTRY_POINT = (15, 5, 4, *struct.unpack("<3I", NAME))


def module(*instructions: tuple[int, ...], header: tuple[int, ...] = (MAGIC, 0x10300, 0, 20, 0)) -> bytes:
    words = list(header)
    for opcode, *operands in instructions or (ENTRY_POINT,):
        words += [(len(operands) + 1) << 16 | opcode, *operands]
    return struct.pack(f"<{len(words)}I", *words)


def test_what_is_let_through() -> None:
    assert module_fault(module(), "f_kernel") == ""
    assert module_fault(module((17, 1), ENTRY_POINT, (253,), (56,)), "f_kernel") == ""
    for version in (0x10000, 0x10500, 0x10600):
        assert module_fault(module(header=(MAGIC, version, 7, GREATEST_BOUND, 0)), "f_kernel") == ""


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (b"", "has 0 bytes"),
        (module()[:-1], "bytes, which is no number of words"),
        (module()[:16], "has 16 bytes"),
        (module()[:-4], "has an instruction in word 5 that goes beyond its end"),
        (module() + b"\0\0\0\0", "has an instruction in word 11 that goes beyond its end, or has no length"),
        (module(header=(0x3022307, 0x10300, 0, 20, 0)), "begins with 0x03022307"),
        (module(header=(MAGIC, 0x10700, 0, 20, 0)), "is of version 0x00010700"),
        (module(header=(MAGIC, 0x20000, 0, 20, 0)), "is of version 0x00020000"),
        (module(header=(MAGIC, 0x10301, 0, 20, 0)), "is of version 0x00010301"),
        (module(header=(MAGIC, 0x10300, 0, 0, 0)), "says that its ids are below 0"),
        (module(header=(MAGIC, 0x10300, 0, GREATEST_BOUND + 1, 0)), "says that its ids are below 4194304"),
        (module(header=(MAGIC, 0x10300, 0, 20, 1)), "has the instruction schema 1"),
        (module((17, 1)), "has 0 entry points"),
        (module(ENTRY_POINT, (54, 2, 4, 0, 3), (253,)), "ends inside of a function"),
        (
            module(ENTRY_POINT, (54, 2, 4, 0, 3), (54, 2, 5, 0, 3), (56,)),
            "begins a function inside of another in word 16",
        ),
        (module(ENTRY_POINT, ENTRY_POINT), "has 2 entry points"),
        (module((15, 4, 4, 0x66)), "has an entry point that is no compute shader"),
        (module((15, 5, 20, 0x66)), "has an entry point that is no compute shader"),
        (module((15, 5)), "has an entry point that is no compute shader"),
        (module((15, 5, 4, 0x67)), "has the entry point b'g', not `f_kernel`"),
    ],
)
def test_damage(data: bytes, fault: str) -> None:
    assert fault in module_fault(data, "f_kernel")


def test_any_bytes_are_looked_at() -> None:
    """Whatever stands there, an answer comes, and it is the same again."""
    chance = random.Random(7)
    good = module((17, 1), ENTRY_POINT, (253,), (56,))
    for _ in range(2000):
        data = bytearray(good)
        for _ in range(chance.randrange(1, 4)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        data = data[: chance.choice((len(data), chance.randrange(len(data))))]
        assert module_fault(bytes(data), "f_kernel") == module_fault(bytes(data), "f_kernel")
