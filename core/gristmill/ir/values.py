"""What all expressions share: the base class, leaves, and the groups by which classes are handled together."""

from __future__ import annotations

from typing import ClassVar

from gristmill.ir.dtype import BOOL, HANDLE, VOID, DType
from gristmill.ir.memory import PointerType
from gristmill.ir.node import Node, node
from gristmill.ir.span import Span


class Expr(Node):
    """The base of all expressions; each has a ``dtype``.

    ``+ - * & | ^ << >>`` and unary ``-``, ``~`` build nodes, with Python numbers as constants of the other side's type.
    Comparisons keep Python's meaning (identity), so use :mod:`gristmill.ir.build` for those.
    """

    __slots__ = ()

    @property
    def dtype(self) -> DType:
        raise NotImplementedError

    def __add__(self, other: Expr | int | float) -> Expr:
        return operators.Add(self, _operand(other, self))

    def __radd__(self, other: int | float) -> Expr:
        return operators.Add(_operand(other, self), self)

    def __sub__(self, other: Expr | int | float) -> Expr:
        return operators.Sub(self, _operand(other, self))

    def __rsub__(self, other: int | float) -> Expr:
        return operators.Sub(_operand(other, self), self)

    def __mul__(self, other: Expr | int | float) -> Expr:
        return operators.Mul(self, _operand(other, self))

    def __rmul__(self, other: int | float) -> Expr:
        return operators.Mul(_operand(other, self), self)

    def __and__(self, other: Expr | int) -> Expr:
        return operators.BitAnd(self, _operand(other, self))

    def __or__(self, other: Expr | int) -> Expr:
        return operators.BitOr(self, _operand(other, self))

    def __xor__(self, other: Expr | int) -> Expr:
        return operators.BitXor(self, _operand(other, self))

    def __lshift__(self, other: Expr | int) -> Expr:
        return operators.ShiftLeft(self, _operand(other, self))

    def __rshift__(self, other: Expr | int) -> Expr:
        return operators.ShiftRight(self, _operand(other, self))

    def __neg__(self) -> Expr:
        return operators.Negate(self)

    def __invert__(self) -> Expr:
        return operators.BitNot(self)


def _operand(value: Expr | int | float, like: Expr) -> Expr:
    if isinstance(value, Expr):
        return value
    from gristmill.ir.build import const

    return const(value, like.dtype)


# Leaves ---------------------------------------------------------------------------------------------------------------


@node
class Var(Expr):
    """A name bound once: a parameter, a size, a loop variable, an axis of a block, a :class:`~gristmill.ir.stmt.Bind`.

    Two variables are the same only if they are the same object; ``name`` is for people. A variable of type ``handle``
    may say in ``pointer`` what it points to.
    """

    name: str
    type: DType
    pointer: PointerType | None = None
    span: Span | None = None

    @property
    def dtype(self) -> DType:
        return self.type


@node
class IntImm(Expr):
    """An integer or bool constant of a scalar type, within the range of its type."""

    value: int
    type: DType
    span: Span | None = None

    @property
    def dtype(self) -> DType:
        return self.type


@node
class FloatImm(Expr):
    """A float constant of a scalar type; ``value`` is exactly representable in that type (NaN and infinities too)."""

    value: float
    type: DType
    span: Span | None = None

    @property
    def dtype(self) -> DType:
        return self.type


@node
class StringImm(Expr):
    """A text constant: only an argument of a packed or extern call. Its type is ``handle`` (NUL-terminated UTF-8)."""

    value: str
    span: Span | None = None

    @property
    def dtype(self) -> DType:
        return HANDLE


# Groups of nodes, for dispatch ----------------------------------------------------------------------------------------


class Derived(Expr):
    """An expression whose type follows from that of one operand.

    Chains of these may be thousands long, so they are followed in a loop and not by each asking the next.
    """

    __slots__ = ()

    def type_source(self) -> Expr | None:
        """The operand from which the type follows; None if there is none."""
        raise NotImplementedError

    def type_from(self, source: DType) -> DType:
        """The type, given that of the operand; ``void`` is passed where there is none."""
        return source

    @property
    def dtype(self) -> DType:
        chain: list[Derived] = []
        current: Expr | None = self
        while isinstance(current, Derived):
            chain.append(current)
            current = current.type_source()
        dtype = VOID if current is None else current.dtype
        for link in reversed(chain):
            dtype = link.type_from(dtype)
        return dtype


class TypedByOperand(Derived):
    """The result has the type of the operand ``a``."""

    __slots__ = ()
    a: Expr

    def type_source(self) -> Expr:
        return self.a


class UnaryExpr(TypedByOperand):
    """One operand ``a``; the result has its type."""

    __slots__ = ()
    CHILDREN: ClassVar[tuple[str, ...]] = ("a",)
    a: Expr


class BinaryExpr(TypedByOperand):
    """Two operands of one type; the result has that type."""

    __slots__ = ()
    CHILDREN: ClassVar[tuple[str, ...]] = ("a", "b")
    a: Expr
    b: Expr


class CompareExpr(TypedByOperand):
    """Two operands of one type; the result is ``bool`` with their lanes. With a NaN only NotEqual is true."""

    __slots__ = ()
    CHILDREN: ClassVar[tuple[str, ...]] = ("a", "b")
    a: Expr
    b: Expr

    def type_from(self, source: DType) -> DType:
        return BOOL.with_lanes(source.lanes)


# Python's operators on expressions make nodes of that module, whose classes derive from these.
from gristmill.ir import operators  # noqa: E402
