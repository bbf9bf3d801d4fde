"""Several threads on one device: random launches, allocations, frees, copies and reads. Also a program, for longer runs.

``python tests/vulkan/test_threads.py PACK COUNT [SWITCHED-OFF,...]`` runs COUNT operations in each of four threads.
"""

from __future__ import annotations

import gc
import random
import sys
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import gristmill
from gristmill_vulkan.device import VulkanDevice

if TYPE_CHECKING:
    from pathlib import Path

    from tests.vulkan.conftest import Driver

THREADS = 4


def work(device: VulkanDevice, pack: Any, seed: int, count: int) -> None:
    """Random operations on arrays of one thread, and what they must hold."""
    draw = random.Random(seed)
    held: list[list[Any]] = []
    for _ in range(count):
        chance = draw.random()
        if chance < 0.2 or not held:
            values = np.full(draw.choice([1, 7, 100, 1000]), draw.randrange(1000), np.int32)
            held.append([device.array(values), values])
        elif chance < 0.3 and len(held) > 3:
            held.pop(draw.randrange(len(held)))
        elif chance < 0.6:
            entry = draw.choice(held)
            pack.double(entry[0])
            entry[1] = entry[1] * 2 + 1
        elif chance < 0.75:
            entry, value = draw.choice(held), draw.randrange(1 << 20)
            pack.fill(value, entry[0])
            entry[1] = np.full_like(entry[1], value)
        elif chance < 0.8:
            out, scalars = device.empty((17,), "int64"), [draw.randrange(1 << 40) for _ in range(17)]
            pack.many(*scalars, out)
            if draw.random() < 0.3:
                assert out.numpy().tolist() == scalars
        elif chance < 0.9:
            entry = draw.choice(held)
            held.append([device.array(entry[0]), entry[1].copy()])
        elif chance < 0.92:
            device.synchronize()
        else:
            entry = draw.choice(held)
            np.testing.assert_array_equal(entry[0].numpy(), entry[1])
        del held[: max(len(held) - 40, 0)]
    for array, values in held:
        np.testing.assert_array_equal(array.numpy(), values)


def run(device: VulkanDevice, path: Path | str, count: int) -> list[BaseException]:
    """What went wrong in four threads, of which each two use a pack of their own."""
    seed = random.randrange(1 << 32)
    print("seed", seed)
    packs = [gristmill.load(path, device=device) for _ in range(2)]
    faults: list[BaseException] = []

    def guarded(number: int) -> None:
        try:
            work(device, packs[number % 2], seed + number, count)
        except BaseException as fault:
            faults.append(fault)

    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return faults


WAYS = [
    ("push", frozenset[str]()),
    ("uniform", frozenset(["VK_KHR_push_descriptor", "mapped_arrays"])),
    ("address_block", frozenset[str]()),
]


@pytest.mark.parametrize("native", ["0", "1"], ids=["python", "native"])
@pytest.mark.parametrize(("arguments", "without"), WAYS)
def test_random_work_on_one_device(
    driver: Driver,
    packs: dict[str, Path],
    arguments: str,
    without: frozenset[str],
    native: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GRISTMILL_NATIVE", native)
    device = driver.open(without)
    before = device.memory.count
    assert run(device, packs[arguments], 300) == []
    gc.collect()
    device.synchronize()
    assert device.memory.count == before
    assert not device.kernels()
    device.close()


if __name__ == "__main__":
    from gristmill_vulkan.runtime import VulkanRuntime

    opened, devices = VulkanRuntime().opened()
    switched_off = frozenset(sys.argv[3].split(",")) if len(sys.argv) > 3 else frozenset()
    found = VulkanDevice("vulkan:0", opened, devices[0], switched_off)
    at_first = found.memory.count
    wrong = run(found, sys.argv[1], int(sys.argv[2]))
    gc.collect()
    found.synchronize()
    print(
        f"{len(wrong)} threads failed, {found.memory.count - at_first} allocations left, {found.kernels()} kernels left"
    )
    for each in wrong:
        print(repr(each))
    sys.exit(bool(wrong) or found.memory.count != at_first)
