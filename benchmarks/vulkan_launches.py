"""What a launch on a Vulkan device costs, recorded by native support code and in Python, in each form of arguments.

``host``: from Python, of a built function with three device arrays, until the call returns. ``dependent``, ``independent``:
from the first call until the device is idle, for launches that each read what the one before wrote, and for launches on
arrays of their own. All are the median of several rounds. Beside it an empty TVM FFI function with the same arguments.

    python benchmarks/vulkan_launches.py [DEVICE [LAUNCHES]]
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from calls_and_builds import empty_function

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


def built(folder: Path) -> dict[str, Path]:
    (folder / "step.py").write_text(KERNEL)
    lines = ["schema = 1", "[project]", 'name = "bench"', "[targets]"]
    lines += [f"{name} = {target}" for name, target in FORMS.items()]
    for name in FORMS:
        lines += ["[[module]]", f'name = "{name}"', 'source = "step.py"', f'targets = ["{name}"]']
    (folder / "kernels.toml").write_text("\n".join(lines) + "\n")
    gristmill.build(folder / "kernels.toml")
    return {name: folder / f"build/kernels/{name}.kpack" for name in FORMS}


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


def measure(device: VulkanDevice, path: Path, launches: int) -> None:
    step = gristmill.load(path, device=device).step
    start = np.arange(64, dtype=np.float32)
    x, y, z = device.array(start), device.array(np.ones(64, np.float32)), device.array(start)
    apart = [(x, y, array) for array in (device.array(np.zeros(64, np.float32)) for _ in range(INDEPENDENT))]
    step(x, y, z)
    device.synchronize()
    host, dependent = rounds(step, [(z, y, z)], launches, device.synchronize)
    expected = start + 1 + ROUNDS * launches
    assert np.array_equal(z.numpy(), expected.astype(np.float32)), (z.numpy()[:4], expected[:4])
    _, independent = rounds(step, apart, launches, device.synchronize)
    assert all(np.array_equal(array.numpy(), start + 1) for _, _, array in apart)
    empty = empty_function()
    alone, _ = rounds(empty, [(z, y, z)], launches, lambda: None)
    how = "native" if device.native is not None else "Python"
    recorded = f"{device.native.launches} launches by native code" if device.native is not None else ""
    print(
        f"{path.stem:14} {how:7} host {host:8.2f} us   dependent {dependent:8.2f} us   independent {independent:8.2f} us   "
        f"empty call {alone:5.2f} us   host / empty {host / alone:6.1f}   {recorded}",
        flush=True,
    )


def main() -> None:
    index = int((sys.argv[1] if len(sys.argv) > 1 else "vulkan:0").rpartition(":")[2])
    launches = int(sys.argv[2]) if len(sys.argv) > 2 else 10_000
    with tempfile.TemporaryDirectory() as folder:
        paths = built(Path(folder))
        for native in (True, False):
            device = opened(index, native)
            if native:
                print(f"{device.physical.name}, {launches} launches a round, {ROUNDS} rounds")
                print("wanted on a GPU: host <= 3 us, dependent <= 6 us")
            for path in paths.values():
                measure(device, path, launches if native else max(launches // 10, 1))
            device.close()


if __name__ == "__main__":
    main()
