"""Put a barrier wherever threads of a block meet in memory and nothing else keeps them in order; and nowhere else.

Before::

    for t in thread(64, "threadIdx.x"):
        s[t] = x[t]
        y[t] = s[63 - t]

After::

    for t in thread(64, "threadIdx.x"):
        s[t] = x[t]
        barrier shared
        y[t] = s[63 - t]

A hazard is a pair of accesses to one memory, at least one of them a write, by two threads of a block with no barrier
between them; in a loop also the pair of an access with one of the next iteration. Buffers over the same memory are one
memory, but for those that are known to lie beside each other. A pair is no hazard where the indices prove that only one
thread can be at both ends, or where both ends are atomic operations. Hazards through shared
memory ask for a barrier of the block, those through global memory for one that orders global memory too, those through
memory of warps for one of the warp. Barriers that the program has count; one of the block in code that only some threads
of it run is an error (GM0607).

A barrier never stands where only some threads of a block come by. If an access in such code meets an earlier one from
outside of it, the barrier goes before that code; if both stand inside, there is no place for one: GM0607. Threads that
meet within one statement, or in two branches of one ``if``, meet whatever barriers there are; that is a race of the
program, and not said here. Neither is one through global memory at indices that are read from memory: such indices
keep iterations apart in a way that the author knows of.

What functions do to memory that threads share is seen where they have been put in the place of their calls
(``inline_memory_functions``). One that is still called may touch all of the memory that it is given.

Threads of loops that are marked as independent do not meet in global memory.

Each barrier is needed: if one can be left out without any hazard coming back, it is.

Ensures: the same statements otherwise. Needs blocks lowered, functions that are given memory put in place, and shared
memory allocated inside of launch regions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from gristmill.ir.expr import Var
from gristmill.ir.functor import walk
from gristmill.ir.memory import Scope
from gristmill.ir.module import Function, Module
from gristmill.ir.stmt import BarrierScope, Break, Continue, For, Return, Stmt
from gristmill.passes.block_accesses import RegionReader
from gristmill.passes.divergence import steady_functions
from gristmill.passes.divergent_hazard import check_barrier, divergent_hazard
from gristmill.passes.launch_regions import map_regions
from gristmill.passes.manager import Pass
from gristmill.passes.region_tree import Access, Branch, Chain, Fence, Leaf, Loop, built, everything
from gristmill.passes.thread_pairs import are_two_constants, threads_apart

_NEEDS = {
    Scope.WARP: BarrierScope.WARP,
    Scope.SHARED: BarrierScope.BLOCK,
    Scope.SHARED_DYNAMIC: BarrierScope.BLOCK,
    Scope.GLOBAL: BarrierScope.BLOCK_AND_GLOBAL,
}
_STRENGTH = {BarrierScope.WARP: 1, BarrierScope.BLOCK: 2, BarrierScope.BLOCK_AND_GLOBAL: 3}


@dataclass(frozen=True)
class InsertBarriers(Pass):
    """Put barriers where threads of a block meet in memory, and only there."""

    def run(self, module: Module) -> Module:
        steady = steady_functions(module)
        return module.with_functions(insert_barriers(function, steady) for function in module.functions)


def insert_barriers(function: Function, steady: frozenset[str] = frozenset()) -> Function:
    """The function with barriers in its launch regions; the same object if none is missing.

    ``steady`` are functions that give all threads the same for the same arguments.

    Raises UserError (GM0607) where one is needed, or written, in code that only some threads of a block run.
    """
    return map_regions(function, lambda region: _inserted(function, region, steady))


def _inserted(function: Function, region: Stmt, steady: frozenset[str]) -> Stmt:
    shared = {Scope.SHARED, Scope.SHARED_DYNAMIC, Scope.WARP}
    if not _are_independent(region):
        shared.add(Scope.GLOBAL)
    reader = RegionReader(function, region, frozenset(shared), steady)
    work = _Flow(reader)
    work.chain(reader.tree, {}, None)
    if not work.inserted:
        return region
    work.drop_needless(reader.tree)
    return built(reader.tree)


def _are_independent(region: Stmt) -> bool:
    """Whether the threads of a block are known not to meet in global memory."""
    loops = [node for node in walk(region) if isinstance(node, For) and node.thread is not None]
    return all(loop.hints.independent for loop in loops if loop.thread is not None and not loop.thread.is_block)


@dataclass(frozen=True, slots=True)
class _Pending:
    """An access since which no barrier has come; ``stale`` are variables that have other values by now."""

    access: Access = field(compare=False)
    stale: frozenset[Var]
    signature: int


def _pending(access: Access, stale: frozenset[Var] = frozenset()) -> _Pending:
    return _Pending(access, stale, access.signature)


_Open = dict[_Pending, None]
"""Accesses that no barrier follows, in order."""


@dataclass(slots=True)
class _Frame:
    """A loop that is gone through: what is pending where the body is left early."""

    breaks: _Open = field(default_factory=dict)
    continues: _Open = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Hazard:
    earlier: _Pending
    later: Access
    certain: bool
    """Whether both places are known from indices alone."""


class _Flow:
    """Goes over a region in the order of execution with what is pending, and puts barriers before hazards.

    With ``probing`` set it changes nothing, and only says in ``found`` how strong a barrier is missing.
    """

    def __init__(self, reader: RegionReader) -> None:
        self.reader = reader
        self.inserted: list[tuple[Chain, Fence]] = []
        self.probing = False
        self.found: BarrierScope | None = None
        self.frames: list[_Frame] = [_Frame()]
        self.results: dict[Loop, _Open] = {}
        self.verdicts: dict[tuple[int, int, frozenset[Var]], bool] = {}

    # Hazards ----------------------------------------------------------------------------------------------------------

    def hazards(self, pending: _Open, accesses: Iterable[Access]) -> Iterator[_Hazard]:
        by_root: dict[Var, list[_Pending]] = {}
        for earlier in pending:
            by_root.setdefault(earlier.access.root, []).append(earlier)
        for access in accesses:
            for earlier in by_root.get(access.root, ()):
                first = earlier.access
                if not (first.writes or access.writes) or (first.atomic and access.atomic):
                    continue
                key = (first.signature, access.signature, earlier.stale)
                apart = self.verdicts.get(key)
                if apart is None:
                    apart = self.verdicts[key] = self.apart(earlier, access)
                if not apart:
                    yield _Hazard(earlier, access, _is_known(first) and _is_known(access))

    def apart(self, pending: _Pending, later: Access) -> bool:
        """Whether no two threads of a block meet in the two accesses."""
        first, axes = pending.access, self.reader.block_axes
        if not axes or (first.room is not None and later.room is not None and first.room.meet(later.room) is None):
            return True
        indices = None
        together = first.of_group or later.of_group
        if first.buffer is later.buffer and first.buffer is not None and not first.buffer.strides and not together:
            # Elements with different indices lie in different places.
            indices = (first.dimensions or (), later.dimensions or ())
            if any(map(are_two_constants, *indices)):
                return True
        exempt = frozenset[Var]()
        if first.writes and not first.atomic and not later.writes and not together:
            # Outside of a loop over an axis the threads along it do one piece of work: each has made this write.
            exempt = frozenset(axes.values()) - first.opened
        if indices is not None:
            equations = list(zip(*indices, strict=True))
            return threads_apart(equations, first.side(pending.stale), later.side(frozenset()), axes, exempt)
        one = [] if first.flat is None or later.flat is None else [(first.flat, later.flat)]
        return threads_apart(one, first.side(pending.stale), later.side(frozenset()), axes, exempt)

    def missing(self, pending: _Open, accesses: Iterable[Access]) -> BarrierScope | None:
        """The barrier that must stand between; None for none."""
        scopes = [_NEEDS[hazard.later.scope] for hazard in self.hazards(pending, accesses)]
        return max(scopes, key=_STRENGTH.__getitem__, default=None)

    # Going over the tree ----------------------------------------------------------------------------------------------

    def before(
        self,
        chain: Chain,
        place: int,
        pending: _Open,
        accesses: list[Access],
        cause: Branch | Loop | None,
    ) -> tuple[_Open, int]:
        """Put the barrier that the accesses ask for before item ``place``; what is pending then, and where the item is."""
        scope = self.missing(pending, accesses)
        return self.place(chain, place, pending, accesses, scope, cause) if scope is not None else (pending, place)

    def place(
        self,
        chain: Chain,
        place: int,
        pending: _Open,
        accesses: Iterable[Access],
        scope: BarrierScope,
        cause: Branch | Loop | None,
    ) -> tuple[_Open, int]:
        if cause is not None:
            if not self.probing:
                self.refuse(self.hazards(pending, accesses), cause)
            return pending, place
        if self.probing:
            self.found = max((found for found in (self.found, scope) if found), key=_STRENGTH.__getitem__)
            return _after(pending, scope), place
        last = chain.items[place - 1] if place else None
        if isinstance(last, Fence) and last.stmt is None:
            last.scope = max((last.scope, scope), key=_STRENGTH.__getitem__)
            return _after(pending, scope), place
        fence = Fence(scope)
        chain.items.insert(place, fence)
        self.inserted.append((chain, fence))
        return _after(pending, scope), place + 1

    def refuse(self, hazards: Iterable[_Hazard], cause: Branch | Loop) -> None:
        for hazard in hazards:
            if hazard.certain or hazard.later.scope is not Scope.GLOBAL:
                raise divergent_hazard(hazard.earlier.access, hazard.later, cause)

    def chain(self, chain: Chain, pending: _Open, cause: Branch | Loop | None) -> _Open:
        """What is pending after the chain; ``cause`` is what makes threads go apart, if they are not together here."""
        place = 0
        while place < len(chain.items):
            item = chain.items[place]
            match item:
                case Fence():
                    if cause is not None and item.stmt is not None and item.scope is not BarrierScope.WARP:
                        check_barrier(item.stmt, cause)
                    pending = _after(pending, item.scope)
                case Leaf():
                    pending, place = self.before(chain, place, pending, item.accesses, cause)
                    pending = self.jump(item.stmt, pending | _opened(item.accesses))
                case Branch():
                    pending, place = self.branch(chain, place, item, pending, cause)
                case Loop():
                    pending, place = self.loop(chain, place, item, pending, cause)
            place += 1
        return pending

    def jump(self, stmt: Stmt, pending: _Open) -> _Open:
        """Where the loop is left early what is pending goes on after it, or with its next iteration."""
        if isinstance(stmt, Break):
            self.frames[-1].breaks |= pending
        elif isinstance(stmt, Continue):
            self.frames[-1].continues |= pending
        elif not isinstance(stmt, Return):
            return pending
        return {}

    def branch(
        self, chain: Chain, place: int, item: Branch, pending: _Open, cause: Branch | Loop | None
    ) -> tuple[_Open, int]:
        if item.divergent:
            inside = [*item.accesses, *everything(item.then), *everything(item.otherwise)]
            pending, place = self.before(chain, place, pending, inside, cause)
            start = _opened(item.accesses)
            for part in (item.then, item.otherwise):
                if part is not None:
                    self.chain(part, dict(start), cause or item)
            return pending | _opened(inside), place
        pending, place = self.before(chain, place, pending, item.accesses, cause)
        pending = pending | _opened(item.accesses)
        after = self.chain(item.then, pending, cause)
        return after | (self.chain(item.otherwise, pending, cause) if item.otherwise is not None else pending), place

    def loop(
        self, chain: Chain, place: int, item: Loop, pending: _Open, cause: Branch | Loop | None
    ) -> tuple[_Open, int]:
        pending, place = self.before(chain, place, pending, item.accesses, cause)
        pending = pending | _opened(item.accesses)
        if not item.repeats and not item.divergent:
            return self.once(item, pending, cause), place
        if item.divergent or cause is not None:
            inside = [*item.test, *everything(item.body)]
            pending, place = self.before(chain, place, pending, inside, cause)
            self.iterations(item, cause or item)
            return pending | _opened(inside), place
        around = self.iterations(item, None)
        scope = self.probe(item, pending)
        if scope is not None:
            pending, place = self.place(chain, place, pending, (), scope, cause)
        self.frames.append(_Frame())
        after = self.chain(item.body, pending | _opened(item.test), cause)
        frame = self.frames.pop()
        after = after | frame.continues | frame.breaks
        if not item.at_least_once or item.test:
            after = after | pending
        return after | around | _opened(item.test), place

    def once(self, item: Loop, pending: _Open, cause: Branch | Loop | None) -> _Open:
        """A loop over threads, whose body each thread runs for its own coordinate, or one of a single iteration."""
        self.frames.append(_Frame())
        after = self.chain(item.body, pending, cause)
        frame = self.frames.pop()
        return after | frame.continues | frame.breaks

    def iterations(self, item: Loop, cause: Branch | Loop | None) -> _Open:
        """Go round the loop until nothing new is pending at its end; what is pending there."""
        found = self.results.get(item)
        if found is not None:
            return found
        around: _Open = {}
        while True:
            self.frames.append(_Frame())
            count = len(self.inserted)
            start, _ = self.before(item.body, 0, around, item.test, cause) if self.probing else (around, 0)
            after = self.chain(item.body, start | _opened(item.test), cause)
            frame = self.frames.pop()
            after = after | frame.continues
            if item.test and not self.probing:
                after = self.before_test(item, after, frame, cause)
            carried: _Open = {}
            if item.repeats:
                carried = {_pending(old.access, old.stale | item.stale): None for old in after}
            if count == len(self.inserted) and carried.keys() <= around.keys():
                found = after | frame.breaks
                self.results[item] = found
                return found
            around = around | carried if count == len(self.inserted) else carried

    def before_test(self, item: Loop, pending: _Open, frame: _Frame, cause: Branch | Loop | None) -> _Open:
        """The condition of a while loop is evaluated after the body, where a barrier must stand before it."""
        carried = {_pending(old.access, old.stale | item.stale): old for old in pending}
        scope = self.missing(dict.fromkeys(carried), item.test)
        if scope is None:
            return pending
        early = {_pending(old.access, old.stale | item.stale): None for old in frame.continues}
        if self.missing(early, item.test) is not None:
            hazard = next(iter(self.hazards(early, item.test)))
            raise divergent_hazard(hazard.earlier.access, hazard.later, item)
        return self.place(item.body, len(item.body.items), pending, item.test, scope, cause)[0]

    def probe(self, item: Loop, pending: _Open) -> BarrierScope | None:
        """The barrier that must stand before the loop for what is pending there."""
        if not pending:
            return None
        was, self.probing, before, self.found = self.probing, True, self.found, None
        first = self.missing(pending, item.test)
        self.frames.append(_Frame())
        self.chain(item.body, dict(pending), None)
        self.frames.pop()
        scopes = [scope for scope in (first, self.found) if scope is not None]
        self.probing, self.found = was, before
        return max(scopes, key=_STRENGTH.__getitem__, default=None)

    # Leaving out ------------------------------------------------------------------------------------------------------

    def drop_needless(self, tree: Chain) -> None:
        """Take out each barrier without which no hazard comes back."""
        self.probing = True
        for chain, fence in self.inserted:
            place = next(number for number, item in enumerate(chain.items) if item is fence)
            del chain.items[place]
            self.results.clear()
            self.found = None
            self.chain(tree, {}, None)
            if self.found is not None:
                chain.items.insert(place, fence)


def _opened(accesses: Iterable[Access]) -> _Open:
    return {_pending(access): None for access in accesses}


def _after(pending: _Open, barrier: BarrierScope) -> _Open:
    """What a barrier leaves pending."""
    return {
        found: None for found in pending if _STRENGTH[_NEEDS[found.access.scope]] > _STRENGTH[barrier]
    }  # fmt: skip


def _is_known(access: Access) -> bool:
    forms = access.dimensions if access.dimensions is not None else [access.flat] if access.flat is not None else None
    return forms is not None and all(form.is_known for form in forms)
