"""Statements. The docstring of a node is its meaning.

A name that a :class:`Bind`, :class:`Allocate` or :class:`View` introduces is visible in the statements after it in the
same :class:`Seq`, and nowhere else.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

from gristmill.ir.expr import Expr, Var
from gristmill.ir.memory import Buffer, Range, Region
from gristmill.ir.node import Node, node
from gristmill.ir.span import Span
from gristmill.ir.target import Target


class Stmt(Node):
    """The base of all statements."""

    __slots__ = ()


# Sequence and names ---------------------------------------------------------------------------------------------------


@node
class Seq(Stmt):
    """Statements one after the other; none at all does nothing. A sequence directly in a sequence is not made."""

    body: tuple[Stmt, ...]
    span: Span | None = None

    CHILDREN: ClassVar[tuple[str, ...]] = ("body",)


@node
class Bind(Stmt):
    """Evaluate once and name the value, for the rest of the enclosing sequence."""

    var: Var
    value: Expr
    span: Span | None = None

    CHILDREN: ClassVar[tuple[str, ...]] = ("var", "value")


@node
class Allocate(Stmt):
    """New memory for a buffer, for the rest of the enclosing sequence. Its elements are not initialised.

    Defines ``buffer`` and ``buffer.data``. Run again (in a loop) it is new memory again. ``local`` memory is one
    instance a thread; of a buffer of rank 0 that stands outside of a launch, each thread of the launch has a copy that
    holds at first what the code around the launch has stored to it. ``shared`` memory is one instance a block of
    threads, also where the allocation stands outside the loops over threads; of a loop over blocks each iteration has
    its own.
    """

    buffer: Buffer
    span: Span | None = None

    CHILDREN: ClassVar[tuple[str, ...]] = ("buffer",)


@node
class View(Stmt):
    """Another buffer over memory that exists, for the rest of the enclosing sequence.

    Without ``source``, ``buffer.data`` is a variable already in scope (that of another buffer, a pointer parameter).
    With ``source``, a pointer expression, it defines ``buffer.data`` too.
    """

    buffer: Buffer
    source: Expr | None = None
    span: Span | None = None

    CHILDREN: ClassVar[tuple[str, ...]] = ("source", "buffer")


# Effects --------------------------------------------------------------------------------------------------------------


@node
class Store(Stmt):
    """Write a value to an element of a buffer. Indices as in :class:`~gristmill.ir.expr.Load`; then the value; then the write.

    With a vector index the lanes are written in ascending order.
    """

    buffer: Buffer
    indices: tuple[Expr, ...]
    value: Expr
    span: Span | None = None

    CHILDREN: ClassVar[tuple[str, ...]] = ("indices", "value")


@node
class Evaluate(Stmt):
    """Evaluate for effect, and drop the value."""

    value: Expr
    span: Span | None = None

    CHILDREN: ClassVar[tuple[str, ...]] = ("value",)


@node
class Assert(Stmt):
    """If the condition is false, leave the public function with a Python error.

    ``kind`` is the name of a built-in exception class. The message is texts and values, put one after the other
    (integers in decimal, bools as ``True`` and ``False``); calls of the operations
    :data:`~gristmill.ir.op.MESSAGE_TEXTS` are texts too.
    """

    condition: Expr
    kind: str
    message: tuple[str | Expr, ...]
    span: Span | None = None

    CHILDREN: ClassVar[tuple[str, ...]] = ("condition", "message")


# Control --------------------------------------------------------------------------------------------------------------


class LoopKind(Enum):
    """How the iterations of a loop relate."""

    SERIAL = "serial"
    """One after the other, ascending."""
    PARALLEL = "parallel"
    """In any order, also at the same time, on several CPU threads."""
    VECTORIZED = "vectorized"
    """In lock step, as the lanes of vectors: each statement for all iterations before the next."""
    UNROLLED = "unrolled"
    """Serial; the body is to be repeated in the code."""
    THREAD = "thread"
    """By threads of a device, one iteration a thread (or block of threads) along the axis that ``thread`` names."""


class ThreadAxis(Enum):
    """The axes of a launch: blocks of the grid, and threads of a block."""

    BLOCK_X = "blockIdx.x"
    BLOCK_Y = "blockIdx.y"
    BLOCK_Z = "blockIdx.z"
    THREAD_X = "threadIdx.x"
    THREAD_Y = "threadIdx.y"
    THREAD_Z = "threadIdx.z"

    @property
    def is_block(self) -> bool:
        """Whether this counts blocks of the grid (rather than threads of a block)."""
        return self.value.startswith("block")


@dataclass(frozen=True, slots=True)
class LoopHints:
    """What is asked of the code for a loop, and known of it; hints change speed, never results. 0 and None: no wish."""

    unroll: int = 0
    """Repeat the body so many times in the code."""
    vector_width: int = 0
    """Handle so many iterations in one vector."""
    vectorize: bool | None = None
    """Ask for, or forbid, automatic vectorisation."""
    independent: bool = False
    """Of a loop over threads: none touches global memory that another one writes, whatever indices may look like; atomic
    operations may meet there."""


@node
class For(Stmt):
    """Run the body for ``var = minimum, minimum + 1, ...``, ``extent`` times; not at all if the extent is 0 or negative.

    Minimum and extent are evaluated once, before. ``var`` has their type. For ``LoopKind.THREAD``, ``thread`` says
    which axis; loops over the same axis in one launch have equal extents, and run on the same threads.
    """

    var: Var
    minimum: Expr
    extent: Expr
    kind: LoopKind
    body: Stmt
    thread: ThreadAxis | None = None
    hints: LoopHints = LoopHints()
    span: Span | None = None

    CHILDREN: ClassVar[tuple[str, ...]] = ("minimum", "extent", "var", "body")


@node
class While(Stmt):
    """Evaluate the condition; while it is true run the body and evaluate it again."""

    condition: Expr
    body: Stmt
    span: Span | None = None

    CHILDREN: ClassVar[tuple[str, ...]] = ("condition", "body")


@node
class Break(Stmt):
    """Leave the innermost serial or while loop."""

    span: Span | None = None


@node
class Continue(Stmt):
    """Go on with the next iteration of the innermost loop (of any kind)."""

    span: Span | None = None


@node
class Return(Stmt):
    """Leave the function, with a value if it has a result. In code of a device, the thread ends (not its block)."""

    value: Expr | None = None
    span: Span | None = None

    CHILDREN: ClassVar[tuple[str, ...]] = ("value",)


@node
class If(Stmt):
    """Run one of two statements."""

    condition: Expr
    then: Stmt
    otherwise: Stmt | None = None
    span: Span | None = None

    CHILDREN: ClassVar[tuple[str, ...]] = ("condition", "then", "otherwise")


# Blocks ---------------------------------------------------------------------------------------------------------------


class AxisKind(Enum):
    """What an axis of a block is to its result."""

    SPATIAL = "spatial"
    """Each value writes its own elements; the values may run in any order."""
    REDUCE = "reduce"
    """The values combine into the same elements."""


@node
class BlockAxis(Node):
    """An axis of a block: a variable with the domain ``[0 or minimum, + extent)``, bound to an expression of the loops."""

    var: Var
    domain: Range
    kind: AxisKind
    value: Expr
    span: Span | None = None

    CHILDREN: ClassVar[tuple[str, ...]] = ("domain", "value", "var")


@node
class MatchBuffer(Node):
    """A buffer inside a block that stands for a region of another: element 0 of it is the region's first element."""

    buffer: Buffer
    region: Region
    span: Span | None = None

    CHILDREN: ClassVar[tuple[str, ...]] = ("region", "buffer")


