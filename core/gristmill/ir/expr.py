"""Expressions. The docstring of a node is its meaning, on every target (DESIGN: "semantics are total").

Operands of a binary node have the same type, lanes included; the front end inserts the casts. Vectors work lane by
lane. Operands are evaluated left to right. Only :class:`And`, :class:`Or` and :class:`IfThenElse` leave an operand
unevaluated. An expression changes no memory; only the callees of call nodes may.

Results are *exact* (bit-equal on every back end) unless a node says *bounded* (within the ulp of docs/numerics.md).
All NaNs count as one value.
"""

from __future__ import annotations

from typing import ClassVar

from gristmill.ir.dtype import HANDLE, DType
from gristmill.ir.memory import Buffer
from gristmill.ir.node import node
from gristmill.ir.op import Op
from gristmill.ir.operators import (
    Add,
    And,
    BitAnd,
    BitNot,
    BitOr,
    BitXor,
    Div,
    Equal,
    FloorDiv,
    FloorMod,
    Greater,
    GreaterEqual,
    IfThenElse,
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
    Select,
    ShiftLeft,
    ShiftRight,
    Sub,
)
from gristmill.ir.span import Span
from gristmill.ir.values import (
    BinaryExpr,
    CompareExpr,
    Derived,
    Expr,
    FloatImm,
    IntImm,
    StringImm,
    UnaryExpr,
    Var,
)

__all__ = [
    "Add",
    "AddressOf",
    "And",
    "BinaryExpr",
    "BitAnd",
    "BitNot",
    "BitOr",
    "BitXor",
    "Broadcast",
    "BufferRef",
    "Call",
    "CallExtern",
    "CallFunction",
    "CallPacked",
    "Cast",
    "CompareExpr",
    "Derived",
    "Div",
    "Equal",
    "Expr",
    "FloatImm",
    "FloorDiv",
    "FloorMod",
    "Greater",
    "GreaterEqual",
    "IfThenElse",
    "IntImm",
    "Less",
    "LessEqual",
    "Load",
    "Max",
    "Min",
    "Mod",
    "Mul",
    "Negate",
    "Not",
    "NotEqual",
    "Or",
    "Ramp",
    "Reinterpret",
    "Select",
    "ShiftLeft",
    "ShiftRight",
    "Shuffle",
    "StringImm",
    "Sub",
    "UnaryExpr",
    "Var",
]

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
    """The bits of the value read as another type of the same width in all. Not to or from bool or handle.

    The bits of a computed NaN may be those of any NaN.
    """

    type: DType
    value: Expr
    span: Span | None = None

    CHILDREN: ClassVar[tuple[str, ...]] = ("value",)

    @property
    def dtype(self) -> DType:
        return self.type


@node
class Ramp(Derived):
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
class Broadcast(Derived):
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
class Shuffle(Derived):
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
class Load(Derived):
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
