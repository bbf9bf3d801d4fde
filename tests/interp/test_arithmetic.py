"""Every operator of the language in its corner cases, against formulas that share nothing with the executor."""

from __future__ import annotations

import math
import random
import struct
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from gristmill.interp import Executor
from gristmill.ir import expr as e
from gristmill.ir.build import call
from gristmill.ir.dtype import (
    BFLOAT16,
    BOOL,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    FLOATS,
    INT8,
    INT32,
    INT64,
    SIGNED,
    UINT8,
    UNSIGNED,
    DType,
    parse_dtype,
)
from gristmill.ir.module import Function, FunctionFacts, Module
from gristmill.ir.stmt import Return

INTEGERS = (*SIGNED, *UNSIGNED)
NUMPY = {dtype: np.dtype(str(dtype)) for dtype in (*INTEGERS, BOOL, FLOAT16, FLOAT32, FLOAT64)}
NUMPY[BFLOAT16] = np.dtype(ml_dtypes.bfloat16)


class Formula:
    """An expression of some parameters, prepared for many calls."""

    def __init__(self, dtypes: list[DType], build, returns: DType | None = None) -> None:
        params = [e.Var(f"p{number}", dtype) for number, dtype in enumerate(dtypes)]
        value = build(*params)
        function = Function(
            "formula", tuple(params), (), returns or value.dtype, Return(value), FunctionFacts("formula")
        )
        self.executor = Executor(Module((function,)))

    def __call__(self, *args):
        return self.executor.call("formula", args).value


