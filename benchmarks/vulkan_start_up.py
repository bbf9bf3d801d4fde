"""What the first result on a Vulkan device costs a fresh process, by stages, with compiled pipelines on disk and without.

``python benchmarks/vulkan_start_up.py [vulkan:0]`` builds a pack of one kernel, and runs processes that load it, launch
it once and read the result. Drivers have caches of their own, which are left as they are: the first process of all on a
machine takes longer still. Wall-clock milliseconds, the least of several rounds; ours are those after Python has started.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROUNDS = 7
WANTED_MS = 600
KERNEL = """
from gristmill.script import tir as T

@T.prim_func
def saxpy(a: T.float32, x: T.Buffer(("n",), "float32"), y: T.Buffer(("n",), "float32")):
    for i in range(n):
        y[i] = a * x[i] + y[i]
"""
MANIFEST = """
schema = 1
[project]
name = "start"
[targets]
gpu = { kind = "vulkan", version = "1.2", address = true }
[[module]]
name = "start"
source = "kernels.py"
"""
FIRST_RESULT = """
import json, sys, time
start = time.perf_counter()
times = {}
def done(stage):
    times[stage] = (time.perf_counter() - start) * 1e3
import gristmill
done("import gristmill")
import numpy as np
done("import numpy")
gpu = gristmill.device(sys.argv[2])
done("open the device")
pack = gristmill.load(sys.argv[1], device=gpu)
done("load the pack")
x, y = gpu.array(np.arange(1000, dtype=np.float32)), gpu.array(np.ones(1000, np.float32))
done("make arrays")
pack.saxpy(2.0, x, y)
done("launch")
result = y.numpy()
done("read the result")
assert result[999] == 1999
print(json.dumps(times))
"""


def stages(pack: Path, device: str, cache: Path) -> dict[str, float]:
    """When each stage of one process was done, in milliseconds after its start."""
    environment = {**os.environ, "GRISTMILL_CACHE_DIR": str(cache)}
    # Where Python may not keep what it has compiled, it compiles all modules anew in each process.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    found = subprocess.run(
        [sys.executable, "-c", FIRST_RESULT, str(pack), device],
        env=environment,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    times: dict[str, float] = json.loads(found.stdout)
    return times


def main() -> None:
    import gristmill

    device = sys.argv[1] if len(sys.argv) > 1 else "vulkan:0"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "kernels.py").write_text(KERNEL)
        (folder / "kernels.toml").write_text(MANIFEST)
        gristmill.build(folder / "kernels.toml")
        pack = folder / "build/kernels/start.kpack"
        # The first one makes native support code too, where an editable installation has to.
        kept = folder / "kept"
        stages(pack, device, kept)
        for title, caches in (
            ("with nothing in the cache folder", [folder / f"cache{number}" for number in range(ROUNDS)]),
            ("with what the last process left there", [kept] * ROUNDS),
        ):
            rounds = [stages(pack, device, cache) for cache in caches]
            best = min(rounds, key=lambda times: list(times.values())[-1])
            print(f"{device}, {title}:")
            before = 0.0
            for stage, until in best.items():
                print(f"  {stage:18} {until - before:7.1f} ms, {until:7.1f} ms in all")
                before = until
        print(f"first import to first result: {before:.0f} ms (wanted <= {WANTED_MS} ms)")
        files = list((kept / "vulkan").glob("*.bin"))
        print(f"compiled pipelines on disk: {sum(path.stat().st_size for path in files)} bytes in {len(files)} files")


if __name__ == "__main__":
    main()
