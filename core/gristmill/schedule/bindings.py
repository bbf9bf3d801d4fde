"""Making regions that run on a device: a nest spread over blocks of threads, or statements that one thread runs, or the
threads of one block together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from gristmill.arith.simplify import Simplifier
from gristmill.ir.build import call, conjunction, const, constant_value, equal, less, less_equal, sequence
from gristmill.ir.dtype import BOOL, INT64
from gristmill.ir.expr import Add, Expr, FloorDiv, FloorMod, Load, Min, Mul, Var
from gristmill.ir.functor import Mutator, walk
from gristmill.ir.memory import Buffer, PointerType, Region, Scope
from gristmill.ir.stmt import Allocate, Bind, Block, For, If, LoopHints, LoopKind, Stmt, Store, ThreadAxis
from gristmill.passes.layout import flat_size, times
from gristmill.passes.renewal import renewed
from gristmill.schedule.iteration_space import IterationSpace
from gristmill.schedule.nests import Nest, NestFinder
from gristmill.schedule.teams import Team, longest_reduction
from gristmill.schedule.wide_accesses import wide_accesses

FEW_ITERATIONS = 4096
"""A nest of at most so many iterations, each of which reduces, has a block of threads for each: a thread for each would
leave most of a device idle."""


@dataclass(frozen=True)
class LaunchShape:
    """How large a launch may be: threads of a block, and blocks along x (0: as many as there are).

    ``access`` is how many bytes a thread best accesses at once; 0: those of one element.
    """

    threads: int = 256
    blocks: int = 0
    access: int = 0


def one_thread(body: Stmt) -> Stmt:
    """A launch of one thread that runs the statement, after the values that it takes from the host."""
    names, body = _with_values_of_host(_in_thread(body))
    region = _thread_loop(Var("tx", INT64), const(1, INT64), ThreadAxis.THREAD_X, body)
    return sequence(*names, region)


def many_threads(nest: Nest, shape: LaunchShape, simplifier: Simplifier, teams: TeamMaker) -> Stmt:
    """A launch with a thread for each iteration of the nest's parallel loops, or, where they are few and each reduces,
    with a block of threads for each; where arrays overlap, of one thread."""
    parallel = _Launch(shape, simplifier, teams).of(nest)
    if parallel is None:
        return one_thread(nest.serial)
    return where_apart(nest.apart, parallel, one_thread(renewed(nest.serial)))


def where_apart(pairs: Sequence[tuple[Buffer, Buffer]], parallel: Stmt, serial: Stmt) -> Stmt:
    """The first statement if none of the pairs of arrays overlap, else the second."""
    if not pairs:
        return parallel
    return If(conjunction(_are_disjoint(one, other) for one, other in pairs), parallel, serial, serial.span)


def team_of_threads(region: For, teams: TeamMaker, shape: LaunchShape) -> For | None:
    """A launch of one thread as one of a block of threads; None if what it does cannot be shared, or need not be."""
    found = _team(region.body, teams, shape)
    if found is None:
        return None
    return replace(region, extent=found.extent, var=found.var, body=found.body)


def _team(body: Stmt, teams: TeamMaker, shape: LaunchShape) -> For | None:
    """The loop over the threads of a block that share the statement."""
    longest = teams.longest(body)
    threads = shape.threads if longest is None else min(shape.threads, longest)
    lane = Var("tx", INT64)
    shared = teams.make(lane, threads).shared(body) if threads > 1 else None
    if shared is None:
        return None
    return _thread_loop(lane, const(threads, INT64), ThreadAxis.THREAD_X, shared)


def _are_disjoint(one: Buffer, other: Buffer) -> Expr:
    return call("disjoint", one.data, _bytes(one), other.data, _bytes(other), dtype=BOOL)


def _bytes(buffer: Buffer) -> Expr:
    return times(flat_size(buffer), const(buffer.dtype.bytes, INT64))


@dataclass(frozen=True)
class TeamMaker:
    """What is needed to let the threads of a block share work."""

    finder: NestFinder
    simplifier: Simplifier

    def make(self, lane: Var, threads: int) -> Team:
        """A team whose threads are numbered by the variable."""
        return Team(self.finder, self.simplifier, lane, threads)

    def longest(self, body: Stmt) -> int | None:
        """The most iterations of a loop that the team would share, if that is known."""
        return longest_reduction(self.finder.reductions, body)


class _Launch:
    """Makes the launch of one nest. Everything that the host computes gets a name before it."""

    def __init__(self, shape: LaunchShape, simplifier: Simplifier, teams: TeamMaker) -> None:
        self.shape = shape
        self.simplifier = simplifier
        self.teams = teams

    def of(self, nest: Nest) -> Stmt | None:
        """The launch; None if none pays."""
        params = self.teams.finder.function.params
        shapes = [param.shape for param in params if isinstance(param, Buffer)]
        self.space = IterationSpace(nest.parallel, self.simplifier, shapes)
        names, body = _with_values_of_host(_in_thread(sequence(*self.space.coordinates, nest.body)))
        team = self.team(body)
        if team is None:
            found = None if nest.is_short else self.region(body)
        else:
            found = self.either(nest, team, body)
        return None if found is None else sequence(*self.space.before, *names, found)

    def either(self, nest: Nest, team: Stmt, body: Stmt) -> Stmt | None:
        """The launch of blocks that share iterations, with the conditions under which it is the one to choose."""
        pairs = self.teams.finder.pairs(body)
        otherwise = None if nest.is_short else self.region(body)
        if pairs is None:
            return otherwise
        # The word of an author for a parallel loop tells iterations apart, and not what is within one.
        conditions = [_are_disjoint(*pair) for pair in pairs if pair not in nest.apart]
        if self.space.known is None:
            conditions.insert(0, less_equal(self.space.total, self.few))
        if not conditions:
            return team
        otherwise = one_thread(renewed(nest.serial)) if otherwise is None else renewed(otherwise)
        return If(conjunction(conditions), team, otherwise, nest.serial.span)

    @property
    def few(self) -> int:
        """So many blocks may be started with one for each iteration."""
        return min(FEW_ITERATIONS, self.shape.blocks or FEW_ITERATIONS)

    def team(self, body: Stmt) -> Stmt | None:
        """A block of threads for each iteration, unless there are known to be many."""
        known = self.space.known
        if known is not None and known > self.few:
            return None
        threads = _team(body, self.teams, self.shape)
        if threads is None:
            return None
        return _thread_loop(self.space.number, self.space.total, ThreadAxis.BLOCK_X, threads)

    def region(self, body: Stmt) -> Stmt:
        """A thread for each iteration, or for as many neighbours as it accesses at once, where arrays allow that."""
        number, total, known = self.space.number, self.space.total, self.space.known
        wide = wide_accesses(body, number, self.shape.access) if self.is_plain else None
        if wide is None or (known is not None and (known % wide.lanes or known < wide.lanes * self.shape.threads)):
            return self.spread(body, number, total)
        conditions, lanes = list(wide.conditions), const(wide.lanes, INT64)
        if known is None:
            conditions.insert(0, equal(FloorMod(total, lanes), 0))
        parallel = self.spread(wide.body, wide.vector, self.space.named("vectors", FloorDiv(total, lanes)))
        if not conditions:
            return parallel
        return If(conjunction(conditions), parallel, renewed(self.spread(body, number, total)))

    @property
    def is_plain(self) -> bool:
        """Whether threads are numbered as the iterations of one loop."""
        return not self.space.coordinates

    def spread(self, body: Stmt, number: Var, total: Expr) -> Stmt:
        """The loops over blocks and threads, with a guard and a loop of strides where they are needed."""
        count = constant_value(total)
        known = None if count is None else int(count)
        threads = self.shape.threads if known is None else max(min(self.shape.threads, known), 1)
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
        if known is None or known % threads or strides:
            body = If(less(number, total), body)
        body = sequence(Bind(number, here), body)
        if strides:
            rounds = FloorDiv(Add(total, const(most * threads - 1, INT64)), step)
            body = For(stride, const(0, INT64), self.space.named("rounds", rounds), LoopKind.SERIAL, body)
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
