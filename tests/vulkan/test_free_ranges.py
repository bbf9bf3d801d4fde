"""Free ranges of a block, against a list of bytes."""

from __future__ import annotations

import random

import pytest

from gristmill_vulkan.free_ranges import FreeRanges


def test_taking_and_giving_back_at_random() -> None:
    seed = random.randrange(1 << 32)
    print("seed", seed)
    draw = random.Random(seed)
    for _ in range(60):
        size = draw.randrange(1, 400)
        ranges, taken, held = FreeRanges(size), [False] * size, []
        for _ in range(120):
            if held and draw.random() < 0.45:
                start, length = held.pop(draw.randrange(len(held)))
                ranges.give_back(start, length)
                taken[start : start + length] = [False] * length
            else:
                length, alignment = draw.randrange(1, 60), draw.choice([1, 2, 4, 16])
                start = ranges.take(length, alignment)
                fits = [
                    place for place in range(0, size - length + 1, alignment) if not any(taken[place : place + length])
                ]
                assert (start is None) == (not fits)
                if start is not None:
                    assert start in fits
                    taken[start : start + length] = [True] * length
                    held.append((start, length))
            assert ranges.is_whole == (not held)
            assert free_in(ranges) == [place for place in range(size) if not taken[place]]
        for start, length in held:
            ranges.give_back(start, length)
        assert ranges.is_whole
        assert ranges.take(size, 1) == 0


def free_in(ranges: FreeRanges) -> list[int]:
    """Every free byte; and that neighbours are joined, and all three ways of looking at ranges agree."""
    assert sorted((length, start) for start, length in ranges._by_start.items()) == ranges._by_size
    assert {end: start for start, length in ranges._by_start.items() for end in [start + length]} == ranges._by_end
    assert not ranges._by_start.keys() & ranges._by_end.keys()
    return sorted(byte for start, length in ranges._by_start.items() for byte in range(start, start + length))


def test_the_smallest_that_fits_is_taken() -> None:
    ranges = FreeRanges(100)
    for size in (10, 5, 30, 5, 50):
        ranges.take(size, 1)
    ranges.give_back(0, 10)
    ranges.give_back(15, 30)
    assert ranges.take(8, 1) == 0
    assert ranges.take(8, 1) == 15


@pytest.mark.parametrize(("size", "alignment"), [(0x1000, 0x100), (0x100, 0x1000)])
def test_alignment(size: int, alignment: int) -> None:
    ranges = FreeRanges(1 << 20)
    ranges.take(1, 1)
    found = ranges.take(size, alignment)
    assert found == alignment
    # What lies before it can still be taken.
    assert ranges.take(alignment - 1, 1) == 1
