"""Damaged objects and libraries: each gives a coded error or a result, never a crash."""

from __future__ import annotations

import random
import struct

import pytest

from gristmill.errors import UserError
from gristmill.objfile import describe, link_shared, read_object

PROGRAM = """
$group = comdat any
@x = global i64 5
@room = common global i32 0
@table = constant [3 x ptr] [ptr @f, ptr @g, ptr @abs]
declare i32 @abs(i32)
define i32 @f(i32 %x) { %a = call i32 @abs(i32 %x)
  %b = call i32 @h(i32 %a)
  ret i32 %b }
define weak i32 @g(i32 %x) { %p = load i64, ptr @x
  %q = trunc i64 %p to i32
  ret i32 %q }
define linkonce_odr i32 @h(i32 %x) noinline comdat($group) { %r = mul i32 %x, %x
  ret i32 %r }
define <4 x float> @v(<4 x float> %x) { %r = fmul <4 x float> %x, <float 1.5, float 2.5, float 3.5, float 4.5>
  ret <4 x float> %r }
"""
EXTREMES = (0, 1, 2, 7, 0x7F, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 2**62, 2**63, 2**64 - 1)


def damaged(data: bytes, chance: random.Random) -> bytes:
    """One of: flipped bits, extreme numbers in place of fields, a cut, a copied stretch."""
    changed = bytearray(data)
    # Headers and tables are at both ends and small: half of the damage goes there.
    spots = [chance.randrange(64), chance.randrange(len(data) * 2 // 3, len(data)), chance.randrange(len(data))]
    for _ in range(chance.choice((1, 1, 1, 2, 4, 16))):
        at = chance.choice(spots) if chance.random() < 0.5 else chance.randrange(len(data))
        width, layout = chance.choice(((1, "<B"), (2, "<H"), (4, "<I"), (8, "<Q")))
        match chance.randrange(4):
            case 0:
                changed[at % len(changed)] ^= 1 << chance.randrange(8)
            case 1 | 2:
                at = min(at // width * width, len(changed) - width)
                value = chance.choice(EXTREMES) & (256**width - 1)
                struct.pack_into(layout, changed, max(0, at), value)
            case 3:
                source = chance.randrange(len(changed))
                piece = changed[source : source + width]
                changed[at : at + len(piece)] = piece
    if chance.random() < 0.1:
        del changed[chance.randrange(1, len(changed)) :]
    return bytes(changed) if len(changed) > 8 else bytes(data[: chance.randrange(9)])


@pytest.fixture(scope="module")
def object_(compile_ir):
    return compile_ir(PROGRAM)


@pytest.fixture(scope="module")
def other(compile_ir):
    return compile_ir("declare i32 @f(i32)\ndefine i32 @other(i32 %x) { %r = call i32 @f(i32 %x)\n ret i32 %r }")


def outcome(action, seed: int) -> str:
    try:
        action()
    except UserError as error:
        codes = {diagnostic.code for diagnostic in error.diagnostics}
        assert all(code.startswith("GM07") for code in codes), f"seed {seed}: {codes}"
        return error.code
    except Exception as error:
        raise AssertionError(f"seed {seed}: {type(error).__name__}: {error}") from error
    return "done"


def test_damaged_objects(object_, other):
    start = 20_000
    print(f"seeds {start} to {start + 1999}")
    seen: dict[str, int] = {}
    for seed in range(start, start + 2000):
        bad = damaged(object_, random.Random(seed))
        result = outcome(lambda bad=bad: link_shared([bad, other], allowed_imports=["abs"]), seed)
        seen[result] = seen.get(result, 0) + 1
        outcome(lambda bad=bad: link_shared([bad], allowed_imports=["abs"], symbol_table=True), seed)
        outcome(lambda bad=bad: read_object(bad), seed)
    print(seen)
    assert seen["GM0701"] > 200
    assert len(seen) >= 5


def test_damaged_libraries(object_):
    library = link_shared([object_], allowed_imports=["abs"])
    start = 40_000
    print(f"seeds {start} to {start + 1999}")
    seen: dict[str, int] = {}
    for seed in range(start, start + 2000):
        bad = damaged(library, random.Random(seed))
        result = outcome(lambda bad=bad: describe(bad), seed)
        seen[result] = seen.get(result, 0) + 1
    print(seen)
    assert seen["GM0701"] > 200


def test_every_truncation(object_):
    for length in range(0, len(object_), 7):
        assert outcome(lambda length=length: link_shared([object_[:length]], allowed_imports=["abs"]), length) != "done"
