"""Lanes without a thread end no loops of the threads beside them, however many threads a block has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gristmill.interp import Executor

pytestmark = pytest.mark.usefixtures("validation")

WHILES = """
def add_up(y: T.Buffer((400,), "int32"), i: T.int64, limit: T.int32) -> T.int32:
    for k in range(1000000):
        if y[i] >= limit:
            return T.int32(k)
        y[i] += 1
    return -1

@T.prim_func
def f(y: T.Buffer((400,), "int32"), limit: T.int32, threads: T.int64):
    for t in T.thread_binding({threads}, thread="threadIdx.x"):
        while y[t * 3] < limit:
            y[t * 3] += 1
        for k in range(1000000):
            if y[t * 3 + 1] >= limit:
                break
            y[t * 3 + 1] += 1
        y[t * 3 + 2] = add_up(y, t * 3 + 2, limit) * 10
"""
ONE_AFTER_THE_OTHER = """
@T.prim_func
def f(y: T.Buffer((400,), "int32"), limit: T.int32, threads: T.int64):
    for i in range(threads):
        while y[i] < limit:
            y[i] += 1
            y[i + 200] = y[T.max(i - 1, 0)]
"""


@pytest.mark.parametrize("target", ["vulkan", "vulkan:1.2+address"])
@pytest.mark.parametrize("threads", ["1", "3", "7", "16", "100", "threads"])
def test_loops_that_memory_ends(
    threads: str, target: str, parsed: Callable[..., Any], on_vulkan: Callable[..., Any]
) -> None:
    module = parsed(WHILES.format(threads=threads))
    count = int(threads) if threads.isdigit() else 13
    found, wanted = np.zeros(400, np.int32), np.zeros(400, np.int32)
    on_vulkan(target)(module, "f", [found, 3, count])
    Executor(module).call("f", [wanted, 3, count])
    assert wanted[count * 3 - 3 : count * 3].tolist() == [3, 3, 30]
    np.testing.assert_array_equal(found, wanted)


def test_loops_of_one_thread(parsed: Callable[..., Any], on_vulkan: Callable[..., Any]) -> None:
    module = parsed(ONE_AFTER_THE_OTHER)
    found, wanted = np.zeros(400, np.int32), np.zeros(400, np.int32)
    on_vulkan("vulkan")(module, "f", [found, 3, 200])
    Executor(module).call("f", [wanted, 3, 200])
    assert wanted[199] == 3
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize(
    ("threads", "lines", "size"),
    [
        (1, ["while x[0] < 3:", "    x[0] += 1"], "2 1 1"),
        (1, ["for k in range(3):", "    x[0] += 1"], "1 1 1"),
        (1, ["x[0] += 1", 'T.tvm_storage_sync("shared")', "while x[0] < 3:", "    x[0] += 1"], "1 1 1"),
        (5, ["while x[t] < 3:", "    x[t] += 1"], "5 1 1"),
        (32, ["while x[t] < 3:", "    x[t] += 1"], "32 1 1"),
    ],
)
def test_which_kernels_are_kept_from_such_lanes(
    threads: int,
    lines: list[str],
    size: str,
    parsed: Callable[..., Any],
    written: Callable[..., Any],
    disassembled: Callable[[bytes], list[str]],
) -> None:
    head = (
        f'@T.prim_func\ndef f(x: T.Buffer((64,), "int32")):\n    for t in T.thread_binding({threads}, "threadIdx.x"):\n'
    )
    source = head + "".join(f"        {line}\n" for line in lines)
    found = disassembled(written(parsed(source)).data)
    (mode,) = [line for line in found if "OpExecutionMode" in line]
    assert mode.endswith(f"LocalSize {size}")
    is_kept = threads == 5 or size == "2 1 1"
    assert any("OpSelectionMerge" in line for line in found) == is_kept
