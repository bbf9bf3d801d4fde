"""Launches: every thread of a block runs the same code, and a barrier holds it until the others come.

Code that waits is a generator. At a barrier it yields the number of its site; the scheduler steps the threads of a
block to their next barrier, checks that all of them that still run stand at the same one, and lets them go on. A barrier
in a function is another one in each call of it, as if its code stood there. Blocks run one after another. A thread that
ended by ``return`` is not waited for; one that reached the end of the code without passing a barrier at which others
wait has diverged. At an exchange it yields what the thread brings, and is sent what the thread gets once all of its
group have come.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import GeneratorType
from typing import Any, NoReturn

from gristmill.errors import Note
from gristmill.interp.exchanges import EndedLane, Exchange, exchanged
from gristmill.interp.matrices import Group, incomplete, performed
from gristmill.interp.memory import Memory
from gristmill.interp.races import Strand
from gristmill.interp.reports import ExecutionError, report
from gristmill.interp.runtime_reports import AXES, LaunchShape, group_lane
from gristmill.interp.state import Execution
from gristmill.ir.op import MATRIX
from gristmill.ir.stmt import BarrierScope, ThreadAxis

MATRIX_OPERATIONS = frozenset(op.name for op in MATRIX)


@dataclass(slots=True, eq=False)
class RunningBlock:
    """A block of threads that runs: the launch's shape, and the instances of shared and per-thread memory."""

    shape: LaunchShape
    dynamic_shared: int | None
    number: int
    memories: dict[tuple[int, int], Memory] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class _Thread:
    strand: Strand
    code: GeneratorType[int | Exchange, Any, Any]
    number: int
    waits_at: int | None = None
    calls: tuple[int, ...] = ()
    """By which calls it came to where it waits."""
    brings: Exchange | None = None
    gets: Any = None
    ended: bool = False
    returned: bool = False

    @property
    def place(self) -> tuple[int | None, tuple[int, ...]]:
        """Where it waits: the site, and the calls around it."""
        return self.waits_at, self.calls


def launch(
    execution: Execution,
    body: Callable[..., Any],
    captures: tuple[Any, ...],
    extents: Mapping[ThreadAxis, int],
    site: int,
    strand: Strand,
    barriers: Mapping[int, BarrierScope] | None,
    dynamic_shared: int | None = None,
) -> None:
    """Run ``body`` by all threads of a launch. ``barriers`` gives the scope of barrier sites; None: it has none."""
    if any(extent <= 0 for extent in extents.values()):
        return
    shape = LaunchShape(tuple(extents.get(axis, 1) for axis in AXES), tuple(extents), execution.options.warp_size)
    blocks = shape.extents[0] * shape.extents[1] * shape.extents[2]
    threads = shape.extents[3] * shape.extents[4] * shape.extents[5]
    execution.count(blocks * threads, site)
    execution.call_site = site
    instance = execution.fork(shape)
    for number in execution.in_any_order(range(blocks)):
        block = RunningBlock(shape, dynamic_shared, number)
        run = _BlockRun(execution, block, instance, threads, strand, site)
        if barriers is None:
            for thread in execution.in_any_order(range(threads)):
                body(execution, run.strand_of(thread), *captures)
        else:
            run.with_barriers(body, captures, barriers)


def coordinates(strand: Strand) -> tuple[int, ...]:
    """The coordinates of the running thread along all axes."""
    block: RunningBlock = strand.block
    return block.shape.coordinates(block.number, strand.thread)


def check_extent(extent: int, axis: int, strand: Strand, site: int, execution: Execution) -> None:
    """Refuse a loop over threads whose extent is not that of the launch that runs it."""
    shape: LaunchShape = strand.block.shape
    if AXES[axis] not in shape.axes:
        axes = ", ".join(found.value for found in shape.axes)
        raise report(
            "GM0515",
            f"this loop runs over `{AXES[axis].value}`, and the launch has only {axes or 'a single thread'}",
            execution.sites[site],
            hint="give the launch an extent along this axis",
        )
    if extent != shape.extents[axis]:
        unequal_extents(extent, shape.extents[axis], site, execution)


def check_alone(axes: tuple[int, ...], strand: Strand, site: int, execution: Execution) -> None:
    """Refuse a block with reduce axes bound to some axes of threads, unless there is one thread along those."""
    shape: LaunchShape = strand.block.shape
    extents = {AXES[axis].value: shape.extents[axis] for axis in axes if shape.extents[axis] > 1}
    if extents:
        where = execution.sites[site]
        raise report(
            "GM0522",
            f"the block `{where.what}` reduces over `{'` and `'.join(extents)}`: the executor runs each thread by "
            f"itself, and only its lowered form says how {math.prod(extents.values())} threads combine their values",
            where,
            label="run this lowered",
            hint="build a pack for the target `reference`, and run that on `reference:0`",
        )


