"""Finding data races: which strand touched which element last, and whether two strands are ordered.

A *strand* is a thread between two barriers, or an iteration of a parallel loop. Its *path* is a tuple whose entries
alternate: one that counts what follows one another (an instance of a loop, an epoch between barriers), then one that
tells apart what runs at the same time (an iteration, a block, a thread). Two strands may run at the same time exactly
if the first entry in which their paths differ is of the second sort.

For every element the last writer, two readers and two atomic operations are kept. A read is checked against the writer
and the atomic operations, a write against all of them, an atomic operation against the writer and the readers; that
finds a race in every element that has one, though not every pair.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Path = tuple[int, ...]
Record = tuple[Path, int]
"""Who (a path) and where (the number of a site)."""

Access = Callable[[int, Path, int, Any], None]
"""What is called at an access: index of the element, path and site, and the strand for reports."""


def concurrent(a: Path, b: Path) -> bool:
    """Whether the strands of two paths may run at the same time."""
    for position, (one, other) in enumerate(zip(a, b, strict=False)):
        if one != other:
            return bool(position & 1)
    return False


@dataclass(slots=True, eq=False)
class Strand:
    """Who is running: the two paths, and what reports call it.

    A barrier may order accesses to shared memory alone, so that a strand has one path for shared and one for global
    memory. ``block`` is the running block of a launch (None outside of one), ``thread`` the thread's number in it.
    """

    shared: Path = ()
    everywhere: Path = ()
    block: Any = None
    thread: int = 0


@dataclass(frozen=True, slots=True)
class Conflict(Exception):
    """Two accesses that race, for the caller to report."""

    earlier: Record
    earlier_writes: bool
    path: Path
    site: int
    writes: bool
    atomic: str = ""
    """Which of them is an atomic operation, ``earlier`` or ``later``, where the other is none."""


class Tracker:
    """The records of one memory, kept a ``unit`` of bytes: the size of its elements.

    Where the same memory is seen through elements of several sizes, the unit is their common divisor. ``equals`` has
    the strands that wrote the same value at the same place as the writer, where that is allowed (:meth:`agree`).
    """

    __slots__ = ("atomics", "equals", "others", "readers", "unit", "writers")

    def __init__(self) -> None:
        self.unit = 0
        self.writers: dict[int, Record] = {}
        self.readers: dict[int, Record] = {}
        self.others: dict[int, Record] = {}
        self.equals: dict[int, set[Path]] = {}
        self.atomics: dict[int, tuple[Record, Record]] = {}
        """The last atomic operation, and one that may run at the same time (or the same again)."""

    def fit(self, start: int, size: int) -> None:
        """Make the unit one that measures elements of ``size`` bytes that begin at byte ``start``."""
        unit = math.gcd(self.unit, size, start) if self.unit else math.gcd(size, start)
        if self.unit and unit != self.unit:
            parts = range(0, self.unit, unit)
            for records in (self.writers, self.readers, self.others):
                split = {key + part: record for key, record in records.items() for part in parts}
                records.clear()
                records.update(split)
            self.equals = {key + part: paths for key, paths in self.equals.items() for part in parts}
            self.atomics = {key + part: records for key, records in self.atomics.items() for part in parts}
        self.unit = unit

    def read(self, key: int, path: Path, site: int) -> None:
        """Record a read of one unit. Raises Conflict."""
        writer = self.writers.get(key)
        if (
            writer is not None
            and writer[0] is not path
            and concurrent(writer[0], path)
            and path not in self.equals.get(key, ())
        ):
            raise Conflict(writer, True, path, site, False)
        if self.atomics:
            self._meets_atomics(key, path, site, False)
        reader = self.readers.get(key)
        if reader is None:
            self.readers[key] = (path, site)
        elif reader[0] is not path:
            if not concurrent(reader[0], path):
                self.readers[key] = (path, site)
            else:
                other = self.others.get(key)
                if other is None or (other[0] is not path and not concurrent(other[0], path)):
                    self.others[key] = (path, site)

    def write(self, key: int, path: Path, site: int) -> None:
        """Record a write of one unit. Raises Conflict."""
        writer = self.writers.get(key)
        if writer is not None and writer[0] is not path and concurrent(writer[0], path):
            raise Conflict(writer, True, path, site, True)
        reader = self.readers.pop(key, None)
        if reader is not None:
            if reader[0] is not path and concurrent(reader[0], path):
                raise Conflict(reader, False, path, site, True)
            other = self.others.pop(key, None)
            if other is not None and other[0] is not path and concurrent(other[0], path):
                raise Conflict(other, False, path, site, True)
        if self.atomics:
            self._meets_atomics(key, path, site, True)
            self.atomics.pop(key, None)
        self.writers[key] = (path, site)
        if self.equals:
            self.equals.pop(key, None)

    def atomic(self, key: int, path: Path, site: int) -> None:
        """Record an atomic operation on one unit. Raises Conflict."""
        earlier = (self.writers.get(key), self.readers.get(key), self.others.get(key))
        for place, record in enumerate(earlier):
            if record is not None and record[0] is not path and concurrent(record[0], path):
                raise Conflict(record, place == 0, path, site, True, atomic="later")
        here = (path, site)
        last, beside = self.atomics.get(key, (here, here))
        # Of operations that follow one another the last stands for all.
        self.atomics[key] = (
            here,
            last if concurrent(last[0], path) else beside if concurrent(beside[0], path) else here,
        )

    def _meets_atomics(self, key: int, path: Path, site: int, writes: bool) -> None:
        for record in self.atomics.get(key, ()):
            if record[0] is not path and concurrent(record[0], path):
                raise Conflict(record, True, path, site, writes, atomic="earlier")

    def agree(self, key: int, path: Path) -> None:
        """Take a strand's write as the same write that the recorded writer made."""
        self.equals.setdefault(key, set()).add(path)
