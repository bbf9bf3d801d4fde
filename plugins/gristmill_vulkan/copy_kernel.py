"""The kernel that copies memory on the device: 16 bytes a thread, by addresses.

Drivers' own copies of buffers reach a fifth of the bandwidth that a kernel does on some GPUs. The module is written here,
instruction by instruction; in the notation of the SPIR-V specification it is

    if (index < count) target[index] = source[index]

with ``source``, ``target`` (addresses of 16-byte vectors) and ``count`` as push constants.
"""

from __future__ import annotations

import struct

from gristmill.plugin.artifacts import KernelRecord
from gristmill_vulkan.kernel_forms import KernelForm
from gristmill_vulkan.kernels import Kernel
from gristmill_vulkan.logical import LogicalDevice
from gristmill_vulkan.pipeline_cache import PipelineCache

THREADS = 256
BYTES_A_THREAD = 16
NEEDS = frozenset(("address", "int64"))
SWITCHED_OFF = "copy_kernel"
"""Left out by GRISTMILL_VULKAN_WITHOUT."""
PARAMETERS = struct.Struct("<QQQ")
_NAME = "main"
_MAGIC, _VERSION = 0x07230203, 0x00010500


def module() -> bytes:
    """The module, in SPIR-V 1.5, which drivers of Vulkan 1.2 read."""
    words: list[int] = []

    def put(operation: int, *operands: int) -> None:
        words.extend((len(operands) + 1 << 16 | operation, *operands))

    # Names of ids.
    main, index_in, block, pushed = 1, 2, 3, 4
    void, function, word, wide, triple, quad, truth = 5, 6, 7, 8, 9, 10, 11
    to_index, to_block, to_wide, to_quad = 12, 13, 14, 15
    zero, one, two, four = 16, 17, 18, 19
    start, body, end = 20, 21, 22
    indices, index, long_index, at_count, count, inside, offset = 23, 24, 25, 26, 27, 28, 29
    at_source, source, from_, at_target, target, to, from_pointer, to_pointer, value = (
        30,
        31,
        32,
        33,
        34,
        35,
        36,
        37,
        38,
    )

    for capability in (1, 11, 5347):  # Shader, Int64, PhysicalStorageBufferAddresses
        put(17, capability)
    put(14, 5348, 1)  # OpMemoryModel PhysicalStorageBuffer64 GLSL450
    put(15, 5, main, *struct.unpack("<2I", b"main\0\0\0\0"), index_in, pushed)  # OpEntryPoint GLCompute
    put(16, main, 17, THREADS, 1, 1)  # OpExecutionMode LocalSize
    put(71, index_in, 11, 28)  # OpDecorate BuiltIn GlobalInvocationId
    put(71, block, 2)  # OpDecorate Block
    for member in range(3):
        put(72, block, member, 35, 8 * member)  # OpMemberDecorate Offset
    put(19, void)
    put(33, function, void)
    put(21, word, 32, 0)
    put(21, wide, 64, 0)
    put(23, triple, word, 3)
    put(23, quad, word, 4)
    put(20, truth)
    put(30, block, wide, wide, wide)
    put(32, to_index, 1, triple)  # OpTypePointer Input
    put(32, to_block, 9, block)  # OpTypePointer PushConstant
    put(32, to_wide, 9, wide)
    put(32, to_quad, 5349, quad)  # OpTypePointer PhysicalStorageBuffer
    for constant, number in ((zero, 0), (one, 1), (two, 2), (four, 4)):
        put(43, word, constant, number)
    put(59, to_index, index_in, 1)
    put(59, to_block, pushed, 9)

    put(54, void, main, 0, function)
    put(248, start)
    put(61, triple, indices, index_in)
    put(81, word, index, indices, 0)  # OpCompositeExtract
    put(113, wide, long_index, index)  # OpUConvert
    put(65, to_wide, at_count, pushed, two)  # OpAccessChain
    put(61, wide, count, at_count)
    put(176, truth, inside, long_index, count)  # OpULessThan
    put(247, end, 0)  # OpSelectionMerge
    put(250, inside, body, end)
    put(248, body)
    put(196, wide, offset, long_index, four)  # OpShiftLeftLogical
    for at, member, base, sum_, pointer in (
        (at_source, zero, source, from_, from_pointer),
        (at_target, one, target, to, to_pointer),
    ):
        put(65, to_wide, at, pushed, member)
        put(61, wide, base, at)
        put(128, wide, sum_, base, offset)  # OpIAdd
        put(120, to_quad, pointer, sum_)  # OpConvertUToPtr
    aligned = (2, BYTES_A_THREAD)
    put(61, quad, value, from_pointer, *aligned)
    put(62, to_pointer, value, *aligned)
    put(249, end)
    put(248, end)
    put(253)
    put(56)
    header = (_MAGIC, _VERSION, 0, value + 1, 0)
    return struct.pack(f"<{len(header) + len(words)}I", *header, *words)


def copy_kernel(device: LogicalDevice, cache: PipelineCache) -> Kernel:
    """The kernel on a device that has what it :data:`NEEDS`. Raises VulkanError."""
    code = module()
    record = KernelRecord("copy", _NAME, axes=("blockIdx.x", "threadIdx.x"), block=(THREADS, 1, 1))
    return Kernel(device, cache, code, record, KernelForm(0, len(code), "address", (), PARAMETERS.size, 0))