def integer_corners(dtype: DType) -> list[int]:
    values = {dtype.minimum, dtype.minimum + 1, dtype.maximum, dtype.maximum - 1, 0, 1, 2, 3, 7, dtype.bits - 1}
    values |= {dtype.bits, dtype.maximum // 2, dtype.maximum // 2 + 1}
    values |= {value for value in (-1, -2, -3, -7) if dtype.is_signed}
    return sorted(dtype.wrap(value) for value in values)


FLOAT_CORNERS = [
    0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, 3.0, 1e-3, 1 / 3, 2.0**-126, 2.0**-149, 2.0**-14, 2.0**-24,
    65504.0, 3.4028234663852886e38, -3.4028234663852886e38, 1e30, 1e-30, 2.0**31, 2.0**63, math.inf, -math.inf, math.nan,
]  # fmt: skip


def same(a: float, b: float) -> bool:
    """Bit-equal, with NaNs as one value."""
    return (a != a and b != b) or struct.pack("d", a) == struct.pack("d", b)


def float_corners(dtype: DType) -> list[float]:
    with np.errstate(over="ignore"):
        return [float(np.float64(value).astype(NUMPY[dtype])) for value in FLOAT_CORNERS]


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_integer_arithmetic_is_that_of_unbounded_integers_wrapped(dtype: DType) -> None:
    bits, wrap = dtype.bits, dtype.wrap

    def truncated(a: int, b: int) -> int:
        return 0 if b == 0 else int(Fraction(a, b))

    def floored(a: int, b: int) -> int:
        return 0 if b == 0 else math.floor(Fraction(a, b))

    formulas = {
        e.Add: lambda a, b: a + b,
        e.Sub: lambda a, b: a - b,
        e.Mul: lambda a, b: a * b,
        e.Div: truncated,
        e.Mod: lambda a, b: 0 if b == 0 else a - b * truncated(a, b),
        e.FloorDiv: floored,
        e.FloorMod: lambda a, b: 0 if b == 0 else a - b * floored(a, b),
        e.Min: min,
        e.Max: max,
        e.BitAnd: lambda a, b: a & b,
        e.BitOr: lambda a, b: a | b,
        e.BitXor: lambda a, b: a ^ b,
        e.ShiftLeft: lambda a, b: a << b if 0 <= b < bits else 0,
        e.ShiftRight: lambda a, b: a >> b if 0 <= b < bits else (-1 if a < 0 else 0),
    }
    for kind, formula in formulas.items():
        given = Formula([dtype, dtype], kind)
        for a in integer_corners(dtype):
            for b in integer_corners(dtype):
                assert given(a, b) == wrap(formula(a, b)), (kind.__name__, a, b)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_operations_with_a_constant_give_what_the_same_operations_give_with_a_variable(dtype: DType) -> None:
    for kind in (e.Add, e.Mul, e.Div, e.Mod, e.FloorDiv, e.FloorMod, e.ShiftLeft, e.ShiftRight, e.BitAnd, e.Min):
        general = Formula([dtype, dtype], kind)
        for b in integer_corners(dtype):
            special = Formula([dtype], lambda a, kind=kind, b=b: kind(a, e.IntImm(b, dtype)))
            for a in integer_corners(dtype):
                assert special(a) == general(a, b), (kind.__name__, a, b)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_operations_on_one_integer(dtype: DType) -> None:
    mask = (1 << dtype.bits) - 1
    formulas = {
        "negate": (e.Negate, lambda a: dtype.wrap(-a)),
        "not": (e.BitNot, lambda a: dtype.wrap(~a)),
        "abs": (lambda a: call("abs", a), lambda a: dtype.wrap(abs(a))),
        "popcount": (lambda a: call("popcount", a), lambda a: bin(a & mask).count("1")),
        "clz": (lambda a: call("clz", a), lambda a: len(f"{a & mask:0{dtype.bits}b}".partition("1")[0])),
        "ctz": (lambda a: call("ctz", a), lambda a: len(f"{a & mask:0{dtype.bits}b}".rpartition("1")[2])),
    }
    for name, (build, formula) in formulas.items():
        given = Formula([dtype], build)
        for a in integer_corners(dtype):
            assert given(a) == formula(a), (name, a)


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS], ids=str)
def test_comparisons(dtype: DType) -> None:
    values = float_corners(dtype) if dtype.is_float else integer_corners(dtype)
    formulas = {
        e.Equal: np.equal, e.NotEqual: np.not_equal, e.Less: np.less,
        e.LessEqual: np.less_equal, e.Greater: np.greater, e.GreaterEqual: np.greater_equal,
    }  # fmt: skip
    for kind, formula in formulas.items():
        given = Formula([dtype, dtype], kind)
        for a in values:
            for b in values:
                with np.errstate(invalid="ignore"):
                    expected = formula(*(np.array([x], dtype=NUMPY[dtype]) for x in (a, b)))[0]
                assert given(a, b) is bool(expected), (kind.__name__, a, b)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_float_arithmetic_is_rounded_once(dtype: DType) -> None:
    rng = random.Random(5)
    values = float_corners(dtype)
    for _ in range(60):
        with np.errstate(over="ignore"):
            values.append(float(np.float64(rng.uniform(-2, 2) * 2.0 ** rng.randint(-30, 30)).astype(NUMPY[dtype])))
    formulas = {e.Add: np.add, e.Sub: np.subtract, e.Mul: np.multiply, e.Div: np.divide}
    for kind, formula in formulas.items():
        given = Formula([dtype, dtype], kind)
        for a in values:
            for b in values:
                with np.errstate(all="ignore"):
                    expected = float(formula(*(np.array([x], dtype=NUMPY[dtype]) for x in (a, b)))[0])
                assert same(given(a, b), expected), (kind.__name__, a, b)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_the_lesser_and_the_greater_float(dtype: DType) -> None:
    for kind, formula in ((e.Min, min), (e.Max, max)):
        given = Formula([dtype, dtype], kind)
        for a in float_corners(dtype):
            for b in float_corners(dtype):
                found = given(a, b)
                if a != a and b != b:
                    assert found != found
                elif a != a or b != b:
                    assert found == (b if a != a else a)
                else:
                    assert found == formula(a, b)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_signs_of_floats(dtype: DType) -> None:
    negate = Formula([dtype], e.Negate)
    magnitude = Formula([dtype], lambda a: call("abs", a))
    signed = Formula([dtype, dtype], lambda a, b: call("copysign", a, b))
    for a in float_corners(dtype):
        assert same(negate(a), -a)
        assert same(magnitude(a), math.fabs(a))
        for b in float_corners(dtype):
            assert same(signed(a, b), math.copysign(a, b))


def exact_fma(a: float, b: float, c: float, dtype: DType) -> float:
    """Rounded from the exact rational value, by bisection over the format's neighbours."""
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    near = NUMPY[dtype].type(float(exact)) if abs(exact) < 2**1020 else NUMPY[dtype].type(np.inf)
    candidates = [near, np.nextafter(near, NUMPY[dtype].type(np.inf)), np.nextafter(near, NUMPY[dtype].type(-np.inf))]
    finite = [candidate for candidate in candidates if np.isfinite(candidate)]
    distances = sorted(
        (abs(Fraction(float(candidate)) - exact), _is_odd(candidate), float(candidate)) for candidate in finite
    )
    return distances[0][2]


