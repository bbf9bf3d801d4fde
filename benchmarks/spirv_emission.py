"""How long the SPIR-V emitter takes for an instruction, in microseconds.

``python benchmarks/spirv_emission.py`` writes the kernels of random programs and two large ones, each several times, and
prints for each the instructions of its module and the least time an instruction took. Passes are not counted.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from functools import partial

import gristmill.schedule.plugin
import gristmill_launch.plugin
from gristmill.codegen.kernel_records import kernel_record, kernels_of
from gristmill.ir.dtype import SCALARS
from gristmill.ir.module import Function, Module
from gristmill.ir.target import Target, parse_target
from gristmill.passes.deep import run_deep
from gristmill.passes.manager import RunOptions
from gristmill.passes.part_by_target import part_by_target
from gristmill.passes.pipeline import build_pipeline
from gristmill.plugin.protocols import PassContext
from gristmill.script import parse_source
from gristmill.testing.device_programs import ON_EVERY_DEVICE, random_device_program
from gristmill.testing.spirv_tools import instruction_count
from gristmill_spirv.kernels import write_kernel
from gristmill_spirv.target import capabilities, profile_of, resolve

HEAD = """from gristmill.script import tir as T

@T.prim_func
def f(x: T.Buffer((64,), "float32"), y: T.Buffer((64,), "float32")):
    for i in T.thread_binding(64, thread="threadIdx.x"):
"""


def large(line: str, count: int) -> Module:
    """A kernel of so many statements."""
    return parse_source(HEAD + "".join(f"        {line.format(k=k % 64)}\n" for k in range(count)), "large.py").module


def kernels(module: Module, target: Target) -> Iterator[tuple[Module, Function]]:
    """The kernels of a module, lowered, each with the module that its helpers are in."""
    context = PassContext(target, capabilities(target), {"optimization": 0})
    entries = (*gristmill.schedule.plugin.gristmill_passes(), *gristmill_launch.plugin.gristmill_passes())
    device = part_by_target(build_pipeline(context, entries).run(module, RunOptions())).device
    yield from ((device, kernel) for kernel in kernels_of(device))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    target = resolve(parse_target("vulkan:1.2+float64"))
    profile = profile_of(target)
    cases = {
        "5000 sums of products": large("y[i] = y[i] * x[{k}] + x[i]", 5000),
        "1000 choices": large("y[i] = x[{k}] if x[i] > y[i] else y[i]", 1000),
    }
    constructs = ON_EVERY_DEVICE - {"warp", "thread assert"}
    for seed in range(options.programs):
        cases[f"program {seed}"] = random_device_program(seed, dtypes=SCALARS, constructs=constructs).module
    total = spent = 0.0
    for name, module in cases.items():
        count, least = 0, 0.0
        for device, kernel in kernels(module, target):
            block = kernel_record(kernel, device).block
            times = []
            for _ in range(options.repeats):
                start = time.process_time()
                written = run_deep(partial(write_kernel, device, kernel, profile, block), kernel)
                times.append(time.process_time() - start)
            count += instruction_count(written.data)
            least += min(times)
        total, spent = total + count, spent + least
        print(f"{name:24} {count:7} instructions, {least / count * 1e6:6.2f} us each")
    print(f"{'all':24} {int(total):7} instructions, {spent / total * 1e6:6.2f} us each")


if __name__ == "__main__":
    main()
