"""How long a small kernel takes to become SPIR-V, from source to first result, and from first import to first result.

Used by `vulkan_peers.py`. Each time is of a process of its own, which is this file: ``SIDE DEVICE FOLDER MODE`` prints
seconds as JSON. Caches of drivers are left as they are. In mode ``fresh`` nothing of the kernel was built before; in mode
``kept`` the process finds what an earlier one left, as far as the package offers it: our pack and compiled pipelines,
numba-vulkan's compiled kernel; wgpu translates its WGSL anew.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from vulkan_start_up import KERNEL, MANIFEST

START = time.perf_counter()
NUMBA = """
import numba_vulkan as nv

@nv.jit(cache=True)
def saxpy(a, x, y):
    i = nv.global_id(0)
    if i < x.shape[0]:
        y[i] = a * x[i] + y[i]
"""
WGSL = """
@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < arrayLength(&y)) { y[id.x] = a[0] * x[id.x] + y[id.x]; }
}
"""
EDITS = 5
"""So many changed kernels are built in a warm process; the least time counts."""


def least(build: Callable[[int], Any]) -> float:
    """The least seconds of a build of a kernel that differs each time."""
    found = []
    for number in range(EDITS):
        begin = time.perf_counter()
        build(number)
        found.append(time.perf_counter() - begin)
    return min(found)


def gristmill_process(device: int, folder: Path, fresh: bool) -> dict[str, float]:
    import numpy as np

    import gristmill

    pack = folder / "build/kernels/start.kpack"
    if fresh:
        (folder / "kernels.py").write_text(KERNEL)
        (folder / "kernels.toml").write_text(MANIFEST)
        gristmill.build(folder / "kernels.toml")
    gpu: Any = gristmill.device(f"vulkan:{device}")
    x, y = gpu.array(np.arange(1000, dtype=np.float32)), gpu.array(np.ones(1000, np.float32))
    gristmill.load(pack, device=gpu).saxpy(2.0, x, y)
    assert y.numpy()[999] == 1999
    times = {"result": time.perf_counter() - START}
    if fresh:

        def build(number: int) -> None:
            (folder / "kernels.py").write_text(KERNEL.replace("a * x", f"(a + T.float32({number})) * x"))
            gristmill.build(folder / "kernels.toml")

        times["build"] = least(build)
        (folder / "kernels.py").write_text(KERNEL)
        gristmill.build(folder / "kernels.toml")
    return times


def numba_process(device: int, folder: Path, fresh: bool) -> dict[str, float]:
    import numpy as np

    path = folder / "saxpy_of_numba.py"
    if fresh:
        path.write_text(NUMBA)
    saxpy = imported(path).saxpy
    import numba_vulkan as nv

    nv.select_device(device)
    x, y = nv.to_device(np.arange(1000, dtype=np.float32)), nv.to_device(np.ones(1000, np.float32))
    saxpy.forall(1000)(np.float32(2), x, y)
    assert y.copy_to_host()[999] == 1999
    times = {"result": time.perf_counter() - START}
    if fresh:
        from numba import float32

        def build(number: int) -> None:
            changed = folder / f"changed_{number}.py"
            changed.write_text(
                NUMBA.replace("cache=True", "").replace("i = nv.global_id(0)", f"i = nv.global_id(0) + {number}")
            )
            compiled = imported(changed).saxpy.compile((float32, float32[::1], float32[::1]))
            assert compiled.spirv

        times["build"] = least(build)
    return times


def wgpu_process(device: int, folder: Path, fresh: bool) -> dict[str, float]:
    import numpy as np
    import wgpu

    adapters = [found for found in wgpu.gpu.enumerate_adapters_sync() if found.info["backend_type"] == "Vulkan"]
    gpu = adapters[device].request_device_sync()

    def pipeline_of(source: str) -> Any:
        module = gpu.create_shader_module(code=source)
        return gpu.create_compute_pipeline(layout="auto", compute={"module": module, "entry_point": "main"})

    usage = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC
    values = (np.full(1, 2, np.float32), np.arange(1000, dtype=np.float32), np.ones(1000, np.float32))
    buffers = [gpu.create_buffer_with_data(data=value, usage=usage) for value in values]
    pipeline = pipeline_of(WGSL)
    entries = [{"binding": number, "resource": {"buffer": buffer}} for number, buffer in enumerate(buffers)]
    group = gpu.create_bind_group(layout=pipeline.get_bind_group_layout(0), entries=entries)
    encoder = gpu.create_command_encoder()
    opened = encoder.begin_compute_pass()
    opened.set_pipeline(pipeline)
    opened.set_bind_group(0, group)
    opened.dispatch_workgroups(4)
    opened.end()
    gpu.queue.submit([encoder.finish()])
    assert np.frombuffer(gpu.queue.read_buffer(buffers[2]), np.float32)[999] == 1999
    times = {"result": time.perf_counter() - START}
    if fresh:
        times["build"] = least(lambda number: pipeline_of(WGSL.replace("a[0] *", f"(a[0] + {number}.0) *")))
    return times


def imported(path: Path) -> Any:
    """The module of a file."""
    found = importlib.util.spec_from_file_location(path.stem, path)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    sys.modules[path.stem] = module
    found.loader.exec_module(module)
    return module


PROCESSES = {"gristmill": gristmill_process, "numba-vulkan": numba_process, "wgpu": wgpu_process}


def run(side: str, device: int, folder: Path, cache: Path, mode: str) -> dict[str, float]:
    """What one process says."""
    environment = {**os.environ, "GRISTMILL_CACHE_DIR": str(cache), "NUMBA_CACHE_DIR": str(folder / "numba")}
    # Where Python may not keep what it has compiled, it compiles all modules anew in each process.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, __file__, side, str(device), str(folder), mode]
    found = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    times: dict[str, float] = json.loads(found.stdout.splitlines()[-1])
    return times


def first_results(device: int, rounds: int) -> dict[str, dict[str, float]]:
    """The least seconds of each side by what was timed; processes of the sides in turn."""
    titles = {
        ("fresh", "build"): "build of a changed kernel to SPIR-V, warm process",
        ("fresh", "result"): "first import to first result, with the build",
        ("kept", "result"): "first import to first result, built before",
    }
    rows: dict[str, dict[str, float]] = {title: {} for title in titles.values()}
    with tempfile.TemporaryDirectory() as name:
        cache = Path(name) / "cache"
        # Where the installation is editable, the first process makes the native support code.
        (Path(name) / "first").mkdir()
        run("gristmill", device, Path(name) / "first", cache, "fresh")
        for number in range(rounds):
            for side in PROCESSES:
                folder = Path(name) / f"{side}_{number}"
                folder.mkdir()
                for mode in ("fresh", "kept"):
                    for what, seconds in run(side, device, folder, cache, mode).items():
                        row = rows[titles[mode, what]]
                        row[side] = min(row.get(side, seconds), seconds)
    return rows


if __name__ == "__main__":
    chosen, number, where, mode = sys.argv[1:]
    print(json.dumps(PROCESSES[chosen](int(number), Path(where), mode == "fresh")))
