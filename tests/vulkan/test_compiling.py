"""Threads that compile pipelines: at once, while others work, and with several devices."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import gristmill
from gristmill_vulkan.api import Api
from gristmill_vulkan.device import VulkanDevice
from gristmill_vulkan.pipeline_cache import PipelineCache

if TYPE_CHECKING:
    from pathlib import Path

    from tests.vulkan.conftest import Driver

COMPILE = "vkCreateComputePipelines"
WAIT = 60


def in_threads(*actions: Callable[[], Any]) -> None:
    """Run them at once; what one raises is raised."""
    faults: list[BaseException] = []

    def guarded(action: Callable[[], Any]) -> None:
        try:
            action()
        except BaseException as fault:
            faults.append(fault)

    threads = [threading.Thread(target=guarded, args=(action,)) for action in actions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if faults:
        raise faults[0]


def hooked(driver: Driver, monkeypatch: pytest.MonkeyPatch, before: Callable[[], Any]) -> None:
    """Do something before each pipeline is compiled."""

    def called(name: str) -> int:
        if name == COMPILE:
            before()
        return 0

    monkeypatch.setattr(driver.instance.api.hook, "before", called)


def test_two_threads_compile_at_once(
    driver: Driver, gpu: VulkanDevice, packs: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    pack = gristmill.load(packs["push"], device=gpu)
    first, second = gpu.array(np.zeros(64, np.int32)), gpu.array(np.zeros(64, np.int32))
    # Neither goes on before both are there.
    both = threading.Barrier(2)
    hooked(driver, monkeypatch, lambda: both.wait(WAIT))
    in_threads(lambda: pack.double(first), lambda: pack.fill(7, second))
    monkeypatch.undo()
    assert first.numpy().tolist() == [1] * 64
    assert second.numpy().tolist() == [7] * 64


def test_others_work_while_a_thread_compiles(
    driver: Driver, gpu: VulkanDevice, packs: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    pack = gristmill.load(packs["push"], device=gpu)
    first, second = gpu.array(np.zeros(64, np.int32)), gpu.array(np.zeros(64, np.int32))
    pack.double(first)
    compiling, may_end = threading.Event(), threading.Event()

    def before() -> None:
        compiling.set()
        assert may_end.wait(WAIT)

    hooked(driver, monkeypatch, before)

    def other() -> None:
        assert compiling.wait(WAIT)
        for _ in range(3):
            pack.double(first)
        assert first.numpy().tolist() == [15] * 64
        # Loading makes no pipeline, and needs nobody either.
        gristmill.load(packs["push"], device=gpu).double  # noqa: B018
        may_end.set()

    in_threads(lambda: pack.fill(7, second), other)
    monkeypatch.undo()
    assert second.numpy().tolist() == [7] * 64


def test_a_device_that_is_closed_while_a_thread_compiles(
    driver: Driver, packs: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    device = driver.open()
    pack = gristmill.load(packs["push"], device=device)
    array = device.array(np.zeros(64, np.int32))
    compiling, may_end = threading.Event(), threading.Event()

    def before() -> None:
        compiling.set()
        assert may_end.wait(WAIT)

    hooked(driver, monkeypatch, before)

    def close() -> None:
        assert compiling.wait(WAIT)
        threading.Timer(0.05, may_end.set).start()
        # Waits for the other thread: what it compiles with is there until then.
        device.close()

    def launch() -> None:
        with pytest.raises(gristmill.errors.GristmillError, match="GM0934"):
            pack.double(array)

    in_threads(launch, close)


def test_nothing_is_merged_into_the_cache_that_threads_compile_with(
    gpu: VulkanDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Vulkan has it that nobody else uses a cache while something is merged into it."""
    merged: list[Any] = []
    call = Api.call

    def called(api: Api, name: str, *args: Any) -> int:
        if name == "vkMergePipelineCaches":
            merged.append((args[1], args[3][0]))
        return call(api, name, *args)

    monkeypatch.setattr(Api, "call", called)
    cache = gpu.cache
    monkeypatch.setattr(PipelineCache, "_read", lambda self: cache._data(cache.handle))
    cache._kept = b"older"
    cache._unsaved = 1
    cache.save()
    ((into, from_),) = merged
    assert into != cache.handle
    assert from_ == cache.handle


def test_several_devices_in_several_threads(driver: Driver, packs: dict[str, Path]) -> None:
    """Each thread with a device of its own, all compiling the same kernels and more."""
    devices = [VulkanDevice(f"vulkan:{number}", driver.instance, driver.physical) for number in range(3)]
    loaded = [gristmill.load(packs[form], device=device) for device in devices for form in ("push", "address")]

    def work(number: int) -> None:
        device, pack = devices[number // 2], loaded[number]
        array = device.array(np.zeros(200, np.int32))
        for step in range(60):
            pack.fill(step * number, array)
            pack.double(array)
            if step % 20 == 19:
                assert set(array.numpy().tolist()) == {2 * step * number + 1}

    in_threads(*(lambda number=number: work(number) for number in range(6)))  # type: ignore[misc]
    for device in devices:
        device.synchronize()
        device.close()
