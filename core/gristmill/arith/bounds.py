"""Bounds: which integers an expression may be, given what is known of its variables.

Integers wrap, so the bounds of ``a + b`` are the sum of the bounds only if that fits the type; otherwise they are all
of the type. The same question, :meth:`Bounds.may_wrap`, decides whether an expression may be treated as if integers
were unbounded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from gristmill.arith.interval import Interval
from gristmill.ir.dtype import DType
from gristmill.ir.expr import (
    Add,
    BinaryExpr,
    BitAnd,
    BitOr,
    BitXor,
    Broadcast,
    Call,
    Cast,
    Div,
    Expr,
    FloorDiv,
    FloorMod,
    IfThenElse,
    IntImm,
    Max,
    Min,
    Mod,
    Mul,
    Negate,
    Ramp,
    Select,
    ShiftLeft,
    ShiftRight,
    Shuffle,
    Sub,
    Var,
)
from gristmill.ir.functor import EXPRESSIONS, Functor


def _fitting(ideal: Interval, dtype: DType) -> Interval:
    return ideal if ideal.fits(dtype) else Interval.of_type(dtype.element)


class Bounds(Functor[Interval], over=EXPRESSIONS):
    """Bounds of integer and bool expressions (vectors: of all lanes), from ranges of variables.

    Results are kept by node, since variables are bound once; :meth:`given` narrows ranges for a while.
    """

    def __init__(self, ranges: Mapping[Var, Interval] | None = None) -> None:
        self.ranges: dict[Var, Interval] = dict(ranges or {})
        self._known: dict[Expr, Interval] = {}

    def of(self, expr: Expr) -> Interval:
        """The bounds of an integer or bool expression."""
        found = self._known.get(expr)
        if found is None:
            found = self._known[expr] = self.visit(expr)
        return found

    def set(self, var: Var, interval: Interval) -> None:
        """State what a variable, not used before, may be."""
        self.ranges[var] = interval

    @contextmanager
    def given(self, ranges: Mapping[Var, Interval]) -> Iterator[None]:
        """Narrow variables while the context lasts; an impossible narrowing (dead code) is ignored."""
        if not ranges:
            yield
            return
        before, known = self.ranges, self._known
        self.ranges, self._known = dict(before), {}
        for var, interval in ranges.items():
            narrowed = self.of(var).meet(interval)
            self._known.pop(var, None)
            if narrowed is not None:
                self.ranges[var] = narrowed
        try:
            yield
        finally:
            self.ranges, self._known = before, known

    def ideal(self, expr: Expr) -> Interval:
        """The bounds of the operation of ``+ - * -a`` and casts of integers before its result wraps into the type."""
        match expr:
            case Add():
                return self.of(expr.a).plus(self.of(expr.b))
            case Sub():
                return self.of(expr.a).minus(self.of(expr.b))
            case Mul():
                return self.of(expr.a).times(self.of(expr.b))
            case Negate():
                return self.of(expr.a).negated()
            case Cast() if not expr.value.dtype.is_float:
                return self.of(expr.value)
        return self.of(expr)

    def may_wrap(self, expr: Expr) -> bool:
        """Whether the outermost operation may leave the range of its type."""
        return not self.ideal(expr).fits(expr.dtype)

    # Nodes ------------------------------------------------------------------------------------------------------------

    def visit_Expr(self, node: Expr) -> Interval:
        return Interval.of_type(node.dtype.element)

    def visit_Var(self, node: Var) -> Interval:
        found = self.ranges.get(node)
        return Interval.of_type(node.type.element) if found is None else found

    def visit_IntImm(self, node: IntImm) -> Interval:
        return Interval(node.value, node.value)

    def visit_Add(self, node: Add) -> Interval:
        return _fitting(self.of(node.a).plus(self.of(node.b)), node.dtype)

    def visit_Sub(self, node: Sub) -> Interval:
        return _fitting(self.of(node.a).minus(self.of(node.b)), node.dtype)

    def visit_Mul(self, node: Mul) -> Interval:
        return _fitting(self.of(node.a).times(self.of(node.b)), node.dtype)

    def visit_Negate(self, node: Negate) -> Interval:
        return _fitting(self.of(node.a).negated(), node.dtype)

    def visit_Div(self, node: Div) -> Interval:
        return _fitting(self.of(node.a).truncate_divided(self.of(node.b)), node.dtype)

    def visit_FloorDiv(self, node: FloorDiv) -> Interval:
        return _fitting(self.of(node.a).floor_divided(self.of(node.b)), node.dtype)

    def visit_Mod(self, node: Mod) -> Interval:
        return self.of(node.a).truncate_remainder(self.of(node.b))

    def visit_FloorMod(self, node: FloorMod) -> Interval:
        return self.of(node.a).floor_remainder(self.of(node.b))

    def visit_Min(self, node: Min) -> Interval:
        a, b = self.of(node.a), self.of(node.b)
        return Interval(min(a.low, b.low), min(a.high, b.high))

    def visit_Max(self, node: Max) -> Interval:
        a, b = self.of(node.a), self.of(node.b)
        return Interval(max(a.low, b.low), max(a.high, b.high))

    def visit_BitAnd(self, node: BitAnd) -> Interval:
        a, b = self.of(node.a), self.of(node.b)
        tops = [side.high for side in (a, b) if side.low >= 0]
        return Interval(0, min(tops)) if tops else Interval.of_type(node.dtype.element)

    def visit_BitOr(self, node: BitOr) -> Interval:
        return self._joined(node)

    def visit_BitXor(self, node: BitXor) -> Interval:
        return self._joined(node)

    def _joined(self, node: BinaryExpr) -> Interval:
        a, b = self.of(node.a), self.of(node.b)
        if a.low < 0 or b.low < 0:
            return Interval.of_type(node.dtype.element)
        return Interval(0, (1 << max(a.high.bit_length(), b.high.bit_length())) - 1)

    def visit_ShiftLeft(self, node: ShiftLeft) -> Interval:
        return self._shifted_left(node.a, node.b)

    def visit_ShiftRight(self, node: ShiftRight) -> Interval:
        return self._shifted_right(node.a, node.b)

    def _shifted_left(self, value: Expr, amount: Expr) -> Interval:
        by = self.of(amount)
        if by.low < 0 or by.high >= value.dtype.bits:
            return Interval.of_type(value.dtype.element)
        return _fitting(self.of(value).times(Interval(1 << by.low, 1 << by.high)), value.dtype)

    def _shifted_right(self, value: Expr, amount: Expr) -> Interval:
        a, by = self.of(value), self.of(amount)
        # Shifting further brings any value nearer to 0 or -1, so amounts outside the width do so too.
        least = by.low if by.low >= 0 and by.high < value.dtype.bits else 0
        most = by.high if by.low >= 0 and by.high < value.dtype.bits else value.dtype.bits
        ends = (a.low >> least, a.low >> most, a.high >> least, a.high >> most)
        return Interval(min(ends), max(ends))

    def visit_Select(self, node: Select) -> Interval:
        return self._either(node.a, node.b)

    def visit_IfThenElse(self, node: IfThenElse) -> Interval:
        return self._either(node.a, node.b)

    def _either(self, a: Expr, b: Expr) -> Interval:
        return self.of(a).union(self.of(b))

    def visit_Cast(self, node: Cast) -> Interval:
        whole = Interval.of_type(node.type.element)
        if not (node.value.dtype.is_integer or node.value.dtype.is_bool):
            return whole
        inner = self.of(node.value)
        if node.type.is_bool:
            if inner == (0, 0):
                return inner
            return whole if inner.contains(0) else Interval(1, 1)
        return inner if inner.fits(node.type) else whole

    def visit_Ramp(self, node: Ramp) -> Interval:
        steps = self.of(node.stride).times(Interval(0, node.lanes - 1))
        return _fitting(self.of(node.base).plus(steps), node.dtype)

    def visit_Broadcast(self, node: Broadcast) -> Interval:
        return self.of(node.value)

    def visit_Shuffle(self, node: Shuffle) -> Interval:
        found = self.of(node.vectors[0])
        for vector in node.vectors[1:]:
            found = found.union(self.of(vector))
        return found

    def visit_Call(self, node: Call) -> Interval:
        match node.op.name:
            case "popcount" | "clz" | "ctz":
                return Interval(0, node.args[0].dtype.bits)
            case "likely":
                return self.of(node.args[0])
            case "abs" if node.dtype.is_integer:
                a = self.of(node.args[0])
                low = 0 if a.contains(0) else min(abs(a.low), abs(a.high))
                return _fitting(Interval(low, max(abs(a.low), abs(a.high))), node.dtype)
            case "quotient":
                return _fitting(self.of(node.args[0]).truncate_divided(self.of(node.args[1])), node.dtype)
            case "remainder":
                return self.of(node.args[0]).truncate_remainder(self.of(node.args[1]))
            case "shift_left":
                return self._shifted_left(node.args[0], node.args[1])
            case "shift_right":
                return self._shifted_right(node.args[0], node.args[1])
        if node.dtype.is_integer or node.dtype.is_bool:
            return Interval.of_type(node.dtype.element)
        raise TypeError(f"{node.dtype} has no bounds")
