"""Which parts of a block of memory are free: best fit, neighbours joined.

There is no package on PyPI that allocates out of memory that Python cannot see.
"""

from __future__ import annotations

from bisect import bisect_left, insort


class FreeRanges:
    """The free ranges of ``[0, size)``, in bytes."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._by_start: dict[int, int] = {0: size}
        self._by_end: dict[int, int] = {size: 0}
        self._by_size: list[tuple[int, int]] = [(size, 0)]

    @property
    def is_whole(self) -> bool:
        """Whether nothing is taken."""
        return self._by_start.get(0) == self.size

    def take(self, size: int, alignment: int) -> int | None:
        """The start of a range of ``size`` bytes that is taken now, a multiple of ``alignment``; None if none fits."""
        for place in range(bisect_left(self._by_size, (size, 0)), len(self._by_size)):
            length, start = self._by_size[place]
            aligned = -(-start // alignment) * alignment
            rest = start + length - aligned - size
            if rest >= 0:
                self._remove(start, length)
                if aligned > start:
                    self._add(start, aligned - start)
                if rest:
                    self._add(aligned + size, rest)
                return aligned
        return None

    def give_back(self, start: int, size: int) -> None:
        """Make a range that was taken free again."""
        end = start + size
        if (before := self._by_end.get(start)) is not None:
            self._remove(before, start - before)
            start = before
        if (after := self._by_start.get(end)) is not None:
            self._remove(end, after)
            end += after
        self._add(start, end - start)

    def _add(self, start: int, size: int) -> None:
        self._by_start[start] = size
        self._by_end[start + size] = start
        insort(self._by_size, (size, start))

    def _remove(self, start: int, size: int) -> None:
        del self._by_start[start], self._by_end[start + size]
        del self._by_size[bisect_left(self._by_size, (size, start))]
