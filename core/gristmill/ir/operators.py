"""Operators: arithmetic, bits, comparisons, logic, selection. Semantics are total; :mod:`gristmill.ir.expr` says more."""

from __future__ import annotations

from typing import ClassVar

from gristmill.ir.node import node
from gristmill.ir.span import Span
from gristmill.ir.values import BinaryExpr, CompareExpr, Expr, TypedByOperand, UnaryExpr

# Arithmetic -----------------------------------------------------------------------------------------------------------


@node
class Add(BinaryExpr):
    """``a + b``. Integers wrap; floats are rounded to nearest even, never contracted or reassociated without fast math."""

    a: Expr
    b: Expr
    span: Span | None = None


@node
class Sub(BinaryExpr):
    """``a - b``. As :class:`Add`."""

    a: Expr
    b: Expr
    span: Span | None = None


@node
class Mul(BinaryExpr):
    """``a * b``. As :class:`Add`."""

    a: Expr
    b: Expr
    span: Span | None = None


@node
class Div(BinaryExpr):
    """``a / b``. Floats: the IEEE quotient, *bounded*. Integers: rounded towards zero; ``x / 0 = 0``; ``MIN / -1 = MIN``."""

    a: Expr
    b: Expr
    span: Span | None = None


@node
class Mod(BinaryExpr):
    """The integer remainder of :class:`Div`, with the sign of ``a``; ``x % 0 = 0``; ``MIN % -1 = 0``. Integers only."""

    a: Expr
    b: Expr
    span: Span | None = None


@node
class FloorDiv(BinaryExpr):
    """``a // b`` rounded towards minus infinity; ``x // 0 = 0``; ``MIN // -1 = MIN``. Integers only."""

    a: Expr
    b: Expr
    span: Span | None = None


@node
class FloorMod(BinaryExpr):
    """The remainder of :class:`FloorDiv`, with the sign of ``b``; ``x % 0 = 0``; ``MIN % -1 = 0``. Integers only."""

    a: Expr
    b: Expr
    span: Span | None = None


@node
class Min(BinaryExpr):
    """The lesser operand. Of a NaN and a number, the number; of zeros of two signs, either."""

    a: Expr
    b: Expr
    span: Span | None = None


@node
class Max(BinaryExpr):
    """The greater operand. Of a NaN and a number, the number; of zeros of two signs, either."""

    a: Expr
    b: Expr
    span: Span | None = None


@node
class Negate(UnaryExpr):
    """``-a``. Integers wrap (``-MIN = MIN``); floats: the sign bit flips, of zeros and NaNs too."""

    a: Expr
    span: Span | None = None


# Bits -----------------------------------------------------------------------------------------------------------------


@node
class BitAnd(BinaryExpr):
    """``a & b`` of integers or bools."""

    a: Expr
    b: Expr
    span: Span | None = None


@node
class BitOr(BinaryExpr):
    """``a | b`` of integers or bools."""

    a: Expr
    b: Expr
    span: Span | None = None


@node
class BitXor(BinaryExpr):
    """``a ^ b`` of integers or bools."""

    a: Expr
    b: Expr
    span: Span | None = None


@node
class BitNot(UnaryExpr):
    """``~a`` of integers."""

    a: Expr
    span: Span | None = None


@node
class ShiftLeft(BinaryExpr):
    """``a << b`` of integers. ``b`` is read as an unsigned number; by the width or more the result is 0."""

    a: Expr
    b: Expr
    span: Span | None = None


@node
class ShiftRight(BinaryExpr):
    """``a >> b`` of integers: arithmetic for signed types, logical for unsigned ones.

    ``b`` is read as an unsigned number; by the width or more the result is 0, for negative ``a`` -1.
    """

    a: Expr
    b: Expr
    span: Span | None = None


# Comparisons and logic ------------------------------------------------------------------------------------------------


@node
class Equal(CompareExpr):
    """``a == b``."""

    a: Expr
    b: Expr
    span: Span | None = None


@node
class NotEqual(CompareExpr):
    """``a != b``; true if either is a NaN."""

    a: Expr
    b: Expr
    span: Span | None = None


@node
class Less(CompareExpr):
    """``a < b``."""

    a: Expr
    b: Expr
    span: Span | None = None


@node
class LessEqual(CompareExpr):
    """``a <= b``."""

    a: Expr
    b: Expr
    span: Span | None = None


@node
class Greater(CompareExpr):
    """``a > b``."""

    a: Expr
    b: Expr
    span: Span | None = None


@node
class GreaterEqual(CompareExpr):
    """``a >= b``."""

    a: Expr
    b: Expr
    span: Span | None = None


@node
class And(BinaryExpr):
    """Logical and of bools. ``b`` is evaluated only if ``a`` is true (vectors: both are evaluated)."""

    a: Expr
    b: Expr
    span: Span | None = None


@node
class Or(BinaryExpr):
    """Logical or of bools. ``b`` is evaluated only if ``a`` is false (vectors: both are evaluated)."""

    a: Expr
    b: Expr
    span: Span | None = None


@node
class Not(UnaryExpr):
    """Logical not of a bool."""

    a: Expr
    span: Span | None = None


@node
class Select(TypedByOperand):
    """``a`` where the condition is true, else ``b``; both are evaluated. A vector condition chooses lane by lane."""

    condition: Expr
    a: Expr
    b: Expr
    span: Span | None = None

    CHILDREN: ClassVar[tuple[str, ...]] = ("condition", "a", "b")


@node
class IfThenElse(TypedByOperand):
    """``a`` if the (scalar) condition is true, else ``b``; only the one chosen is evaluated."""

    condition: Expr
    a: Expr
    b: Expr
    span: Span | None = None

    CHILDREN: ClassVar[tuple[str, ...]] = ("condition", "a", "b")
