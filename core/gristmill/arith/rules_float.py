"""Rules for floats: only those that keep every bit, of zeros of two signs and infinities too (NaNs count as one)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from gristmill.ir.build import constant_value
from gristmill.ir.expr import Add, Div, Expr, Mul, Negate, Sub

if TYPE_CHECKING:
    from gristmill.arith.simplify import Rule, Simplifier


def _is_zero(expr: Expr, sign: float) -> bool:
    value = constant_value(expr)
    return value == 0 and math.copysign(1.0, float(value)) == sign


def add_negative_zero(simplifier: Simplifier, node: Add) -> Expr | None:
    """``x + -0.0`` is ``x``; ``x + 0.0`` is not, of x = -0.0."""
    if not node.dtype.is_float:
        return None
    if _is_zero(node.b, -1.0):
        return node.a
    return node.b if _is_zero(node.a, -1.0) else None


def subtract_zero(simplifier: Simplifier, node: Sub) -> Expr | None:
    """``x - 0.0`` is ``x``."""
    return node.a if node.dtype.is_float and _is_zero(node.b, 1.0) else None


def multiply_by_one(simplifier: Simplifier, node: Mul) -> Expr | None:
    """``x * 1.0`` is ``x``."""
    if not node.dtype.is_float:
        return None
    if constant_value(node.b) == 1:
        return node.a
    return node.b if constant_value(node.a) == 1 else None


def divide_by_one(simplifier: Simplifier, node: Div) -> Expr | None:
    """``x / 1.0`` is ``x``."""
    return node.a if node.dtype.is_float and constant_value(node.b) == 1 else None


def negate_twice(simplifier: Simplifier, node: Negate) -> Expr | None:
    """``--x`` is ``x``."""
    return node.a.a if node.dtype.is_float and isinstance(node.a, Negate) else None


RULES: dict[type[Expr], tuple[Rule, ...]] = {
    Add: (add_negative_zero,),
    Sub: (subtract_zero,),
    Mul: (multiply_by_one,),
    Div: (divide_by_one,),
    Negate: (negate_twice,),
}
