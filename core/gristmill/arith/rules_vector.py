"""Rules for vectors: work on scalars where all lanes are the same, ramps that do not climb, shuffles that do nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gristmill.ir.build import is_constant
from gristmill.ir.expr import (
    Add,
    BinaryExpr,
    BitAnd,
    BitNot,
    BitOr,
    BitXor,
    Broadcast,
    CompareExpr,
    Div,
    Equal,
    Expr,
    FloorDiv,
    FloorMod,
    Less,
    LessEqual,
    Max,
    Min,
    Mod,
    Mul,
    Negate,
    Not,
    NotEqual,
    Ramp,
    ShiftLeft,
    ShiftRight,
    Shuffle,
    Sub,
    UnaryExpr,
)

if TYPE_CHECKING:
    from gristmill.arith.simplify import Rule, Simplifier


def operate_before_broadcast(simplifier: Simplifier, node: BinaryExpr | CompareExpr) -> Expr | None:
    """An operation on two broadcasts is a broadcast of the operation on scalars."""
    if isinstance(node.a, Broadcast) and isinstance(node.b, Broadcast):
        return Broadcast(type(node)(node.a.value, node.b.value, node.span), node.a.lanes, node.span)  # type: ignore[call-arg]
    return None


def negate_before_broadcast(simplifier: Simplifier, node: UnaryExpr) -> Expr | None:
    """As :func:`operate_before_broadcast`, for one operand."""
    if isinstance(node.a, Broadcast):
        return replace(node.a, value=replace(node, a=node.a.value))  # type: ignore[type-var]
    return None


def flatten_level_ramp(simplifier: Simplifier, node: Ramp) -> Expr | None:
    """A ramp with stride 0 is a broadcast."""
    return Broadcast(node.base, node.lanes, node.span) if is_constant(node.stride, 0) else None


def drop_shuffle(simplifier: Simplifier, node: Shuffle) -> Expr | None:
    """All lanes of one vector in their order are the vector; lanes of one broadcast are a broadcast."""
    if len(node.vectors) != 1:
        return None
    vector = node.vectors[0]
    if node.indices == tuple(range(vector.dtype.lanes)):
        return vector
    if isinstance(vector, Broadcast):
        lanes = len(node.indices)
        return vector.value if lanes == 1 else Broadcast(vector.value, lanes, node.span)
    return None


def take_lane_of_ramp(simplifier: Simplifier, node: Shuffle) -> Expr | None:
    """One lane of a ramp is a scalar sum."""
    if len(node.vectors) != 1 or len(node.indices) != 1 or not isinstance(node.vectors[0], Ramp):
        return None
    ramp = node.vectors[0]
    return ramp.base + ramp.stride * node.indices[0]


_TWO_SIDED: tuple[type[Expr], ...] = (
    *(Add, Sub, Mul, Div, Mod, FloorDiv, FloorMod, Min, Max, BitAnd, BitOr, BitXor, ShiftLeft, ShiftRight),
    *(Equal, NotEqual, Less, LessEqual),
)

RULES: dict[type[Expr], tuple[Rule, ...]] = {
    **dict.fromkeys(_TWO_SIDED, (operate_before_broadcast,)),
    **dict.fromkeys((Negate, BitNot, Not), (negate_before_broadcast,)),
    Ramp: (flatten_level_ramp,),
    Shuffle: (drop_shuffle, take_lane_of_ramp),
}