def _is_odd(value) -> int:
    return int(np.array([value]).view(f"u{value.dtype.itemsize}")[0]) & 1


@pytest.mark.parametrize("dtype", [FLOAT16, FLOAT32, FLOAT64], ids=str)
def test_fused_multiply_and_add_rounds_once(dtype: DType) -> None:
    given = Formula([dtype, dtype, dtype], lambda a, b, c: call("fma", a, b, c))
    rng = random.Random(7)
    numpy_type = NUMPY[dtype].type
    cases = 0
    for _ in range(3000):
        a, b = (float(numpy_type(rng.uniform(-2, 2))) for _ in range(2))
        # c near -a*b, or far below it: where a rounding in between would show.
        c = float(numpy_type(-a * b if rng.random() < 0.4 else rng.uniform(-1, 1) * 2.0 ** rng.randint(-12, 12)))
        expected = exact_fma(a, b, c, dtype)
        cases += expected != float(numpy_type(numpy_type(a * b) + numpy_type(c)))
        assert given(a, b, c) == expected, (a, b, c)
    assert cases > 100  # the cases do tell one rounding from two


def test_fused_multiply_and_add_of_specials() -> None:
    given = Formula([FLOAT64] * 3, lambda a, b, c: call("fma", a, b, c))
    assert given(1e308, 10.0, -math.inf) == -math.inf  # the product does not overflow on its own
    assert given(1e300, 1e300, -1e300) == math.inf
    assert same(given(-0.0, 1.0, 0.0), 0.0)
    assert same(given(-0.0, 1.0, -0.0), -0.0)
    assert same(given(2.0, 3.0, -6.0), 0.0)
    assert given(1e-200, 1e-200, 5e-324) == 5e-324
    assert math.isnan(given(0.0, math.inf, 1.0))
    assert math.isnan(given(math.inf, 1.0, -math.inf))
    # A tie in double that is none exactly: 1 + 2**-24 + 2**-80 rounds up in float32.
    narrow = Formula([FLOAT32] * 3, lambda a, b, c: call("fma", a, b, c))
    assert narrow(2.0**-40, 2.0**-40, 1.0) == 1.0
    assert narrow(1.0 + 2.0**-23, 1.0 - 2.0**-23, 2.0**-24 * 1.0) == float(
        np.float32(1.0)
    )  # 1 - 2**-46 + 2**-24 is below the tie
    assert narrow(1.0 + 2.0**-12, 1.0 + 2.0**-12, -(1.0 + 2.0**-11)) == 2.0**-24


