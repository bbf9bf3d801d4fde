"""Comparisons of quotients with what they come from: all that the simplifier decides holds for every value."""

from __future__ import annotations

import random

from gristmill.arith.interval import Interval
from gristmill.arith.simplify import Simplifier
from gristmill.ir import expr as ir
from gristmill.ir.build import const, constant_value
from gristmill.ir.dtype import INT8, UINT8, DType
from gristmill.ir.expr import Expr, FloorDiv, IntImm, Var

KINDS = (ir.Less, ir.LessEqual, ir.Equal, ir.NotEqual, ir.Greater, ir.GreaterEqual)
PROGRAMS = 1500


def value_of(node: Expr, values: dict[Expr, int], dtype: DType) -> int:
    """The value of an expression of the operations that are drawn below, in wrapping arithmetic."""
    if node in values:
        return values[node]
    if isinstance(node, IntImm):
        return node.value
    a, b = value_of(node.a, values, dtype), value_of(node.b, values, dtype)  # type: ignore[attr-defined]
    match type(node).__name__:
        case "Add":
            return int(dtype.wrap(a + b))
        case "Sub":
            return int(dtype.wrap(a - b))
        case "Mul":
            return int(dtype.wrap(a * b))
        case "FloorDiv":
            return int(dtype.wrap(a // b))
    compared = (a < b, a <= b, a == b, a != b, a > b, a >= b)
    return int(compared[KINDS.index(type(node))])


def drawn(chance: random.Random, dtype: DType, x: Var, y: Var) -> Expr:
    """``(x ...) // c * k ... (kind) (x ...) * (k / c) ...``, either way round."""

    def number(value: int) -> Expr:
        return const(dtype.wrap(value), dtype)

    divisor = chance.choice((2, 3, 4, 8))
    factor = divisor * chance.choice((1, 1, 1, 2))
    inner = chance.choice((x, x + y, x + number(divisor - 1), x * number(2), x - y))
    left = FloorDiv(inner, number(divisor)) * number(factor) + number(chance.randint(-3, 3))
    if chance.random() < 0.4:
        left = left + y
    whole = inner * number(factor // divisor)
    right = chance.choice((whole, whole + number(chance.randint(-4, 4)), x, x + y))
    sides = (left, right) if chance.random() < 0.5 else (right, left)
    return chance.choice(KINDS)(*sides)


def test_what_is_decided_holds() -> None:
    decided = 0
    for seed in range(PROGRAMS):
        chance = random.Random(seed)
        dtype = chance.choice((INT8, UINT8))
        x, y = Var("x", dtype), Var("y", dtype)
        low = chance.randint(dtype.minimum, 20)
        first = Interval(low, min(dtype.maximum, low + chance.randint(0, 40)))
        low = chance.randint(max(dtype.minimum, -10), 10)
        second = Interval(low, low + chance.randint(0, 10))
        expr = drawn(chance, dtype, x, y)
        found = constant_value(Simplifier({x: first, y: second}).simplify(expr))
        if found is None:
            continue
        decided += 1
        for one in range(first.low, first.high + 1):
            for other in range(second.low, second.high + 1):
                assert value_of(expr, {x: one, y: other}, dtype) == found, f"seed {seed}: {expr}, {one}, {other}"
    print(f"{decided} of {PROGRAMS} comparisons are decided")
    assert decided > PROGRAMS // 3
