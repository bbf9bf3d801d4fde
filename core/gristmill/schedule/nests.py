"""Nests of loops that many threads can run: which loops of them, what is left for one thread, what must not overlap."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gristmill.ir.build import sequence
from gristmill.ir.effects import atomic_element, is_atomic
from gristmill.ir.expr import AddressOf, BufferRef, Call, CallExtern, CallFunction, CallPacked, Load, Var
from gristmill.ir.functor import walk
from gristmill.ir.memory import Buffer, Scope
from gristmill.ir.module import Function, Module
from gristmill.ir.node import Node
from gristmill.ir.stmt import (
    Allocate,
    Assert,
    Barrier,
    Bind,
    Block,
    For,
    Launch,
    LoopKind,
    Return,
    Seq,
    Stmt,
    Store,
)
from gristmill.passes.independence import new_memory
from gristmill.passes.own_scratch import with_own_scratch
from gristmill.passes.renewal import defined_variables
from gristmill.schedule.independence import Independence
from gristmill.schedule.iteration_space import has_fewer_than
from gristmill.schedule.jumps import leaves
from gristmill.schedule.memory_roots import memory_roots
from gristmill.schedule.reductions import Reductions

ITERATIONS_AT_LEAST = 32
"""A nest of fewer iterations is left to one thread: starting many would take longer than its work."""
PAIRS_AT_MOST = 8
"""With more pairs of arrays to tell apart at run time, a nest is left to one thread."""


@dataclass(frozen=True)
class Nest:
    """A loop as many threads run it: ``parallel`` loops spread over them, ``body`` is what each thread runs.

    ``serial`` is the whole loop for one thread, and ``apart`` the pairs of arrays that overlap where it must run.
    """

    serial: Stmt
    parallel: tuple[For, ...]
    body: Stmt
    apart: tuple[tuple[Buffer, Buffer], ...] = ()
    is_short: bool = False
    """Whether there are so few iterations that it pays only if several threads share each."""


class NestFinder:
    """Finds nests in one function of a module."""

    def __init__(self, module: Module, function: Function, check_overlap: bool) -> None:
        self.function = function
        self.check_overlap = check_overlap and not function.facts.no_alias
        self.roots = memory_roots(function)
        self.new = new_memory(function) | _memory_of_blocks(function)
        self.functions = {found.name: found for found in module.functions}
        self._pure: dict[str, bool] = {}
        self.reductions = Reductions(function.facts.fast_math, self.hinders)

    def find(self, loop: For) -> Nest | None:
        """The loop as a nest for many threads; None if none of its loops is known to be independent, or it is short."""
        loops, binds = _chain(loop)
        inner = with_own_scratch(loops[-1], self.function)
        atomic = _atomic_nodes(inner.body)
        if any(self.hinders(part) for part in walk(inner.body) if part not in atomic) or leaves(inner.body):
            return None
        loops[-1] = inner
        found = Independence(loops, binds, inner.body, self.roots, self.function.params)
        if any(self._is_carried(node, found) for node in walk(inner.body)):
            return None
        proven = found.independent()
        inside = defined_variables(loop)
        chosen: list[For] = []
        for place, one in enumerate(loops):
            # The author's word for a parallel loop is about one iteration of the loops around it.
            allowed = one in proven or (one.kind is LoopKind.PARALLEL and len(chosen) == place)
            ends = [part for end in (one.minimum, one.extent) for part in walk(end)]
            if allowed and one.kind is not LoopKind.UNROLLED and not any(_is_of_device(p) or p in inside for p in ends):
                chosen.append(one)
        short = has_fewer_than(chosen, ITERATIONS_AT_LEAST)
        if not chosen or (short and not self.reductions.in_any_loop(_without(loops, chosen))):
            return None
        asks = any(one.kind is not LoopKind.PARALLEL for one in chosen)
        apart = self.pairs(inner.body) if asks else ()
        if apart is None:
            return None
        return Nest(_without(loops, []), tuple(chosen), _without(loops, chosen), apart, short)

    def hinders(self, node: Node) -> bool:
        """Whether threads must not do this, or not in any order."""
        if isinstance(node, (CallExtern, CallPacked, Barrier, Launch, Assert, Return)):
            return True
        if isinstance(node, For):
            return node.kind is LoopKind.THREAD
        if isinstance(node, (AddressOf, BufferRef)):
            return True
        if isinstance(node, CallFunction):
            return not self.is_pure(node.function)
        return isinstance(node, Call) and not node.op.pure

    def is_pure(self, name: str) -> bool:
        """Whether a function of the module touches nothing but memory of its own, and cannot fail."""
        if name not in self._pure:
            self._pure[name] = True  # for calls of itself
            function = self.functions.get(name)
            self._pure[name] = (
                function is not None
                and not any(isinstance(param, Buffer) or param.dtype.is_handle for param in function.params)
                and not any(self.hinders(part) for part in walk(function.body) if not isinstance(part, Return))
            )
        return self._pure[name]

    def _is_carried(self, node: Node, found: Independence) -> bool:
        """Whether a store goes to memory of the host that is not each iteration's own."""
        if not isinstance(node, Store) or node.buffer.scope is not Scope.LOCAL:
            return False
        return found.root(node.buffer) not in found.private

    def pairs(self, body: Stmt) -> tuple[tuple[Buffer, Buffer], ...] | None:
        """The pairs of arrays of which it must be asked whether they overlap; None if that cannot be asked."""
        if not self.check_overlap:
            return ()
        arrays: dict[Var, set[Buffer]] = {}
        written: set[Var] = set()
        own = {node.buffer.data for node in walk(body) if isinstance(node, Allocate)}
        for node in walk(body):
            access = node if isinstance(node, (Load, Store)) else atomic_element(node)
            if access is not None and access.buffer.scope is not Scope.LOCAL:
                root = self.roots.get(access.buffer.data, access.buffer.data)
                if root in self.new or root in own:
                    continue
                arrays.setdefault(root, set()).add(access.buffer)
                if not isinstance(node, Load):
                    written.add(root)
        pairs = []
        params = {param for param in self.function.params if isinstance(param, Buffer)}
        known = list(arrays)
        for place, one in enumerate(known):
            for other in known[place + 1 :]:
                if one in written or other in written:
                    sides = [self._whole(arrays[root], root, params) for root in (one, other)]
                    if sides[0] is None or sides[1] is None:
                        return None
                    pairs.append((sides[0], sides[1]))
        return tuple(pairs) if len(pairs) <= PAIRS_AT_MOST else None

    def _whole(self, buffers: set[Buffer], root: Var, params: set[Buffer]) -> Buffer | None:
        """A compact parameter that all the buffers lie in."""
        found = [buffer for buffer in params if buffer.data is root]
        if len(found) != 1 or found[0].strides or found[0].offset is not None:
            return None
        return found[0] if all(buffer is found[0] for buffer in buffers) else None


