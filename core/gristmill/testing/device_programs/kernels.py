"""Random kernels, bound to threads and without races, because each is made so.

A thread writes only to elements whose first index is its own, to memory that it made, and to its own element of shared
memory; what others wrote it reads after a barrier. So a kernel is right as it stands, and wrong without a barrier
that it needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from gristmill.ir import expr as e
from gristmill.ir import stmt as s
from gristmill.ir.build import const, less, sequence
from gristmill.ir.dtype import INT32, INT64, DType
from gristmill.ir.memory import Buffer, Range, Region, Scope
from gristmill.testing.programs.scope import STEPS_AT_MOST, Memory, Place, extent_bound, size_of
from gristmill.testing.programs.statements import StatementMaker

THREADS = (1, 2, 3, 4, 5, 7, 8)
"""Sizes of blocks of threads: powers of two and others."""

_AXES = {
    "x": (s.ThreadAxis.BLOCK_X, s.ThreadAxis.THREAD_X),
    "y": (s.ThreadAxis.BLOCK_Y, s.ThreadAxis.THREAD_Y),
    "z": (s.ThreadAxis.BLOCK_Z, s.ThreadAxis.THREAD_Z),
}
_COMBINING = (e.Add, e.Mul, e.Min, e.Max, e.BitAnd, e.BitOr, e.BitXor)


@dataclass(frozen=True)
class Grid:
    """Threads over the numbers ``[0, size)`` and perhaps some more: ``block`` and ``thread`` number them."""

    size: e.Expr
    block: e.Var
    thread: e.Var
    number: e.Var
    blocks: e.Expr
    threads: int
    axes: str


class KernelMaker(StatementMaker):
    """Makes kernels of one function. ``positive`` are the symbolic sizes that are known not to be zero at the place."""

    positive: frozenset[e.Var] = frozenset()

    # What threads see -------------------------------------------------------------------------------------------------

    def is_there(self, memory: Memory) -> bool:
        """Whether the memory surely has elements."""
        return all(not isinstance(size, e.Var) or size in self.positive for size in memory.buffer.shape)

    @contextmanager
    def in_threads(
        self, owned: Sequence[Memory], own: e.Expr, names: Sequence[e.Var], threads: int, positive: e.Expr | None
    ) -> Iterator[None]:
        """Code of threads that may write the owned memory where the first index is ``own``, and only read all other."""
        outer, known = self.place, self.positive
        if isinstance(positive, e.Var):
            self.positive = known | {positive}
        with self.scope.nested():
            chosen = set(owned)
            self.scope.memory[:] = [
                replace(m, first=own) if m in chosen else replace(m, writable=False)
                for m in self.scope.memory
                if self.is_there(m) and m.buffer.scope is Scope.GLOBAL
            ]
            self.scope.variables += names
            self.place = Place(cost=outer.cost * max(threads, 1), depth=1, in_parallel=True, may_return=False)
            yield
        self.place, self.positive = outer, known

    def groups(self) -> list[list[Memory]]:
        """Writable memory of the device, by the size of the first dimension."""
        found: dict[object, list[Memory]] = {}
        for memory in self.writable(scalar=False):
            if memory.buffer.scope is Scope.GLOBAL and memory.first is None:
                size = memory.buffer.shape[0]
                found.setdefault(size.value if isinstance(size, e.IntImm) else size, []).append(memory)
        return list(found.values())

    # Grids ------------------------------------------------------------------------------------------------------------

    def grid(self, size: e.Expr) -> Grid:
        """Blocks of threads that cover the numbers below a size."""
        threads = self.chance.pick(THREADS)
        count = size_of(threads)
        blocks: e.Expr = e.FloorDiv(e.Add(size, size_of(threads - 1)), count)
        if isinstance(size, e.IntImm):
            blocks = size_of(-(-size.value // threads))
        if self.chance.happens(0.15):
            blocks = e.Add(blocks, size_of(1))
        names = [e.Var(self.name(stem), INT64) for stem in ("bx", "tx", "number")]
        return Grid(size, names[0], names[1], names[2], blocks, threads, self.chance.pick("xxxyz"))

    def threads_of(self, grid: Grid) -> int:
        """How many threads a grid has at most."""
        return extent_bound(grid.size) + 2 * grid.threads

    def launched(self, grid: Grid, body: s.Stmt, in_block: Sequence[s.Stmt] = ()) -> s.Stmt:
        """The loops over blocks and threads around a body that uses the thread's number."""
        block_axis, thread_axis = _AXES[grid.axes]
        names: list[s.Stmt] = []
        extent: e.Expr = size_of(grid.threads)
        if self.chance.happens(0.15):
            extent_name = e.Var(self.name("extent"), INT64)
            names.append(s.Bind(extent_name, extent))
            extent = extent_name
        number = e.Add(e.Mul(grid.block, size_of(grid.threads)), grid.thread)
        body = sequence(s.Bind(grid.number, number), body)
        inner = s.For(grid.thread, size_of(0), extent, s.LoopKind.THREAD, body, thread_axis)
        outer = sequence(*in_block, *names, inner)
        return s.For(grid.block, size_of(0), grid.blocks, s.LoopKind.THREAD, outer, block_axis)

    # Kernels ----------------------------------------------------------------------------------------------------------

    def makers(self) -> list[tuple[float, Callable[[], s.Stmt | None]]]:
        """What makes a launch, with how often it is to; one may find that it cannot."""
        found: list[tuple[float, Callable[[], s.Stmt | None]]] = [
            (3.0, self.each_its_own),
            (1.5, self.by_rows_and_columns),
            (3.0, self.through_shared),
            (1.5, self.shared_tree),
            (0.7, self.single_thread),
        ]
        if self.integers and self.allowed("reduction"):
            found.append((1.5, self.block_reduction))
        return found

    def kernel(self) -> s.Stmt:
        """One launch."""
        makers = self.makers()
        while True:
            found = self.chance.weighted(makers)()
            if found is not None:
                return found

    def each_its_own(self) -> s.Stmt | None:
        """Threads that run statements on elements of their own, under a guard."""
        groups = [g for g in self.groups() if extent_bound(g[0].buffer.shape[0]) * self.place.cost * 2 <= STEPS_AT_MOST]
        if not groups:
            return None
        owned = self.chance.pick(groups)
        grid = self.grid(owned[0].buffer.shape[0])
        with self.in_threads(
            owned, grid.number, [grid.block, grid.thread, grid.number], self.threads_of(grid), grid.size
        ):
            self.scope.positions.append((grid.number, grid.size))
            place = replace(self.place, may_return=self.allowed("early return"))
            body = self.body(place, 3)
        return self.launched(grid, self.guarded(grid, body))

    def return_statement(self) -> s.Stmt:
        # What a thread gives goes nowhere, so it may give nothing but 0.
        if self.place.in_parallel and not self.returns.is_void:
            return s.Return(const(0, self.returns))
        return super().return_statement()

    def guarded(self, grid: Grid, body: s.Stmt) -> s.Stmt:
        condition: e.Expr = less(grid.number, grid.size)
        if self.chance.happens(0.2):
            condition = e.Not(e.GreaterEqual(grid.number, grid.size))
        return s.If(condition, body)

    def by_rows_and_columns(self) -> s.Stmt | None:
        """Axes of two dimensions, perhaps with the loops over threads around those over blocks."""
        found = [
            m
            for m in self.writable(scalar=False)
            if len(m.buffer.shape) == 2 and m.buffer.scope is Scope.GLOBAL and m.first is None
        ]
        if not found:
            return None
        target = self.chance.pick(found)
        rows, columns = target.buffer.shape
        if extent_bound(rows) * extent_bound(columns) * self.place.cost > STEPS_AT_MOST:
            return None
        y, x = (e.Var(self.name(stem), INT64) for stem in "yx")
        first, second = self.chance.pick(
            (
                (s.ThreadAxis.BLOCK_Y, s.ThreadAxis.BLOCK_X),
                (s.ThreadAxis.BLOCK_X, s.ThreadAxis.THREAD_X),
                (s.ThreadAxis.THREAD_Y, s.ThreadAxis.BLOCK_X),
                (s.ThreadAxis.BLOCK_Z, s.ThreadAxis.THREAD_Y),
                (s.ThreadAxis.THREAD_Z, s.ThreadAxis.THREAD_X),
            )
        )
        threads = extent_bound(rows) * extent_bound(columns)
        with self.in_threads((), y, [y, x], threads, rows):
            if isinstance(columns, e.Var):
                self.positive |= {columns}
            self.scope.positions += [(y, rows), (x, columns)]
            self.scope.memory[:] = [m for m in self.scope.memory if m.root is not target.root]
            value = self.value_for(target, target.dtype)
        store: s.Stmt = s.Store(target.buffer, (y, x), value)
        if self.chance.happens(0.3):
            store = s.If(e.NotEqual(e.FloorMod(e.Add(y, x), size_of(3)), size_of(1)), store)
        inner = s.For(x, size_of(0), columns, s.LoopKind.THREAD, store, second)
        return s.For(y, size_of(0), rows, s.LoopKind.THREAD, inner, first)

    def single_thread(self) -> s.Stmt | None:
        """One thread that runs statements on anything."""
        groups = [m for m in self.writable(scalar=False) if m.buffer.scope is Scope.GLOBAL and self.is_there(m)]
        if not groups:
            return None
        thread = e.Var(self.name("tx"), INT32 if self.chance.happens(0.3) else INT64)
        with self.in_threads((), thread, [thread], 1, None):
            chosen = set(groups)
            self.scope.memory[:] = [m for m in self.scope.memory if m.readable and m.writable] + [
                m for m in groups if m in chosen
            ]
            body = self.body(self.place, 3)
        axis = self.chance.pick((s.ThreadAxis.THREAD_X, s.ThreadAxis.BLOCK_X, s.ThreadAxis.THREAD_Y))
        return s.For(thread, const(0, thread.type), const(1, thread.type), s.LoopKind.THREAD, body, axis)

    # Shared memory ----------------------------------------------------------------------------------------------------

    def shared(self, dtype: DType, threads: int) -> Buffer:
        scope = Scope.SHARED_DYNAMIC if self.allowed("dynamic") and self.chance.happens(0.25) else Scope.SHARED
        return self.new_buffer("tile", dtype, (size_of(threads),), scope)

    def placed(self, buffer: Buffer, grid: Grid, body: s.Stmt) -> s.Stmt:
        """The launch, with the allocation of shared memory before it, in it, or in its threads."""
        roll = self.chance.random()
        allocation = s.Allocate(buffer)
        if roll < 0.4:
            return self.launched(grid, body, [allocation])
        if roll < 0.7:
            return self.launched(grid, sequence(allocation, body))
        return sequence(allocation, self.launched(grid, body))

    def through_shared(self) -> s.Stmt | None:
        """Values that threads hand to each other: written, a barrier, read; perhaps in rounds, with a second barrier."""
        groups = [g for g in self.groups() if extent_bound(g[0].buffer.shape[0]) * self.place.cost * 8 <= STEPS_AT_MOST]
        if not groups:
            return None
        owned = self.chance.pick(groups)
        grid = self.grid(owned[0].buffer.shape[0])
        tile = self.shared(self.chance.pick(self.dtypes), grid.threads)
        names = [grid.block, grid.thread, grid.number]
        rounds = self.chance.number(2, 3) if self.chance.happens(0.4) else 1
        with self.in_threads((), grid.number, names, self.threads_of(grid) * rounds, None):
            self.scope.positions.append((grid.thread, size_of(grid.threads)))
            written = {m.root for m in owned}
            self.scope.memory[:] = [m for m in self.scope.memory if m.root not in written]
            put = s.Store(tile, (grid.thread,), self.make(tile.dtype, self.depth()))
        with self.in_threads(owned, grid.number, names, self.threads_of(grid) * rounds, grid.size):
            self.scope.positions += [(grid.number, grid.size), (grid.thread, size_of(grid.threads))]
            # Without a barrier a thread reads its own element alone.
            waits = self.chance.happens(0.8)
            self.scope.memory.append(Memory(tile, writable=False, first=None if waits else grid.thread))
            use = self.guarded(grid, self.body(self.place, 2))
        scope = s.BarrierScope.BLOCK if self.chance.happens(0.8) else s.BarrierScope.BLOCK_AND_GLOBAL
        barrier = s.Barrier(scope)
        step = sequence(put, barrier if waits else None, use)
        if rounds > 1:
            number = e.Var(self.name("round"), INT64)
            again = sequence(step, s.Barrier(scope) if waits else None)
            step = s.For(number, size_of(0), size_of(rounds), s.LoopKind.SERIAL, again)
        return self.placed(tile, grid, step)

    def shared_tree(self) -> s.Stmt | None:
        """Each block combines the values of its threads, in steps with barriers; any number of threads."""
        targets = [
            g for g in self.groups() if extent_bound(g[0].buffer.shape[0]) * self.place.cost * 16 <= STEPS_AT_MOST
        ]
        targets = [g for g in targets if any(len(m.buffer.shape) == 1 and m.readable for m in g)]
        if not targets:
            return None
        target = self.chance.pick([m for m in self.chance.pick(targets) if len(m.buffer.shape) == 1 and m.readable])
        dtype = target.dtype
        size = target.buffer.shape[0]
        base = self.grid(size)
        grid = replace(base, blocks=size)
        tile = self.shared(dtype, grid.threads)
        cost = extent_bound(size) * grid.threads
        with self.in_threads((), grid.block, [grid.block, grid.thread, grid.number], cost, size):
            self.scope.positions += [(grid.block, size), (grid.thread, size_of(grid.threads))]
            self.scope.memory[:] = [m for m in self.scope.memory if m.root is not target.root]
            steps: list[s.Stmt | None] = [s.Store(tile, (grid.thread,), self.make(dtype, 2))]
        length = grid.threads
        here = e.Load(tile, (grid.thread,))
        kind = self.chance.pick((e.And, e.Or) if dtype.is_bool else (e.Add, e.Sub, e.Mul))
        while length > 1:
            half = (length + 1) // 2
            there = e.Add(grid.thread, size_of(half))
            store = s.Store(tile, (grid.thread,), kind(here, e.Load(tile, (there,))))
            steps += [s.Barrier(s.BarrierScope.BLOCK), s.If(less(there, size_of(length)), store)]
            length = half
        result = s.Store(target.buffer, (grid.block,), e.Load(tile, (size_of(0),)))
        steps.append(s.If(e.Equal(grid.thread, size_of(0)), result))
        return self.placed(tile, grid, sequence(*steps))

    # Blocks -----------------------------------------------------------------------------------------------------------

    def block_reduction(self) -> s.Stmt | None:
        """A block whose reduce axis is bound to threads, of an extent that need be no multiple of theirs."""
        targets = [
            m
            for m in self.writable(scalar=False)
            if len(m.buffer.shape) == 1
            and m.readable
            and m.dtype.is_integer
            and m.first is None
            and m.buffer.scope is Scope.GLOBAL
            and extent_bound(m.buffer.shape[0]) * self.place.cost * 16 <= STEPS_AT_MOST
        ]
        if not targets:
            return None
        target = self.chance.pick(targets)
        size = target.buffer.shape[0]
        threads, times = self.chance.pick(THREADS[1:]), self.chance.number(1, 3)
        reduced = threads * times - (self.chance.number(0, threads - 1) if self.chance.happens(0.5) else 0)
        i, t, k, j = (e.Var(self.name(stem), INT64) for stem in ("bx", "tx", "k", "j"))
        vi, vk, vj = (e.Var(self.name("a"), INT64) for _ in range(3))
        # A second axis to reduce: in each thread, or over threads along another axis.
        second = self.chance.number(1, 3) if self.chance.happens(0.4) else 0
        over_threads = second > 0 and self.chance.happens(0.6)
        with self.in_threads((), vi, [vi, vk], extent_bound(size) * threads * times * max(second, 1), size):
            self.scope.positions += [(vi, size), (vk, size_of(reduced))]
            if second:
                self.scope.variables.append(vj)
            self.scope.memory[:] = [m for m in self.scope.memory if m.root is not target.root]
            value = self.make(target.dtype, 2)
            start = self.constant(target.dtype)
        kind = self.chance.pick(_COMBINING)
        update = s.Store(target.buffer, (vi,), kind(e.Load(target.buffer, (vi,)), value))
        init = s.Store(target.buffer, (vi,), start)
        place = e.Add(e.Mul(k, size_of(threads)), t)
        predicate = less(place, size_of(reduced)) if reduced < threads * times else None
        axes: tuple[s.BlockAxis, ...] = (
            s.BlockAxis(vi, Range(size_of(0), size), s.AxisKind.SPATIAL, i),
            s.BlockAxis(vk, Range(size_of(0), size_of(reduced)), s.AxisKind.REDUCE, place),
        )
        if second:
            axes = (*axes, s.BlockAxis(vj, Range(size_of(0), size_of(second)), s.AxisKind.REDUCE, j))
        writes = (Region(target.buffer, (Range(vi, size_of(1)),)),)
        block: s.Stmt = s.Block(self.name("block"), axes, predicate, None, writes, (), (), init, update)
        if second:
            kind_of, axis = (s.LoopKind.THREAD, s.ThreadAxis.THREAD_Y) if over_threads else (s.LoopKind.SERIAL, None)
            block = s.For(j, size_of(0), size_of(second), kind_of, block, axis)
        inner = s.For(k, size_of(0), size_of(times), s.LoopKind.SERIAL, block)
        middle = s.For(t, size_of(0), size_of(threads), s.LoopKind.THREAD, inner, s.ThreadAxis.THREAD_X)
        return s.For(i, size_of(0), size, s.LoopKind.THREAD, middle, s.ThreadAxis.BLOCK_X)
