"""Rules for comparisons: decided by bounds where they can be, and written with ``<``, ``<=``, ``==`` and ``!=`` only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gristmill.arith.linear import LinearForm
from gristmill.ir.build import const
from gristmill.ir.expr import CompareExpr, Equal, Expr, Greater, GreaterEqual, Less, LessEqual, NotEqual

if TYPE_CHECKING:
    from gristmill.arith.simplify import Rule, Simplifier


def turn_greater_around(simplifier: Simplifier, node: Greater | GreaterEqual) -> Expr | None:
    """``a > b`` is ``b < a``."""
    if not simplifier.pure(node.a, node.b):
        return None
    kind = Less if isinstance(node, Greater) else LessEqual
    return kind(node.b, node.a, node.span)


def decide_comparison(simplifier: Simplifier, node: CompareExpr) -> Expr | None:
    """A comparison whose result the bounds prove is a constant."""
    value = decide(simplifier, type(node), node.a, node.b)
    return None if value is None else const(value, node.dtype, node.span)


def decide(simplifier: Simplifier, kind: type[Expr], a: Expr, b: Expr) -> bool | None:
    """Whether ``a (kind) b`` holds for integers or bools; None if that is not known or an operand has an effect."""
    if not (a.dtype.is_integer or a.dtype.is_bool) or not simplifier.pure(a, b):
        return None
    if simplifier.same(a, b):
        return kind in (Equal, LessEqual, GreaterEqual)
    if kind in (Greater, GreaterEqual):
        a, b = b, a
        kind = Less if kind is Greater else LessEqual
    bounds = simplifier.bounds
    left, right = bounds.of(a), bounds.of(b)
    low, high = left.low - right.high, left.high - right.low
    found = _decided(kind, low, high)
    if found is None and a.dtype.is_integer and a.dtype.lanes == 1:
        found = _decided(kind, *_difference(simplifier, a, b))
    return found


def _difference(simplifier: Simplifier, a: Expr, b: Expr) -> tuple[int, int]:
    """Bounds of ``a - b`` in unbounded integers, with common terms taken out, by symbolic ranges too."""
    bounds = simplifier.bounds
    # A side that may wrap stands for itself as a whole.
    sides = []
    for side in (a, b):
        form = simplifier.form(side)
        if not form.fits(bounds):
            form = LinearForm(side.dtype)
            form.add_term(simplifier.numbers.of(side), side, 1)
        sides.append(form)
    upward, downward = sides[0].difference(sides[1]), sides[1].difference(sides[0])
    symbolic = simplifier.symbolic
    return -symbolic.upper_bound(downward, bounds), symbolic.upper_bound(upward, bounds)


def _decided(kind: type[Expr], low: int, high: int) -> bool | None:
    """What is known of the comparison when the difference of its sides is in ``[low, high]``."""
    if kind is Less:
        return True if high < 0 else False if low >= 0 else None
    if kind is LessEqual:
        return True if high <= 0 else False if low > 0 else None
    if low > 0 or high < 0:
        return kind is NotEqual
    return kind is Equal if low == high == 0 else None


RULES: dict[type[Expr], tuple[Rule, ...]] = {
    **dict.fromkeys((Equal, NotEqual, Less, LessEqual), (decide_comparison,)),
    **dict.fromkeys((Greater, GreaterEqual), (turn_greater_around, decide_comparison)),
}
