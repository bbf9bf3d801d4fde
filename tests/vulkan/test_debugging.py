"""Shaders as files, messages of the validation layer as warnings, names and labels of kernels."""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import gristmill
from gristmill.errors import UserError
from gristmill_vulkan import stream
from gristmill_vulkan.api import Api
from gristmill_vulkan.results import VulkanValidationWarning

if TYPE_CHECKING:
    from tests.vulkan.conftest import Driver


def test_shaders_as_files(
    driver: Driver, packs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "shaders"
    monkeypatch.setenv("GRISTMILL_VULKAN_DUMP", str(folder))
    device = driver.open()
    first = gristmill.load(packs["few_push"], device=device)
    assert gristmill.load(packs["few_push"], device=device).devices == first.devices
    found = sorted(folder.iterdir())
    # Each kernel once, however often it is loaded: there are those of two functions.
    assert len(found) == len({kernel.record.name for kernel in device.kernels()}) >= 3
    assert any(path.name.startswith("saxpy_kernel-") and path.suffix == ".spv" for path in found)
    for path in found:
        subprocess.run(["spirv-val", "--target-env", "vulkan1.1", str(path)], check=True)
    device.close()


def test_a_folder_that_cannot_be_written(
    driver: Driver, packs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    device = driver.open()
    for folder in (tmp_path / "file", tmp_path / "file" / "under", tmp_path / ("x" * 300)):
        monkeypatch.setenv("GRISTMILL_VULKAN_DUMP", str(folder))
        with pytest.raises(UserError, match="GRISTMILL_VULKAN_DUMP") as caught:
            gristmill.load(packs["few_double"], device=device)
        assert caught.value.code == "GM0003"
    monkeypatch.delenv("GRISTMILL_VULKAN_DUMP")
    assert gristmill.load(packs["few_double"], device=device).devices
    device.close()


def test_a_missing_barrier_is_a_warning(
    driver: Driver, packs: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The layer checks synchronisation, and what it says arrives: that it says nothing elsewhere means something."""
    monkeypatch.setenv("GRISTMILL_NATIVE", "0")
    monkeypatch.setattr(stream, "needs_barrier", lambda *_: False)
    monkeypatch.setattr(stream.Stream, "count", lambda self: None)
    monkeypatch.setattr(stream, "LATEST_SECONDS", 1e9)
    device = driver.open()
    pack = gristmill.load(packs["push"], device=device)
    first, second = device.array(np.zeros(100, np.uint8)), device.array(np.zeros(100, np.uint8))
    pack.copy_bytes(first, second)
    pack.copy_bytes(second, first)
    with pytest.warns(VulkanValidationWarning, match="SYNC-HAZARD"):
        device.synchronize()
    device.close()
    assert not driver.instance.messages


def test_a_barrier_that_names_too_little_is_a_warning(
    driver: Driver, packs: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One between launches where a copy is among what it must wait for."""
    monkeypatch.setenv("GRISTMILL_NATIVE", "0")
    monkeypatch.setattr(stream.Stream, "count", lambda self: None)
    monkeypatch.setattr(stream, "LATEST_SECONDS", 1e9)
    device = driver.open()
    pack = gristmill.load(packs["push"], device=device)
    first, second = device.array(np.zeros(100, np.uint8)), device.array(np.zeros(100, np.uint8))
    device.transfers.copy(device.memory_of(first), device.memory_of(second), 100)
    assert device.stream.barriers.has_copies
    device.stream.barriers.has_copies = False
    pack.copy_bytes(second, first)
    with pytest.warns(VulkanValidationWarning, match="SYNC-HAZARD"):
        device.synchronize()
    device.close()
    assert not driver.instance.messages


def test_reading_reports_too(driver: Driver) -> None:
    device = driver.open()
    array = device.array(np.zeros(3))
    driver.instance.messages.append("something is wrong")
    with pytest.warns(VulkanValidationWarning, match="something is wrong"):
        array.numpy()
    device.close()


def test_names_and_labels(driver: Driver, packs: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRISTMILL_NATIVE", "0")
    calls: Counter[str] = Counter()
    named: list[str] = []
    find = Api._find

    def watched(api: Api, name: str) -> Any:
        function = find(api, name)
        if "DebugUtils" not in name or "Messenger" in name:
            return function

        def call(*args: Any) -> Any:
            calls[name] += 1
            if name == "vkSetDebugUtilsObjectNameEXT":
                named.append(api.text(args[1].pObjectName))
            return function(*args)

        return call

    monkeypatch.setattr(Api, "_find", watched)
    device = driver.open()
    pack = gristmill.load(packs["push"], device=device)
    array = device.array(np.zeros(100, np.int32))
    for _ in range(3):
        pack.double(array)
    device.synchronize()
    device.close()
    assert named == ["double_kernel"]
    assert calls["vkCmdBeginDebugUtilsLabelEXT"] == calls["vkCmdEndDebugUtilsLabelEXT"] == 3
