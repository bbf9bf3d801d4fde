"""Every operator of the language over every dtype, at corner values, against Python's integers and NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from gristmill.ir import expr as ir
from gristmill.ir.build import const
from gristmill.ir.dtype import BOOL, FLOAT32, FLOAT64, INT32, INT64, SIGNED, UINT64, UNSIGNED, parse_dtype

INTEGERS = (*SIGNED, *UNSIGNED)
FLOATS = (FLOAT32, FLOAT64)
NUMBERS = (*INTEGERS, *FLOATS)


def _floor_parts(a, b):
    return (0, 0) if b == 0 else divmod(a, b)


def _truncated(a, b):
    if b == 0:
        return 0, 0
    quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    return quotient, a - b * quotient


INTEGER_MEANINGS = {
    ir.Add: lambda a, b, t: a + b,
    ir.Sub: lambda a, b, t: a - b,
    ir.Mul: lambda a, b, t: a * b,
    ir.Div: lambda a, b, t: _truncated(a, b)[0],
    ir.Mod: lambda a, b, t: _truncated(a, b)[1],
    ir.FloorDiv: lambda a, b, t: _floor_parts(a, b)[0],
    ir.FloorMod: lambda a, b, t: _floor_parts(a, b)[1],
    ir.Min: lambda a, b, t: min(a, b),
    ir.Max: lambda a, b, t: max(a, b),
    ir.BitAnd: lambda a, b, t: a & b,
    ir.BitOr: lambda a, b, t: a | b,
    ir.BitXor: lambda a, b, t: a ^ b,
    ir.ShiftLeft: lambda a, b, t: a << b % 2**t.bits if b % 2**t.bits < t.bits else 0,
    ir.ShiftRight: lambda a, b, t: a >> min(b % 2**t.bits, t.bits),
}
COMPARISONS = {
    ir.Equal: np.equal,
    ir.NotEqual: np.not_equal,
    ir.Less: np.less,
    ir.LessEqual: np.less_equal,
    ir.Greater: np.greater,
    ir.GreaterEqual: np.greater_equal,
}


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_integer_arithmetic(elementwise, corner_values, pairs, dtype):
    values = corner_values(dtype)
    a, b = pairs(values, values)
    for kind, meaning in INTEGER_MEANINGS.items():
        found = elementwise(kind, (dtype, dtype), dtype, targets=("cpu:x86-64-v2",), texts=frozenset())(a, b)
        expected = [dtype.wrap(meaning(int(x), int(y), dtype)) for x, y in zip(a, b, strict=True)]
        np.testing.assert_array_equal(found, np.array(expected, found.dtype), err_msg=kind.__name__)


@pytest.mark.parametrize("dtype", [INT32, INT64, UINT64], ids=str)
@pytest.mark.parametrize("constant", [0, 1, -1, 2, 3, -7, 31, 64])
def test_division_and_shifts_by_constants(elementwise, corner_values, dtype, constant):
    values = corner_values(dtype)
    divisor = dtype.wrap(constant)
    for kind in (ir.Div, ir.Mod, ir.FloorDiv, ir.FloorMod, ir.ShiftLeft, ir.ShiftRight):
        build = lambda a, kind=kind: kind(a, const(divisor, a.dtype))  # noqa: E731
        found = elementwise(build, (dtype,), dtype, targets=("cpu:x86-64-v3",), texts=frozenset())(values)
        expected = [dtype.wrap(INTEGER_MEANINGS[kind](int(x), divisor, dtype)) for x in values]
        np.testing.assert_array_equal(found, np.array(expected, found.dtype), err_msg=kind.__name__)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_float_arithmetic(elementwise, corner_values, pairs, dtype):
    values = corner_values(dtype)
    a, b = pairs(values, values)
    with np.errstate(all="ignore"):
        meanings = {ir.Add: a + b, ir.Sub: a - b, ir.Mul: a * b, ir.Div: a / b}
    for kind, expected in meanings.items():
        found = elementwise(kind, (dtype, dtype), dtype, texts=frozenset())(a, b)
        np.testing.assert_array_equal(found, expected, err_msg=kind.__name__)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_float_minimum_and_maximum_ignore_one_nan(elementwise, corner_values, pairs, dtype):
    values = corner_values(dtype)
    a, b = pairs(values, values)
    for kind, meaning in ((ir.Min, np.fmin), (ir.Max, np.fmax)):
        np.testing.assert_array_equal(elementwise(kind, (dtype, dtype), dtype)(a, b), meaning(a, b))


def test_minimum_ignores_a_signalling_nan(elementwise):
    signalling = np.array([0x7F800001] * 8, np.uint32).view(np.float32)
    ones = np.ones(8, np.float32)
    assert (elementwise(ir.Min, (FLOAT32, FLOAT32), FLOAT32)(signalling, ones) == 1).all()
    assert (elementwise(ir.Max, (FLOAT32, FLOAT32), FLOAT32)(ones, signalling) == 1).all()


def test_no_product_and_sum_are_contracted(elementwise):
    # (1 + e)^2 - (1 + 2e) is e^2 when fused, 0 when each step is rounded.
    tiny = np.float32(2**-13)
    a = np.full(8, 1 + tiny, np.float32)
    c = np.full(8, -(1 + 2 * tiny), np.float32)
    build = lambda a, c: ir.Add(ir.Mul(a, a), c)  # noqa: E731
    np.testing.assert_array_equal(elementwise(build, (FLOAT32, FLOAT32), FLOAT32)(a, c), a * a + c)


@pytest.mark.parametrize("dtype", [*NUMBERS, BOOL], ids=str)
def test_comparisons(elementwise, corner_values, pairs, dtype):
    values = corner_values(dtype)
    a, b = pairs(values, values)
    for kind, meaning in COMPARISONS.items():
        found = elementwise(kind, (dtype, dtype), BOOL, targets=("cpu:x86-64-v2",), texts=frozenset())(a, b)
        np.testing.assert_array_equal(found, meaning(a, b), err_msg=kind.__name__)


@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
def test_negate(elementwise, corner_values, dtype):
    values = corner_values(dtype)
    found = elementwise(ir.Negate, (dtype,), dtype)(values)
    if dtype.is_float:
        np.testing.assert_array_equal(np.signbit(found), ~np.signbit(values))
    expected = -values if dtype.is_float else [dtype.wrap(-int(value)) for value in values]
    np.testing.assert_array_equal(found, np.array(expected, found.dtype))


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_bit_not(elementwise, corner_values, dtype):
    values = corner_values(dtype)
    np.testing.assert_array_equal(elementwise(ir.BitNot, (dtype,), dtype)(values), ~values)


def test_logic_of_bools(elementwise, pairs):
    a, b = pairs(np.array([False, True]), np.array([False, True]))
    for kind, meaning in (
        (ir.And, a & b),
        (ir.Or, a | b),
        (ir.BitAnd, a & b),
        (ir.BitOr, a | b),
        (ir.BitXor, a ^ b),
        (ir.Min, a & b),
        (ir.Max, a | b),
    ):
        np.testing.assert_array_equal(elementwise(kind, (BOOL, BOOL), BOOL)(a, b), meaning, err_msg=kind.__name__)
    np.testing.assert_array_equal(elementwise(ir.Not, (BOOL,), BOOL)(a), ~a)


@pytest.mark.parametrize("dtype", [*NUMBERS, BOOL], ids=str)
def test_select_and_if_then_else(elementwise, corner_values, dtype):
    values = corner_values(dtype)
    other = values[::-1].copy()
    condition = np.arange(len(values)) % 3 == 0
    run = elementwise(lambda c, a, b: ir.Select(c, a, b), (BOOL, dtype, dtype), dtype)
    np.testing.assert_array_equal(run(condition, values, other), np.where(condition, values, other))

    def choose(c, a, b):
        scalar = c if c.dtype.lanes == 1 else ir.Shuffle((c,), (0,))
        return ir.IfThenElse(scalar, a, b)

    every = np.repeat(np.arange((len(values) + 3) // 4) % 2 == 0, 4)[: len(values)]
    run = elementwise(choose, (BOOL, dtype, dtype), dtype)
    np.testing.assert_array_equal(run(every, values, other), np.where(every, values, other))


@pytest.mark.parametrize("lanes", ["int32x3", "float64x7", "uint8x1024"])
def test_odd_and_wide_vectors(elementwise, corner_values, lanes):
    dtype = parse_dtype(lanes)
    values = corner_values(dtype.element)
    run = elementwise(ir.Add, (dtype.element,) * 2, dtype.element, lanes=dtype.lanes, targets=("cpu:x86-64-v2",))
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(run(values, values), values + values)


def test_unsigned_immediates_of_64_bits(elementwise):
    values = np.arange(8, dtype=np.uint64)
    run = elementwise(lambda a: ir.Add(a, const(2**64 - 3, a.dtype)), (UINT64,), UINT64)
    np.testing.assert_array_equal(run(values), values + np.uint64(2**64 - 3))


def test_a_sum_of_thousands_of_terms(elementwise):
    def build(a):
        total = a
        for _ in range(5000):
            total = ir.Add(total, a)
        return total

    values = np.arange(8, dtype=np.int32)
    run = elementwise(build, (INT32,), INT32, targets=("cpu:x86-64-v2",), texts=frozenset(), optimization=1)
    np.testing.assert_array_equal(run(values), values * 5001)


def test_deep_nesting(elementwise):
    """Sums that lean to the right take a Python call a level."""
    values = np.array([-5, 0, 3, 1500], np.int64)
    run = elementwise(lambda a: _nested(a, 3000), (INT64,), INT64, targets=("cpu:x86-64-v2",), optimization=1)
    np.testing.assert_array_equal(run(values), values - 3000)


def _nested(a, depth):
    """``a - depth``, with the nesting on the right side, where it takes recursion."""
    found = ir.Negate(a)
    for _ in range(depth):
        found = ir.Add(const(1, a.dtype), found)
    return ir.Negate(found)
