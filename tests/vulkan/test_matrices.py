"""What devices multiply: read from the driver, and compared with what a pack requires."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from gristmill_vulkan.matrices import matrices
from gristmill_vulkan.requirements import lacking

# VkComponentTypeKHR and VkScopeKHR.
FLOAT16, FLOAT32, SINT8, SINT16, SINT32, SUBGROUP, WORKGROUP = 0, 1, 3, 4, 5, 3, 2


class Driver:
    """Answers as a driver with these rows does; ``vk.ffi`` and ``vk.lib`` are the package's own."""

    def __init__(self, *rows: tuple[int, ...]) -> None:
        self.rows = rows
        vulkan = pytest.importorskip("vulkan")
        self.ffi, self.lib = vulkan.ffi, vulkan.lib

    def call(self, name: str, handle: Any, count: Any, array: Any) -> None:
        assert name == "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR"
        if array == self.ffi.NULL:
            count[0] = len(self.rows)
            return
        for place, (m, n, k, a, c, saturates, scope) in enumerate(self.rows):
            row = array[place]
            assert row.sType == self.lib.VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR
            row.MSize, row.NSize, row.KSize, row.saturatingAccumulation, row.scope = m, n, k, saturates, scope
            row.AType = row.BType = a
            row.CType = row.ResultType = c


def test_what_a_driver_lists() -> None:
    driver: Any = Driver(
        (16, 16, 16, FLOAT16, FLOAT32, 0, SUBGROUP),
        (16, 8, 32, SINT8, SINT32, 0, SUBGROUP),
        (16, 8, 32, SINT8, SINT32, 1, SUBGROUP),
        (16, 8, 32, SINT16, SINT32, 0, SUBGROUP),
        (32, 32, 16, FLOAT16, FLOAT32, 0, WORKGROUP),
    )
    assert matrices(driver, None, {"cooperative_matrix"}) == {"16x16x16:float16:float32", "16x8x32:int8:int32"}
    assert matrices(driver, None, {"float16"}) == frozenset()


def test_a_device_without_a_product_is_refused_by_its_name() -> None:
    device: Any = SimpleNamespace(
        name="it",
        api_version=(1, 3),
        features=frozenset(("float16",)),
        matrices=frozenset(("8x8x8:float16:float32",)),
        subgroup_size=8,
        subgroup_sizes=(8, 8),
    )
    assert lacking(device, {"matrices": "8x8x8:float16:float32"}) == ""
    wanted = {"matrices": "16x16x16:float16:float32,8x8x8:float16:float32"}
    assert lacking(device, wanted) == "it does not multiply matrices of 16x16x16:float16:float32"
    assert lacking(device, {**wanted, "features": "cooperative_matrix"}) == "it lacks cooperative_matrix"
