"""What a launch on a Vulkan device costs, recorded by native support code and in Python, in each form of arguments.

``host``: from Python, of a built function with three device arrays, until the call returns. ``dependent``, ``independent``:
from the first call until the device is idle, for launches that each read what the one before wrote, and for launches on
arrays of their own. All are the median of several rounds. Beside it an empty TVM FFI function with the same arguments.

    python benchmarks/vulkan_launches.py [--device vulkan:0] [--launches 10000] [--packs FOLDER]

``FOLDER`` keeps the packs; where they are there already, they are not built, and neither llvmlite nor a compiler is needed.
"""

from __future__ import annotations

import argparse
import ctypes
import mmap
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tvm_ffi
from vulkan_packs import built

import gristmill
from gristmill_vulkan.device import VulkanDevice
from gristmill_vulkan.runtime import VulkanRuntime

KERNEL = """
from gristmill.script import tir as T

@T.prim_func
def step(x: T.Buffer(("n",), "float32"), y: T.Buffer(("n",), "float32"), z: T.Buffer(("n",), "float32")):
    for i in range(n):
        z[i] = x[i] + y[i]
"""
FORMS = {
    "address": '{ kind = "vulkan", version = "1.2", address = true }',
    "address_block": '{ kind = "vulkan", version = "1.2", address = true, max_push_constants_size = 8 }',
    "push": '{ kind = "vulkan" }',
    "uniform": '{ kind = "vulkan", max_push_constants_size = 8 }',
}
ROUNDS = 9
INDEPENDENT = 32
UNQUEUED = 2000


def empty_function() -> Any:
    """A TVM FFI function that does nothing, called as built functions are: with the interpreter lock kept."""
    memory = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    # Of x86-64: xor eax, eax; ret.
    memory.write(b"\x31\xc0\xc3")
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    function = tvm_ffi.Function.__from_extern_c__(address, keep_alive_object=memory)
    function.release_gil = False
    return function


def opened(index: int, native: bool) -> VulkanDevice:
    os.environ["GRISTMILL_NATIVE"] = str(int(native))
    device = VulkanRuntime().open(index)
    if native and device.native is None:
        raise SystemExit(f"no native support code: {device.native_reason}")
    return device


def rounds(
    function: Callable[..., Any], arguments: Sequence[Sequence[Any]], launches: int, finish: Callable[[], Any]
) -> tuple[float, float]:
    """Median microseconds a call until it returns, and until all is finished; the arguments are taken in turn."""
    host, whole = [], []
    turns = [list(arguments[number % len(arguments)]) for number in range(launches)]
    for _ in range(ROUNDS):
        finish()
        begin = time.perf_counter()
        for turn in turns:
            function(*turn)
        host.append(time.perf_counter() - begin)
        finish()
        whole.append(time.perf_counter() - begin)
    return tuple(statistics.median(found) / launches * 1e6 for found in (host, whole))  # type: ignore[return-value]


def measure(device: VulkanDevice, form: str, path: Path, launches: int) -> None:
    step = gristmill.load(path, device=device).step
    start = np.arange(64, dtype=np.float32)
    x, y, z = device.array(start), device.array(np.ones(64, np.float32)), device.array(start)
    apart = [(x, y, array) for array in (device.array(np.zeros(64, np.float32)) for _ in range(INDEPENDENT))]
    step(x, y, z)
    device.synchronize()
    # So few that the device's queue is never full: who launches more waits for the device.
    few = min(launches, UNQUEUED)
    host, _ = rounds(step, [(z, y, z)], few, device.synchronize)
    _, dependent = rounds(step, [(z, y, z)], launches, device.synchronize)
    expected = start + 1 + ROUNDS * (few + launches)
    assert np.array_equal(z.numpy(), expected.astype(np.float32)), (z.numpy()[:4], expected[:4])
    _, independent = rounds(step, apart, launches, device.synchronize)
    assert all(np.array_equal(array.numpy(), start + 1) for _, _, array in apart[:launches])
    empty = empty_function()
    alone, _ = rounds(empty, [(z, y, z)], launches, lambda: None)
    how = "native" if device.native is not None else "Python"
    recorded = f"{device.native.launches} launches by native code" if device.native is not None else ""
    print(
        f"{form:14} {how:7} host {host:8.2f} us   dependent {dependent:8.2f} us   independent {independent:8.2f} us   "
        f"empty call {alone:5.2f} us   host / empty {host / alone:6.1f}   {recorded}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device", default="vulkan:0")
    parser.add_argument("--launches", type=int, default=10_000)
    parser.add_argument("--packs", type=Path)
    given = parser.parse_args()
    index = int(given.device.rpartition(":")[2])
    with tempfile.TemporaryDirectory() as folder:
        if given.packs is not None:
            given.packs.mkdir(parents=True, exist_ok=True)
        paths = built(given.packs or Path(folder), "launches", KERNEL, FORMS)
        for native in (True, False):
            device = opened(index, native)
            launches = given.launches if native else max(given.launches // 10, 1)
            print(f"{device.physical.name}, {launches} launches a round, {ROUNDS} rounds", flush=True)
            for form, path in paths.items():
                measure(device, form, path, launches)
            device.close()
    print("wanted on a GPU: host <= 3 us, dependent <= 6 us")


if __name__ == "__main__":
    main()
