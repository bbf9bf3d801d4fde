"""Rules for bit operations and shifts of integers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gristmill.ir.build import const, constant_value
from gristmill.ir.expr import BitAnd, BitNot, BitOr, BitXor, Expr, ShiftLeft, ShiftRight

if TYPE_CHECKING:
    from gristmill.arith.simplify import Rule, Simplifier


def and_with_all_or_none(simplifier: Simplifier, node: BitAnd) -> Expr | None:
    """``x & 0`` is 0, ``x & -1`` is ``x``, ``x & x`` is ``x``; a mask that x is under changes nothing."""
    if simplifier.same(node.a, node.b):
        return node.a
    ones = -1 if node.dtype.is_signed else node.dtype.maximum
    for mask, other in ((node.a, node.b), (node.b, node.a)):
        value = constant_value(mask)
        if value is None:
            continue
        if value == 0 and simplifier.pure(other):
            return const(0, node.dtype, node.span)
        if value == ones:
            return other
        bounds = simplifier.bounds.of(other)
        if int(value) & (int(value) + 1) == 0 and bounds.low >= 0 and bounds.high <= value:
            return other
    return None


def or_with_none(simplifier: Simplifier, node: BitOr) -> Expr | None:
    """``x | 0`` and ``x | x`` are ``x``."""
    return node.a if simplifier.same(node.a, node.b) else _other_than_zero(node)


def xor_with_none_or_itself(simplifier: Simplifier, node: BitXor) -> Expr | None:
    """``x ^ 0`` is ``x``, ``x ^ x`` is 0."""
    return const(0, node.dtype, node.span) if simplifier.same(node.a, node.b) else _other_than_zero(node)


def _other_than_zero(node: BitOr | BitXor) -> Expr | None:
    if constant_value(node.b) == 0:
        return node.a
    return node.b if constant_value(node.a) == 0 else None


def invert_twice(simplifier: Simplifier, node: BitNot) -> Expr | None:
    """``~~x`` is ``x``."""
    return node.a.a if isinstance(node.a, BitNot) else None


def shift_by_none_or_all(simplifier: Simplifier, node: ShiftLeft | ShiftRight) -> Expr | None:
    """A shift by 0 is ``x``; one by the width or more leaves 0 (of signed numbers to the right, the sign)."""
    amount = constant_value(node.b)
    if amount is None:
        return None
    if amount == 0:
        return node.a
    if 0 < amount < node.dtype.bits or not simplifier.pure(node.a):
        return None
    if isinstance(node, ShiftLeft) or node.dtype.is_unsigned or simplifier.bounds.of(node.a).low >= 0:
        return const(0, node.dtype, node.span)
    last = node.dtype.bits - 1
    return None if amount == last else ShiftRight(node.a, const(last, node.dtype), node.span)


RULES: dict[type[Expr], tuple[Rule, ...]] = {
    BitAnd: (and_with_all_or_none,),
    BitOr: (or_with_none,),
    BitXor: (xor_with_none_or_itself,),
    BitNot: (invert_twice,),
    ShiftLeft: (shift_by_none_or_all,),
    ShiftRight: (shift_by_none_or_all,),
}
