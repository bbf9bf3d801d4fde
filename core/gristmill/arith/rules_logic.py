"""Rules for logical and, or, not. The second operand of and and or is not evaluated where the first decides."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gristmill.ir.build import constant_value
from gristmill.ir.expr import And, Call, Equal, Expr, Less, LessEqual, Not, NotEqual, Or

if TYPE_CHECKING:
    from gristmill.arith.simplify import Rule, Simplifier


def shorten_logic(simplifier: Simplifier, node: And | Or) -> Expr | None:
    """An operand that is constant decides, or leaves the other; an operand twice is once."""
    neutral = 1 if isinstance(node, And) else 0
    first, second = constant_value(node.a), constant_value(node.b)
    if first is not None:
        if first == neutral:
            return node.b
        # Vectors evaluate both.
        return node.a if node.dtype.lanes == 1 or simplifier.pure(node.b) else None
    if second is not None:
        if second == neutral:
            return node.a
        return node.b if simplifier.pure(node.a) else None
    return node.a if simplifier.same(node.a, node.b) else None


def invert_comparison(simplifier: Simplifier, node: Not) -> Expr | None:
    """``not not x`` is ``x``; of a comparison the opposite one, where no NaN can be on either side."""
    inner = node.a
    match inner:
        case Not():
            return inner.a
        case Equal():
            return NotEqual(inner.a, inner.b, node.span)
        case NotEqual():
            return Equal(inner.a, inner.b, node.span)
        case Less() if not inner.a.dtype.is_float and simplifier.pure(inner):
            return LessEqual(inner.b, inner.a, node.span)
        case LessEqual() if not inner.a.dtype.is_float and simplifier.pure(inner):
            return Less(inner.b, inner.a, node.span)
    return None


def drop_hint_on_constant(simplifier: Simplifier, node: Call) -> Expr | None:
    """What is constant needs no hint."""
    if node.op.name == "likely" and constant_value(node.args[0]) is not None:
        return node.args[0]
    return None


RULES: dict[type[Expr], tuple[Rule, ...]] = {
    And: (shorten_logic,),
    Or: (shorten_logic,),
    Not: (invert_comparison,),
    Call: (drop_hint_on_constant,),
}
