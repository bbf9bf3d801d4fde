"""Bounds of expressions, and which operations may wrap."""

import pytest

from gristmill.arith.bounds import Bounds
from gristmill.arith.interval import Interval
from gristmill.ir.build import call, const
from gristmill.ir.dtype import INT8, INT32, UINT8
from gristmill.ir.expr import (
    Broadcast,
    Cast,
    Div,
    FloorDiv,
    FloorMod,
    Max,
    Min,
    Mod,
    Negate,
    Ramp,
    ShiftLeft,
    ShiftRight,
    Var,
)

X, Y = Var("x", INT8), Var("y", INT8)
U = Var("u", UINT8)
RANGES = {X: Interval(-5, 9), Y: Interval(2, 4), U: Interval(3, 7)}


def eight(value):
    return const(value, INT8)


@pytest.mark.parametrize(
    ("expr", "low", "high"),
    [
        (X + Y, -3, 13),
        (X - Y, -9, 7),
        (X * Y, -20, 36),
        (X * 15, -128, 127),
        (Negate(X), -9, 5),
        (U - 3, 0, 4),
        (U - 4, 0, 255),
        (Div(X, Y), -2, 4),
        (FloorDiv(X, Y), -3, 4),
        (FloorDiv(X, X), -9, 9),
        (Mod(X, Y), -3, 3),
        (FloorMod(X, Y), 0, 3),
        (FloorMod(Y, eight(8)), 2, 4),
        (Min(X, Y), -5, 4),
        (Max(X, Y), 2, 9),
        (X & 6, 0, 6),
        (U | 8, 0, 15),
        (ShiftLeft(Y, eight(2)), 8, 16),
        (ShiftRight(X, eight(1)), -3, 4),
        (ShiftRight(X, Y), -2, 2),
        (Cast(INT32, X), -5, 9),
        (Cast(UINT8, X), 0, 255),
        (Cast(UINT8, Y), 2, 4),
        (Ramp(Y, eight(3), 4), 2, 13),
        (Broadcast(X, 4), -5, 9),
        (call("popcount", X), 0, 8),
    ],
    ids=repr,
)
def test_bounds(expr, low, high):
    assert Bounds(RANGES).of(expr) == (low, high)


def test_an_operation_may_wrap_only_outside_its_type():
    bounds = Bounds(RANGES)
    assert not bounds.may_wrap(X * 14)
    assert bounds.may_wrap(X * 15)
    assert bounds.may_wrap(U - 4)
    assert bounds.may_wrap(Cast(UINT8, X))


def test_ranges_are_narrowed_for_a_while():
    bounds = Bounds(RANGES)
    assert bounds.of(X + 1) == (-4, 10)
    total = X + 1
    with bounds.given({X: Interval(0, 3)}):
        assert bounds.of(total) == (1, 4)
        with bounds.given({X: Interval(50, 60)}):
            assert bounds.of(total) == (1, 4)  # impossible: the code is dead, and nothing is concluded
    assert bounds.of(total) == (-4, 10)
