"""What a physical device is and can do: name, limits, memory, and features by the names of the target's keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gristmill_vulkan.api import Api
from gristmill_vulkan.features import float_features, subgroup_features, supported_features
from gristmill_vulkan.matrices import matrices

# VkPhysicalDeviceType (Vulkan specification): discrete before integrated before virtual before CPU before other.
_ORDER = {2: 0, 1: 1, 3: 2, 4: 3, 0: 4}
_TYPE_NAMES = {0: "other", 1: "integrated", 2: "discrete", 3: "virtual", 4: "cpu"}
PUSH_DESCRIPTORS = "VK_KHR_push_descriptor"
_QUEUE_COMPUTE = 0x2
_COMPUTE_STAGE = 0x20


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
    """The subgroup size that code has by default."""
    subgroup_sizes: tuple[int, int]
    """The least and the greatest that code may ask for; (0, 0) if it cannot ask."""
    matrices: frozenset[str]
    """The tiles of matrices that subgroups multiply, as ``16x16x16:float16:float32``."""
    memory_types: tuple[tuple[int, int], ...]
    """(property flags, heap) of each memory type."""
    heaps: tuple[tuple[int, int], ...]
    """(size in bytes, flags) of each heap."""


def physical_device(api: Api, handle: Any) -> PhysicalDevice | str:
    """Everything about a device; for one that is of no use here, why: in a sentence that begins with its name."""
    family = _compute_family(api, handle)
    properties = api.ffi.new("VkPhysicalDeviceProperties *")
    api.run("vkGetPhysicalDeviceProperties", handle, properties)
    version = (properties.apiVersion >> 22 & 0x7F, properties.apiVersion >> 12 & 0x3FF)
    name = api.text(properties.deviceName)
    if family is None:
        return f"{name} has no queue that computes"
    if version < (1, 1):
        return f"{name} has Vulkan {version[0]}.{version[1]}, and 1.1 is the least that is used"
    memory = api.ffi.new("VkPhysicalDeviceMemoryProperties *")
    api.run("vkGetPhysicalDeviceMemoryProperties", handle, memory)
    extensions = _extensions(api, handle)
    subgroup = api.new("VkPhysicalDeviceSubgroupProperties")
    sizes = api.new("VkPhysicalDeviceSubgroupSizeControlProperties")
    features = supported_features(api, handle, version, extensions)
    if "subgroup_size_control" in features:
        subgroup.pNext = sizes
    api.run("vkGetPhysicalDeviceProperties2", handle, api.new("VkPhysicalDeviceProperties2", pNext=subgroup))
    if subgroup.supportedStages & _COMPUTE_STAGE:
        features |= subgroup_features(subgroup.supportedOperations)
    features |= float_features(api, handle, version, extensions)
    pushed = api.new("VkPhysicalDevicePushDescriptorPropertiesKHR")
    if PUSH_DESCRIPTORS in extensions:
        api.run("vkGetPhysicalDeviceProperties2", handle, api.new("VkPhysicalDeviceProperties2", pNext=pushed))
    required = bool(sizes.requiredSubgroupSizeStages & _COMPUTE_STAGE)
    limits = properties.limits
    return PhysicalDevice(
        handle=handle,
        name=name,
        kind=_TYPE_NAMES.get(properties.deviceType, "other"),
        order=_ORDER.get(properties.deviceType, 4),
        api_version=version,
        vendor=properties.vendorID,
        identity=properties.deviceID,
        driver_version=properties.driverVersion,
        cache_uuid=bytes(properties.pipelineCacheUUID),
        extensions=extensions,
        features=frozenset(features),
        matrices=matrices(api, handle, features),
        limits={
            "max_push_constants_size": limits.maxPushConstantsSize,
            "max_shared_memory": limits.maxComputeSharedMemorySize,
            "max_threads_per_block": limits.maxComputeWorkGroupInvocations,
            "max_block_size": tuple(limits.maxComputeWorkGroupSize),
            "max_grid_size": tuple(limits.maxComputeWorkGroupCount),
            "max_storage_buffer_range": limits.maxStorageBufferRange,
            "max_storage_buffers": limits.maxPerStageDescriptorStorageBuffers,
            "max_push_descriptors": pushed.maxPushDescriptors,
            "max_uniform_buffer_range": limits.maxUniformBufferRange,
            "storage_alignment": limits.minStorageBufferOffsetAlignment,
            "uniform_alignment": limits.minUniformBufferOffsetAlignment,
        },
        queue_family=family,
        subgroup_size=subgroup.subgroupSize,
        subgroup_sizes=(sizes.minSubgroupSize, sizes.maxSubgroupSize) if required else (0, 0),
        memory_types=tuple(
            (memory.memoryTypes[place].propertyFlags, memory.memoryTypes[place].heapIndex)
            for place in range(memory.memoryTypeCount)
        ),
        heaps=tuple(
            (memory.memoryHeaps[place].size, memory.memoryHeaps[place].flags) for place in range(memory.memoryHeapCount)
        ),
    )


def _compute_family(api: Api, handle: Any) -> int | None:
    """A queue family that computes: the first one, which is the one for graphics too where there is one.

    Launches that depend on each other are the fastest there on the drivers that were measured, and copies no slower than
    on a family of its own; a device here uses one queue.
    """
    count = api.ffi.new("uint32_t *")
    api.run("vkGetPhysicalDeviceQueueFamilyProperties", handle, count, api.ffi.NULL)
    array = api.ffi.new("VkQueueFamilyProperties[]", max(count[0], 1))
    api.run("vkGetPhysicalDeviceQueueFamilyProperties", handle, count, array)
    for place in range(count[0]):
        if array[place].queueFlags & _QUEUE_COMPUTE and array[place].queueCount:
            return place
    return None


def _extensions(api: Api, handle: Any) -> frozenset[str]:
    listed = api.listed("vkEnumerateDeviceExtensionProperties", "VkExtensionProperties", handle, api.ffi.NULL)
    return frozenset(api.text(found.extensionName) for found in listed)
