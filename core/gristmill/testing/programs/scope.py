"""What a random program may use at a place: variables, memory, helpers, and how often the place is run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from gristmill.ir.dtype import INT64, DType
from gristmill.ir.expr import Expr, IntImm, Var
from gristmill.ir.memory import Buffer
from gristmill.ir.module import Function
from gristmill.ir.stmt import LoopKind

STEPS_AT_MOST = 3_000
"""How often the innermost code of a program is run, at most."""

LONGEST_SIZE = 17
"""The greatest value that a symbolic size takes."""


@dataclass(frozen=True, eq=False)
class Memory:
    """A buffer that is wholly written already.

    ``first``: in a parallel loop, the only first index that an iteration may use. Elements of a bounded output are
    written and never read.
    """

    buffer: Buffer
    readable: bool = True
    writable: bool = True
    first: Expr | None = None
    view_of: Buffer | None = None
    """The buffer that was allocated, if this is another buffer over its memory."""

    @property
    def root(self) -> Buffer:
        """What tells whether two buffers share memory."""
        return self.view_of or self.buffer

    @property
    def dtype(self) -> DType:
        return self.buffer.dtype

    @property
    def is_scalar(self) -> bool:
        return not self.buffer.shape


@dataclass(frozen=True, eq=False)
class Helper:
    """A function that may be called: a pure one of scalars, or one that writes to a buffer (its first parameter)."""

    function: Function
    cost: int
    takes_depth: bool = False

    @property
    def is_pure(self) -> bool:
        return not any(isinstance(param, Buffer) for param in self.function.params)


def extent_bound(size: Expr) -> int:
    """How large a size can be."""
    return int(size.value) if isinstance(size, IntImm) else LONGEST_SIZE


@dataclass(frozen=True)
class Place:
    """Where a statement stands."""

    cost: int = 1
    depth: int = 0
    loop: LoopKind | None = None
    is_while: bool = False
    in_parallel: bool = False
    in_lock_step: bool = False
    may_return: bool = True

    @property
    def may_break(self) -> bool:
        return self.is_while or self.loop in (LoopKind.SERIAL, LoopKind.UNROLLED)

    @property
    def may_continue(self) -> bool:
        return self.is_while or self.loop is not None

    def inside(self, times: int, loop: LoopKind | None, is_while: bool = False) -> Place:
        """The body of a loop."""
        unordered = loop in (LoopKind.PARALLEL, LoopKind.VECTORIZED)
        return replace(
            self,
            cost=self.cost * max(times, 1),
            depth=self.depth + 1,
            loop=loop,
            is_while=is_while,
            in_parallel=self.in_parallel or loop is LoopKind.PARALLEL,
            in_lock_step=self.in_lock_step or loop is LoopKind.VECTORIZED,
            may_return=self.may_return and not unordered,
        )


@dataclass
class Scope:
    """Names in view. ``positions`` are int64 variables known to lie in ``[0, size)``, with that size."""

    variables: list[Var] = field(default_factory=list)
    memory: list[Memory] = field(default_factory=list)
    positions: list[tuple[Var, Expr]] = field(default_factory=list)

    @contextmanager
    def nested(self) -> Iterator[None]:
        """What is added inside is gone afterwards."""
        was = len(self.variables), len(self.positions), list(self.memory)
        yield
        del self.variables[was[0] :]
        del self.positions[was[1] :]
        self.memory[:] = was[2]


def size_of(value: int) -> Expr:
    """A constant size."""
    return IntImm(value, INT64)
