"""The cache of compiled pipelines: files of this device and driver count, whole ones, and nothing else."""

from __future__ import annotations

import dataclasses
import multiprocessing
import os
import stat
import struct
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

import gristmill
from gristmill_vulkan import pipeline_cache
from gristmill_vulkan.pipeline_cache import PipelineCache, cache_path, packed, unpacked

if TYPE_CHECKING:
    from tests.vulkan.conftest import Driver

    from gristmill_vulkan.device import VulkanDevice
    from gristmill_vulkan.physical import PhysicalDevice


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GRISTMILL_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache" / "vulkan"


def driver_data(physical: PhysicalDevice, payload: bytes) -> bytes:
    """What a driver that keeps pipelines gives."""
    return struct.pack("<IIII16s", 32, 1, physical.vendor, physical.identity, physical.cache_uuid) + payload


def test_round_trip(driver: Driver) -> None:
    data = driver_data(driver.physical, b"pipelines")
    assert unpacked(packed(data), driver.physical) == data


def test_a_damaged_file_is_none(driver: Driver) -> None:
    good = packed(driver_data(driver.physical, bytes(range(100))))
    for size in range(len(good)):
        assert unpacked(good[:size], driver.physical) == b""
    for place in range(len(good)):
        bad = bytearray(good)
        bad[place] ^= 0x41
        assert unpacked(bytes(bad), driver.physical) == b""
    assert unpacked(good + b"x", driver.physical) == b""


@pytest.mark.parametrize("field", ["vendor", "identity", "cache_uuid"])
def test_a_file_of_another_device_is_none(driver: Driver, field: str) -> None:
    data = packed(driver_data(driver.physical, b"pipelines"))
    other = {"vendor": 1, "identity": 1, "cache_uuid": bytes(16)}[field]
    assert unpacked(data, dataclasses.replace(driver.physical, **{field: other})) == b""


def test_the_name_tells_driver_versions_apart(driver: Driver) -> None:
    names = {cache_path(dataclasses.replace(driver.physical, driver_version=version)) for version in (1, 2)}
    assert len(names) == 2
    assert all(os.path.dirname(name).endswith("vulkan") for name in names)


class Kept(PipelineCache):
    """The cache of a driver that gives what the test says."""

    content = b""
    given: bytes = b""
    merged: tuple[bytes, ...] = ()

    def _data(self, cache: object) -> bytes:
        return driver_data(self.device.physical, self.content) if self.content else b""

    def _new(self, data: bytes) -> object:
        self.given = data
        return super()._new(b"")

    def _data_with(self, data: bytes) -> bytes:
        self.merged += (data,)
        return self._data(self.handle)


def test_what_was_saved_is_given_to_the_driver(gpu: VulkanDevice, folder: Path) -> None:
    first = Kept(gpu.logical)
    assert first.given == b""
    first.content = b"one"
    # Nothing new: nothing written.
    first.save()
    assert not folder.exists()
    first._unsaved = 1
    first.close()
    (path,) = folder.iterdir()
    second = Kept(gpu.logical)
    assert second.given == driver_data(gpu.physical, b"one")
    # Another process writes meanwhile.
    path.write_bytes(packed(driver_data(gpu.physical, b"two")))
    second.content = b"three"
    second._unsaved = 1
    second.save()
    assert second.merged == (driver_data(gpu.physical, b"two"),)
    assert unpacked(path.read_bytes(), gpu.physical) == driver_data(gpu.physical, b"three")
    assert [each.name for each in folder.iterdir()] == [path.name]
    second.close()


def test_it_is_saved_when_there_are_some(gpu: VulkanDevice, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline_cache, "name_object", lambda *_: None)
    cache = Kept(gpu.logical)
    cache.content = b"one"
    for _ in range(31):
        cache.note(None, "f")
    assert not folder.exists()
    cache.note(None, "f")
    assert folder.exists()
    cache.close()


def test_files_that_are_too_large(gpu: VulkanDevice, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline_cache, "LARGEST_FILE", 200)
    cache = Kept(gpu.logical)
    cache.content, cache._unsaved = bytes(500), 1
    cache.save()
    assert not folder.exists()
    cache.close()
    folder.mkdir(parents=True)
    Path(cache.path).write_bytes(packed(driver_data(gpu.physical, bytes(500))))
    found = Kept(gpu.logical)
    assert found.given == b""
    found.close()


def test_failing_to_write_is_silent(gpu: VulkanDevice, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.write_text("a file where the folder should be")
    cache = Kept(gpu.logical)
    cache.content, cache._unsaved = b"one", 1
    cache.close()
    assert stat.S_ISREG(folder.stat().st_mode)


def test_it_can_be_switched_off(driver: Driver, folder: Path, packs: dict[str, Path]) -> None:
    device = driver.open(frozenset(["pipeline_cache"]))
    assert device.cache.path == ""
    pack = gristmill.load(packs["push"], device=device)
    array = device.array(np.zeros(3, np.int32))
    pack.double(array)
    device.close()
    assert not folder.exists()


def test_the_real_cache_of_the_driver(driver: Driver, packs: dict[str, Path]) -> None:
    for _ in range(2):
        device = driver.open()
        assert device.cache.path.startswith(os.environ["GRISTMILL_CACHE_DIR"])
        data = device.cache._data(device.cache.handle)
        assert len(data) >= 32
        assert unpacked(packed(data), driver.physical) == data
        assert unpacked(packed(device.cache._data_with(data)), driver.physical)
        pack = gristmill.load(packs["push"], device=device)
        array = device.array(np.zeros(3, np.int32))
        pack.double(array)
        assert array.numpy().tolist() == [1, 1, 1]
        device.close()
    driver.instance.report()


def _write_often(path: str, content: bytes) -> None:
    from gristmill.files import replace_file

    for _ in range(50):
        replace_file(path, content, follow_links=False)


def test_several_processes_write_whole_files(driver: Driver, folder: Path) -> None:
    folder.mkdir(parents=True)
    path = cache_path(driver.physical)
    contents = [packed(driver_data(driver.physical, bytes([number]) * 100000)) for number in range(2)]
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_write_often, args=(path, content)) for content in contents]
    for writer in writers:
        writer.start()
    seen = 0
    while any(writer.is_alive() for writer in writers):
        if os.path.exists(path):
            seen += 1
            assert unpacked(Path(path).read_bytes(), driver.physical) != b""
    for writer in writers:
        writer.join()
        assert writer.exitcode == 0
    assert seen
