"""Calls of Vulkan that fail are Python errors with the call and the result in them."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import gristmill
from gristmill.errors import MissingError, UserError
from gristmill_vulkan.api import Api
from gristmill_vulkan.results import DeviceMemoryError, VulkanError, result_name
from gristmill_vulkan.runtime import VulkanRuntime


def test_names() -> None:
    assert result_name(-4) == "VK_ERROR_DEVICE_LOST"
    assert result_name(-99) == "VkResult -99"


def test_a_call_that_fails() -> None:
    device = VulkanRuntime().open(0)
    device.stream.api.hook.before = lambda name: -4 if name == "vkQueueSubmit" else 0
    device.stream.commands()
    with pytest.raises(VulkanError, match=r"GM0930.*vkQueueSubmit gave VK_ERROR_DEVICE_LOST"):
        device.stream.flush()
    device.stream.api.hook.before = None


def test_a_function_that_the_driver_lacks() -> None:
    instance, _ = VulkanRuntime().opened()
    with pytest.raises(
        VulkanError, match=r"GM0930.*lacks a function: vkNoSuchThing gave VK_ERROR_EXTENSION_NOT_PRESENT"
    ):
        instance.api.run("vkNoSuchThing")
    instance.close()


def test_lists_that_grow_while_they_are_read() -> None:
    """The driver says that there are more than there was room for: they are listed again."""
    instance, devices = VulkanRuntime().opened()
    incomplete = iter([0, 5, 0, 5, 0, 0])
    instance.api.hook.before = lambda name: next(incomplete)
    assert [int(instance.api.ffi.cast("uintptr_t", handle)) for handle in instance.physical_devices()]
    assert next(incomplete, None) is None
    instance.api.hook.before = None
    assert devices
    instance.close()


def test_no_memory() -> None:
    device = VulkanRuntime().open(0)
    with pytest.raises(DeviceMemoryError, match=r"GM0931.*vulkan:0 has no memory for 1024.0 GiB more"):
        device.empty((1 << 38,), "float32")
    assert device.array(np.arange(3)).numpy().tolist() == [0, 1, 2]
    device.close()


def test_no_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vulkan", None)
    with pytest.raises(MissingError, match=r"GM0932.*the Python package `vulkan` is not installed"):
        Api.load()
    assert "not installed" in VulkanRuntime().probe().reason


def test_an_array_too_large_to_bind() -> None:
    from gristmill_vulkan.recording import too_large_to_bind

    error = too_large_to_bind("f_kernel", "x", 1 << 28, "vulkan:0", 1 << 27)
    assert isinstance(error, UserError)
    (found,) = error.diagnostics
    assert found.code == "GM0933"
    assert "256.0 MiB" in found.message
    assert "at most 128.0 MiB" in found.message
    assert gristmill.__version__
