"""Work of one thread shared by all threads of a block: each runs a part of the loops that reduce.

Before::

    total = 0
    for i in range(n):
        total = total + a[i]
    out[0] = total

After, for a block of 256 threads::

    total = 0                                       ; memory of a thread: all of them do it
    total_partial = 0
    for stride in range((n + 255) // 256):
        i = stride * 256 + tx
        if i < n:
            total_partial = total_partial + a[i]
    with block("total"):                            ; the core pass lower_thread_reductions makes a tree of it
        lane = reduce(256, tx)
        where n > 0
        total = total + total_partial
    if tx == 0:                                     ; memory of the device: one of them does it
        out[0] = total

Loops beside those that reduce are shared in the same way where their iterations are independent; the barriers between them
are put in later. A thread without an iteration has the operation's neutral element, which changes no value. What no
thread has touched (there is no iteration, or none in which a condition held) stays untouched.
"""

from __future__ import annotations

from dataclasses import replace

from gristmill.arith.simplify import Simplifier
from gristmill.ir.build import conjunction, const, constant_value, equal, false, greater, less, sequence
from gristmill.ir.dtype import BOOL, HANDLE, INT64, DType
from gristmill.ir.effects import is_atomic
from gristmill.ir.expr import Add, CallFunction, Expr, FloorDiv, Load, Mul, Or, Var
from gristmill.ir.functor import walk
from gristmill.ir.memory import Buffer, PointerType, Range, Scope
from gristmill.ir.node import Node
from gristmill.ir.stmt import (
    Allocate,
    AxisKind,
    Bind,
    Block,
    BlockAxis,
    For,
    If,
    LoopKind,
    Seq,
    Stmt,
    Store,
    View,
)
from gristmill.passes.renewal import defined_variables
from gristmill.passes.thread_reduction import neutral
from gristmill.schedule.iteration_space import IterationSpace
from gristmill.schedule.jumps import escaping_jumps
from gristmill.schedule.nests import NestFinder
from gristmill.schedule.reductions import Accumulator, LoopReduction, Reductions


class _Refused(Exception):
    """The statement is not shared: part of it does not fit."""