def unequal_extents(extent: int, other: int, site: int, execution: Execution) -> NoReturn:
    """Refuse two loops over the same axis in one launch that differ in extent."""
    where = execution.sites[site]
    raise report(
        "GM0515",
        f"loops over `{where.what}` in one launch have the extents {other} and {extent}; they must be equal",
        where,
        label=f"extent {extent} here",
        hint="use one extent, and an `if` for threads that have nothing to do",
    )


def unknown_extent(site: int, execution: Execution) -> NoReturn:
    """Refuse an extent that depends on a loop of the launch itself."""
    where = execution.sites[site]
    raise report(
        "GM0515",
        f"the extent of this loop over `{where.what}` depends on a variable of the launch itself",
        where,
        hint="extents must be known before the launch: use sizes, scalars and constants",
    )


def launch_in_lanes(site: int, execution: Execution) -> NoReturn:
    """Refuse a launch that stands in a vectorised loop of the host."""
    where = execution.sites[site]
    raise report(
        "GM0515",
        f"this loop over `{where.what}` begins a launch inside of a vectorized loop",
        where,
        hint="make the loop around it serial",
    )


class _BlockRun:
    """Runs the threads of one block."""

    def __init__(
        self, execution: Execution, block: RunningBlock, instance: int, threads: int, outer: Strand, site: int
    ) -> None:
        self.execution = execution
        self.block = block
        self.instance = instance
        self.threads = threads
        self.outer = outer
        self.site = site
        self.shared_epoch = 0
        self.global_epoch = 0
        self.warp_epochs: dict[int, int] = {}
        self.group_accesses = 0

    def strand_of(self, thread: int) -> Strand:
        strand = Strand(block=self.block, thread=thread)
        self.set_paths(strand)
        return strand

    def set_paths(self, strand: Strand) -> None:
        """The paths of a thread in the present epochs: a launch adds launch, block, epoch, warp, epoch of the warp, lane."""
        warp, lane = divmod(strand.thread, self.execution.options.warp_size)
        head = (self.instance, self.block.number)
        # A barrier of a warp orders shared memory among its threads, a barrier of the block only may order global memory.
        strand.shared = (
            *self.outer.shared,
            *head,
            self.shared_epoch,
            warp,
            self.warp_epochs.get(warp, 0),
            lane,
        )
        strand.everywhere = (*self.outer.everywhere, *head, self.global_epoch, warp, 0, lane)

    def with_barriers(
        self, body: Callable[..., Any], captures: tuple[Any, ...], barriers: Mapping[int, BarrierScope]
    ) -> None:
        threads = []
        for number in range(self.threads):
            strand = self.strand_of(number)
            code = body(self.execution, strand, *captures)
            threads.append(_Thread(strand, code, number))
        order = list(self.execution.in_any_order(range(self.threads)))
        while True:
            for number in order:
                thread = threads[number]
                if not thread.ended and thread.waits_at is None:
                    self.advance(thread)
            waiting = [thread for thread in threads if thread.waits_at is not None]
            if not waiting:
                return
            if not self.release_groups(threads) and not self.release_warps(threads, barriers):
                self.release_block(threads, waiting, barriers)

    def advance(self, thread: _Thread) -> None:
        try:
            found = thread.code.send(thread.gets)
            thread.gets = None
            if isinstance(found, Exchange):
                thread.brings, thread.waits_at = found, found.site
            else:
                thread.waits_at = found
            thread.calls = _calls_to(thread.code)
        except StopIteration as done:
            thread.ended, thread.calls = True, ()
            thread.returned = done.value is not None

    def release_groups(self, threads: list[_Thread]) -> bool:
        """Let the groups go on all of whose threads have come to one exchange; whether there was one."""
        released = False
        for number, thread in enumerate(threads):
            brought = thread.brings
            if brought is None:
                continue
            group = self.group_of(threads, number)
            if any(not other.returned and other.place != thread.place for other in group):
                continue
            if brought.operation in MATRIX_OPERATIONS:
                self.on_matrices(group, brought)
                found: list[Any] = [None] * len(group)
            else:
                try:
                    found = exchanged([other.brings for other in group])
                except EndedLane as ended:
                    raise self.ended(group, ended, brought) from None
            for other, gets in zip(group, found, strict=True):
                other.brings, other.waits_at, other.gets = None, None, gets
            released = True
        return released

    def on_matrices(self, group: list[_Thread], brought: Exchange) -> None:
        """Do an operation on matrices for a group. Its accesses are ordered with those of no thread, but by barriers."""
        self.group_accesses += 1
        first = group[0].strand
        apart = (group_lane(first.shared[-1], self.group_accesses),)
        strand = Strand((*first.shared[:-1], *apart), (*first.everywhere[:-1], *apart), self.block, first.thread)
        there = [other.brings for other in group if other.brings is not None]
        notes = (
            Note(f"the group begins with the thread {self.block.shape.describe(self.block.number, first.thread)}"),
        )
        work = Group(self.execution, there, strand, notes)
        if len(there) < brought.width:
            incomplete(work, len(group), len(group) - len(there))
        performed(work)

    def group_of(self, threads: list[_Thread], number: int) -> list[_Thread]:
        """The threads that a waiting one makes an exchange with."""
        brought = threads[number].brings
        assert brought is not None
        start = number - number % brought.width
        return threads[start : start + brought.width]

    def release_warps(self, threads: list[_Thread], barriers: Mapping[int, BarrierScope]) -> bool:
        """Let the warps go on whose threads all wait at a barrier of the warp; whether there was one."""
        size = self.execution.options.warp_size
        released = False
        for start in range(0, len(threads), size):
            warp = threads[start : start + size]
            places = {thread.place for thread in warp if not thread.returned}
            if len(places) == 1 and (site := places.pop()[0]) is not None and barriers.get(site) is BarrierScope.WARP:
                number = start // size
                self.warp_epochs[number] = self.warp_epochs.get(number, 0) + 1
                for thread in warp:
                    thread.waits_at = None
                    self.set_paths(thread.strand)
                released = True
        return released

    def release_block(
        self, threads: list[_Thread], waiting: list[_Thread], barriers: Mapping[int, BarrierScope]
    ) -> None:
        places = {thread.place for thread in threads if not thread.returned}
        site, _ = places.pop()
        exchanging = next((thread for thread in waiting if thread.brings is not None), None)
        if exchanging is not None:
            raise self.parted(threads, exchanging)
        if places or site is None or barriers[site] is BarrierScope.WARP:
            raise self.diverged(threads, waiting)
        self.shared_epoch += 1
        if barriers[site] is BarrierScope.BLOCK_AND_GLOBAL:
            self.global_epoch += 1
        for thread in waiting:
            thread.waits_at = None
            self.set_paths(thread.strand)

    def diverged(self, threads: list[_Thread], waiting: list[_Thread]) -> ExecutionError:
        """The report that says how many threads stand where, with one of each group by name."""
        first = waiting[0].waits_at
        assert first is not None
        count, notes = self.places(threads, waiting[0])
        return report(
            "GM0503",
            f"only {count} of {len(threads)} threads of the block come to this barrier",
            self.execution.sites[first],
            label="all threads of the block that still run must come here",
            hint="take the barrier out of code that only some threads run (an `if`, a loop of unequal length)",
            notes=notes,
        )

    def parted(self, threads: list[_Thread], thread: _Thread) -> ExecutionError:
        """The report of an exchange to which only some threads of a group come."""
        brought = thread.brings
        assert brought is not None
        group = self.group_of(threads, thread.number)
        count, notes = self.places(group, thread)
        return report(
            "GM0520",
            f"only {count} of {len(group)} threads of a group come to this `{brought.operation}`",
            self.execution.sites[brought.site],
            label=f"all of {brought.width} consecutive threads that still run must come here",
            hint="take it out of code that only some of them run: bind its result before the `if`, and use it there",
            notes=notes,
        )

    def ended(self, group: list[_Thread], ended: EndedLane, brought: Exchange) -> ExecutionError:
        """The report of a thread that reads what one that has ended would bring."""
        names = [
            self.block.shape.describe(self.block.number, group[lane].number) for lane in (ended.reader, ended.source)
        ]
        return report(
            "GM0521",
            f"lane {ended.reader} reads lane {ended.source} by `{brought.operation}`, and the thread there has ended",
            self.execution.sites[brought.site],
            label="it brings nothing here",
            hint="let threads without work go on with a neutral value, rather than return before the exchange",
            notes=(Note(f"lane {ended.reader} is ({names[0]}), lane {ended.source} was ({names[1]})"),),
        )

    def places(self, threads: list[_Thread], here: _Thread) -> tuple[int, tuple[Note, ...]]:
        """How many of some threads wait where one of them does, and notes that say where each of them stands."""
        groups: dict[tuple[int | None, tuple[int, ...]], list[_Thread]] = {}
        for thread in threads:
            if not thread.returned:
                groups.setdefault(thread.place, []).append(thread)
        notes = []
        for place, group in groups.items():
            site, _ = place
            names = f"({self.block.shape.describe(self.block.number, group[0].number)})"
            example = f"{len(group)} of {len(threads)} threads, {names} among them,"
            if site is None:
                notes.append(Note(f"{example} ended without coming to it"))
            else:
                elsewhere = site == here.waits_at and place != here.place
                how = "wait here in another call of the function" if elsewhere else "wait here"
                notes.append(Note(f"{example} {how}", self.execution.sites[site].place))
        return len(groups[here.place]), tuple(notes)


def _calls_to(code: GeneratorType[int | Exchange, Any, Any]) -> tuple[int, ...]:
    """The calls that a thread is in the midst of, outermost first: each by its place in the code of the one around it."""
    found: list[int] = []
    while isinstance(inner := code.gi_yieldfrom, GeneratorType) and (frame := code.gi_frame) is not None:
        found.append(frame.f_lasti)
        code = inner
    return tuple(found)
