"""Random kernels whose threads meet in atomic operations whose order makes no difference, and drop the old values."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gristmill.ir import expr as e
from gristmill.ir import stmt as s
from gristmill.ir.build import call, cast, sequence
from gristmill.ir.dtype import BOOL, INT32, INT64, UINT32
from gristmill.ir.memory import Buffer
from gristmill.ir.op import ATOMICS_IN_ANY_ORDER
from gristmill.testing.device_programs.block_kernels import BlockKernelMaker
from gristmill.testing.device_programs.kernels import Grid
from gristmill.testing.programs.scope import Memory, size_of

_OPERATIONS = sorted(ATOMICS_IN_ANY_ORDER)
_INTEGERS = (INT32, UINT32)


class AtomicKernelMaker(BlockKernelMaker):
    """Makes those kernels besides the others."""

    def makers(self) -> list[tuple[float, Callable[[], s.Stmt | None]]]:
        found = super().makers()
        if self.allowed("atomic"):
            found += [(1.5, self.through_atomics), (1.0, self.through_shared_atomics)]
        return found

    def through_atomics(self) -> s.Stmt | None:
        """Threads of all blocks that come to elements of one array of global memory."""
        chosen = self.owned_and_grid(4)
        if chosen is None:
            return None
        owned, grid = chosen
        targets = [m for m in owned if m.readable and len(m.buffer.shape) == 1 and m.dtype in _INTEGERS]
        if not targets:
            return None
        target = self.chance.pick(targets)
        with self.in_threads((), grid.number, self.names_of(grid), self.threads_of(grid), grid.size):
            self.scope.positions += [(grid.number, grid.size), (grid.thread, size_of(grid.threads))]
            self.scope.memory[:] = [m for m in self.scope.memory if m.root is not target.root]
            return self.launched(grid, self.guarded(grid, self.meeting(target.buffer)))

    def through_shared_atomics(self) -> s.Stmt | None:
        """Threads of a block that come to elements of shared memory, between two barriers."""
        chosen = self.owned_and_grid(8)
        if chosen is None:
            return None
        owned, grid = chosen
        tile = self.shared(self.chance.pick(_INTEGERS), grid.threads)
        put = s.Store(tile, (grid.thread,), self.values(owned, grid, lambda: self.make(tile.dtype, self.depth())))
        step = self.met(owned, grid, tile)
        barrier = s.Barrier(s.BarrierScope.BLOCK)
        use = self.use(owned, grid, [Memory(tile, writable=False)])
        return self.placed(tile, grid, sequence(put, barrier, step, barrier, use))

    def met(self, owned: Sequence[Memory], grid: Grid, tile: Buffer) -> s.Stmt:
        with self.in_threads((), grid.number, self.names_of(grid), self.threads_of(grid), None):
            self.scope.positions.append((grid.thread, size_of(grid.threads)))
            written = {m.root for m in owned}
            self.scope.memory[:] = [m for m in self.scope.memory if m.root not in written]
            return self.meeting(tile)

    def meeting(self, buffer: Buffer) -> s.Stmt:
        """One operation on elements that any thread may choose; perhaps twice, under a condition, in a loop."""
        name = self.chance.pick(_OPERATIONS)
        steps = [self.operation(name, buffer) for _ in range(self.chance.number(1, 2))]
        if self.chance.happens(0.3):
            steps[-1] = s.If(self.make(BOOL, 2), steps[-1])
        if self.chance.happens(0.3):
            times = size_of(self.chance.number(1, 3))
            return s.For(e.Var(self.name("round"), INT64), size_of(0), times, s.LoopKind.SERIAL, sequence(*steps))
        return sequence(*steps)

    def operation(self, name: str, buffer: Buffer) -> s.Stmt:
        number = cast(self.make(self.chance.pick(self.integers or (INT64,)), self.depth()), INT64)
        element = e.AddressOf(buffer, (e.FloorMod(number, buffer.shape[0]),))
        return s.Evaluate(call(name, element, self.make(buffer.dtype, self.depth())))
