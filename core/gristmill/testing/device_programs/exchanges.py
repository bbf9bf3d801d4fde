"""Random kernels whose threads exchange values without memory, for targets that have that.

All threads of a group come to each exchange: it stands at the top of the threads' code, in loops and branches that a
whole block takes together. Nobody ends before.
"""

from __future__ import annotations

from collections.abc import Callable

from gristmill.ir import expr as e
from gristmill.ir import stmt as s
from gristmill.ir.build import call, cast, const, less, sequence
from gristmill.ir.dtype import BOOL, INT32, INT64, UINT64
from gristmill.ir.memory import Scope
from gristmill.testing.device_programs.kernels import Grid, KernelMaker
from gristmill.testing.programs.scope import STEPS_AT_MOST, extent_bound, size_of

_WIDTHS = (1, 2, 4, 8, 16, 32)
_SHUFFLES = ("warp_shuffle", "warp_shuffle_xor", "warp_shuffle_up", "warp_shuffle_down")
_VOTES = ("warp_ballot", "warp_any", "warp_all")


class ExchangeMaker(KernelMaker):
    """Makes kernels with exchanges too, where those are allowed, in groups of up to ``warp_size`` threads."""

    warp_size = _WIDTHS[-1]

    def makers(self) -> list[tuple[float, Callable[[], s.Stmt | None]]]:
        found = super().makers()
        if self.allowed("exchange"):
            found += [(3.0, self.through_exchanges), (1.5, self.exchange_tree)]
        return found

    def through_exchanges(self) -> s.Stmt | None:
        """Values that threads hand to each other, one exchange perhaps of what another gave; perhaps in rounds."""
        groups = [g for g in self.groups() if extent_bound(g[0].buffer.shape[0]) * self.place.cost * 8 <= STEPS_AT_MOST]
        if not groups:
            return None
        owned = self.chance.pick(groups)
        grid = self.grid(owned[0].buffer.shape[0])
        names = [grid.block, grid.thread, grid.number]
        rounds = self.chance.number(2, 3) if self.chance.happens(0.3) else 1
        cost = self.threads_of(grid) * rounds
        with self.in_threads((), grid.number, names, cost, None):
            self.scope.positions.append((grid.thread, size_of(grid.threads)))
            written = {m.root for m in owned}
            self.scope.memory[:] = [m for m in self.scope.memory if m.root not in written]
            exchanges = [self.exchange(grid) for _ in range(self.chance.number(1, 3))]
        with self.in_threads(owned, grid.number, names, cost, grid.size):
            self.scope.positions += [(grid.number, grid.size), (grid.thread, size_of(grid.threads))]
            self.scope.variables += [one.var for one in exchanges]
            use = self.guarded(grid, self.body(self.place, 2))
        step = sequence(*exchanges, use)
        if self.chance.happens(0.25):
            step = s.If(e.Equal(e.FloorMod(grid.block, size_of(2)), size_of(self.chance.number(0, 1))), step)
        if rounds > 1:
            step = s.For(e.Var(self.name("round"), INT64), size_of(0), size_of(rounds), s.LoopKind.SERIAL, step)
        return self.launched(grid, step)

    def exchange(self, grid: Grid) -> s.Bind:
        """One exchange of a random value, with a random lane; its name is known from here on."""
        width = const(self.chance.pick([width for width in _WIDTHS if width <= self.warp_size]), INT32)
        if self.chance.happens(0.3):
            name = self.chance.pick(_VOTES)
            asked = self.make(BOOL, 2)
            found = call(name, asked, width, dtype=UINT64 if name == "warp_ballot" else None)
        else:
            value = self.make(self.chance.pick(self.dtypes), self.depth())
            found = call(self.chance.pick(_SHUFFLES), value, self.lane(grid), width)
        bound = s.Bind(e.Var(self.name("got"), found.dtype), found)
        self.scope.variables.append(bound.var)
        return bound

    def lane(self, grid: Grid) -> e.Expr:
        """How far, or from which lane: a constant, or another for each thread; sometimes there is none."""
        number = const(self.chance.number(-2, 9), INT32)
        kind = self.chance.pick((None, None, e.Add, e.Sub, e.BitXor, e.Mul))
        return number if kind is None else kind(number, cast(grid.thread, INT32))

    def exchange_tree(self) -> s.Stmt | None:
        """Each block combines the values of its threads, in steps without barriers; any number of threads."""
        targets = [
            m
            for m in self.writable(scalar=False)
            if len(m.buffer.shape) == 1
            and m.readable
            and m.first is None
            and m.buffer.scope is Scope.GLOBAL
            and extent_bound(m.buffer.shape[0]) * self.place.cost * 16 <= STEPS_AT_MOST
        ]
        if not targets:
            return None
        target = self.chance.pick(targets)
        dtype, size = target.dtype, target.buffer.shape[0]
        base = self.grid(size)
        grid = Grid(size, base.block, base.thread, base.number, size, base.threads, base.axes)
        cost = extent_bound(size) * grid.threads
        with self.in_threads((), grid.block, [grid.block, grid.thread, grid.number], cost, size):
            self.scope.positions += [(grid.block, size), (grid.thread, size_of(grid.threads))]
            self.scope.memory[:] = [m for m in self.scope.memory if m.root is not target.root]
            first = self.make(dtype, 2)
        mine = self.new_buffer("partial", dtype, (), Scope.LOCAL)
        kind = self.chance.pick((e.And, e.Or) if dtype.is_bool else (e.Add, e.Sub, e.Mul))
        width = const(1 << (grid.threads - 1).bit_length(), INT32)
        steps: list[s.Stmt] = [s.Allocate(mine), s.Store(mine, (), first)]
        left = grid.threads
        while left > 1:
            half = (left + 1) // 2
            other = e.Var(self.name("other"), dtype)
            steps.append(s.Bind(other, call("warp_shuffle_down", e.Load(mine, ()), const(half, INT32), width)))
            steps.append(s.If(less(grid.thread, left - half), s.Store(mine, (), kind(e.Load(mine, ()), other))))
            left = half
        result = s.Store(target.buffer, (grid.block,), e.Load(mine, ()))
        return self.launched(grid, sequence(*steps, s.If(e.Equal(grid.thread, size_of(0)), result)))
