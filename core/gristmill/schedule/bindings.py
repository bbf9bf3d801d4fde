"""Making regions that run on a device: a nest spread over blocks of threads, or statements that one thread runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from gristmill.arith.simplify import Simplifier
from gristmill.ir.build import call, cast, conjunction, const, constant_value, less, sequence
from gristmill.ir.dtype import BOOL, INT64
from gristmill.ir.expr import Add, Expr, FloorDiv, FloorMod, Load, Max, Min, Mul, Var
from gristmill.ir.functor import Mutator, walk
from gristmill.ir.memory import Buffer, PointerType, Region, Scope
from gristmill.ir.stmt import Allocate, Bind, Block, For, If, LoopHints, LoopKind, Stmt, Store, ThreadAxis
from gristmill.passes.layout import flat_size, times
from gristmill.passes.renewal import renewed
from gristmill.schedule.nests import Nest


@dataclass(frozen=True)
class LaunchShape:
    """How large a launch may be: threads of a block, and blocks along x (0: as many as there are)."""

    threads: int = 256
    blocks: int = 0


def one_thread(body: Stmt) -> Stmt:
    """A launch of one thread that runs the statement, after the values that it takes from the host."""
    names, body = _with_values_of_host(_in_thread(body))
    region = _thread_loop(Var("tx", INT64), const(1, INT64), ThreadAxis.THREAD_X, body)
    return sequence(*names, region)


def many_threads(nest: Nest, shape: LaunchShape, simplifier: Simplifier) -> Stmt:
    """A launch with a thread for each iteration of the nest's parallel loops; where arrays overlap, of one thread."""
    parallel = _Launch(shape, simplifier).of(nest)
    if not nest.apart:
        return parallel
    apart = conjunction(_are_disjoint(one, other) for one, other in nest.apart)
    return If(apart, parallel, one_thread(renewed(nest.serial)), nest.serial.span)


def _are_disjoint(one: Buffer, other: Buffer) -> Expr:
    return call("disjoint", one.data, _bytes(one), other.data, _bytes(other), dtype=BOOL)


def _bytes(buffer: Buffer) -> Expr:
    return times(flat_size(buffer), const(buffer.dtype.bytes, INT64))


class _Launch:
    """Makes the launch of one nest. Everything that the host computes gets a name before it."""

    def __init__(self, shape: LaunchShape, simplifier: Simplifier) -> None:
        self.shape = shape
        self.simplifier = simplifier
        self.before: list[Stmt] = []

    def of(self, nest: Nest) -> Stmt:
        loops = nest.parallel
        minimums = [self.named(f"{loop.var.name}_first", cast(loop.minimum, INT64)) for loop in loops]
        extents = [self.named(f"{loop.var.name}_extent", self.extent_of(loop)) for loop in loops]
        total = extents[0]
        for extent in extents[1:]:
            total = Mul(total, extent)
        total = self.named("total", total)
        if len(loops) == 1 and loops[0].var.dtype == INT64 and constant_value(minimums[0]) == 0:
            number, coordinates = loops[0].var, []
        else:
            number = Var("number", INT64)
            coordinates = self.coordinates(loops, minimums, extents, number)
        body = sequence(*coordinates, nest.body)
        names, body = _with_values_of_host(_in_thread(body))
        region = self.region(number, total, body)
        return sequence(*self.before, *names, region)

    def extent_of(self, loop: For) -> Expr:
        """How often the loop runs: not less than never."""
        extent = cast(loop.extent, INT64)
        if self.simplifier.bounds.of(extent).low >= 0:
            return extent
        return Max(extent, const(0, INT64))

    def named(self, name: str, value: Expr) -> Expr:
        """The value, evaluated once by the host."""
        value = self.simplifier.simplify(value)
        if isinstance(value, Var) or constant_value(value) is not None:
            return value
        var = Var(name, value.dtype)
        self.simplifier.bounds.set(var, self.simplifier.bounds.of(value))
        self.before.append(Bind(var, value))
        return var

    def coordinates(
        self, loops: Sequence[For], minimums: Sequence[Expr], extents: Sequence[Expr], number: Var
    ) -> list[Stmt]:
        """What the loops' variables are, given the thread's number; the last loop's counts fastest."""
        found: list[Stmt] = []
        rest: Expr = number
        for place in reversed(range(len(loops))):
            here = rest if place == 0 else FloorMod(rest, extents[place])
            value = self.simplifier.simplify(Add(minimums[place], here))
            found.append(Bind(loops[place].var, cast(value, loops[place].var.dtype), loops[place].span))
            rest = FloorDiv(rest, extents[place])
        return found[::-1]

    def region(self, number: Var, total: Expr, body: Stmt) -> Stmt:
        """The loops over blocks and threads, with a guard and a loop of strides where they are needed."""
        known = constant_value(total)
        threads = self.shape.threads if known is None else max(min(self.shape.threads, int(known)), 1)
        size = const(threads, INT64)
        blocks: Expr = FloorDiv(Add(total, const(threads - 1, INT64)), size)
        block, thread, stride = Var("bx", INT64), Var("tx", INT64), Var("stride", INT64)
        here: Expr = Add(Mul(block, size), thread)
        most = self.shape.blocks
        strides = most > 0 and (known is None or known > most * threads)
        if strides:
            step = const(most * threads, INT64)
            here = Add(Mul(stride, step), here)
            blocks = Min(blocks, const(most, INT64))
        if known is None or int(known) % threads or strides:
            body = If(less(number, total), body)
        body = sequence(Bind(number, here), body)
        if strides:
            rounds = FloorDiv(Add(total, const(most * threads - 1, INT64)), step)
            body = For(stride, const(0, INT64), self.named("rounds", rounds), LoopKind.SERIAL, body)
        inner = _thread_loop(thread, size, ThreadAxis.THREAD_X, body)
        inner = replace(inner, hints=LoopHints(independent=True))
        return _thread_loop(block, self.simplifier.simplify(blocks), ThreadAxis.BLOCK_X, inner)


