"""Memory of a device: blocks, addresses that lead back to allocations, which type of memory is for what."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from gristmill_vulkan.memory import ALIGNMENT, Allocation, array_type, staging_type

if TYPE_CHECKING:
    from tests.vulkan.conftest import Driver

LOCAL, VISIBLE, COHERENT, CACHED = 1, 2, 4, 8
HOST = VISIBLE | COHERENT
GIB = 1 << 30


@pytest.mark.parametrize("without", [frozenset[str](), frozenset(["address"])], ids=["device", "issued"])
def test_addresses_at_random(driver: Driver, without: frozenset[str]) -> None:
    """Every address in an allocation leads to it, none to another; at the end all blocks but one are gone."""
    seed = random.randrange(1 << 32)
    print("seed", seed)
    draw = random.Random(seed)
    device = driver.open(without, block_bytes=1 << 16)
    memory, before, blocks = device.memory, device.memory.count, device.memory.block_count
    held: list[Allocation] = []
    for _ in range(400):
        if held and draw.random() < 0.45:
            memory.release(held.pop(draw.randrange(len(held))))
            continue
        size = draw.choice([0, 1, 3, 255, 256, 257, 5000, 40000, 70000, 200000])
        alignment = draw.choice([1, 4, 64, 256])
        found = memory.allocate(size, alignment)
        held.append(found)
        assert found.address
        assert found.address % min(alignment, ALIGNMENT) == 0
        assert found.offset % ALIGNMENT == 0
        assert found.offset + size <= found.block.size
    spans = sorted((found.address, found.address + found.size) for found in held)
    assert all(end <= start for (_, end), (start, _) in itertools.pairwise(spans))
    for found in held:
        # Just behind it too, where there is room before the next one.
        behind = {found.size} if found.size < found.taken else set()
        for offset in {0, found.size // 2, max(found.size - 1, 0)} | behind:
            place = memory.at(found.address + offset)
            assert place is not None
            assert place[0] is found
            assert place[1] == offset
        assert memory.at(found.address + found.taken + (1 << 50)) is None
    assert memory.at(0) is None
    assert memory.at(1) is None
    assert memory.count - before == len(held)
    for found in held:
        memory.release(found)
    assert memory.count == before
    assert memory.block_count == blocks
    device.close()


def test_arrays_larger_than_a_block(driver: Driver) -> None:
    device = driver.open(block_bytes=1 << 16)
    values = np.arange(1 << 16, dtype=np.int64)
    small, large = device.array(values[:10]), device.array(values)
    np.testing.assert_array_equal(large.numpy(), values)
    np.testing.assert_array_equal(small.numpy(), values[:10])
    blocks = device.memory.block_count
    del large
    device.synchronize()
    assert device.memory.block_count == blocks - 1
    device.close()


def test_few_blocks_for_many_arrays(driver: Driver) -> None:
    device = driver.open()
    arrays = [device.array(np.full(100, number)) for number in range(500)]
    assert device.memory.block_count == 1
    assert [array.numpy()[0] for array in arrays] == list(range(500))
    device.close()


def test_arrays_without_elements_have_addresses_of_their_own(driver: Driver) -> None:
    device = driver.open()
    arrays = [device.empty((0,), "float32") for _ in range(3)]
    assert len({device.memory_of(array).address for array in arrays}) == 3
    device.close()


@pytest.mark.parametrize(
    ("types", "heaps", "arrays", "staging"),
    [
        # One type for all: a driver for CPUs, or an integrated GPU.
        ([(LOCAL | HOST | CACHED, 0)], [2 * GIB], 0, 0),
        # A discrete GPU: memory of its own, and memory of the host, uncached and cached.
        ([(0, 1), (LOCAL, 0), (HOST, 1), (HOST | CACHED, 1)], [8 * GIB, 16 * GIB], 1, 3),
        # The same with a window of 256 MiB into its memory, which is left to others.
        ([(LOCAL, 0), (HOST, 1), (HOST | CACHED, 1), (LOCAL | HOST, 2)], [8 * GIB, 16 * GIB, GIB // 4], 0, 2),
        # The same with all of its memory in sight of the host (resizable BAR).
        ([(0, 1), (LOCAL, 0), (HOST, 1), (HOST | CACHED, 1), (LOCAL | HOST, 0)], [140 * GIB, 16 * GIB], 4, 3),
        # An integrated GPU with uncached and cached memory that is all the host's.
        ([(LOCAL, 0), (LOCAL | HOST, 0), (LOCAL | HOST | CACHED, 0)], [16 * GIB], 1, 2),
        # No memory is called the device's own.
        ([(HOST, 0), (HOST | CACHED, 0)], [4 * GIB], 0, 1),
    ],
)
def test_types_of_memory(
    driver: Driver, types: list[tuple[int, int]], heaps: list[int], arrays: int, staging: int
) -> None:
    physical = replace(driver.physical, memory_types=tuple(types), heaps=tuple((size, 0) for size in heaps))
    device: Any = SimpleNamespace(physical=physical)
    assert array_type(device) == arrays
    assert staging_type(device) == staging
