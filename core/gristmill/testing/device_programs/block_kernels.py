"""Random kernels whose threads work together: through functions, two memories, warps, with threads that end before."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gristmill.ir import expr as e
from gristmill.ir import stmt as s
from gristmill.ir.build import less, sequence
from gristmill.ir.dtype import INT64
from gristmill.ir.memory import Buffer, Scope
from gristmill.testing.device_programs.device_helpers import DeviceHelper, combine
from gristmill.testing.device_programs.kernels import Grid, KernelMaker
from gristmill.testing.programs.scope import STEPS_AT_MOST, Memory, extent_bound, size_of


class BlockKernelMaker(KernelMaker):
    """Makes those kernels besides the others."""

    device_helpers: Sequence[DeviceHelper] = ()

    def makers(self) -> list[tuple[float, Callable[[], s.Stmt | None]]]:
        found = super().makers()
        found.append((1.0, self.through_two_memories))
        if self.device_helpers:
            found.append((2.0, self.through_helper))
        if self.allowed("warp"):
            found.append((0.7, self.through_warp))
        if self.allowed("early return"):
            found.append((0.7, self.with_ended_threads))
        return found

    def owned_and_grid(self, times: int) -> tuple[list[Memory], Grid] | None:
        """What threads of a new grid may write, each where its number is."""
        groups = [
            g for g in self.groups() if extent_bound(g[0].buffer.shape[0]) * self.place.cost * times <= STEPS_AT_MOST
        ]
        if not groups:
            return None
        owned = self.chance.pick(groups)
        return owned, self.grid(owned[0].buffer.shape[0])

    def names_of(self, grid: Grid) -> list[e.Var]:
        return [grid.block, grid.thread, grid.number]

    def values(self, owned: Sequence[Memory], grid: Grid, make: Callable[[], e.Expr]) -> e.Expr:
        """A value of all threads, of nothing that is written."""
        with self.in_threads((), grid.number, self.names_of(grid), self.threads_of(grid), None):
            self.scope.positions.append((grid.thread, size_of(grid.threads)))
            written = {m.root for m in owned}
            self.scope.memory[:] = [m for m in self.scope.memory if m.root not in written]
            return make()

    def use(self, owned: Sequence[Memory], grid: Grid, memory: Sequence[Memory]) -> s.Stmt:
        """What threads with elements of their own do with memory that is there."""
        with self.in_threads(owned, grid.number, self.names_of(grid), self.threads_of(grid), grid.size):
            self.scope.positions += [(grid.number, grid.size), (grid.thread, size_of(grid.threads))]
            self.scope.memory += memory
            return self.guarded(grid, self.body(self.place, 2))

    # Kernels ----------------------------------------------------------------------------------------------------------

    def through_helper(self) -> s.Stmt | None:
        """A function with barriers that all threads call: in a row, in a loop or a branch that is the same for all."""
        found = self.owned_and_grid(8)
        if found is None:
            return None
        owned, grid = found
        helper = self.chance.pick(self.device_helpers)
        tile = self.shared(helper.dtype, grid.threads) if helper.takes_tile else None
        x = self.new_buffer("x", helper.dtype, (), Scope.LOCAL)
        here = e.Load(x, ())
        start = self.values(owned, grid, lambda: self.make(helper.dtype, self.depth()))

        def call(value: e.Expr) -> e.Expr:
            return helper.call(value, grid.thread, size_of(grid.threads), tile)

        roll = self.chance.random()
        value = call(here)
        if roll < 0.3:
            # The call comes first: the second operand of `and` and `or` is evaluated by some threads only.
            value = combine(self, helper.dtype, call(here), here)
        elif roll < 0.5 and not helper.dtype.is_bool:
            value = combine(self, helper.dtype, call(here), call(combine(self, helper.dtype, here, here)))
        step: s.Stmt = s.Store(x, (), value)
        if self.chance.happens(0.25):
            number = e.Var(self.name("round"), INT64)
            step = s.For(number, size_of(0), size_of(2), s.LoopKind.SERIAL, step)
        if self.chance.happens(0.25):
            step = s.If(less(grid.block, size_of(self.chance.number(0, 2))), step)
        body = sequence(s.Allocate(x), s.Store(x, (), start), step, self.use(owned, grid, [Memory(x)]))
        return self.launched(grid, body) if tile is None else self.placed(tile, grid, body)

    def through_two_memories(self) -> s.Stmt | None:
        """Two shared buffers, of two types perhaps, one or both of a size that the launch gives."""
        found = self.owned_and_grid(8)
        if found is None:
            return None
        owned, grid = found
        dynamic = self.allowed("dynamic") and self.chance.happens(0.6)
        tiles: list[Buffer] = []
        steps: list[s.Stmt | None] = []
        for stem in ("first", "second"):
            scope = Scope.SHARED_DYNAMIC if dynamic else Scope.SHARED
            size = grid.threads + (self.chance.number(0, 3) if self.allowed("view") else 0)
            tile = self.new_buffer(stem, self.chance.pick(self.dtypes), (size_of(size),), scope)
            tiles.append(tile)
            steps.append(s.Store(tile, (grid.thread,), self.values(owned, grid, lambda t=tile: self.make(t.dtype, 1))))  # type: ignore[misc]
        # The launch has the first one for a while, or both to the end.
        memory = [Memory(tile, writable=False) for tile in tiles]
        views: list[s.Stmt] = []
        if self.allowed("view"):
            memory = [Memory(self.part_of(tile, grid), writable=False, view_of=tile) for tile in tiles]
            views = [s.View(m.buffer) for m in memory]
        one_by_one = self.chance.happens(0.5)
        barrier = s.Barrier(s.BarrierScope.BLOCK)
        if one_by_one:
            body = sequence(
                *views, steps[0], barrier, self.use(owned, grid, memory[:1]), steps[1], barrier,
                self.use(owned, grid, memory[1:]),
            )  # fmt: skip
        else:
            body = sequence(*views, *steps, barrier, self.use(owned, grid, memory))
        inner = sequence(s.Allocate(tiles[1]), body)
        return self.placed(tiles[0], grid, inner)

    def part_of(self, tile: Buffer, grid: Grid) -> Buffer:
        """The elements of shared memory that threads have written; of memory of an odd size, the last comes first."""
        turned = isinstance(tile.shape[0], e.IntImm) and tile.shape[0].value % 2
        return Buffer(
            self.name("w"),
            tile.dtype,
            (size_of(grid.threads),),
            tile.data,
            strides=(size_of(-1),) if turned else (),
            offset=size_of(grid.threads - 1) if turned else None,
            scope=tile.scope,
        )

    def through_warp(self) -> s.Stmt | None:
        """Memory of warps, or shared memory, and barriers of the warp; blocks here have no more threads than warps."""
        found = self.owned_and_grid(8)
        if found is None:
            return None
        owned, grid = found
        scope = Scope.WARP if self.chance.happens(0.5) else Scope.SHARED
        tile = self.new_buffer("lanes", self.chance.pick(self.dtypes), (size_of(grid.threads),), scope)
        put = s.Store(tile, (grid.thread,), self.values(owned, grid, lambda: self.make(tile.dtype, self.depth())))
        use = self.use(owned, grid, [Memory(tile, writable=False)])
        return self.placed(tile, grid, sequence(put, s.Barrier(s.BarrierScope.WARP), use))

    def with_ended_threads(self) -> s.Stmt | None:
        """Threads with nothing to do end first; the others hand on values, and wait for each other alone."""
        found = self.owned_and_grid(8)
        if found is None:
            return None
        owned, grid = found
        targets = [m for m in owned if m.readable and len(m.buffer.shape) == 1]
        if not targets:
            return None
        target = self.chance.pick(targets)
        tile = self.shared(target.dtype, grid.threads)
        with self.in_threads((), grid.number, self.names_of(grid), self.threads_of(grid), grid.size):
            leave = s.If(e.GreaterEqual(grid.number, grid.size), self.return_statement())
            self.scope.positions += [(grid.number, grid.size), (grid.thread, size_of(grid.threads))]
            self.scope.memory[:] = [m for m in self.scope.memory if m.root is not target.root]
            put = s.Store(tile, (grid.thread,), self.make(target.dtype, self.depth()))
        # Of the threads of a block that go on, those with the lowest numbers are there.
        lower = e.FloorDiv(grid.thread, size_of(self.chance.number(2, 3)))
        value = combine(self, target.dtype, e.Load(tile, (grid.thread,)), e.Load(tile, (lower,)))
        result = s.Store(target.buffer, (grid.number,), value)
        return self.placed(tile, grid, sequence(leave, put, s.Barrier(s.BarrierScope.BLOCK), result))
