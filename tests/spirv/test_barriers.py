"""Barriers make global memory visible to the block: coherent memory, or Vulkan's memory model where the target has it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gristmill.interp import Executor
from gristmill.ir.target import Target

PLAIN = ("vulkan", "vulkan:1.2+address", "vulkan:1.2+address+vulkan_memory_model", "vulkan+vulkan_memory_model")
SOURCE = """@T.prim_func
def f(x: T.Buffer((256,), "{0}"), y: T.Buffer((256,), "{0}")):
    for b in T.thread_binding(4, thread="blockIdx.x"):
        for i in T.thread_binding(64, thread="threadIdx.x"):
            tile = T.alloc_buffer((64,), "{0}", scope="shared")
            tile[i] = x[b * 64 + i]
            y[b * 64 + i] = x[b * 64 + i] + T.{0}(1)
            T.tvm_storage_sync("{1}")
            for k in range(3):
                value = y[b * 64 + (i * 7 + k) % 64] + tile[63 - i]
                T.tvm_storage_sync("{1}")
                y[b * 64 + i] = value
                tile[i] = value
                T.tvm_storage_sync("{1}")
"""


@pytest.mark.parametrize("target", PLAIN)
@pytest.mark.parametrize("dtype", ["int32", "int64", "int16"])
def test_threads_of_a_block_exchange_through_global_memory(
    target: str, dtype: str, parsed: Callable[..., Any], on_vulkan: Callable[..., Any]
) -> None:
    module = parsed(SOURCE.format(dtype, "global"))
    x = np.arange(256).astype(dtype)
    expected, given = [x, np.zeros_like(x)], [x, np.zeros_like(x)]
    Executor(module).call("f", expected)
    on_vulkan(target)(module, "f", given)
    np.testing.assert_array_equal(given[1], expected[1])


def semantics_of(lines: list[str]) -> set[tuple[int, int, int]]:
    """Execution scope, memory scope and semantics of the barriers."""
    constants = {line.split()[0]: int(line.split()[-1]) for line in lines if "OpConstant %" in line}
    found = [line.split()[1:] for line in lines if line.startswith("OpControlBarrier")]
    return {(constants[a], constants[b], constants[c]) for a, b, c in found}


@pytest.mark.parametrize("target", PLAIN)
def test_what_the_module_says(
    target: str, parsed: Callable[..., Any], written: Callable[..., Any], disassembled: Callable[..., list[str]]
) -> None:
    found = written(parsed(SOURCE.format("int32", "global")), target)
    lines = disassembled(found.data)
    modelled = "memory_model" in target
    assert ("vulkan_memory_model" in found.features) == modelled
    (model,) = [line for line in lines if line.startswith("OpMemoryModel")]
    assert model.split()[-1] == ("Vulkan" if modelled else "GLSL450")
    # Of shared and of global memory: acquire, release, and available and visible where the model asks for it.
    assert semantics_of(lines) == {(2, 2, 0x148 | (0x6000 if modelled else 0))}
    coherent = [line for line in lines if "Coherent" in line]
    storage = {line.split()[0] for line in lines if "OpVariable" in line and line.endswith("StorageBuffer")}
    if modelled:
        assert not coherent
    elif storage:
        assert {line.split()[1] for line in coherent} == storage
    else:
        assert len(coherent) == 1
    accesses = [line for line in lines if line.startswith("OpStore") or " OpLoad " in line]
    private = [line for line in accesses if "NonPrivatePointer" not in line]
    kinds = {line.split()[0]: line.split()[-1] for line in lines if "OpVariable" in line}
    own = {name for name, kind in kinds.items() if kind in ("Input", "PushConstant", "Function")}
    chains = {line.split()[0]: line.split()[4] for line in lines if "OpAccessChain" in line}

    def is_own(line: str) -> bool:
        pointer = line.split()[1] if line.startswith("OpStore") else line.split()[4]
        return chains.get(pointer, pointer) in own

    assert all(map(is_own, private)) == modelled


@pytest.mark.parametrize("target", PLAIN)
def test_barriers_of_shared_memory_cost_nothing_more(
    target: str, parsed: Callable[..., Any], written: Callable[..., Any], disassembled: Callable[..., list[str]]
) -> None:
    source = SOURCE.format("int32", "shared").replace("y[b * 64 + (i * 7 + k) % 64]", "y[b * 64 + i]")
    found = written(parsed(source), target)
    lines = disassembled(found.data)
    assert "vulkan_memory_model" not in found.features
    assert semantics_of(lines) == {(2, 2, 0x108)}
    assert not [line for line in lines if "Coherent" in line or "NonPrivatePointer" in line]


@pytest.mark.parametrize("model", [False, True])
def test_barriers_of_warps(
    model: bool, parsed: Callable[..., Any], written: Callable[..., Any], disassembled: Callable[..., list[str]]
) -> None:
    source = SOURCE.format("int32", "global").replace("y[b * 64 + i] = value", 'T.tvm_storage_sync("warp")')
    target = Target("vulkan", "1.2", ("vulkan_memory_model",) if model else (), (("subgroup_size", 32),))
    lines = disassembled(written(parsed(source), target, 0).data)
    more = 0x6000 if model else 0
    assert semantics_of(lines) == {(2, 2, 0x148 | more), (3, 3, 0x108 | more)}
