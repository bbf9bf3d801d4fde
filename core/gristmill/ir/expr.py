"""Expressions. The docstring of a node is its meaning, on every target (DESIGN: "semantics are total").

Operands of a binary node have the same type, lanes included; the front end inserts the casts. Vectors work lane by
lane. Operands are evaluated left to right. Only :class:`And`, :class:`Or` and :class:`IfThenElse` leave an operand
unevaluated. An expression changes no memory; only the callees of call nodes may.

Results are *exact* (bit-equal on every back end) unless a node says *bounded* (within the ulp of docs/numerics.md).
All NaNs count as one value.
"""

from __future__ import annotations

from typing import ClassVar

from gristmill.ir.dtype import BOOL, HANDLE, VOID, DType
from gristmill.ir.memory import Buffer, PointerType
from gristmill.ir.node import Node, node
from gristmill.ir.op import Op
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
        return Add(self, _operand(other, self))

    def __radd__(self, other: int | float) -> Expr:
        return Add(_operand(other, self), self)

    def __sub__(self, other: Expr | int | float) -> Expr:
        return Sub(self, _operand(other, self))

    def __rsub__(self, other: int | float) -> Expr:
        return Sub(_operand(other, self), self)

    def __mul__(self, other: Expr | int | float) -> Expr:
        return Mul(self, _operand(other, self))

    def __rmul__(self, other: int | float) -> Expr:
        return Mul(_operand(other, self), self)

    def __and__(self, other: Expr | int) -> Expr:
        return BitAnd(self, _operand(other, self))

    def __or__(self, other: Expr | int) -> Expr:
        return BitOr(self, _operand(other, self))

    def __xor__(self, other: Expr | int) -> Expr:
        return BitXor(self, _operand(other, self))

    def __lshift__(self, other: Expr | int) -> Expr:
        return ShiftLeft(self, _operand(other, self))

    def __rshift__(self, other: Expr | int) -> Expr:
        return ShiftRight(self, _operand(other, self))

    def __neg__(self) -> Expr:
        return Negate(self)

    def __invert__(self) -> Expr:
        return BitNot(self)


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


class _Derived(Expr):
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
        chain: list[_Derived] = []
        current: Expr | None = self
        while isinstance(current, _Derived):
            chain.append(current)
            current = current.type_source()
        dtype = VOID if current is None else current.dtype
        for link in reversed(chain):
            dtype = link.type_from(dtype)
        return dtype


class _TypedByOperand(_Derived):
    """The result has the type of the operand ``a``."""

    __slots__ = ()
    a: Expr

    def type_source(self) -> Expr:
        return self.a


class UnaryExpr(_TypedByOperand):
    """One operand ``a``; the result has its type."""

    __slots__ = ()
    CHILDREN: ClassVar[tuple[str, ...]] = ("a",)
    a: Expr


class BinaryExpr(_TypedByOperand):
    """Two operands of one type; the result has that type."""

    __slots__ = ()
    CHILDREN: ClassVar[tuple[str, ...]] = ("a", "b")
    a: Expr
    b: Expr


class CompareExpr(_TypedByOperand):
    """Two operands of one type; the result is ``bool`` with their lanes. With a NaN only NotEqual is true."""

    __slots__ = ()
    CHILDREN: ClassVar[tuple[str, ...]] = ("a", "b")
    a: Expr
    b: Expr

    def type_from(self, source: DType) -> DType:
        return BOOL.with_lanes(source.lanes)


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
class Select(_TypedByOperand):
    """``a`` where the condition is true, else ``b``; both are evaluated. A vector condition chooses lane by lane."""

    condition: Expr
    a: Expr
    b: Expr
    span: Span | None = None

    CHILDREN: ClassVar[tuple[str, ...]] = ("condition", "a", "b")


@node
class IfThenElse(_TypedByOperand):
    """``a`` if the (scalar) condition is true, else ``b``; only the one chosen is evaluated."""

    condition: Expr
    a: Expr
    b: Expr
    span: Span | None = None

    CHILDREN: ClassVar[tuple[str, ...]] = ("condition", "a", "b")


# Conversions and vectors ----------------------------------------------------------------------------------------------


@node
class Cast(Expr):
    """The value in another type with the same lanes.

    Integer to integer wraps; integer to float rounds to nearest even (to infinity when too large); float to integer
    truncates towards zero and saturates, NaN gives 0; float to narrower float rounds to nearest even; anything to bool
    is "not zero" (NaN is true); bool to a number is 0 or 1.
    """

    type: DType
    value: Expr
    span: Span | None = None

    CHILDREN: ClassVar[tuple[str, ...]] = ("value",)

    @property
    def dtype(self) -> DType:
        return self.type


