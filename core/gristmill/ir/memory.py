"""Memory: the scopes it lives in, the type of pointers, buffers, and regions of buffers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, ClassVar

from gristmill.ir.dtype import DType
from gristmill.ir.node import Node, node
from gristmill.ir.span import Span

if TYPE_CHECKING:
    from gristmill.ir.expr import Expr, Var


class Scope(Enum):
    """Where memory lives and who sees it."""

    GLOBAL = "global"
    """Memory of the device (on the host: of the process), seen by all threads."""
    SHARED = "shared"
    """Memory of one block of threads, of constant size. One instance a block, wherever in the function it is declared."""
    SHARED_DYNAMIC = "shared.dyn"
    """As shared, with a size that the launch gives."""
    WARP = "warp"
    """Memory that the threads of one warp spread over their registers."""
    LOCAL = "local"
    """Memory of one thread."""
    MATRIX_A = "matrix.a"
    """Tiles that the threads of a warp hold together: left operands of products of matrices."""
    MATRIX_B = "matrix.b"
    """Such tiles: right operands of products."""
    MATRIX_ACCUMULATOR = "matrix.accumulator"
    """Such tiles: sums of products."""


MATRIX_SCOPES = frozenset((Scope.MATRIX_A, Scope.MATRIX_B, Scope.MATRIX_ACCUMULATOR))
"""What holds tiles of matrices. The last two dimensions of such a buffer are the rows and columns of a tile, those before
count tiles. Only the operations :data:`gristmill.ir.op.MATRIX` touch it; nothing has a view of it."""


@dataclass(frozen=True, slots=True)
class PointerType:
    """The type of a pointer variable: what it points to, and where."""

    element: DType
    scope: Scope = Scope.GLOBAL

    def __str__(self) -> str:
        return f"ptr<{self.element}, {self.scope.value}>"


@node
class Buffer(Node):
    """A multi-dimensional view of memory: element type, shape, strides, offset, scope.

    Element ``[i0, i1, ...]`` lives at ``data + (offset + sum(i_k * stride_k)) * bytes(dtype)``. Without strides the
    layout is row-major and compact. Shape, strides and offset are counted in elements. A buffer of rank 0 is one
    element (a local scalar of the kernel language).

    Two buffers with the same ``data`` variable are views of the same memory, possibly with different element types; a
    load through one of them sees the bytes that were stored through the other. ``alignment`` is in bytes, a promise
    about ``data``; 0 stands for the alignment of the element type.
    """

    name: str
    dtype: DType
    shape: tuple[Expr, ...]
    data: Var
    strides: tuple[Expr, ...] = ()
    offset: Expr | None = None
    scope: Scope = Scope.GLOBAL
    alignment: int = 0
    span: Span | None = None

    CHILDREN: ClassVar[tuple[str, ...]] = ("shape", "strides", "offset")

    @property
    def rank(self) -> int:
        return len(self.shape)


@node
class Range(Node):
    """The half-open range of integers ``[minimum, minimum + extent)``."""

    minimum: Expr
    extent: Expr
    span: Span | None = None

    CHILDREN: ClassVar[tuple[str, ...]] = ("minimum", "extent")


@node
class Region(Node):
    """A box of elements of a buffer, one range a dimension; what a block says it reads or writes."""

    buffer: Buffer
    ranges: tuple[Range, ...]
    span: Span | None = None

    CHILDREN: ClassVar[tuple[str, ...]] = ("ranges",)
