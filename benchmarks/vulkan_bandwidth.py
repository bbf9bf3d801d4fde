"""How much of a Vulkan device's bandwidth copy and saxpy kernels reach, as ratios to the device's own copies.

    python benchmarks/vulkan_bandwidth.py [--device vulkan:0] [--mib 1024] [--packs FOLDER]

Kernels are written in the language: plain loops that the recipe binds to threads, and loops bound by hand, of which a thread
accesses 16 bytes at once or 4. Arrays are of float32; a copy moves twice their bytes, saxpy three times. The device's own
rate is the best of its driver's copy (vkCmdCopyBuffer), of the kernel by which Gristmill copies arrays on a device, and of
PyTorch's copy where that is installed and sees a GPU. Results are checked. ``--mib`` is the size of an array; by default
1024 on a GPU and 32 on a driver for CPUs. ``FOLDER`` keeps the packs, as in ``vulkan_launches.py``.
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from vulkan_packs import built

import gristmill
from gristmill_vulkan.device import VulkanDevice
from gristmill_vulkan.runtime import VulkanRuntime

ROUNDS = 7
ROUND_SECONDS = 0.05
WANTED = 0.95
CPU = "cpu"
SOURCE = """
from gristmill.script import tir as T

THREADS = 256


@T.prim_func
def copy_plain(x: T.Buffer(("n",), "float32"), y: T.Buffer(("n",), "float32")):
    for i in range(n):
        y[i] = x[i]


@T.prim_func
def saxpy_plain(a: T.float32, x: T.Buffer(("n",), "float32"), y: T.Buffer(("n",), "float32")):
    for i in range(n):
        y[i] = a * x[i] + y[i]


@T.prim_func
def copy_4_bytes(x: T.Buffer(("n",), "float32"), y: T.Buffer(("n",), "float32")):
    for b in T.thread_binding((n + THREADS - 1) // THREADS, thread="blockIdx.x"):
        for t in T.thread_binding(THREADS, thread="threadIdx.x"):
            if b * THREADS + t < n:
                y[b * THREADS + t] = x[b * THREADS + t]


@T.prim_func
def copy_16_bytes(x: T.Buffer(("n",), "float32", align=16), y: T.Buffer(("n",), "float32", align=16)):
    for b in T.thread_binding((n // 4 + THREADS - 1) // THREADS, thread="blockIdx.x"):
        for t in T.thread_binding(THREADS, thread="threadIdx.x"):
            if b * THREADS + t < n // 4:
                for k in T.vectorized(4):
                    y[(b * THREADS + t) * 4 + k] = x[(b * THREADS + t) * 4 + k]


@T.prim_func
def saxpy_16_bytes(a: T.float32, x: T.Buffer(("n",), "float32", align=16), y: T.Buffer(("n",), "float32", align=16)):
    for b in T.thread_binding((n // 4 + THREADS - 1) // THREADS, thread="blockIdx.x"):
        for t in T.thread_binding(THREADS, thread="threadIdx.x"):
            if b * THREADS + t < n // 4:
                for k in T.vectorized(4):
                    y[(b * THREADS + t) * 4 + k] = a * x[(b * THREADS + t) * 4 + k] + y[(b * THREADS + t) * 4 + k]
"""
FORMS = {"address": '{ kind = "vulkan", version = "1.2", address = true }', "push": '{ kind = "vulkan" }'}
KERNELS = ("copy_16_bytes", "saxpy_16_bytes", "copy_plain", "saxpy_plain", "copy_4_bytes")


def seconds_of(run: Callable[[], Any], finish: Callable[[], Any]) -> float:
    """Median seconds of a run, of rounds that are long enough for the wait at their end not to count."""
    run()
    finish()
    start = time.perf_counter()
    run()
    finish()
    times = max(1, min(1000, int(ROUND_SECONDS / (time.perf_counter() - start))))
    found = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for _ in range(times):
            run()
        finish()
        found.append((time.perf_counter() - start) / times)
    return statistics.median(found)


def pair(device: Any, size: int) -> list[Any]:
    """Two arrays of so many bytes, which have been written: pages that never were may all be the same one."""
    ones = np.ones(size // 4, np.float32)
    return [device.array(ones) for _ in range(2)]


def own_copy(index: int, size: int, without: frozenset[str]) -> float:
    """GB/s of a copy between two arrays of so many bytes by the runtime; both count."""
    instance, devices = VulkanRuntime().opened()
    device = VulkanDevice(f"vulkan:{index}", instance, devices[index], without)
    arrays = pair(device, size)
    source, target = map(device.memory_of, arrays)
    return 2 * size / seconds_of(lambda: device.transfers.copy(source, target, size), device.synchronize) / 1e9


def own_copies(index: int, size: int) -> dict[str, float]:
    """GB/s of each way to copy that is not a kernel of the language."""
    found = {
        "vkCmdCopyBuffer": own_copy(index, size, frozenset(["copy_kernel"])),
        "gristmill's copies of arrays": own_copy(index, size, frozenset()),
    }
    if importlib.util.find_spec("torch") is not None:
        import torch

        if torch.cuda.is_available():
            a = torch.zeros(size // 4, dtype=torch.float32, device="cuda")
            b = torch.empty_like(a)
            found["torch copy_"] = 2 * size / seconds_of(lambda: b.copy_(a), torch.cuda.synchronize) / 1e9
    return found


def check(function: Callable[..., Any], given: list[float], device: Any) -> None:
    """The results of a kernel are right, of so few elements that reading them takes no time."""
    x = np.arange(1 << 20, dtype=np.float32) % 1000
    arrays = device.array(x), device.array(np.ones_like(x))
    function(*given, *arrays)
    assert np.array_equal(arrays[1].numpy(), 2 * x + 1 if given else x), function


def measure(function: Callable[..., Any], given: list[float], device: Any, size: int) -> float:
    """GB/s of a kernel on arrays of so many bytes."""
    x, y = pair(device, size)
    seconds = seconds_of(lambda: function(*given, x, y), device.synchronize)
    return (3 if given else 2) * size / seconds / 1e9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device", default="vulkan:0")
    parser.add_argument("--mib", type=int, default=0)
    parser.add_argument("--packs", type=Path)
    given = parser.parse_args()
    index = int(given.device.rpartition(":")[2])
    device = gristmill.device(given.device)
    kind = str(device.properties()["kind"])
    size = (given.mib or (32 if kind == CPU else 1024)) << 20
    print(
        f"{device.physical.name} ({kind}), arrays of {size >> 20} MiB, {ROUNDS} rounds",
        flush=True,
    )
    own = own_copies(index, size)
    for name, rate in own.items():
        print(f"{name:32} {rate:9.1f} GB/s", flush=True)
    best = max(own.values())
    with tempfile.TemporaryDirectory() as folder:
        if given.packs is not None:
            given.packs.mkdir(parents=True, exist_ok=True)
        for form, path in built(given.packs or Path(folder), "bandwidth", SOURCE, FORMS).items():
            pack = gristmill.load(path, device=device)
            for name in KERNELS:
                scalars = [2.0] if name.startswith("saxpy") else []
                check(pack[name], scalars, device)
                rate = measure(pack[name], scalars, device, size)
                print(f"{name:20} {form:11} {rate:9.1f} GB/s   {rate / best:6.1%} of the device's own copy", flush=True)
    print(f"wanted on a GPU: copy and saxpy with 16 bytes a thread >= {WANTED:.0%}")


if __name__ == "__main__":
    main()
