"""The kernel that copies on the device."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from gristmill_vulkan.copy_kernel import module
from gristmill_vulkan.device import VulkanDevice

if TYPE_CHECKING:
    from pathlib import Path

    from tests.vulkan.conftest import Driver


def test_the_module_is_valid(tmp_path: Path) -> None:
    path = tmp_path / "copy.spv"
    path.write_bytes(module())
    subprocess.run(["spirv-val", "--target-env", "vulkan1.2", str(path)], check=True)


@pytest.fixture
def device(driver: Driver) -> VulkanDevice:
    """A device that is no CPU, as far as it says, and that launches at most three blocks along x."""
    limits = {**driver.physical.limits, "max_grid_size": (3, 3, 3)}
    return VulkanDevice("vulkan:0", driver.instance, replace(driver.physical, kind="discrete", limits=limits))


@pytest.mark.parametrize("size", [1, 15, 16, 17, 4095, 4096, 4097, 3 * 4096, 3 * 4096 + 5, 50001])
def test_copies(device: VulkanDevice, driver: Driver, size: int) -> None:
    values = np.random.default_rng(size).integers(0, 256, size, np.uint8)
    before, array, behind = (
        device.array(each) for each in (np.full(64, 7, np.uint8), values, np.full(64, 9, np.uint8))
    )
    copied = device.array(array)
    again = device.array(copied)
    np.testing.assert_array_equal(again.numpy(), values)
    np.testing.assert_array_equal(copied.numpy(), values)
    assert set(before.numpy()) == {7}
    assert set(behind.numpy()) == {9}
    assert device._parts.copier is not None
    assert size < 16 or device._parts.copier._pipelines
    device.close()
    driver.instance.report()


@pytest.mark.parametrize("without", ["address", "copy_kernel"])
def test_where_the_driver_copies(driver: Driver, without: str) -> None:
    physical = replace(driver.physical, kind="discrete")
    device = VulkanDevice("vulkan:0", driver.instance, physical, frozenset([without]))
    assert device.array(device.array(np.arange(100))).numpy().tolist() == list(range(100))
    assert device._parts.copier is None
    device.close()