def _memory_of_blocks(function: Function) -> set[Var]:
    """Data of allocations of blocks whose address is not taken."""
    made = {b.data for node in walk(function.body) if isinstance(node, Block) for b in node.allocations}
    return made - {n.buffer.data for n in walk(function.body) if isinstance(n, (AddressOf, BufferRef))}


def _atomic_nodes(body: Stmt) -> set[Node]:
    """The atomic operations in code, and the addresses of their elements."""
    found: set[Node] = set()
    for node in walk(body):
        element = atomic_element(node)
        if element is not None:
            found |= {node, element}
    return found


def _chain(loop: For) -> tuple[list[For], list[Bind]]:
    """The loops that directly contain each other, from outside to inside, and the names between them."""
    loops: list[For] = [loop]
    binds: list[Bind] = []
    while True:
        body = loops[-1].body
        *before, last = body.body if isinstance(body, Seq) and body.body else (body,)
        plain = all(
            isinstance(node, Bind)
            and not any(isinstance(part, (Load, CallFunction)) or is_atomic(part) for part in walk(node.value))
            for node in before
        )
        kinds = (LoopKind.SERIAL, LoopKind.PARALLEL, LoopKind.UNROLLED)
        if not plain or not isinstance(last, For) or last.kind not in kinds:
            return loops, binds
        binds += [node for node in before if isinstance(node, Bind)]
        loops.append(last)


def _without(loops: list[For], chosen: list[For]) -> Stmt:
    """The nest without the chosen loops: what one thread runs."""
    body = loops[-1].body
    for place in reversed(range(len(loops))):
        loop = loops[place]
        if loop not in chosen:
            body = replace(loop, body=body)
        around = loops[place - 1].body if place else loop
        if isinstance(around, Seq):
            body = sequence(*(node for node in around.body if isinstance(node, Bind)), body)
    return body


def _is_of_device(node: Node) -> bool:
    return isinstance(node, CallFunction) or (isinstance(node, Load) and node.buffer.scope is not Scope.LOCAL)
