"""Rules for casts: those that change nothing, chains of them, and casts of regular vectors and of sums."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gristmill.ir.build import cast
from gristmill.ir.dtype import DType
from gristmill.ir.expr import Broadcast, Cast, Expr, Ramp, Reinterpret

if TYPE_CHECKING:
    from gristmill.arith.simplify import Rule, Simplifier


def drop_cast_to_own_type(simplifier: Simplifier, node: Cast) -> Expr | None:
    """``T(x)`` is ``x`` where x is of type T."""
    return node.value if node.type == node.value.dtype else None


def _is_integral(dtype: DType) -> bool:
    return dtype.is_integer or dtype.is_bool


def join_integer_casts(simplifier: Simplifier, node: Cast) -> Expr | None:
    """``T(S(x))`` is ``T(x)`` where S keeps the value of x, or keeps all bits that T keeps."""
    inner = node.value
    if not isinstance(inner, Cast) or not _is_integral(inner.value.dtype) or not inner.type.is_integer:
        return None
    keeps_value = not simplifier.bounds.may_wrap(inner)
    keeps_bits = node.type.is_integer and node.type.bits <= inner.type.bits
    return Cast(node.type, inner.value, node.span) if keeps_value or keeps_bits else None


def cast_scalar_of_broadcast(simplifier: Simplifier, node: Cast) -> Expr | None:
    """A cast of a broadcast is a broadcast of a cast."""
    if not isinstance(node.value, Broadcast):
        return None
    return Broadcast(cast(node.value.value, node.type.element, node.span), node.value.lanes, node.span)


def cast_parts_of_ramp(simplifier: Simplifier, node: Cast) -> Expr | None:
    """A cast of a ramp that doesn't wrap is a ramp of casts, for integers that become wider or keep their width."""
    ramp = node.value
    if not isinstance(ramp, Ramp) or not node.type.is_integer:
        return None
    bounds = simplifier.bounds
    steps = bounds.of(ramp.stride).scaled(ramp.lanes - 1)
    ends = bounds.of(ramp.base).plus(steps.union(bounds.of(ramp.stride).scaled(0)))
    if not ends.fits(ramp.dtype) and node.type.bits > ramp.dtype.bits:
        return None
    element = node.type.element
    return Ramp(cast(ramp.base, element), cast(ramp.stride, element), ramp.lanes, node.span)


def widen_terms_of_sum(simplifier: Simplifier, node: Cast) -> Expr | None:
    """A widening cast of a sum that doesn't wrap is the sum of the casts, where it joins other index arithmetic."""
    if not node.type.is_integer or not node.value.dtype.is_integer or node.type.bits <= node.value.dtype.bits:
        return None
    if node.dtype.lanes > 1:
        return None
    widened = simplifier.form(node).build(node.span)
    return None if simplifier.numbers.of(widened) == simplifier.numbers.of(node) else widened


def drop_reinterpretation(simplifier: Simplifier, node: Reinterpret) -> Expr | None:
    """Bits read as the type they have are the value; of two readings only the last counts."""
    if node.type == node.value.dtype:
        return node.value
    if isinstance(node.value, Reinterpret):
        return Reinterpret(node.type, node.value.value, node.span)
    return None


RULES: dict[type[Expr], tuple[Rule, ...]] = {
    Cast: (
        drop_cast_to_own_type,
        join_integer_casts,
        cast_scalar_of_broadcast,
        cast_parts_of_ramp,
        widen_terms_of_sum,
    ),
    Reinterpret: (drop_reinterpretation,),
}