def _thread_loop(var: Var, extent: Expr, axis: ThreadAxis, body: Stmt) -> For:
    return For(var, const(0, INT64), extent, LoopKind.THREAD, body, axis)


# What a thread cannot have --------------------------------------------------------------------------------------------


def _with_values_of_host(body: Stmt) -> tuple[list[Stmt], Stmt]:
    """Scalars of the host that the code only reads, as names of their values before it, and the code with those."""
    own = {node.buffer for node in walk(body) if isinstance(node, Allocate)}
    own |= {buffer for node in walk(body) if isinstance(node, Block) for buffer in node.allocations}
    taking = _TakingValues(own)
    found = taking.visit(body)
    return [Bind(var, Load(buffer, ())) for buffer, var in taking.taken.items()], found


class _TakingValues(Mutator):
    def __init__(self, own: set[Buffer]) -> None:
        super().__init__()
        self.own = own
        self.taken: dict[Buffer, Var] = {}

    def visit_Load(self, node: Load) -> Any:
        buffer = node.buffer
        if buffer.scope is not Scope.LOCAL or buffer.rank or buffer in self.own:
            return self.generic(node)
        if buffer not in self.taken:
            self.taken[buffer] = Var(f"{buffer.name}_value", buffer.dtype)
        return self.taken[buffer]


def _in_thread(body: Stmt) -> Stmt:
    """The code as one thread runs it: its parallel loops are serial, its scratch memory is local."""
    return _InThread(body).visit(body)  # type: ignore[no-any-return]


class _InThread(Mutator):
    def __init__(self, body: Stmt) -> None:
        super().__init__()
        self.data: dict[Var, Var] = {}
        made: list[Buffer] = []
        otherwise: set[Var] = set()
        for node in walk(body):
            if isinstance(node, Allocate):
                made.append(node.buffer)
            elif isinstance(node, Block):
                made += node.allocations
                otherwise.update(match.region.buffer.data for match in node.matches)
            elif not isinstance(node, (Load, Store, Region)) and isinstance(getattr(node, "buffer", None), Buffer):
                otherwise.add(node.buffer.data)  # type: ignore[attr-defined]
        for buffer in made:
            data = buffer.data
            constant = all(constant_value(size) is not None for size in buffer.shape)
            if constant and buffer.scope is Scope.GLOBAL and data not in otherwise:
                self.data[data] = Var(data.name, data.type, PointerType(buffer.dtype, Scope.LOCAL))

    def visit_Buffer(self, node: Buffer) -> Any:
        if node.data not in self.data:
            return super().visit_Buffer(node)
        found = replace(self.generic(node), data=self.data[node.data], scope=Scope.LOCAL)
        self.buffers[node] = found
        return found

    def visit_For(self, node: For) -> Any:
        node = self.generic(node)
        return replace(node, kind=LoopKind.SERIAL) if node.kind is LoopKind.PARALLEL else node
