"""What a physical device is and can do: name, limits, memory, and features by the names of the target's keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gristmill_vulkan.api import Api

# VkPhysicalDeviceType (Vulkan specification): discrete before integrated before virtual before CPU before other.
_ORDER = {2: 0, 1: 1, 3: 2, 4: 3, 0: 4}
_TYPE_NAMES = {0: "other", 1: "integrated", 2: "discrete", 3: "virtual", 4: "cpu"}
_QUEUE_COMPUTE = 0x2

# Feature of a target, and the member of VkPhysicalDeviceFeatures or of the structures of Vulkan 1.1 and 1.2 that has it.
CORE_FEATURES = {"int64": "shaderInt64", "float64": "shaderFloat64", "int16": "shaderInt16"}
FEATURES_11 = {"storage16": "storageBuffer16BitAccess"}
FEATURES_12 = {
    "storage8": "storageBuffer8BitAccess",
    "int8": "shaderInt8",
    "float16": "shaderFloat16",
    "address": "bufferDeviceAddress",
    "atomic_int64": "shaderBufferInt64Atomics",
    "timeline": "timelineSemaphore",
}


@dataclass(frozen=True)
class PhysicalDevice:
    """A physical device that can compute."""

    handle: Any
    name: str
    kind: str
    order: int
    api_version: tuple[int, int]
    vendor: int
    identity: int
    driver_version: int
    cache_uuid: bytes
    extensions: frozenset[str]
    features: frozenset[str]
    limits: Mapping[str, Any]
    queue_family: int
    subgroup_size: int
    memory_types: tuple[tuple[int, int], ...]
    """(property flags, heap) of each memory type."""
    heaps: tuple[tuple[int, int], ...]
    """(size in bytes, flags) of each heap."""


def physical_device(api: Api, handle: Any) -> PhysicalDevice | None:
    """Everything about a device; None for one that cannot compute, or is older than Vulkan 1.1."""
    family = _compute_family(api, handle)
    properties = api.ffi.new("VkPhysicalDeviceProperties *")
    api.run("vkGetPhysicalDeviceProperties", handle, properties)
    version = (properties.apiVersion >> 22 & 0x7F, properties.apiVersion >> 12 & 0x3FF)
    if family is None or version < (1, 1):
        return None
    memory = api.ffi.new("VkPhysicalDeviceMemoryProperties *")
    api.run("vkGetPhysicalDeviceMemoryProperties", handle, memory)
    subgroup = api.new("VkPhysicalDeviceSubgroupProperties")
    more = api.new("VkPhysicalDeviceProperties2", pNext=subgroup)
    api.run("vkGetPhysicalDeviceProperties2", handle, more)
    limits = properties.limits
    return PhysicalDevice(
        handle=handle,
        name=api.text(properties.deviceName),
        kind=_TYPE_NAMES.get(properties.deviceType, "other"),
        order=_ORDER.get(properties.deviceType, 4),
        api_version=version,
        vendor=properties.vendorID,
        identity=properties.deviceID,
        driver_version=properties.driverVersion,
        cache_uuid=bytes(properties.pipelineCacheUUID),
        extensions=_extensions(api, handle),
        features=_features(api, handle, version),
        limits={
            "max_push_constants_size": limits.maxPushConstantsSize,
            "max_shared_memory": limits.maxComputeSharedMemorySize,
            "max_threads_per_block": limits.maxComputeWorkGroupInvocations,
            "max_block_size": tuple(limits.maxComputeWorkGroupSize),
            "max_grid_size": tuple(limits.maxComputeWorkGroupCount),
            "max_storage_buffer_range": limits.maxStorageBufferRange,
            "max_storage_buffers": limits.maxPerStageDescriptorStorageBuffers,
            "max_uniform_buffer_range": limits.maxUniformBufferRange,
            "storage_alignment": limits.minStorageBufferOffsetAlignment,
            "uniform_alignment": limits.minUniformBufferOffsetAlignment,
        },
        queue_family=family,
        subgroup_size=subgroup.subgroupSize,
        memory_types=tuple(
            (memory.memoryTypes[place].propertyFlags, memory.memoryTypes[place].heapIndex)
            for place in range(memory.memoryTypeCount)
        ),
        heaps=tuple(
            (memory.memoryHeaps[place].size, memory.memoryHeaps[place].flags) for place in range(memory.memoryHeapCount)
        ),
    )


def _compute_family(api: Api, handle: Any) -> int | None:
    """A queue family that computes: the first, which graphics drivers make the fastest for dependent launches."""
    count = api.ffi.new("uint32_t *")
    api.run("vkGetPhysicalDeviceQueueFamilyProperties", handle, count, api.ffi.NULL)
    array = api.ffi.new("VkQueueFamilyProperties[]", max(count[0], 1))
    api.run("vkGetPhysicalDeviceQueueFamilyProperties", handle, count, array)
    for place in range(count[0]):
        if array[place].queueFlags & _QUEUE_COMPUTE and array[place].queueCount:
            return place
    return None


def _extensions(api: Api, handle: Any) -> frozenset[str]:
    count = api.ffi.new("uint32_t *")
    api.call("vkEnumerateDeviceExtensionProperties", handle, api.ffi.NULL, count, api.ffi.NULL)
    array = api.ffi.new("VkExtensionProperties[]", max(count[0], 1))
    api.call("vkEnumerateDeviceExtensionProperties", handle, api.ffi.NULL, count, array)
    return frozenset(api.text(array[place].extensionName) for place in range(count[0]))


def _features(api: Api, handle: Any, version: tuple[int, int]) -> frozenset[str]:
    newer = api.new("VkPhysicalDeviceVulkan12Features")
    sixteen = api.new("VkPhysicalDevice16BitStorageFeatures")
    if version >= (1, 2):
        sixteen.pNext = newer
    asked = api.new("VkPhysicalDeviceFeatures2", pNext=sixteen)
    api.run("vkGetPhysicalDeviceFeatures2", handle, asked)
    found = {name for name, member in CORE_FEATURES.items() if getattr(asked.features, member)}
    found |= {name for name, member in FEATURES_11.items() if getattr(sixteen, member)}
    if version >= (1, 2):
        found |= {name for name, member in FEATURES_12.items() if getattr(newer, member)}
    return frozenset(found)
