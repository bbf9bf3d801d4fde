"""Which tiles of matrices the subgroups of a device multiply (VK_KHR_cooperative_matrix)."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

from gristmill_vulkan.api import Api

FEATURE = "cooperative_matrix"
# VkComponentTypeKHR, of those that the language has.
_TYPES: Mapping[int, str] = {0: "float16", 1: "float32", 3: "int8", 5: "int32", 7: "uint8", 9: "uint32"}
_SUBGROUP_SCOPE = 3


def matrices(api: Api, handle: Any, features: Set[str]) -> frozenset[str]:
    """What a device multiplies, as ``16x16x16:float16:float32`` (m x n x k, factors, sums); nothing without the feature."""
    if FEATURE not in features:
        return frozenset()
    name = "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR"
    count = api.ffi.new("uint32_t *")
    api.call(name, handle, count, api.ffi.NULL)
    array = api.ffi.new("VkCooperativeMatrixPropertiesKHR[]", max(count[0], 1))
    for each in array:
        each.sType = api.lib.VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR
    api.call(name, handle, count, array)
    return frozenset(filter(None, (_named(array[place]) for place in range(count[0]))))


def _named(shape: Any) -> str:
    """The name of a product; an empty text for one that the language does not have."""
    factor, total = _TYPES.get(shape.AType), _TYPES.get(shape.CType)
    ours = factor == _TYPES.get(shape.BType) and total == _TYPES.get(shape.ResultType)
    if not (factor and total and ours) or shape.scope != _SUBGROUP_SCOPE or shape.saturatingAccumulation:
        return ""
    return f"{shape.MSize}x{shape.NSize}x{shape.KSize}:{factor}:{total}"