@pytest.mark.parametrize("source", [*INTEGERS, BOOL, *FLOATS], ids=str)
@pytest.mark.parametrize("target", [*INTEGERS, BOOL, *FLOATS], ids=str)
def test_casts(source: DType, target: DType) -> None:
    given = Formula([source], lambda a: e.Cast(target, a), target)
    if source.is_float:
        values = [
            *float_corners(source),
            *(float(np.array([x]).astype(NUMPY[source])[0]) for x in (127.5, -128.9, 300.7)),
        ]
    else:
        values = [0, 1] if source.is_bool else [*integer_corners(source), source.maximum - 2, source.maximum // 3]
    for a in values:
        found = given(a)
        if target.is_bool:
            assert found is (a != 0), a
        elif not target.is_float:
            if not source.is_float:
                assert found == target.wrap(int(a))
            elif a != a:
                assert found == 0
            elif math.isinf(a):
                assert found == (target.maximum if a > 0 else target.minimum)
            else:
                assert found == max(target.minimum, min(target.maximum, math.trunc(a))), a
        elif source.is_float:
            with np.errstate(over="ignore"):
                assert same(found, float(np.float64(a).astype(NUMPY[target]))), a
        else:
            assert same(found, nearest(int(a), target)), a


def nearest(value: int, dtype: DType) -> float:
    """An integer rounded to nearest even by exact arithmetic."""
    precision, top = {FLOAT16: (11, 16), BFLOAT16: (8, 128), FLOAT32: (24, 128), FLOAT64: (53, 1024)}[dtype]
    shift = max(0, abs(value).bit_length() - precision)
    rounded = round(Fraction(value, 1 << shift)) << shift  # round() of a Fraction is to even
    return math.copysign(math.inf, value) if abs(rounded) >= 1 << top else float(rounded)


def test_large_integers_round_once_to_float32() -> None:
    given = Formula([INT64], lambda a: e.Cast(FLOAT32, a))
    rng = random.Random(11)
    for _ in range(500):
        # A float32, half a step more, and a little: in double the little is lost.
        value = (rng.getrandbits(24) | 1 << 23) << 39 | 1 << 38 | rng.choice([0, 1])
        value = min(value, INT64.maximum)
        assert given(value) == nearest(value, FLOAT32)
        assert given(-value) == nearest(-value, FLOAT32)


@pytest.mark.parametrize("dtype", [FLOAT16, BFLOAT16], ids=str)
def test_every_half_value_goes_through_memory_and_back(dtype: DType) -> None:
    function = parse_dtype(str(dtype))
    bits = np.arange(65536, dtype=np.uint16)
    source = bits.view(NUMPY[dtype])
    from gristmill.ir.parser import parse_module

    text = f"""gristmill ir 1
    function @copy(a: {function}[65536], b: {function}[65536]) {{
      for i: int64 in 0 +: 65536 {{ b[i] = a[i] }}
    }}
    """.replace("{ b[i] = a[i] }", "{\n b[i] = a[i]\n }")
    target = np.zeros_like(source)
    Executor(parse_module(text)).call("copy", [source, target])
    is_nan = np.isnan(source.astype(np.float32))
    assert np.array_equal(target.view(np.uint16)[~is_nan], bits[~is_nan])
    assert np.isnan(target.astype(np.float32))[is_nan].all()


def test_reinterpretation() -> None:
    assert Formula([FLOAT32], lambda a: e.Reinterpret(INT32, a))(1.0) == 0x3F800000
    assert Formula([INT32], lambda a: e.Reinterpret(FLOAT32, a))(-0x80000000) == 0.0
    assert Formula([FLOAT64], lambda a: e.Reinterpret(INT64, a))(-2.0) == -0x4000000000000000
    assert Formula([INT8], lambda a: e.Reinterpret(UINT8, a))(-1) == 255
    assert Formula([FLOAT16], lambda a: e.Reinterpret(parse_dtype("uint16"), a))(1.0) == 0x3C00
    assert Formula([parse_dtype("uint16")], lambda a: e.Reinterpret(BFLOAT16, a))(0x3F80) == 1.0
    four = Formula([INT32], lambda a: e.Shuffle((e.Reinterpret(parse_dtype("uint8x4"), a),), (3,)), UINT8)
    assert four(0x12345678) == 0x12  # least significant bytes first


def test_logic_evaluates_only_what_it_needs() -> None:
    from gristmill.ir.parser import parse_module

    text = """gristmill ir 1
    function @f(a: int32[4], i: int64) -> bool {
      return i >= 4 or a[i] == 1i32 and a[i + 1] == 2i32
    }
    function @g(a: int32[4], i: int64) -> int32 {
      return if_then_else(i < 4, a[i], -1i32)
    }
    """
    executor = Executor(parse_module(text))
    a = np.array([1, 2, 0, 0], np.int32)
    assert executor.call("f", [a, 0]).value is True
    assert executor.call("f", [a, 3]).value is False  # a[4] is not read
    assert executor.call("f", [a, 100]).value is True
    assert executor.call("g", [a, 1]).value == 2
    assert executor.call("g", [a, 99]).value == -1


def test_selections() -> None:
    given = Formula([BOOL, INT32, INT32], e.Select)
    assert given(True, 1, 2) == 1
    assert given(False, 1, 2) == 2
    assert Formula([BOOL], e.Not)(True) is False
    for kind, formula in ((e.BitAnd, int.__and__), (e.BitOr, int.__or__), (e.BitXor, int.__xor__)):
        both = Formula([BOOL, BOOL], kind)
        for a in (False, True):
            for b in (False, True):
                assert both(a, b) is bool(formula(int(a), int(b)))


def test_deep_expressions_need_no_deep_stack() -> None:
    def sum_of(a: e.Expr) -> e.Expr:
        found = a
        for _ in range(20_000):
            found = e.Add(found, a)
        return found

    assert Formula([INT64], sum_of)(3) == 3 * 20_001


def test_deep_conditional_expressions() -> None:
    def chain(a: e.Expr, b: e.Expr) -> e.Expr:
        found: e.Expr = a
        for number in range(250):
            found = e.IfThenElse(
                e.Equal(b, e.IntImm(number, INT32)), e.FloorDiv(a, b), e.Add(found, e.IntImm(1, INT32))
            )
        return found

    given = Formula([INT32, INT32], chain)
    assert given(1000, 300) == 1250
    assert given(1000, 10) == 100 + 239
