"""The reports that running code makes, with the values and with the threads concerned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from gristmill.errors import Note
from gristmill.interp.memory import Memory, Opaque
from gristmill.interp.races import Conflict, Path, Record, Strand
from gristmill.interp.reports import Site, listed, report
from gristmill.ir.stmt import ThreadAxis

AXES = tuple(ThreadAxis)
"""All axes in the order in which generated code passes coordinates: blocks x y z, threads x y z."""

_ATOMIC = "make both atomic operations, as `T.atomic_load(x[i])`, or put a barrier between the two"


_LANES = 128
"""More lanes than a warp has are never told apart in a path of accesses by a group."""


def group_lane(first: int, number: int) -> int:
    """What stands for a lane in the path of accesses that a group does together; another one for each such ``number``."""
    return -1 - first - _LANES * number


@dataclass(frozen=True, slots=True)
class LaunchShape:
    """The extents of a launch, one for each of :data:`AXES` (1 where it has no such axis), and which axes it has."""

    extents: tuple[int, ...]
    axes: tuple[ThreadAxis, ...]
    warp_size: int

    def coordinates(self, block: int, thread: int) -> tuple[int, ...]:
        """The coordinates of a thread, from its block's and its own linear number; x counts fastest."""
        found = []
        for number, extents in ((block, self.extents[:3]), (thread, self.extents[3:])):
            for extent in extents:
                number, coordinate = divmod(number, extent)
                found.append(coordinate)
        return tuple(found)

    def describe(self, block: int, thread: int) -> str:
        """``blockIdx.x = 0, threadIdx.x = 3``."""
        found = self.coordinates(block, thread)
        return ", ".join(f"{axis.value} = {found[AXES.index(axis)]}" for axis in self.axes)


