"""Rules that fold operations over constants, by the total arithmetic of :mod:`gristmill.arith.fold`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gristmill.arith.fold import fold_binary, fold_call, fold_cast, fold_unary
from gristmill.ir.build import const, constant_value
from gristmill.ir.expr import (
    Add,
    And,
    BinaryExpr,
    BitAnd,
    BitNot,
    BitOr,
    BitXor,
    Call,
    Cast,
    CompareExpr,
    Div,
    Equal,
    Expr,
    FloorDiv,
    FloorMod,
    Greater,
    GreaterEqual,
    Less,
    LessEqual,
    Max,
    Min,
    Mod,
    Mul,
    Negate,
    Not,
    NotEqual,
    Or,
    ShiftLeft,
    ShiftRight,
    Sub,
    UnaryExpr,
)
from gristmill.ir.op import Exactness

if TYPE_CHECKING:
    from gristmill.arith.simplify import Rule, Simplifier


def fold_binary_constants(simplifier: Simplifier, node: BinaryExpr | CompareExpr) -> Expr | None:
    """An operation over two constants is a constant."""
    a = constant_value(node.a)
    if a is None:
        return None
    b = constant_value(node.b)
    if b is None:
        return None
    value = fold_binary(type(node), a, b, node.a.dtype.element)
    return None if value is None else const(value, node.dtype, node.span)


def fold_unary_constant(simplifier: Simplifier, node: UnaryExpr) -> Expr | None:
    """An operation over a constant is a constant."""
    a = constant_value(node.a)
    value = None if a is None else fold_unary(type(node), a, node.dtype.element)
    return None if value is None else const(value, node.dtype, node.span)


def fold_cast_constant(simplifier: Simplifier, node: Cast) -> Expr | None:
    """A conversion of a constant is a constant."""
    a = constant_value(node.value)
    value = None if a is None else fold_cast(a, node.value.dtype.element, node.type.element)
    return None if value is None else const(value, node.dtype, node.span)


def fold_call_constants(simplifier: Simplifier, node: Call) -> Expr | None:
    """An exact operation over constants is a constant."""
    if node.op.exactness is not Exactness.EXACT or not node.op.pure or not node.args:
        return None
    values = []
    for arg in node.args:
        value = constant_value(arg)
        if value is None:
            return None
        values.append(value)
    found = fold_call(node.op.name, tuple(values), node.args[0].dtype.element)
    return None if found is None else const(found, node.dtype, node.span)


_BINARY: tuple[type[Expr], ...] = (
    *(Add, Sub, Mul, Div, Mod, FloorDiv, FloorMod, Min, Max, BitAnd, BitOr, BitXor, ShiftLeft, ShiftRight, And, Or),
    *(Equal, NotEqual, Less, LessEqual, Greater, GreaterEqual),
)

RULES: dict[type[Expr], tuple[Rule, ...]] = {
    **dict.fromkeys(_BINARY, (fold_binary_constants,)),
    **dict.fromkeys((Negate, BitNot, Not), (fold_unary_constant,)),
    Cast: (fold_cast_constant,),
    Call: (fold_call_constants,),
}
