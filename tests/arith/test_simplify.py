"""What the simplifier makes of expressions, and what it must leave."""

import pytest

from gristmill.arith.interval import Interval
from gristmill.arith.simplify import Simplifier, simplify
from gristmill.ir import expr as ir
from gristmill.ir.build import call, const, less
from gristmill.ir.dtype import BOOL, FLOAT32, INT8, INT32, INT64, UINT8
from gristmill.ir.expr import CallFunction, Cast, Div, FloorDiv, FloorMod, Negate, Var

X, Y, K = Var("x", INT32), Var("y", INT32), Var("i", INT32)
F = Var("f", FLOAT32)
U = Var("u", UINT8)
B = Var("b", BOOL)
RANGES = {K: Interval(0, 63)}


def c(value, dtype=INT32):
    return const(value, dtype)


CASES = [
    # Sums are linear forms, modulo 2**32.
    (X + 3 - X, "3i32"),
    ((X + Y) * 2 - Y, "x * 2i32 + y"),
    (Y - (X - 1), "y - x + 1i32"),
    (Negate(X) - 2 + 5, "3i32 - x"),
    (X - X, "0i32"),
    (X + 2147483647 + 1, "x - -2147483648i32"),
    (U + 255, "u - 1u8"),
    ((X << 3) + X, "x * 9i32"),
    (FloorDiv(X, c(4)) * 4 + FloorMod(X, c(4)), "x"),
    # Division only where the dividend does not wrap.
    (FloorDiv(K * 4 + 3, c(4)), "i"),
    (FloorMod(K * 8 + 5, c(4)), "1i32"),
    (FloorDiv(X * 4, c(4)), "x * 4i32 // 4i32"),
    (FloorDiv(FloorDiv(X, c(3)), c(5)), "x // 15i32"),
    (FloorMod(FloorMod(X, c(12)), c(4)), "x % 4i32"),
    (Div(K, c(4)), "i // 4i32"),
    (Div(X, c(4)), "x / 4i32"),
    (FloorDiv(X, c(0)), "0i32"),
    (FloorDiv(K, c(64)), "0i32"),
    # Comparisons.
    (less(K, 64), "true"),
    (ir.Greater(X, Y), "y < x"),
    (less(X, X + 1), "x < x + 1i32"),
    (less(K + X, K + X), "false"),
    (less(K * 2, K * 2 + 1), "true"),
    # Quotients by constants are at most what they come from, and less than one step below.
    (ir.LessEqual(FloorDiv(X, c(4)) * 4, X), "true"),
    (ir.LessEqual(FloorDiv(X, c(4)) * 8, X * 2), "x // 4i32 * 8i32 <= x * 2i32"),
    (ir.LessEqual(FloorDiv(K, c(4)) * 8, K * 2), "true"),
    (less(FloorDiv(K, c(4)) * 4, K), "i // 4i32 * 4i32 < i"),
    (less(FloorDiv(K, c(4)) * 4 + 3, K), "false"),
    (less(FloorDiv(K, c(4)) * 6, K), "i // 4i32 * 6i32 < i"),
    (ir.LessEqual(K, FloorDiv(K + 3, c(4)) * 4), "true"),
    # Logic and choice.
    (ir.And(B, ir.Not(ir.Not(B))), "b"),
    (ir.Not(ir.Less(F, F)), "not f < f"),
    (ir.Not(ir.Less(X, Y)), "y <= x"),
    (ir.Select(B, X, X), "x"),
    (ir.Min(K, c(63)), "i"),
    (ir.Max(K, c(70)), "70i32"),
    (ir.IfThenElse(ir.Not(B), X, Y), "if_then_else(b, y, x)"),
    # Conversions.
    (Cast(INT64, K + 3), "int64(i) + 3"),
    (Cast(INT64, X + 3), "int64(x + 3i32)"),
    (Cast(INT8, Cast(INT64, X)), "int8(x)"),
    (Cast(INT64, Cast(INT8, X)), "int64(int8(x))"),
    (Cast(INT64, Cast(INT8, K)), "int64(i)"),
    # Floats keep every bit.
    (F + 0.0, "f + 0.0"),
    (F + -0.0, "f"),
    (F - 0.0, "f"),
    (F * 1.0, "f"),
    (F * 0.0, "f * 0.0"),
    (F - F, "f - f"),
    (F + 1.0 + 2.0, "f + 1.0 + 2.0"),
    (c(0.1, FLOAT32) + 0.2, "0.3"),
    (c(1.0, FLOAT32) * 3.0, "3.0"),
    (Div(c(1.0, FLOAT32), c(3.0, FLOAT32)), "1.0 / 3.0"),
    (call("sqrt", c(4.0, FLOAT32)), "sqrt(4.0)"),
    # Bits.
    (K & 63, "i"),
    (X & 0, "0i32"),
    (X ^ X, "0i32"),
    (X >> 40, "x >> 31i32"),
    (U >> 9, "0u8"),
    # Vectors.
    (ir.Ramp(X, c(1), 4) + ir.Broadcast(Y, 4), "ramp(x + y, 1i32, 4)"),
    (ir.Broadcast(X, 4) * ir.Broadcast(Y, 4), "broadcast(x * y, 4)"),
    (ir.Ramp(X, c(0), 4), "broadcast(x, 4)"),
    (ir.Ramp(X, c(2), 4) * ir.Broadcast(c(3), 4) - ir.Broadcast(X, 4), "ramp(x * 2i32, 6i32, 4)"),
    (ir.Shuffle((ir.Ramp(X, c(2), 4),), (3,)), "x + 6i32"),
]


@pytest.mark.parametrize(("expr", "text"), CASES, ids=[repr(expr) for expr, _ in CASES])
def test_simplified(expr, text):
    assert repr(simplify(expr, RANGES)) == text


def test_calls_are_neither_dropped_nor_doubled_nor_moved():
    effect = CallFunction("f", (), INT32)
    for expr in (
        effect * 0,
        effect - effect,
        X - effect - X,
        ir.Select(ir.Less(effect, X), X, X),
        FloorDiv(effect, c(0)),
    ):
        assert simplify(expr) is expr


def test_symbolic_ends_decide_comparisons():
    simplifier = Simplifier({X: Interval(0, 2**31 - 1)})
    simplifier.symbolic.set(Y, simplifier.form(c(0)), simplifier.form(X - 1))
    assert repr(simplifier.simplify(less(Y, X))) == "true"
    assert repr(simplifier.simplify(ir.LessEqual(c(0), Y))) == "true"
    assert repr(simplifier.simplify(ir.LessEqual(X, Y))) == "false"


def test_long_sums_are_quick():
    total = X
    for number in range(300):
        total = total + (Y if number % 2 else X)
    assert repr(simplify(total)) == "x * 151i32 + y * 150i32"