@node
class Block(Stmt):
    """A unit of computation with named axes; what loop transformations move and bind.

    Run: evaluate the axes' values; if ``predicate`` (over the loops outside) is false do nothing; allocate the
    ``allocations``; make the ``matches``; if every reduce axis is at the start of its domain run ``init``; run the body.
    ``reads`` and ``writes`` state which elements the body may touch, in terms of the axes; None: not stated.
    """

    name: str
    axes: tuple[BlockAxis, ...]
    predicate: Expr | None
    reads: tuple[Region, ...] | None
    writes: tuple[Region, ...] | None
    allocations: tuple[Buffer, ...]
    matches: tuple[MatchBuffer, ...]
    init: Stmt | None
    body: Stmt
    span: Span | None = None

    CHILDREN: ClassVar[tuple[str, ...]] = (
        "predicate",
        "axes",
        "allocations",
        "reads",
        "writes",
        "matches",
        "init",
        "body",
    )


# Devices --------------------------------------------------------------------------------------------------------------


class BarrierScope(Enum):
    """Which threads wait for each other, and which memory is then seen by all of them."""

    BLOCK = "shared"
    """The threads of a block; shared memory."""
    BLOCK_AND_GLOBAL = "global"
    """The threads of a block; shared and global memory."""
    WARP = "warp"
    """The threads of a warp; memory of scope ``warp`` and ``shared``."""


@node
class Barrier(Stmt):
    """All threads of the scope that still run wait here for each other. Reached by some of them only, it is an error."""

    scope: BarrierScope
    span: Span | None = None


@node
class DeviceRegion(Stmt):
    """The body runs on the device of ``target``, as one launch; host code only, and no region stands in another.

    The loops over threads in it state the launch's extents, which must be known before it: each is evaluated once, with
    the bindings of the body that it uses put in their place. A zero launches nothing; without any loop over threads one
    thread runs the body. A ``return`` in it ends a thread. ``break`` and ``continue`` stay inside.
    """

    body: Stmt
    target: Target
    span: Span | None = None

    CHILDREN: ClassVar[tuple[str, ...]] = ("body",)


@node
class Launch(Stmt):
    """Run a kernel of the module on the device of the arguments; host code only, made by launch lowering.

    ``extents`` gives the size along each axis in the order of the kernel's launch parameters; a zero launches nothing.
    ``dynamic_shared`` is the size of dynamic shared memory in bytes, if the kernel has any. ``context`` is a pointer to
    what the host function knows of its device and kernels; None until the packed interface hands one on.
    """

    kernel: str
    args: tuple[Expr, ...]
    axes: tuple[ThreadAxis, ...]
    extents: tuple[Expr, ...]
    dynamic_shared: Expr | None = None
    context: Expr | None = None
    span: Span | None = None

    CHILDREN: ClassVar[tuple[str, ...]] = ("args", "extents", "dynamic_shared", "context")