class RuntimeReports:
    """The part of an execution that knows who runs and says what went wrong."""

    def __init__(self, sites: Sequence[Site]) -> None:
        self.sites = sites
        self.forks: list[str | LaunchShape] = []

    def fork(self, what: str | LaunchShape) -> int:
        """A number for a parallel loop (given by its variable's name) or a launch that begins."""
        self.forks.append(what)
        return len(self.forks) - 1

    # Who --------------------------------------------------------------------------------------------------------------

    def describe(self, path: Path) -> str:
        """The iterations and the thread that a path stands for; an empty text for code that runs alone."""
        found = []
        position = 0
        while position < len(path):
            what = self.forks[path[position]]
            if isinstance(what, str):
                found.append(f"{what} = {path[position + 1]}")
                position += 2
            else:
                _, block, _, warp, _, lane = path[position : position + 6]
                if lane < 0:
                    first = what.describe(block, warp * what.warp_size + (-1 - lane) % _LANES)
                    found.append(f"the group that begins with {first}")
                else:
                    found.append(what.describe(block, warp * what.warp_size + lane))
                position += 6
        return ", ".join(found)

    def who(self, strand: Strand | None) -> tuple[Note, ...]:
        """A note that names the running thread or iteration."""
        text = self.describe(strand.everywhere) if strand is not None else ""
        return (Note(f"in the thread or iteration {text}"),) if text else ()

    def same_work(self, earlier: Record, path: Path, site: int) -> bool:
        """Whether two threads ran the same statement for the same coordinates of all axes opened around it.

        Such a statement stands between the loops over threads: it is one piece of work, which each of the threads of
        the axes that are not opened there repeats.
        """
        other = earlier[0]
        if earlier[1] != site or len(other) != len(path) or other[:-5] != path[:-5]:
            return False
        shape = self.forks[path[-6]]
        if not isinstance(shape, LaunchShape):
            return False
        one, two = (shape.coordinates(found[-5], found[-3] * shape.warp_size + found[-1]) for found in (other, path))
        return all(one[AXES.index(axis)] == two[AXES.index(axis)] for axis in self.sites[site].opened)

    # What -------------------------------------------------------------------------------------------------------------

    def out_of_bounds(
        self, site: int, indices: tuple[Any, ...], sizes: tuple[int, ...], strand: Strand | None
    ) -> NoReturn:
        """An index outside of the shape; names the first dimension that is wrong."""
        where = self.sites[site]
        found = [
            (dimension, index)
            for dimension, (index, size) in enumerate(zip(indices, sizes, strict=True))
            for index in (index if isinstance(index, list) else [index])
            if not 0 <= index < size
        ]
        dimension, index = found[0]
        size = sizes[dimension]
        raise report(
            "GM0501",
            f"index {index} is out of bounds for dimension {dimension} of `{where.what}`, which has size {size}",
            where,
            label=f"`{where.what}` has the shape {listed(sizes)}, and this is {listed(indices)}",
            hint=f"valid indices are 0 to {size - 1}" if size else "there is no element along this dimension",
            notes=self.who(strand),
        )

    def uninitialised(self, site: int, indices: tuple[Any, ...], strand: Strand | None) -> NoReturn:
        """A read of an element of which no or not every byte was written."""
        where = self.sites[site]
        element = f"{where.what}{listed(indices)}" if indices else where.what
        in_block = strand is not None and strand.block is not None
        among_threads = "; if another thread does that, put a barrier between" if in_block else ""
        raise report(
            "GM0502",
            f"`{element}` is read, and nothing was written to it before",
            where,
            hint=f"store a value to `{where.what}` first{among_threads}",
            notes=self.who(strand),
        )

    def precondition(self, site: int, operation: str, needs: str, values: tuple[Any, ...], strand: Any) -> NoReturn:
        """Operands that an operation with a precondition does not allow."""
        raise report(
            "GM0506",
            f"`{operation}({', '.join(str(value) for value in values)})` is not allowed: {needs}",
            self.sites[site],
            hint="a pass removed the guard of this operation though the operands are not within bounds, "
            "or code uses it without one",
            notes=self.who(strand),
        )

    def not_memory(self, pointer: Any, site: int) -> NoReturn:
        """A pointer that does not lead to memory of the executor is followed."""
        where = self.sites[site]
        if pointer is None:
            what = "a null pointer"
        elif isinstance(pointer, Opaque):
            what = f"the opaque pointer {pointer.value:#x}"
        else:
            what = f"{pointer!r}, which is not a pointer to memory,"
        raise report(
            "GM0517",
            f"{what} is used as the memory of `{where.what}`",
            where,
            hint="pass an array, or a pointer into one",
        )

    def outside_memory(self, site: int, memory: Memory, byte: int) -> NoReturn:
        """A view reaches beyond the memory that it is over, and such an element is used."""
        where = self.sites[site]
        raise report(
            "GM0501",
            f"the element lies at byte {byte} of the memory of `{memory.name}`, which has {memory.size} bytes",
            where,
            label=f"`{where.what}` reaches beyond the memory that it views",
            hint="make the view as large as the memory, or keep the indices smaller",
        )

    def region_outside(self, site: int, minimum: int, extent: int, size: int, strand: Strand | None) -> NoReturn:
        """A region that a buffer is matched to reaches beyond the buffer that it is a region of."""
        where = self.sites[site]
        raise report(
            "GM0501",
            f"the region of `{where.what}` goes from {minimum} to {minimum + extent - 1} in a dimension of size {size}",
            where,
            hint="keep the region within the buffer",
            notes=self.who(strand),
        )

    def read_only(self, site: int) -> NoReturn:
        """A store to an array that may not be written."""
        where = self.sites[site]
        raise report(
            "GM0513",
            f"`{where.what}` is written, and the array passed for it is read-only",
            where,
            hint="pass a writable array, for instance a copy of this one",
        )

    def outside_domain(self, site: int, value: int, minimum: int, extent: int, strand: Strand | None) -> NoReturn:
        """An axis of a block has a value that its domain does not have."""
        where = self.sites[site]
        raise report(
            "GM0514",
            f"the axis `{where.what}` is bound to {value}, and its domain is {minimum} to {minimum + extent - 1}"
            if extent > 0
            else f"the axis `{where.what}` is bound to {value}, and its domain is empty",
            where,
            hint="widen the domain, or exclude such iterations by a predicate",
            notes=self.who(strand),
        )

    # Races ------------------------------------------------------------------------------------------------------------

    def race(self, conflict: Conflict, memory: Memory, byte: int) -> NoReturn:
        """Two accesses to one element that nothing orders, of which one at least writes."""
        here = self.sites[conflict.site]
        there = self.sites[conflict.earlier[1]]
        one, two = self.describe(conflict.earlier[0]), self.describe(conflict.path)
        verbs = {True: "writes", False: "reads"}
        first, second = verbs[conflict.earlier_writes], verbs[conflict.writes]
        if conflict.atomic == "earlier":
            first = "atomically changes"
        elif conflict.atomic == "later":
            second = "atomically changes"
        threads = self._between_threads(conflict.earlier[0], conflict.path)
        name = here.what or memory.name
        kind = "threads" if threads else "iterations of a parallel loop"
        message = (
            f"two {kind} race for an element of `{name}` (byte {byte} of its memory): "
            f"({one}) {first} it and ({two}) {second} it"
        )
        note = Note(f"({one}) {first} it here", there.place)
        if threads:
            raise report(
                "GM0504",
                message,
                here,
                label=f"({two}) {second} it here",
                hint=_ATOMIC
                if conflict.atomic
                else "put a barrier between the two, or let every thread use elements of its own "
                "(nothing orders different blocks of one launch)",
                notes=(note,),
            )
        raise report(
            "GM0505",
            message,
            here,
            label=f"({two}) {second} it here",
            hint=_ATOMIC if conflict.atomic else "make the loop serial, or let every iteration use elements of its own",
            notes=(note,),
        )

    def _between_threads(self, one: Path, other: Path) -> bool:
        """Whether the paths part at a launch (rather than at a parallel loop)."""
        position = 0
        while position < min(len(one), len(other)):
            what = self.forks[one[position]]
            width = 2 if isinstance(what, str) else 6
            if one[position : position + width] != other[position : position + width]:
                return not isinstance(what, str)
            position += width
        return False
