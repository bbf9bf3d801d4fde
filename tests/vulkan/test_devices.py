"""Finding devices: their order, what is left out and why, and what devices of older versions are used with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import gristmill
from gristmill.errors import MissingError
from gristmill_vulkan import runtime as runtime_module
from gristmill_vulkan.api import Api
from gristmill_vulkan.device import VulkanDevice
from gristmill_vulkan.features import STRUCTURES, known_structures
from gristmill_vulkan.physical import PhysicalDevice, physical_device
from gristmill_vulkan.requirements import lacking
from gristmill_vulkan.runtime import VulkanRuntime

if TYPE_CHECKING:
    from tests.vulkan.conftest import Driver

Edit = Callable[[Any], None]


@pytest.fixture
def edited(monkeypatch: pytest.MonkeyPatch) -> list[Edit]:
    """What is done to the properties that drivers give of their devices."""
    edits: list[Edit] = []
    run = Api.run

    def changed(api: Api, name: str, *args: Any) -> Any:
        result = run(api, name, *args)
        if name == "vkGetPhysicalDeviceProperties":
            for edit in edits:
                edit(args[1])
        return result

    monkeypatch.setattr(Api, "run", changed)
    return edits


def test_the_order_of_devices(driver: Driver, monkeypatch: pytest.MonkeyPatch, edited: list[Edit]) -> None:
    """Discrete, integrated, virtual, CPU, other; of one kind as the driver lists them."""
    kinds = iter([0, 4, 1, 2, 3, 2])
    names: list[int] = []

    def edit(properties: Any) -> None:
        properties.deviceType = next(kinds)
        properties.deviceID = len(names)
        names.append(properties.deviceType)

    edited.append(edit)
    listed = runtime_module.Instance.physical_devices
    monkeypatch.setattr(runtime_module.Instance, "physical_devices", lambda instance: listed(instance) * 6)
    runtime = VulkanRuntime()
    _, devices = runtime.opened()
    assert [device.kind for device in devices] == ["discrete", "discrete", "integrated", "virtual", "cpu", "other"]
    assert [device.identity for device in devices] == [3, 5, 2, 4, 1, 0]
    assert [each.index for each in runtime.probe().devices] == list(range(6))


def test_devices_that_are_left_out_say_why(edited: list[Edit], monkeypatch: pytest.MonkeyPatch) -> None:
    edited.append(lambda properties: setattr(properties, "apiVersion", 1 << 22))
    probe = VulkanRuntime().probe()
    assert not probe.devices
    assert "has Vulkan 1.0, and 1.1 is the least that is used" in probe.reason
    edited.clear()
    monkeypatch.setattr("gristmill_vulkan.physical._compute_family", lambda api, handle: None)
    probe = VulkanRuntime().probe()
    assert "has no queue that computes" in probe.reason
    monkeypatch.setattr(runtime_module.Instance, "physical_devices", lambda instance: [])
    assert "they list none" in VulkanRuntime().probe().reason


@pytest.mark.parametrize("index", [-1, 1, 99])
def test_a_number_that_no_device_has(index: int) -> None:
    with pytest.raises(MissingError, match=rf"(?s)GM0905.*there is no device vulkan:{index}.*there is vulkan:0"):
        VulkanRuntime().open(index)


def older(driver: Driver, edited: list[Edit], version: int) -> PhysicalDevice:
    edited.append(lambda properties: setattr(properties, "apiVersion", 1 << 22 | version << 12))
    found = physical_device(driver.instance.api, driver.physical.handle)
    assert isinstance(found, PhysicalDevice)
    return found


def test_features_by_extension(driver: Driver, edited: list[Edit], packs: dict[str, Path]) -> None:
    """A device of Vulkan 1.1 has features of later versions by their extensions, and they are switched on with these."""
    physical = older(driver, edited, 1)
    assert physical.api_version == (1, 1)
    assert {"storage8", "storage16", "int64"} <= physical.features
    device = VulkanDevice("vulkan:0", driver.instance, physical)
    pack = gristmill.load(packs["push"], device=device)
    values = np.arange(50, dtype=np.uint8)
    given, result = device.array(values), device.empty((50,), "uint8")
    pack.copy_bytes(given, result)
    np.testing.assert_array_equal(result.numpy(), values)
    device.close()
    assert lacking(physical, {"vulkan": "1.2"}) == (f"it requires Vulkan 1.2, and {physical.name} has 1.1")


def test_features_without_their_extension() -> None:
    known = {structure.type for structure in known_structures((1, 1), frozenset())}
    assert known == {"VkPhysicalDevice16BitStorageFeatures"}
    by_extension = {structure.type for structure in known_structures((1, 1), {"VK_KHR_8bit_storage"})}
    assert by_extension - known == {"VkPhysicalDevice8BitStorageFeatures"}
    newest = known_structures((1, 4), {structure.extension for structure in STRUCTURES})
    assert newest == list(STRUCTURES)


def test_names_of_features_are_of_one_structure() -> None:
    names = [name for structure in STRUCTURES for name in structure.members]
    assert len(names) == len(set(names))


def test_what_is_required_and_missing(driver: Driver) -> None:
    requirements = {"spirv": "1.3", "vulkan": "1.1", "features": "float64,int64"}
    assert lacking(driver.physical, requirements) == ""
    assert lacking(driver.physical, requirements, frozenset(["float64"])).endswith("lacks float64")
    assert lacking(driver.physical, {"features": "int64,levitation"}).endswith("lacks levitation")
    assert "requires Vulkan 9.0" in lacking(driver.physical, {"vulkan": "9.0"})
    assert "99" in lacking(driver.physical, {"vulkan": "newest"})


def test_properties(driver: Driver) -> None:
    found = VulkanRuntime().probe().devices[0].properties
    assert found["kind"] == "cpu"
    assert found["vulkan"] == "1.3"
    assert found["max_push_constants_size"] == 128
    assert {"int64", "storage8", "address"} <= set(str(found["features"]).split(","))
    assert all(isinstance(value, str | int) for value in found.values())
