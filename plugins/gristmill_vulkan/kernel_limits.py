"""What a device must have for a kernel, checked before its driver sees the code: drivers check little of it, and some stop."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gristmill.errors import Diagnostic, UserError
from gristmill.plugin.artifacts import KernelRecord
from gristmill_vulkan.kernel_forms import KernelForm
from gristmill_vulkan.logical import LogicalDevice
from gristmill_vulkan.requirements import has_subgroups_of, subgroup_sizes

_MAGIC = 0x07230203
_CAPABILITY, _MEMORY_MODEL = 17, 14
_HEADER_WORDS = 5
# The version of SPIR-V that drivers of a version of Vulkan read (Vulkan specification, "Versions and Formats").
_SPIRV_VERSIONS: Mapping[tuple[int, int], tuple[int, int]] = {(1, 1): (1, 3), (1, 2): (1, 5), (1, 3): (1, 6)}
FEATURES: Mapping[int, str] = {
    0: "",  # Matrix
    1: "",  # Shader
    9: "float16",
    10: "float64",
    11: "int64",
    12: "atomic_int64|atomic_shared_int64",
    22: "int16",
    39: "int8",
    61: "subgroup_basic",
    62: "subgroup_vote",
    63: "subgroup_arithmetic",
    64: "subgroup_ballot",
    65: "subgroup_shuffle",
    66: "subgroup_shuffle_relative",
    67: "subgroup_clustered",
    68: "subgroup_quad",
    4433: "storage16",
    4435: "push16",
    4448: "storage8",
    4450: "push8",
    4464: "denorm_preserve",
    4466: "float_controls|float_controls16|float_controls64",
    4467: "float_controls|float_controls16|float_controls64",
    5345: "vulkan_memory_model",
    5346: "vulkan_memory_model_device",
    5347: "address",
    5612: "atomic_float32_min_max|atomic_shared_float32_min_max",
    6016: "dot_product",
    6017: "dot_product",
    6018: "dot_product",
    6019: "dot_product",
    6022: "cooperative_matrix",
    6033: "atomic_float32_add|atomic_shared_float32_add",
    6034: "atomic_float64_add|atomic_shared_float64_add",
    6095: "atomic_float16_add|atomic_shared_float16_add",
}
"""Capabilities of SPIR-V by number, and the feature of a device that they need, or several of which it must have one. An
empty text: every device has it."""


def check_kernel(device: LogicalDevice, record: KernelRecord, form: KernelForm) -> None:
    """Raises UserError (GM0935) for a kernel with more arguments, or another subgroup, than the device allows."""
    limits = device.physical.limits
    if form.push_bytes > limits["max_push_constants_size"]:
        raise _refusal(
            device,
            record,
            f"its arguments take {form.push_bytes} bytes of push constants, and {{}} has "
            f"{limits['max_push_constants_size']}",
            f"build it with `max_push_constants_size = {limits['max_push_constants_size']}` in its target",
        )
    if form.is_bound and form.buffers > limits["max_storage_buffers"]:
        raise _refusal(
            device,
            record,
            f"it has {form.buffers} arrays, and {{}} binds at most {limits['max_storage_buffers']}",
            "build it with `address = true` in its target, which binds none, or give it fewer arrays",
        )
    if form.arguments == "uniform" and form.block_bytes > limits["max_uniform_buffer_range"]:
        raise _refusal(
            device,
            record,
            f"its scalars take {form.block_bytes} bytes, and {{}} binds at most {limits['max_uniform_buffer_range']}",
            "give it fewer scalars, or an array of them",
        )
    if not has_subgroups_of(device.physical, form.subgroup):
        _, most = device.physical.subgroup_sizes
        raise _refusal(
            device,
            record,
            f"it needs subgroups of {form.subgroup} threads, and those of {{}} have {subgroup_sizes(device.physical)}",
            f"build it with `subgroup_size = {most or device.physical.subgroup_size}` in its target",
        )


def check_module(device: LogicalDevice, record: KernelRecord, code: bytes) -> None:
    """Raises UserError: GM0914 for what is no SPIR-V, GM0935 for a version or a capability that the device lacks."""
    words = memoryview(code).cast("I") if len(code) % 4 == 0 else memoryview(b"").cast("I")
    if len(words) <= _HEADER_WORDS or words[0] != _MAGIC:
        raise _no_module(record)
    version = (words[1] >> 16 & 0xFF, words[1] >> 8 & 0xFF)
    most = _SPIRV_VERSIONS[min(device.physical.api_version, (1, 3))]
    if version > most:
        raise _refusal(
            device,
            record,
            f"it is SPIR-V {version[0]}.{version[1]}, and {{}} reads up to {most[0]}.{most[1]}",
            'build it with an older `version`, as "1.1", in its target',
        )
    for capability in _capabilities(record, words):
        wanted = FEATURES.get(capability)
        if wanted is None or (wanted and device.features.isdisjoint(wanted.split("|"))):
            what = wanted.partition("|")[0] if wanted else f"the capability {capability} of SPIR-V"
            raise _refusal(device, record, f"it needs `{what}`, which {{}} lacks", "build it for a target without it")


def _capabilities(record: KernelRecord, words: memoryview) -> Iterator[int]:
    """All that the module declares; they come before its memory model."""
    place = _HEADER_WORDS
    while place < len(words):
        count, operation = words[place] >> 16, words[place] & 0xFFFF
        if operation == _MEMORY_MODEL:
            return
        if count == 0 or place + count > len(words):
            break
        if operation == _CAPABILITY and count == 2:
            yield words[place + 1]
        place += count
    raise _no_module(record)


def _no_module(record: KernelRecord) -> UserError:
    return UserError(
        Diagnostic("GM0914", f"the code of `{record.name}` is no module of SPIR-V", hint="build the pack again")
    )


def _refusal(device: LogicalDevice, record: KernelRecord, what: str, hint: str) -> UserError:
    named = f"{device.name} ({device.physical.name})"
    return UserError(
        Diagnostic("GM0935", f"the kernel `{record.name}` cannot be loaded: {what.format(named)}", hint=hint)
    )
