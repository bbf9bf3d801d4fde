"""Random functions that threads call together: with barriers, shared memory of their own or of the caller's, early returns.

Each takes a value, the thread's number and how many threads there are, and gives what threads have made of their values.
All threads of a block call it together, and it waits before it returns, so that it can be called again.
"""

from __future__ import annotations

from dataclasses import dataclass

from gristmill.ir import expr as e
from gristmill.ir import stmt as s
from gristmill.ir.build import less, sequence
from gristmill.ir.dtype import INT64, DType
from gristmill.ir.memory import Buffer, Scope
from gristmill.ir.module import Function
from gristmill.testing.device_programs.kernels import THREADS, KernelMaker
from gristmill.testing.programs.scope import Place, size_of
from gristmill.testing.programs.scope import Scope as Names


@dataclass(frozen=True)
class DeviceHelper:
    """A function ``(value, thread, count[, tile]) -> value`` for all threads of a block."""

    function: Function
    dtype: DType
    takes_tile: bool

    def call(self, value: e.Expr, thread: e.Expr, count: e.Expr, tile: Buffer | None) -> e.CallFunction:
        args: list[e.Expr] = [value, thread, count]
        if self.takes_tile:
            assert tile is not None
            args.append(e.BufferRef(tile))
        return e.CallFunction(self.function.name, tuple(args), self.dtype)


def device_helper(maker: KernelMaker, name: str, dtype: DType, inner: DeviceHelper | None) -> DeviceHelper:
    """A random function of that name. ``inner`` is another one of the same type that it may call."""
    chance = maker.chance
    takes_tile = chance.happens(0.5)
    value, thread, count = e.Var("value", dtype), e.Var("thread", INT64), e.Var("count", INT64)
    params: list[e.Var | Buffer] = [value, thread, count]
    sizes: tuple[e.Var, ...] = ()
    steps: list[s.Stmt | None] = []
    if takes_tile:
        room = e.Var("room", INT64)
        tile = maker.new_buffer("tile", dtype, (room,), Scope.SHARED)
        params.append(tile)
        sizes = (room,)
    else:
        tile = maker.new_buffer("own", dtype, (size_of(max(THREADS)),), Scope.SHARED)
        steps.append(s.Allocate(tile))
    maker.scope = Names([value, thread])
    maker.place = Place(cost=200, depth=2, in_parallel=True, may_return=False)
    given = maker.make(dtype, 1)
    result = maker.new_buffer("result", dtype, (), Scope.LOCAL)
    here = e.Load(result, ())
    other = e.FloorMod(e.Add(thread, size_of(chance.number(1, 5))), count)
    combined = combine(maker, dtype, here, e.Load(tile, (other,)))
    scope = s.BarrierScope.BLOCK if chance.happens(0.8) else s.BarrierScope.BLOCK_AND_GLOBAL
    step = sequence(
        s.Store(tile, (thread,), here), s.Barrier(scope), s.Store(result, (), combined), s.Barrier(scope)
    )  # fmt: skip
    if chance.happens(0.3):
        step = s.For(
            e.Var(maker.name("round"), INT64), size_of(0), size_of(chance.number(0, 2)), s.LoopKind.SERIAL, step
        )
    steps += [s.Allocate(result), s.Store(result, (), given), step]
    if inner is not None and inner.takes_tile <= takes_tile:
        steps.append(s.Store(result, (), inner.call(here, thread, count, tile if inner.takes_tile else None)))
    if chance.happens(0.5):
        leave: s.Stmt = s.If(less(thread, size_of(chance.number(0, 4))), s.Return(maker.make(dtype, 1)))
        if chance.happens(0.4):
            leave = s.For(e.Var(maker.name("i"), INT64), size_of(0), size_of(2), s.LoopKind.SERIAL, leave)
        steps.append(leave)
    steps.append(s.Return(here))
    return DeviceHelper(Function(name, tuple(params), sizes, dtype, sequence(*steps)), dtype, takes_tile)


def combine(maker: KernelMaker, dtype: DType, a: e.Expr, b: e.Expr) -> e.Expr:
    """One value of two."""
    kind = maker.chance.pick((e.And, e.Or) if dtype.is_bool else (e.Add, e.Sub, e.Mul))
    return kind(a, b)
