"""The simplifier on random expressions: the same value, nothing left to do the second time, no new object for nothing.

The evaluator here is written from the docstrings of the nodes, apart from the folding that it checks.
"""

from __future__ import annotations

import math
import random
import struct

import pytest

from gristmill.arith.bounds import Bounds
from gristmill.arith.interval import Interval
from gristmill.arith.simplify import Simplifier
from gristmill.ir import build
from gristmill.ir import expr as ir
from gristmill.ir.dtype import BOOL, FLOAT32, INT8, INT16, INT32, INT64, UINT8, UINT32, UINT64, DType
from gristmill.ir.expr import Expr, FloatImm, IntImm, Var

INTEGERS = (INT8, INT16, INT32, INT64, UINT8, UINT32, UINT64)
ARITHMETIC = (ir.Add, ir.Sub, ir.Mul, ir.Div, ir.Mod, ir.FloorDiv, ir.FloorMod, ir.Min, ir.Max)
BITWISE = (ir.BitAnd, ir.BitOr, ir.BitXor, ir.ShiftLeft, ir.ShiftRight)
COMPARISONS = (ir.Equal, ir.NotEqual, ir.Less, ir.LessEqual, ir.Greater, ir.GreaterEqual)


class RandomExpressions:
    """Makes random scalar expressions over variables with random ranges."""

    def __init__(self, random_source: random.Random) -> None:
        self.random = random_source
        self.ranges: dict[Var, Interval] = {}
        self.variables: dict[DType, list[Var]] = {dtype: [] for dtype in (*INTEGERS, BOOL, FLOAT32)}
        for dtype in (*INTEGERS, BOOL):
            for _ in range(2):
                var = Var(f"v{len(self.ranges)}", dtype)
                self.ranges[var] = self.interval(dtype)
                self.variables[dtype].append(var)
        self.variables[FLOAT32] = [Var("x", FLOAT32), Var("y", FLOAT32)]

    def interval(self, dtype: DType) -> Interval:
        kind = self.random.randrange(4)
        if kind == 0:
            return Interval.of_type(dtype)
        ends = sorted(self.number(dtype) for _ in range(2))
        if kind == 1:
            return Interval(max(0, dtype.minimum), min(dtype.maximum, self.random.choice((0, 3, 7, 63))))
        return Interval(*ends)

    def number(self, dtype: DType) -> int:
        value = self.random.choice(
            (0, 1, 2, 3, 4, 7, 8, 16, -1, -2, -8, dtype.minimum, dtype.maximum, self.random.randrange(-100, 100))
        )
        return dtype.wrap(value)

    def constant(self, dtype: DType) -> Expr:
        if dtype.is_float:
            value = self.random.choice(
                (0.0, -0.0, 1.0, -1.5, math.inf, math.nan, 3.4e38, 1e-45, self.random.uniform(-9, 9))
            )
            return build.const(value, dtype)
        return IntImm(self.number(dtype), dtype)

    def make(self, dtype: DType, depth: int) -> Expr:
        pick = self.random.randrange(10)
        if depth == 0 or pick == 0:
            return self.constant(dtype) if self.random.random() < 0.4 else self.random.choice(self.variables[dtype])
        if dtype.is_bool:
            return self.make_bool(depth)
        if pick == 1:
            return ir.Select(self.make(BOOL, depth - 1), self.make(dtype, depth - 1), self.make(dtype, depth - 1))
        if pick == 2:
            return ir.IfThenElse(self.make(BOOL, depth - 1), self.make(dtype, depth - 1), self.make(dtype, depth - 1))
        if pick == 3:
            source = self.random.choice((*INTEGERS, BOOL, FLOAT32))
            return ir.Cast(dtype, self.make(source, depth - 1))
        if dtype.is_float:
            kind = self.random.choice((ir.Add, ir.Sub, ir.Mul, ir.Min, ir.Max, ir.Negate))
            if kind is ir.Negate:
                return ir.Negate(self.make(dtype, depth - 1))
            return kind(self.make(dtype, depth - 1), self.make(dtype, depth - 1))
        if pick == 4:
            return self.random.choice((ir.Negate, ir.BitNot))(self.make(dtype, depth - 1))
        if pick == 5:
            return build.call(self.random.choice(("popcount", "clz", "ctz", "abs")), self.make(dtype, depth - 1))
        kind = self.random.choice(BITWISE if pick == 6 else ARITHMETIC[:3] if pick < 8 else ARITHMETIC)
        a = self.make(dtype, depth - 1)
        b = self.constant(dtype) if self.random.random() < 0.4 else self.make(dtype, depth - 1)
        return kind(a, b)

    def make_bool(self, depth: int) -> Expr:
        pick = self.random.randrange(6)
        if pick == 0:
            return ir.Not(self.make(BOOL, depth - 1))
        if pick <= 2:
            return self.random.choice((ir.And, ir.Or))(self.make(BOOL, depth - 1), self.make(BOOL, depth - 1))
        dtype = self.random.choice((*INTEGERS, FLOAT32, BOOL))
        return self.random.choice(COMPARISONS)(self.make(dtype, depth - 1), self.make(dtype, depth - 1))

    def values(self) -> dict[Var, int | float]:
        found: dict[Var, int | float] = {}
        for var, (low, high) in self.ranges.items():
            found[var] = self.random.choice((low, high, self.random.randint(low, high), min(high, max(low, 0))))
        for var in self.variables[FLOAT32]:
            value = self.random.choice(
                (0.0, -0.0, 1.0, math.nan, math.inf, -math.inf, 1e-45, self.random.gauss(0, 1e3))
            )
            found[var] = single(value)
        return found


