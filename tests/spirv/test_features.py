"""What the record of a kernel says of its device is what its module declares: no more, and no less."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import pytest

from gristmill.codegen.kernel_records import kernel_record, kernels_of
from gristmill.errors import Unsupported
from gristmill.ir.dtype import SCALARS
from gristmill.testing.device_programs import ON_EVERY_DEVICE, random_device_program
from gristmill_spirv.enumerants import Capability, Op
from gristmill_spirv.kernels import write_kernel
from gristmill_spirv.target import profile_of

FEATURES = {
    Capability.Shader: None,
    Capability.Int64: "int64",
    Capability.Float64: "float64",
    Capability.StorageBuffer8BitAccess: "storage8",
    Capability.StorageBuffer16BitAccess: "storage16",
    Capability.PhysicalStorageBufferAddresses: "address",
    Capability.VulkanMemoryModel: "vulkan_memory_model",
    Capability.GroupNonUniform: "subgroup_basic",
    Capability.GroupNonUniformShuffle: "subgroup_shuffle",
    Capability.GroupNonUniformBallot: "subgroup_ballot",
    Capability.SignedZeroInfNanPreserve: "float_controls",
    Capability.RoundingModeRTE: "float_controls",
}


def declared(data: bytes) -> set[Capability]:
    words = struct.unpack(f"<{len(data) // 4}I", data)
    place, found = 5, set()
    while words[place] & 0xFFFF == Op.Capability:
        found.add(Capability(words[place + 1]))
        place += words[place] >> 16
    return found


@pytest.mark.parametrize(
    "target",
    [
        "vulkan+float64",
        "vulkan",
        "vulkan+no-int64+float64",
        "vulkan+no-int64+no-storage8+no-storage16",
        "vulkan:1.2+address+float64+vulkan_memory_model",
        "vulkan+float64+float_controls+float_controls64",
    ],
)
def test_records_and_modules_agree(target: str, lowered: Callable[..., Any]) -> None:
    constructs = ON_EVERY_DEVICE - {"warp", "thread assert"}
    kernels = 0
    for seed in range(25):
        program = random_device_program(seed, dtypes=SCALARS, constructs=constructs)
        module, resolved = lowered(program.module, target, 3 if seed % 2 else 0)
        for kernel in kernels_of(module):
            try:
                written = write_kernel(module, kernel, profile_of(resolved), kernel_record(kernel, module).block)
            except Unsupported:
                continue
            needed = {FEATURES[capability] for capability in declared(written.data)} - {None}
            told = {"float_controls" if "controls" in name else name for name in written.features}
            if profile_of(resolved).uses_addresses:
                told.add("address")
            assert needed == told, f"seed {seed}, {kernel.name}"
            kernels += 1
    assert kernels > 5


def test_bits_of_float64_need_int64(parsed: Callable[..., Any], written: Callable[..., Any]) -> None:
    source = """@T.prim_func
def f(a: T.float64, b: T.float64, x: T.Buffer((64,), "float32")):
    for i in T.thread_binding(T.int32(64), thread="threadIdx.x"):
        x[i] = T.float32({})
"""
    without = "vulkan+float64+no-int64"
    assert "int64" not in written(parsed(source.format("a * b")), without).features
    with pytest.raises(Unsupported, match=r"GM0680.*bits of `float64` is not supported") as caught:
        written(parsed(source.format("T.min(a, b)")), without)
    assert "`int64 = true`" in caught.value.diagnostics[0].hint


def test_elements_of_a_word_need_no_narrow_storage(parsed: Callable[..., Any], written: Callable[..., Any]) -> None:
    source = """@T.prim_func
def f(x: T.Buffer((64,), "float16", align=16)):
    for i in T.thread_binding(8, thread="threadIdx.x"):
        for k in T.vectorized(8):
            x[i * 8 + k] = x[i * 8 + k] + T.float16(1)
"""
    found = written(parsed(source), "vulkan+no-storage16")
    assert "storage16" not in found.features
    assert Capability.StorageBuffer16BitAccess not in declared(found.data)
