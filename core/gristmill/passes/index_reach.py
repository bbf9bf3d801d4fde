"""How far the integers of a kernel go, as float64 expressions of its arguments that the host computes before a launch.

A reach is an interval whose ends are numbers or expressions. Ends that are not exact lie outside of it: float64 has all
integers to 2**53, so what is beyond int32 is never taken for what is within it, and no product wraps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from gristmill.ir.build import less_equal
from gristmill.ir.dtype import FLOAT64, INT32, DType
from gristmill.ir.expr import (
    Add,
    BinaryExpr,
    BitAnd,
    BitOr,
    BitXor,
    Cast,
    Div,
    Expr,
    FloatImm,
    FloorDiv,
    FloorMod,
    Max,
    Min,
    Mod,
    Mul,
    ShiftLeft,
    ShiftRight,
    Sub,
    Var,
)

End = float | Expr
"""An end of a reach: a number, or a float64 expression."""

LEAST, GREATEST = float(INT32.minimum), float(INT32.maximum)


@dataclass(frozen=True, slots=True)
class Reach:
    """All values between two ends, both included. ``natural``: known not to be negative, whatever the ends say."""

    low: End
    high: End
    natural: bool = False

    @classmethod
    def of_type(cls, dtype: DType) -> Reach:
        """All values of an integer or bool type."""
        return cls(float(dtype.minimum), float(dtype.maximum), dtype.minimum >= 0)

    @classmethod
    def point(cls, value: int) -> Reach:
        return cls(float(value), float(value), value >= 0)


@dataclass(slots=True)
class Reaches:
    """The arithmetic of reaches. ``names`` are bindings that the ``conditions`` use, in order."""

    limit: int = INT32.maximum
    """What is beyond it, or beyond ``-limit - 1``, does not fit, as the host sees it; not more than int32 has."""
    names: list[tuple[Var, Expr]] = field(default_factory=list)
    conditions: list[Expr] = field(default_factory=list)
    _checked: set[tuple[int, bool]] = field(default_factory=set)

    def of_argument(self, param: Var, natural: bool) -> Reach:
        """An integer argument is what it is."""
        value = self._named(Cast(FLOAT64, param))
        return Reach(value, value, natural)

    def must_fit(self, reach: Reach) -> bool:
        """Have the host check that all of a reach is in int32; False if it never is."""
        for end, is_high in ((reach.high, True), (reach.low, False)):
            if isinstance(end, Expr):
                # Of a natural number only the upper end matters.
                if (id(end), is_high) in self._checked or (reach.natural and not is_high):
                    continue
                self._checked.add((id(end), is_high))
                limit = FloatImm(float(self.limit if is_high else -self.limit - 1), FLOAT64)
                self.conditions.append(less_equal(end, limit) if is_high else less_equal(limit, end))
            elif not LEAST <= end <= GREATEST:
                return False
        return True

    # Operations

    def of_operation(self, node: BinaryExpr, a: Reach, b: Reach) -> Reach | None:
        """Of the result of an operation whose operands are of int32; None for one that is not known here."""
        match node:
            case Add():
                return self.plus(a, b)
            case Sub():
                return self.minus(a, b)
            case Mul():
                return self.times(a, b)
            case Min():
                return self.least(a, b)
            case Max():
                return self.greatest(a, b)
            case Div() | FloorDiv():
                return self.quotient(a, b)
            case Mod() | FloorMod():
                return self.remainder(a, b)
            case BitAnd() | BitOr() | BitXor():
                return Reach.of_type(INT32)
            case ShiftRight():
                # From 32 on both give 0 or the sign: values of int32 have no bits there. Negative amounts do too.
                return Reach(0.0, a.high, True) if a.natural else self.union(self.around(a), Reach.point(-1))
            case ShiftLeft():
                amount = b.low if isinstance(b.low, float) and b.low == b.high else -1.0
                return self.times(a, Reach.point(1 << int(amount))) if 0 <= amount < 32 else None
        return None

    def plus(self, a: Reach, b: Reach) -> Reach:
        return Reach(self.add(a.low, b.low), self.add(a.high, b.high), a.natural and b.natural)

    def minus(self, a: Reach, b: Reach) -> Reach:
        return Reach(self.subtract(a.low, b.high), self.subtract(a.high, b.low))

    def times(self, a: Reach, b: Reach) -> Reach:
        if a.natural and b.natural:
            return Reach(0.0, self.multiply(a.high, b.high), True)
        for one, other in ((a, b), (b, a)):
            if isinstance(one.low, float) and one.low == one.high:
                ends = self.multiply(other.low, one.low), self.multiply(other.high, one.low)
                return Reach(ends[0], ends[1]) if one.low >= 0 else Reach(ends[1], ends[0])
        corners = [self.multiply(x, y) for x in (a.low, a.high) for y in (b.low, b.high)]
        low, high = corners[0], corners[0]
        for corner in corners[1:]:
            low, high = self.lesser(low, corner), self.greater(high, corner)
        return Reach(low, high)

    def union(self, a: Reach, b: Reach) -> Reach:
        return Reach(self.lesser(a.low, b.low), self.greater(a.high, b.high), a.natural and b.natural)

    def least(self, a: Reach, b: Reach) -> Reach:
        """Of ``min(a, b)``."""
        return Reach(self.lesser(a.low, b.low), self.lesser(a.high, b.high), a.natural and b.natural)

    def greatest(self, a: Reach, b: Reach) -> Reach:
        """Of ``max(a, b)``."""
        return Reach(self.greater(a.low, b.low), self.greater(a.high, b.high), a.natural or b.natural)

    def quotient(self, a: Reach, b: Reach) -> Reach:
        """Of either division: not farther from 0 than the dividend; nearer by the divisor where that is a constant."""
        if isinstance(b.low, float) and b.low == b.high and b.low >= 1:
            low, high = self.multiply(a.low, 1 / b.low), self.multiply(a.high, 1 / b.low)
            # Rounded down; and 1 more for what the product is off.
            return Reach(0.0 if a.natural else self.subtract(low, 2.0), self.add(high, 1.0), a.natural)
        # A divisor that may be less than 1 may be 1 or -1.
        least = self.greater(b.low, 1.0)
        if a.natural and b.natural:
            return Reach(0.0, self.divide(a.high, least), True)
        most = self.divide(a.high if a.natural else self.around(a).high, least)
        # Rounded down, a negative quotient is up to 1 farther from 0.
        return Reach(self.subtract(-1.0, most), most)

    def remainder(self, a: Reach, b: Reach) -> Reach:
        """Of either remainder: nearer to 0 than the divisor; of natural numbers not greater than the dividend."""
        if a.natural and b.natural:
            return Reach(0.0, self.lesser(a.high, b.high), True)
        return self.around(b)

    def around(self, a: Reach) -> Reach:
        """All that is not farther from 0."""
        most = self.greater(a.high, self.subtract(0.0, a.low))
        return Reach(self.subtract(0.0, most), most)

    # Ends

    def add(self, a: End, b: End) -> End:
        return self._end(a, b, lambda x, y: x + y, Add, 0.0)

    def subtract(self, a: End, b: End) -> End:
        if b == 0.0:
            return a
        return self._end(a, b, lambda x, y: x - y, Sub)

    def multiply(self, a: End, b: End) -> End:
        if 0.0 in (a, b):
            return 0.0
        return self._end(a, b, lambda x, y: x * y, Mul, 1.0)

    def divide(self, a: End, b: End) -> End:
        return a if b == 1.0 else self._end(a, b, lambda x, y: x / y, Div)

    def lesser(self, a: End, b: End) -> End:
        return a if a is b else self._end(a, b, min, Min)

    def greater(self, a: End, b: End) -> End:
        return a if a is b else self._end(a, b, max, Max)

    def _end(
        self,
        a: End,
        b: End,
        of_numbers: Callable[[float, float], float],
        kind: Callable[[Expr, Expr], Expr],
        neutral: float | None = None,
    ) -> End:
        if isinstance(a, float) and isinstance(b, float):
            return of_numbers(a, b)
        if neutral is not None and isinstance(b, float) and b == neutral:
            return a
        if neutral is not None and isinstance(a, float) and a == neutral:
            return b
        return self._named(kind(_expression(a), _expression(b)))

    def _named(self, value: Expr) -> Var:
        var = Var("reach", FLOAT64)
        self.names.append((var, value))
        return var


def _expression(end: End) -> Expr:
    return FloatImm(end, FLOAT64) if isinstance(end, float) else end