def single(value: float) -> float:
    try:
        return struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)


def toward_zero(a: int, b: int) -> int:
    sign = -1 if (a < 0) != (b < 0) else 1
    return sign * (abs(a) // abs(b))


def evaluate(expr: Expr, values: dict[Var, int | float]) -> int | float:
    """The value by the docstrings of the nodes."""
    dtype = expr.dtype

    def of(part: Expr) -> int | float:
        return evaluate(part, values)

    match expr:
        case Var():
            return values[expr]
        case IntImm() | FloatImm():
            return expr.value
        case ir.Select() | ir.IfThenElse():
            return of(expr.a) if of(expr.condition) else of(expr.b)
        case ir.Cast():
            return convert(of(expr.value), expr.value.dtype, dtype)
        case ir.Not():
            return 1 - of(expr.a)
        case ir.Negate():
            return -of(expr.a) if dtype.is_float else dtype.wrap(-of(expr.a))
        case ir.BitNot():
            return dtype.wrap(~of(expr.a))
        case ir.Call():
            return evaluate_call(expr.op.name, of(expr.args[0]), dtype)
    a, b = of(expr.a), of(expr.b)
    if isinstance(expr, ir.CompareExpr):
        return compare(type(expr), a, b)
    if dtype.is_float:
        return float_operation(type(expr), a, b)
    return dtype.wrap(integer_operation(type(expr), a, b, dtype))


def compare(kind: type, a: float, b: float) -> int:
    ordered = not (math.isnan(a) or math.isnan(b))
    if kind is ir.NotEqual:
        return int(not ordered or a != b)
    table = {ir.Equal: a == b, ir.Less: a < b, ir.LessEqual: a <= b, ir.Greater: a > b, ir.GreaterEqual: a >= b}
    return int(ordered and table[kind])


def float_operation(kind: type, a: float, b: float) -> float:
    if kind in (ir.Min, ir.Max):
        if math.isnan(a) or math.isnan(b):
            return b if math.isnan(a) else a
        return (min if kind is ir.Min else max)(a, b)
    return single(a + b if kind is ir.Add else a - b if kind is ir.Sub else a * b)


def integer_operation(kind: type, a: int, b: int, dtype: DType) -> int:
    amount = b & ((1 << dtype.bits) - 1)
    match kind:
        case ir.Add:
            return a + b
        case ir.Sub:
            return a - b
        case ir.Mul:
            return a * b
        case ir.Div:
            return toward_zero(a, b) if b else 0
        case ir.Mod:
            return a - b * toward_zero(a, b) if b else 0
        case ir.FloorDiv:
            return math.floor(a // b) if b else 0
        case ir.FloorMod:
            return a - b * (a // b) if b else 0
        case ir.Min:
            return min(a, b)
        case ir.Max:
            return max(a, b)
        case ir.BitAnd | ir.And:
            return a & b
        case ir.BitOr | ir.Or:
            return a | b
        case ir.BitXor:
            return a ^ b
        case ir.ShiftLeft:
            return a << amount if amount < dtype.bits else 0
        case ir.ShiftRight:
            return a >> amount if amount < dtype.bits else (-1 if a < 0 else 0)
    raise AssertionError(kind)


def convert(value: float, source: DType, target: DType) -> int | float:
    if target.is_bool:
        return int(value != 0)
    if target.is_float:
        return exact_single(value) if not source.is_float else single(value)
    if not source.is_float:
        return target.wrap(value)
    if math.isnan(value):
        return 0
    if math.isinf(value):
        return target.maximum if value > 0 else target.minimum
    return min(max(math.trunc(value), target.minimum), target.maximum)


def exact_single(value: int) -> float:
    """The integer rounded half to even to 24 bits, on integers alone."""
    excess = max(0, abs(value).bit_length() - 24)
    kept, lost = divmod(abs(value), 1 << excess)
    half = (1 << excess) // 2
    if excess and (lost > half or (lost == half and kept & 1)):
        kept += 1
    return math.copysign(float(kept << excess), value)


def evaluate_call(name: str, a: int, dtype: DType) -> int:
    text = format(a & ((1 << dtype.bits) - 1), f"0{dtype.bits}b")
    match name:
        case "popcount":
            return text.count("1")
        case "clz":
            return len(text) - len(text.lstrip("0"))
        case "ctz":
            return len(text) - len(text.rstrip("0"))
    return dtype.wrap(abs(a))


def same_value(a: float, b: float, expr: Expr) -> bool:
    if isinstance(a, float) and isinstance(b, float) and math.isnan(a) and math.isnan(b):
        return True
    if a == 0 == b and isinstance(a, float) and not has_extreme(expr):
        return math.copysign(1, a) == math.copysign(1, b)
    return a == b


def has_extreme(expr: Expr) -> bool:
    """Whether a minimum or maximum of floats is in it, which may give either zero."""
    from gristmill.ir.functor import walk

    return any(isinstance(node, (ir.Min, ir.Max)) and node.dtype.is_float for node in walk(expr))


def show(expr: Expr) -> str:
    return repr(expr)


@pytest.mark.parametrize("seed", range(60))
def test_random_expressions(seed: int) -> None:
    print(f"seed {seed}")
    source = random.Random(seed)
    for _ in range(50):
        makes = RandomExpressions(source)
        dtype = source.choice((*INTEGERS, BOOL, FLOAT32))
        expr = makes.make(dtype, source.randrange(1, 6))
        simplifier = Simplifier(makes.ranges)
        simple = simplifier.simplify(expr)
        assert simple.dtype == dtype
        bounds = Bounds(makes.ranges)
        either_zero = has_extreme(expr)
        for _ in range(12):
            values = makes.values()
            expected = evaluate(expr, values)
            found = evaluate(simple, values)
            context = f"{show(expr)}\n-> {show(simple)}\nwith { {v.name: (x, makes.ranges.get(v)) for v, x in values.items()} }"
            if not (either_zero and expected == 0 == found):
                assert same_value(found, expected, simple), f"{found} instead of {expected}: {context}"
            if not dtype.is_float:
                low, high = bounds.of(expr)
                assert low <= expected <= high, f"{expected} outside [{low}, {high}]: {context}"
        assert simplifier.simplify(simple) is simple
        again = Simplifier(makes.ranges).simplify(simple)
        assert again is simple, f"not simple the first time: {show(expr)}\n-> {show(simple)}\n-> {show(again)}"
