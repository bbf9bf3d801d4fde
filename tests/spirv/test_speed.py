"""Writing SPIR-V takes at most 15 microseconds of processor time an instruction (benchmarks/spirv_emission.py says more)."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from gristmill.codegen.kernel_records import kernel_record, kernels_of
from gristmill.testing.spirv_tools import instruction_count
from gristmill_spirv.kernels import write_kernel
from gristmill_spirv.target import profile_of

MICROSECONDS_AT_MOST = 15
SOURCE = """@T.prim_func
def f(x: T.Buffer((64,), "float32"), y: T.Buffer((64,), "float32")):
    for i in T.thread_binding(64, thread="threadIdx.x"):
""" + "".join(f"        y[i] = y[i] * x[{k}] + x[i]\n" for k in range(64))


def test_an_instruction_is_written_fast(parsed: Callable[..., Any], lowered: Callable[..., Any]) -> None:
    module, target = lowered(parsed(SOURCE), "vulkan:1.2", 0)
    (kernel,) = kernels_of(module)
    block, times = kernel_record(kernel, module).block, []
    for _ in range(8):
        start = time.process_time()
        written = write_kernel(module, kernel, profile_of(target), block)
        times.append(time.process_time() - start)
    count = instruction_count(written.data)
    assert count > 1000
    assert min(times) / count * 1e6 <= MICROSECONDS_AT_MOST