class Team:
    """Shares statements among the threads ``0 <= lane < threads`` of a block."""

    def __init__(self, finder: NestFinder, simplifier: Simplifier, lane: Var, threads: int) -> None:
        self.finder = finder
        self.reductions = finder.reductions
        self.simplifier = simplifier
        self.lane = lane
        self.threads = threads
        self.alone: list[Stmt] = []
        """What the first thread does alone."""
        self.together: list[Node] = []
        """What all threads do."""
        self.everywhere: set[Var] = set()
        """The memory that all threads write to."""
        self.count = 0
        """How many loops are shared."""
        self.loaded: set[Var] = set()
        """Names of what is read from memory."""

    def shared(self, body: Stmt) -> Stmt | None:
        """What each thread runs for the statement; None if it cannot be shared, or that would not pay."""
        if not self.reductions.in_any_loop(body):
            return None
        try:
            found = self._statement(body)
            self._check_barriers(body)
        except _Refused:
            return None
        return found if self.count else None

    def _statement(self, node: Stmt) -> Stmt:
        if isinstance(node, Seq):
            return sequence(*(self._statement(part) for part in node.body), span=node.span)
        if isinstance(node, For) and (found := self.reductions.of(node)) is not None:
            return self._reduction(found)
        if not self.reductions.in_any_loop(node):
            return self._spread(node) or self._plain(node)
        before = self.count
        try:
            return self._around(node)
        except _Refused:
            self.count = before
            return self._plain(node)

    def _around(self, node: Stmt) -> Stmt:
        """A branch, a loop or a block around what reduces: all threads go through it."""
        if isinstance(node, If):
            self._must_be_the_same(node.condition)
            otherwise = None if node.otherwise is None else self._statement(node.otherwise)
            return replace(node, then=self._statement(node.then), otherwise=otherwise)
        if isinstance(node, For) and node.kind is not LoopKind.VECTORIZED and not escaping_jumps(node.body):
            self._must_be_the_same(node.minimum)
            self._must_be_the_same(node.extent)
            return replace(node, body=self._statement(node.body))
        if isinstance(node, Block) and not node.axes and not node.matches:
            if node.init is not None or any(buffer.scope is not Scope.LOCAL for buffer in node.allocations):
                raise _Refused
            if node.predicate is not None:
                self._must_be_the_same(node.predicate)
            return replace(node, body=self._statement(node.body))
        raise _Refused

    def _spread(self, node: Stmt) -> Stmt | None:
        """A loop whose iterations are independent, each thread running a part of them; None if it is no such loop.

        It must be plain to see that different iterations write different elements: one dimension is the loop's variable.
        """
        nest = self.finder.find(node) if isinstance(node, For) and node.kind is LoopKind.SERIAL else None
        if nest is None or nest.is_short or len(nest.parallel) > 1 or nest.parallel[0] is not node:
            return None
        if any(is_atomic(part) for part in walk(nest.body)):
            return None
        loop = nest.parallel[0]
        inside = defined_variables(loop)
        written = {self._root(part.buffer) for part in walk(nest.body) if isinstance(part, Store)}
        own = {part.buffer.data for part in walk(nest.body) if isinstance(part, Allocate)}
        for part in walk(nest.body):
            if isinstance(part, (Load, Store)) and self._root(part.buffer) in written and part.buffer.data not in own:
                others = [index for index in part.indices if index is not loop.var]
                if part.buffer.scope is not Scope.GLOBAL or len(others) + 1 != len(part.indices):
                    return None
                if any(isinstance(inner, Load) or inner in inside for index in others for inner in walk(index)):
                    return None
        self.everywhere |= written
        self.together.append(node)
        space = IterationSpace(nest.parallel, self.simplifier)
        return sequence(*space.before, self._part_of_loop(loop, space, nest.body))

    def _must_be_the_same(self, expr: Expr) -> None:
        """Threads wait for each other under this condition: it must be seen that it is the same for all of them."""
        if _is_loaded(expr, self.loaded) or any(isinstance(part, CallFunction) for part in walk(expr)):
            raise _Refused

    def _plain(self, node: Stmt) -> Stmt:
        """What does not reduce: done by all threads if its results are in memory of threads, else by the first one."""
        if isinstance(node, Allocate) and node.buffer.scope is not Scope.LOCAL:
            raise _Refused
        if escaping_jumps(node) or any(isinstance(part, View) or self.reductions.hinders(part) for part in walk(node)):
            raise _Refused
        own = {part.buffer.data for part in walk(node) if isinstance(part, Allocate)}
        own |= {buffer.data for part in walk(node) if isinstance(part, Block) for buffer in part.allocations}
        scopes = {part.buffer.scope for part in walk(node) if isinstance(part, Store) and part.buffer.data not in own}
        if isinstance(node, Bind) and _is_loaded(node.value, self.loaded):
            self.loaded.add(node.var)
        if scopes <= {Scope.LOCAL}:
            self.together.append(node)
            return node
        if scopes != {Scope.GLOBAL}:
            raise _Refused
        self.alone.append(node)
        return If(equal(self.lane, 0), node, None, node.span)

    def _check_barriers(self, body: Stmt) -> None:
        """Refuse what would need barriers that are not put in: between accesses at indices that are read from memory."""
        loaded: set[Var] = set()
        indirect: set[Var] = set()
        for node in walk(body):
            if isinstance(node, (Bind, For)):
                ends = [node.value] if isinstance(node, Bind) else [node.minimum, node.extent]
                if any(_is_loaded(end, loaded) for end in ends):
                    loaded.add(node.var)
            elif isinstance(node, (Load, Store)) and any(_is_loaded(index, loaded) for index in node.indices):
                indirect.add(self._root(node.buffer))
        written = {self._root(part.buffer) for part in walk(body) if isinstance(part, Store)}
        read = {
            self._root(part.buffer)
            for node in self.together
            for part in walk(node)
            if isinstance(part, Load) and part.buffer.scope is not Scope.LOCAL
        }
        if indirect & written & (read | self.everywhere):
            raise _Refused

    def _root(self, buffer: Buffer) -> Var:
        return self.finder.roots.get(buffer.data, buffer.data)

    # A reduction ------------------------------------------------------------------------------------------------------

    def _reduction(self, found: LoopReduction) -> Stmt:
        self.count += 1
        self.together += found.loops
        space = IterationSpace(found.loops, self.simplifier)
        there_is_one = greater(space.total, 0)
        code: list[Stmt] = list(space.before)
        if found.start is not None:
            start = self._plain(found.start)
            code.append(start if space.known else If(there_is_one, start))
        partials: list[Buffer] = []
        touched: list[Buffer | None] = []
        for accumulator in found.accumulators.values():
            name = accumulator.buffer.name
            partial = _scalar(f"{name}_partial", accumulator.buffer.dtype)
            code += [Allocate(partial), Store(partial, (), neutral(accumulator.operation, partial.dtype))]
            partials.append(partial)
            flag = None
            if not accumulator.always and accumulator.buffer.rank:
                flag = _scalar(f"{name}_touched", BOOL)
                code += [Allocate(flag), Store(flag, (), false())]
            touched.append(flag)
        code.append(self._part_of_loop(found.loops[0], space, found.with_partials(partials, touched)))
        conditions = [] if space.known else [there_is_one]
        for accumulator, partial, flag in zip(found.accumulators.values(), partials, touched, strict=True):
            condition = conjunction(conditions)
            if flag is not None:
                any_touched = _scalar(f"{accumulator.buffer.name}_any", BOOL)
                code += [Allocate(any_touched), Store(any_touched, (), false())]
                code.append(self._together(Accumulator(any_touched, (), Or), flag, None))
                condition = conjunction([*conditions, Load(any_touched, ())])
            code.append(self._together(accumulator, partial, condition))
        return sequence(*code, span=found.loops[0].span)

    def _part_of_loop(self, loop: For, space: IterationSpace, body: Stmt) -> Stmt:
        """The iterations of one thread: neighbours take neighbouring ones, so that memory is read in whole lines."""
        size = const(self.threads, INT64)
        body = sequence(*space.coordinates, body)
        if space.known is None or space.known % self.threads:
            body = If(less(space.number, space.total), body)
        stride = Var("stride", INT64)
        body = sequence(Bind(space.number, Add(Mul(stride, size), self.lane)), body)
        rounds = self.simplifier.simplify(FloorDiv(Add(space.total, const(self.threads - 1, INT64)), size))
        return For(stride, const(0, INT64), rounds, LoopKind.SERIAL, body, span=loop.span)

    def _together(self, accumulator: Accumulator, partial: Buffer, condition: Expr | None) -> Stmt:
        """The block that combines the partial results of all threads into the accumulator."""
        axis = Var("lane", INT64)
        domain = Range(const(0, INT64), const(self.threads, INT64))
        buffer, indices = accumulator.buffer, accumulator.indices
        value = accumulator.operation(Load(buffer, indices), Load(partial, ()))
        return Block(
            name=buffer.name,
            axes=(BlockAxis(axis, domain, AxisKind.REDUCE, self.lane),),
            predicate=None if condition is None or constant_value(condition) == 1 else condition,
            reads=None,
            writes=None,
            allocations=(),
            matches=(),
            init=None,
            body=Store(buffer, indices, value),
        )


def longest_reduction(reductions: Reductions, body: Stmt) -> int | None:
    """The most iterations of a loop in the statement that reduces; None if one is of a length that is not known."""
    longest = 0
    for node in walk(body):
        if isinstance(node, For) and (found := reductions.of(node)) is not None:
            length = 1
            for loop in found.loops:
                extent = constant_value(loop.extent)
                if extent is None:
                    return None
                length *= int(extent)
            longest = max(longest, length)
    return longest


def _is_loaded(expr: Expr, loaded: set[Var]) -> bool:
    return any(isinstance(part, Load) or part in loaded for part in walk(expr))


def _scalar(name: str, dtype: DType) -> Buffer:
    """A new scalar of a thread."""
    return Buffer(name, dtype, (), Var(f"{name}_data", HANDLE, PointerType(dtype, Scope.LOCAL)), scope=Scope.LOCAL)