@node
class Reinterpret(Expr):
    """The bits of the value read as another type of the same width in all. Not to or from bool or handle."""

    type: DType
    value: Expr
    span: Span | None = None

    CHILDREN: ClassVar[tuple[str, ...]] = ("value",)

    @property
    def dtype(self) -> DType:
        return self.type


@node
class Ramp(_Derived):
    """The vector ``base, base + stride, base + 2*stride, ...`` of ``lanes`` integers, wrapping."""

    base: Expr
    stride: Expr
    lanes: int
    span: Span | None = None

    CHILDREN: ClassVar[tuple[str, ...]] = ("base", "stride")

    def type_source(self) -> Expr:
        return self.base

    def type_from(self, source: DType) -> DType:
        return source.with_lanes(self.lanes)


@node
class Broadcast(_Derived):
    """A vector with the scalar in every lane."""

    value: Expr
    lanes: int
    span: Span | None = None

    CHILDREN: ClassVar[tuple[str, ...]] = ("value",)

    def type_source(self) -> Expr:
        return self.value

    def type_from(self, source: DType) -> DType:
        return source.with_lanes(self.lanes)


@node
class Shuffle(_Derived):
    """Chosen lanes of the concatenation of some vectors or scalars of one element type; one index gives a scalar."""

    vectors: tuple[Expr, ...]
    indices: tuple[int, ...]
    span: Span | None = None

    CHILDREN: ClassVar[tuple[str, ...]] = ("vectors",)

    def type_source(self) -> Expr:
        return self.vectors[0]

    def type_from(self, source: DType) -> DType:
        return source.with_lanes(len(self.indices))


# Memory ---------------------------------------------------------------------------------------------------------------


@node
class Load(_Derived):
    """The element of a buffer at the indices, one a dimension.

    If the last index is a vector (of a :class:`Ramp`, say) the result is the vector of those elements, in addition to
    the lanes of the buffer's own type; the other indices are scalars. An index outside the shape and an element never
    written are errors that the executor reports.
    """

    buffer: Buffer
    indices: tuple[Expr, ...]
    span: Span | None = None

    CHILDREN: ClassVar[tuple[str, ...]] = ("indices",)

    def type_source(self) -> Expr | None:
        return self.indices[-1] if self.indices else None

    def type_from(self, source: DType) -> DType:
        return self.buffer.dtype.with_lanes(self.buffer.dtype.lanes * source.lanes)


@node
class AddressOf(Expr):
    """A pointer to the element of a buffer at the indices. Only arguments of calls and pointer bindings use it."""

    buffer: Buffer
    indices: tuple[Expr, ...]
    span: Span | None = None

    CHILDREN: ClassVar[tuple[str, ...]] = ("indices",)

    @property
    def dtype(self) -> DType:
        return HANDLE


@node
class BufferRef(Expr):
    """A whole buffer as an argument of a function call or a packed call (there it is a tensor: data, shape, strides)."""

    buffer: Buffer
    span: Span | None = None

    @property
    def dtype(self) -> DType:
        return HANDLE


# Calls ----------------------------------------------------------------------------------------------------------------


@node
class Call(Expr):
    """An operation of the language by its :class:`~gristmill.ir.op.Op` (``exp``, ``popcount``, ...); its meaning stands there."""

    op: Op
    args: tuple[Expr, ...]
    type: DType
    span: Span | None = None

    CHILDREN: ClassVar[tuple[str, ...]] = ("args",)

    @property
    def dtype(self) -> DType:
        return self.type


@node
class CallFunction(Expr):
    """A call of a function of the same module by name.

    Scalars are passed by value. A :class:`BufferRef` argument binds the callee's symbolic sizes; a shape that does not
    fit is an error of the caller. The type is the callee's result, ``void`` for none.
    """

    function: str
    args: tuple[Expr, ...]
    type: DType
    span: Span | None = None

    CHILDREN: ClassVar[tuple[str, ...]] = ("args",)

    @property
    def dtype(self) -> DType:
        return self.type


@node
class CallExtern(Expr):
    """A call of a C symbol that the manifest declares; host code and CPU kernels only. Pointers for buffers."""

    symbol: str
    args: tuple[Expr, ...]
    type: DType
    span: Span | None = None

    CHILDREN: ClassVar[tuple[str, ...]] = ("args",)

    @property
    def dtype(self) -> DType:
        return self.type


@node
class CallPacked(Expr):
    """A call of a function registered with TVM FFI by name, through the packed interface; host code only.

    Integers travel as int64, floats as float64, bools as bools, a :class:`BufferRef` as a tensor, text as text. An
    error of the callee leaves the calling public function with that error.
    """

    name: str
    args: tuple[Expr, ...]
    type: DType
    span: Span | None = None

    CHILDREN: ClassVar[tuple[str, ...]] = ("args",)

    @property
    def dtype(self) -> DType:
        return self.type
