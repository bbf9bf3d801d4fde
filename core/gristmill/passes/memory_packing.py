"""Where blocks of memory with known lifetimes go, so that together they need as little as can be.

Two blocks that are in use at the same moment lie apart; others may lie over each other, wholly or in part. To find the
least memory is hard in general: a few orders are tried by best fit, then all orders as far as a number of steps reaches,
which is enough for seven blocks in any case.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

STEPS_AT_MOST = 15_000
"""Placements that the search for a better order may try."""


@dataclass(frozen=True, slots=True)
class Block:
    """Memory that is in use from a moment to another, both included. Its place is a multiple of ``step``; in bytes."""

    first: int
    last: int
    size: int
    step: int = 1

    def meets(self, other: Block) -> bool:
        """Whether both are in use at one moment."""
        return self.first <= other.last and other.first <= self.last


def pack(blocks: Sequence[Block]) -> list[int]:
    """The offset of each block in bytes."""
    if not blocks:
        return []
    enough = least_possible(blocks)
    best: list[int] = []
    for key in _ORDERS:
        found = _placed(blocks, sorted(range(len(blocks)), key=lambda number: key(blocks[number])))
        if not best or peak(blocks, found) < peak(blocks, best):
            best = found
        if peak(blocks, best) <= enough:
            return best
    return _Search(blocks, best, enough).run()


def peak(blocks: Sequence[Block], offsets: Sequence[int]) -> int:
    """How many bytes are needed in all."""
    return max((offset + block.size for block, offset in zip(blocks, offsets, strict=True)), default=0)


def least_possible(blocks: Sequence[Block]) -> int:
    """What no placement goes below: the most that is in use at one moment."""
    return max(sum(b.size for b in blocks if b.first <= now.first <= b.last) for now in blocks)


_ORDERS: tuple[Callable[[Block], tuple[int, ...]], ...] = (
    lambda block: (-block.size, block.first),
    lambda block: (block.first - block.last, -block.size),
    lambda block: (-block.size * (block.last - block.first + 1), block.first),
    lambda block: (block.first, -block.size),
)


def _placed(blocks: Sequence[Block], order: Iterable[int]) -> list[int]:
    """Blocks one after the other, each in the smallest gap that takes it."""
    offsets: dict[int, int] = {}
    for number in order:
        gaps = list(_gaps(blocks, offsets, number))
        *closed, last = gaps
        offsets[number] = min(closed, key=lambda gap: gap[1] - gap[0])[0] if closed else last[0]
    return [offsets[number] for number in range(len(blocks))]


def _gaps(blocks: Sequence[Block], offsets: dict[int, int], number: int) -> Iterable[tuple[int, int]]:
    """Where the block fits among those placed: first byte and end of the room, from below; the last room has no end."""
    block = blocks[number]
    taken = sorted(
        (offset, offset + blocks[other].size) for other, offset in offsets.items() if blocks[other].meets(block)
    )
    free = 0
    for start, end in taken:
        place = -(-free // block.step) * block.step
        if place + block.size <= start:
            yield place, start
        free = max(free, end)
    place = -(-free // block.step) * block.step
    yield place, place + block.size


class _Search:
    """Tries orders in which each block goes to its lowest place, and places do not go down.

    One of them gives the least memory: blocks of any placement, taken from below, can each go down to their lowest
    place, again and again, until none moves.
    """

    def __init__(self, blocks: Sequence[Block], best: list[int], enough: int) -> None:
        self.blocks = blocks
        self.best = best
        self.least = peak(blocks, best)
        self.enough = enough
        self.steps = 0

    def run(self) -> list[int]:
        self.go_on({}, 0, 0)
        return self.best

    def go_on(self, offsets: dict[int, int], low: int, high: int) -> None:
        if len(offsets) == len(self.blocks):
            self.best, self.least = [offsets[number] for number in range(len(self.blocks))], high
            return
        for number, block in enumerate(self.blocks):
            if number in offsets:
                continue
            if self.least <= self.enough or self.steps >= STEPS_AT_MOST:
                return
            self.steps += 1
            place = next(iter(_gaps(self.blocks, offsets, number)))[0]
            if place >= low and (above := max(high, place + block.size)) < self.least:
                self.go_on({**offsets, number: place}, place, above)
