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
