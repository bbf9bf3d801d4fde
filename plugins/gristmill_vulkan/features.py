"""What devices may have beyond their version: by the names of the target's keys, where Vulkan says it, and how it is switched on.

Each structure is part of a version of Vulkan, or comes with an extension, which is switched on with it where the device is
of an older version. (The structures of whole versions, as VkPhysicalDeviceVulkan12Features, do not exist for those.)
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Any

from gristmill_vulkan.api import Api

INSTANCE_VERSION = (1, 3)
"""What is asked of the loader; of a newer device no more than this is used."""

CORE_FEATURES: Mapping[str, str] = {
    "int64": "shaderInt64",
    "float64": "shaderFloat64",
    "int16": "shaderInt16",
}
"""Members of VkPhysicalDeviceFeatures."""


@dataclass(frozen=True, slots=True)
class FeatureStructure:
    """A structure of features: since which version it is part of Vulkan (None: of none), and its extension."""

    type: str
    since: tuple[int, int] | None
    extension: str
    members: Mapping[str, str]

    def is_known(self, version: tuple[int, int], extensions: Set[str]) -> bool:
        """Whether a device knows the structure."""
        return self.is_core(version) or self.extension in extensions

    def is_core(self, version: tuple[int, int]) -> bool:
        """Whether it needs no extension."""
        return self.since is not None and min(version, INSTANCE_VERSION) >= self.since


STRUCTURES = (
    FeatureStructure(
        "VkPhysicalDevice16BitStorageFeatures",
        (1, 1),
        "VK_KHR_16bit_storage",
        {"storage16": "storageBuffer16BitAccess", "push16": "storagePushConstant16"},
    ),
    FeatureStructure(
        "VkPhysicalDevice8BitStorageFeatures",
        (1, 2),
        "VK_KHR_8bit_storage",
        {"storage8": "storageBuffer8BitAccess", "push8": "storagePushConstant8"},
    ),
    FeatureStructure(
        "VkPhysicalDeviceShaderFloat16Int8Features",
        (1, 2),
        "VK_KHR_shader_float16_int8",
        {"float16": "shaderFloat16", "int8": "shaderInt8"},
    ),
    FeatureStructure(
        "VkPhysicalDeviceBufferDeviceAddressFeatures",
        (1, 2),
        "VK_KHR_buffer_device_address",
        {"address": "bufferDeviceAddress"},
    ),
    FeatureStructure(
        "VkPhysicalDeviceShaderAtomicInt64Features",
        (1, 2),
        "VK_KHR_shader_atomic_int64",
        {"atomic_int64": "shaderBufferInt64Atomics", "atomic_shared_int64": "shaderSharedInt64Atomics"},
    ),
    FeatureStructure(
        "VkPhysicalDeviceVulkanMemoryModelFeatures",
        (1, 2),
        "VK_KHR_vulkan_memory_model",
        {"vulkan_memory_model": "vulkanMemoryModel", "vulkan_memory_model_device": "vulkanMemoryModelDeviceScope"},
    ),
    FeatureStructure(
        "VkPhysicalDeviceSubgroupSizeControlFeatures",
        (1, 3),
        "VK_EXT_subgroup_size_control",
        {"subgroup_size_control": "subgroupSizeControl", "full_subgroups": "computeFullSubgroups"},
    ),
    FeatureStructure(
        "VkPhysicalDeviceShaderIntegerDotProductFeatures",
        (1, 3),
        "VK_KHR_shader_integer_dot_product",
        {"dot_product": "shaderIntegerDotProduct"},
    ),
    FeatureStructure(
        "VkPhysicalDeviceShaderAtomicFloatFeaturesEXT",
        None,
        "VK_EXT_shader_atomic_float",
        {
            "atomic_float32": "shaderBufferFloat32Atomics",
            "atomic_float32_add": "shaderBufferFloat32AtomicAdd",
            "atomic_float64": "shaderBufferFloat64Atomics",
            "atomic_float64_add": "shaderBufferFloat64AtomicAdd",
            "atomic_shared_float32": "shaderSharedFloat32Atomics",
            "atomic_shared_float32_add": "shaderSharedFloat32AtomicAdd",
            "atomic_shared_float64": "shaderSharedFloat64Atomics",
            "atomic_shared_float64_add": "shaderSharedFloat64AtomicAdd",
        },
    ),
    FeatureStructure(
        "VkPhysicalDeviceShaderAtomicFloat2FeaturesEXT",
        None,
        "VK_EXT_shader_atomic_float2",
        {
            "atomic_float16_add": "shaderBufferFloat16AtomicAdd",
            "atomic_float32_min_max": "shaderBufferFloat32AtomicMinMax",
            "atomic_shared_float16_add": "shaderSharedFloat16AtomicAdd",
            "atomic_shared_float32_min_max": "shaderSharedFloat32AtomicMinMax",
        },
    ),
    FeatureStructure(
        "VkPhysicalDeviceCooperativeMatrixFeaturesKHR",
        None,
        "VK_KHR_cooperative_matrix",
        {"cooperative_matrix": "cooperativeMatrix"},
    ),
)

# VkSubgroupFeatureFlagBits.
_SUBGROUP_OPERATIONS: Mapping[str, int] = {
    "subgroup_basic": 0x1,
    "subgroup_vote": 0x2,
    "subgroup_arithmetic": 0x4,
    "subgroup_ballot": 0x8,
    "subgroup_shuffle": 0x10,
    "subgroup_shuffle_relative": 0x20,
    "subgroup_clustered": 0x40,
    "subgroup_quad": 0x80,
}
# Properties of floats, which need no switching on: the feature is there if all of them are.
_FLOAT_CONTROLS: Mapping[str, tuple[str, ...]] = {
    "float_controls": ("shaderSignedZeroInfNanPreserveFloat32", "shaderRoundingModeRTEFloat32"),
    "float_controls16": ("shaderSignedZeroInfNanPreserveFloat16", "shaderRoundingModeRTEFloat16"),
    "float_controls64": ("shaderSignedZeroInfNanPreserveFloat64", "shaderRoundingModeRTEFloat64"),
    "denorm_preserve": ("shaderDenormPreserveFloat32",),
}
_FLOAT_CONTROLS_SINCE, _FLOAT_CONTROLS_EXTENSION = (1, 2), "VK_KHR_shader_float_controls"


def float_names() -> tuple[str, ...]:
    """The names of what :func:`float_features` may give."""
    return tuple(_FLOAT_CONTROLS)


def known_structures(version: tuple[int, int], extensions: Set[str]) -> list[FeatureStructure]:
    """Those that a device of that version and with these extensions knows."""
    return [structure for structure in STRUCTURES if structure.is_known(version, extensions)]


def chain(api: Api, structures: list[FeatureStructure]) -> tuple[Any, list[Any]]:
    """VkPhysicalDeviceFeatures2 with these structures behind it, and the structures in the same order."""
    made = [api.new(structure.type) for structure in structures]
    top = api.new("VkPhysicalDeviceFeatures2")
    before = top
    for structure in made:
        before.pNext = structure
        before = structure
    return top, made


def supported_features(api: Api, handle: Any, version: tuple[int, int], extensions: Set[str]) -> set[str]:
    """What a device says it can do."""
    structures = known_structures(version, extensions)
    top, made = chain(api, structures)
    api.run("vkGetPhysicalDeviceFeatures2", handle, top)
    found = {name for name, member in CORE_FEATURES.items() if getattr(top.features, member)}
    for structure, answer in zip(structures, made, strict=True):
        found |= {name for name, member in structure.members.items() if getattr(answer, member)}
    return found


def subgroup_features(operations: int) -> set[str]:
    """The operations between threads of a subgroup, from VkPhysicalDeviceSubgroupProperties."""
    return {name for name, bit in _SUBGROUP_OPERATIONS.items() if operations & bit}


def float_features(api: Api, handle: Any, version: tuple[int, int], extensions: Set[str]) -> set[str]:
    """What a device says of how it rounds, and of signed zeros, infinities and NaNs."""
    if min(version, INSTANCE_VERSION) < _FLOAT_CONTROLS_SINCE and _FLOAT_CONTROLS_EXTENSION not in extensions:
        return set()
    asked = api.new("VkPhysicalDeviceFloatControlsProperties")
    api.run("vkGetPhysicalDeviceProperties2", handle, api.new("VkPhysicalDeviceProperties2", pNext=asked))
    return {name for name, members in _FLOAT_CONTROLS.items() if all(getattr(asked, member) for member in members)}


def switched_on(
    api: Api, version: tuple[int, int], extensions: Set[str], wanted: Set[str]
) -> tuple[Any, list[Any], set[str]]:
    """What a device is made with for the wanted features: the chain, what it lives in, and the extensions."""
    structures = [
        structure for structure in known_structures(version, extensions) if not wanted.isdisjoint(structure.members)
    ]
    top, made = chain(api, structures)
    needed = {structure.extension for structure in structures if not structure.is_core(version)}
    if _FLOAT_CONTROLS_EXTENSION in extensions and min(version, INSTANCE_VERSION) < _FLOAT_CONTROLS_SINCE:
        needed.add(_FLOAT_CONTROLS_EXTENSION)
    for name, member in CORE_FEATURES.items():
        if name in wanted:
            setattr(top.features, member, 1)
    for structure, filled in zip(structures, made, strict=True):
        for name, member in structure.members.items():
            if name in wanted:
                setattr(filled, member, 1)
    return top, [top, *made], needed
