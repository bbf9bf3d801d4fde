"""Packing blocks of memory with lifetimes: the least memory on small cases, and no overlap in any."""

import itertools
import random

import pytest

from gristmill.passes.memory_packing import Block, least_possible, pack, peak


def least_of_all(blocks):
    """The least memory of any placement, by trying every offset of every block."""
    limit = least_possible(blocks)
    while True:
        if fits(blocks, limit, []):
            return limit
        limit += 1


def fits(blocks, limit, offsets):
    if len(offsets) == len(blocks):
        return True
    block = blocks[len(offsets)]
    for offset in range(0, limit - block.size + 1, block.step):
        clear = all(
            not block.meets(other) or offset + block.size <= place or place + other.size <= offset
            for other, place in zip(blocks, offsets, strict=False)
        )
        if clear and fits(blocks, limit, [*offsets, offset]):
            return True
    return False


def check(blocks, offsets):
    for block, offset in zip(blocks, offsets, strict=True):
        assert offset >= 0
        assert offset % block.step == 0
    for (a, x), (b, y) in itertools.combinations(zip(blocks, offsets, strict=True), 2):
        assert not a.meets(b) or x + a.size <= y or y + b.size <= x


def random_blocks(chance, count, sizes):
    found = []
    for _ in range(count):
        first = chance.randrange(6)
        last = first + chance.choice((0, 0, 1, 2, 3))
        step = chance.choice((1, 1, 2, 4))
        found.append(Block(first, last, chance.choice(sizes), step))
    return found


def test_nothing_needs_nothing():
    assert pack([]) == []
    assert peak([], []) == 0


def test_two_small_ones_in_the_room_of_a_big_one():
    blocks = [Block(0, 0, 100), Block(1, 1, 40), Block(1, 2, 60)]
    assert peak(blocks, pack(blocks)) == 100


def test_the_order_that_greed_does_not_find():
    # By size, the two big ones go to the bottom, and the long one above both.
    blocks = [Block(0, 1, 3), Block(2, 3, 3), Block(1, 2, 2), Block(0, 0, 2), Block(3, 3, 2)]
    assert peak(blocks, pack(blocks)) == least_of_all(blocks)


@pytest.mark.parametrize("count", [2, 3, 4, 5, 6])
def test_small_cases_get_the_least_memory_there_is(count):
    for seed in range(40):
        blocks = random_blocks(random.Random(f"blocks {count} {seed}"), count, (1, 2, 3, 4, 5))
        offsets = pack(blocks)
        check(blocks, offsets)
        assert peak(blocks, offsets) == least_of_all(blocks), f"seed {seed}: {blocks}"


def test_large_cases_do_not_overlap_and_stay_near_the_least():
    worst = 0.0
    for seed in range(25):
        blocks = random_blocks(random.Random(f"many blocks {seed}"), 24, (4, 16, 64, 100, 256))
        offsets = pack(blocks)
        check(blocks, offsets)
        worst = max(worst, peak(blocks, offsets) / least_possible(blocks))
    print(f"at worst {worst:.3f} of what is in use at one moment")
    assert worst <= 1.1
