"""Rules for expressions that choose between two: select, conditional expression, minimum, maximum."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gristmill.arith.rules_compare import decide
from gristmill.ir.build import constant_value
from gristmill.ir.expr import Expr, IfThenElse, LessEqual, Max, Min, Not, Select

if TYPE_CHECKING:
    from gristmill.arith.simplify import Rule, Simplifier


def choose_by_constant(simplifier: Simplifier, node: Select | IfThenElse) -> Expr | None:
    """Under a constant condition the choice is made; what is dropped must have no effect where it was evaluated."""
    condition = constant_value(node.condition)
    if condition is None:
        return None
    chosen, dropped = (node.a, node.b) if condition else (node.b, node.a)
    return chosen if isinstance(node, IfThenElse) or simplifier.pure(dropped) else None


def choose_between_equals(simplifier: Simplifier, node: Select | IfThenElse) -> Expr | None:
    """Two arms that are the same need no condition."""
    return node.a if simplifier.same(node.a, node.b) and simplifier.pure(node.condition) else None


def drop_not_of_condition(simplifier: Simplifier, node: Select | IfThenElse) -> Expr | None:
    """``b if not c else a`` is ``a if c else b``."""
    if isinstance(node.condition, Not) and (isinstance(node, IfThenElse) or simplifier.pure(node.a, node.b)):
        return type(node)(node.condition.a, node.b, node.a, node.span)
    return None


def decide_extreme(simplifier: Simplifier, node: Min | Max) -> Expr | None:
    """The operand that bounds prove to be the one; of the same operand twice, that."""
    if simplifier.same(node.a, node.b):
        return node.a
    ordered = decide(simplifier, LessEqual, node.a, node.b)
    if ordered is None:
        return None
    return node.a if ordered == isinstance(node, Min) else node.b


RULES: dict[type[Expr], tuple[Rule, ...]] = {
    **dict.fromkeys((Select, IfThenElse), (choose_by_constant, choose_between_equals, drop_not_of_condition)),
    **dict.fromkeys((Min, Max), (decide_extreme,)),
}
