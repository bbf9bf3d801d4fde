"""Rules for integer division and remainder by constants, under the total semantics (``x / 0 = 0``, ``x % 0 = 0``).

A quotient may be split only where the dividend does not wrap, since division is not an operation modulo 2**bits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gristmill.ir.build import const, constant_value
from gristmill.ir.expr import Add, BinaryExpr, Div, Expr, FloorDiv, FloorMod, IntImm, Mod

if TYPE_CHECKING:
    from gristmill.arith.simplify import Rule, Simplifier

Division = Div | FloorDiv
Remainder = Mod | FloorMod


def divide_by_one_or_zero(simplifier: Simplifier, node: Division) -> Expr | None:
    """``x / 1`` is ``x``, ``x / 0`` is 0."""
    divisor = constant_value(node.b)
    if not node.dtype.is_integer or divisor is None:
        return None
    if divisor == 1:
        return node.a
    return const(0, node.dtype, node.span) if divisor == 0 and simplifier.pure(node.a) else None


def remainder_by_one_or_zero(simplifier: Simplifier, node: Remainder) -> Expr | None:
    """``x % 1`` and ``x % 0`` are 0."""
    divisor = constant_value(node.b)
    if divisor in (0, 1) and node.dtype.is_integer and simplifier.pure(node.a):
        return const(0, node.dtype, node.span)
    return None


def round_down_instead_of_to_zero(simplifier: Simplifier, node: Div | Mod) -> Expr | None:
    """Of numbers that are not negative both divisions are the same; the canonical one rounds down."""
    if not node.dtype.is_integer:
        return None
    bounds = simplifier.bounds
    if bounds.of(node.a).low < 0 or bounds.of(node.b).low < 0:
        return None
    kind = FloorDiv if isinstance(node, Div) else FloorMod
    return kind(node.a, node.b, node.span)


def quotient_of_small_dividend(simplifier: Simplifier, node: FloorDiv) -> Expr | None:
    """The quotient that all values of the dividend have."""
    divisor = constant_value(node.b)
    if not divisor or not simplifier.pure(node.a):
        return None
    found = simplifier.bounds.of(node.a).floor_divided(simplifier.bounds.of(node.b))
    return const(found.low, node.dtype, node.span) if found.is_point and found.fits(node.dtype) else None


def remainder_of_small_dividend(simplifier: Simplifier, node: FloorMod) -> Expr | None:
    """``x % c`` is ``x`` where 0 <= x < c."""
    dividend, divisor = simplifier.bounds.of(node.a), simplifier.bounds.of(node.b)
    if dividend.low >= 0 and dividend.high < divisor.low and simplifier.pure(node.b):
        return node.a
    return None


def divide_multiples(simplifier: Simplifier, node: FloorDiv) -> Expr | None:
    """``(4*x + y) // 4`` is ``x + y // 4``, where the dividend and y do not wrap."""
    parts = _split(simplifier, node)
    if parts is None:
        return None
    multiple, rest = parts
    return Add(multiple, FloorDiv(rest, node.b, node.span), node.span)


def drop_multiples(simplifier: Simplifier, node: FloorMod) -> Expr | None:
    """``(4*x + y) % 4`` is ``y % 4``, where the dividend and y do not wrap."""
    parts = _split(simplifier, node)
    return None if parts is None else FloorMod(parts[1], node.b, node.span)


def _split(simplifier: Simplifier, node: BinaryExpr) -> tuple[Expr, Expr] | None:
    if not isinstance(node.b, IntImm) or node.b.value <= 1 or not simplifier.pure(node.a):
        return None
    form = simplifier.form(node.a)
    multiple, rest = form.split(node.b.value)
    if multiple.is_constant and multiple.constant == 0:
        return None
    bounds = simplifier.bounds
    if not form.fits(bounds) or not rest.fits(bounds):
        return None
    # A dividend that was not negative stays so: rounding down costs more for signed numbers.
    if rest.ideal(bounds).low < 0 <= form.ideal(bounds).low:
        return None
    return multiple.build(), rest.build()


def join_quotients(simplifier: Simplifier, node: FloorDiv) -> Expr | None:
    """``(x // a) // b`` is ``x // (a * b)`` for positive constants whose product fits."""
    inner = node.a
    if not isinstance(inner, FloorDiv) or not isinstance(inner.b, IntImm) or not isinstance(node.b, IntImm):
        return None
    product = inner.b.value * node.b.value
    if inner.b.value <= 0 or node.b.value <= 0 or product > node.dtype.maximum:
        return None
    return FloorDiv(inner.a, const(product, node.dtype), node.span)


def join_remainders(simplifier: Simplifier, node: FloorMod) -> Expr | None:
    """``(x % (a * b)) % a`` is ``x % a`` for positive constants."""
    inner = node.a
    if not isinstance(inner, FloorMod) or not isinstance(inner.b, IntImm) or not isinstance(node.b, IntImm):
        return None
    if node.b.value > 0 and inner.b.value > 0 and inner.b.value % node.b.value == 0:
        return FloorMod(inner.a, node.b, node.span)
    return None


RULES: dict[type[Expr], tuple[Rule, ...]] = {
    Div: (divide_by_one_or_zero, round_down_instead_of_to_zero),
    Mod: (remainder_by_one_or_zero, round_down_instead_of_to_zero),
    FloorDiv: (divide_by_one_or_zero, quotient_of_small_dividend, join_quotients, divide_multiples),
    FloorMod: (remainder_by_one_or_zero, remainder_of_small_dividend, join_remainders, drop_multiples),
}
