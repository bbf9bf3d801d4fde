"""Work that is recorded and then left is submitted by itself: soon, by a thread that costs and holds nothing."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import gristmill
from gristmill.errors import GristmillError
from gristmill_vulkan import stream as stream_module
from gristmill_vulkan.device import VulkanDevice
from gristmill_vulkan.results import DEVICE_LOST, VulkanError

if TYPE_CHECKING:
    from pathlib import Path

    from tests.vulkan.conftest import Driver

FAR = 1 << 62
LATEST = stream_module.LATEST_SECONDS


def until(condition: Callable[[], bool]) -> None:
    """Wait for something that another thread does."""
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.0005)


@pytest.fixture
def timed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is submitted before somebody waits, but for the timer."""
    monkeypatch.setattr(stream_module.Stream, "count", lambda self: setattr(self, "recorded", self.recorded + 1))
    monkeypatch.setattr(stream_module, "_LONGEST_BATCH_SECONDS", 1e9)
    monkeypatch.setattr(stream_module, "_SHORTEST_BATCH_SECONDS", 1e9)


def is_done(device: VulkanDevice) -> bool:
    """Whether the driver has done all that was submitted; nothing but its fence is looked at."""
    with device._lock:
        fence = device.stream.last_fence
        return fence is not None and device.stream._status(fence) == 0


@pytest.mark.usefixtures("timed")
@pytest.mark.parametrize("native", ["0", "1"], ids=["python", "native"])
def test_a_burst_is_submitted_by_itself(
    native: str, driver: Driver, packs: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRISTMILL_NATIVE", native)
    device = driver.open()
    pack = gristmill.load(packs["address"], device=device)
    array = device.array(np.zeros(64, np.int32))
    pack.double(array)
    device.synchronize()
    for burst in range(1, 4):
        number = device.stream.next_number
        for _ in range(5):
            pack.double(array)
        until(lambda number=number: device.stream.next_number > number)  # type: ignore[misc]
        until(lambda: is_done(device))
        assert not device.stream.is_recording, burst
    if device.native is not None:
        assert device.native.launches > 0
    assert array.numpy()[0] == (1 << 16) - 1
    device.close()


def test_soon(gpu: VulkanDevice, packs: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Not at once, as other launches may follow, and not later than such a thread can do it."""
    taken = []
    flush = stream_module.Stream.flush

    def timed_flush(stream: Any) -> None:
        if stream.is_recording and threading.current_thread() is stream.timer._thread:
            taken.append(time.perf_counter() - stream._begun)
        flush(stream)

    monkeypatch.setattr(stream_module.Stream, "flush", timed_flush)
    for _ in range(20):
        with gpu._lock:
            gpu.stream.commands()
        until(lambda: not gpu.stream.is_recording)
    assert len(taken) == 20
    assert min(taken) >= LATEST
    # Of a machine that is busy the best of many tells.
    assert min(taken) < 10 * LATEST


def test_a_thread_only_where_something_is_recorded(driver: Driver, packs: dict[str, Path]) -> None:
    before = set(threading.enumerate())
    device = driver.open()
    pack = gristmill.load(packs["push"], device=device)
    array = device.array(np.zeros(10, np.int32))
    assert not device.stream.timer.is_started
    assert set(threading.enumerate()) == before
    pack.double(array)
    started = set(threading.enumerate()) - before
    assert [thread.name for thread in started] == ["gristmill vulkan:0"]
    for _ in range(3):
        pack.double(array)
        device.synchronize()
    assert set(threading.enumerate()) - before == started
    device.close()
    assert set(threading.enumerate()) == before


def test_it_sleeps(driver: Driver, packs: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing is recorded it does not wake, and where much is only once in the time after which work is late."""
    woken = 0
    submit_late = VulkanDevice.submit_late

    def counted(device: VulkanDevice) -> float | None:
        nonlocal woken
        woken += 1
        return submit_late(device)

    monkeypatch.setattr(VulkanDevice, "submit_late", counted)
    device = driver.open()
    pack = gristmill.load(packs["push"], device=device)
    array = device.array(np.zeros(10, np.int32))
    began = time.perf_counter()
    for _ in range(30):
        pack.double(array)
        device.synchronize()
    # Once as it is started, then for each time, and once more for a batch that is younger than it slept.
    assert woken <= 2 * (2 + (time.perf_counter() - began) / LATEST)
    until(lambda: not device.stream.timer._is_armed)
    time.sleep(20 * LATEST)
    settled = woken
    time.sleep(100 * LATEST)
    assert woken == settled
    device.close()


@pytest.mark.usefixtures("timed")
def test_a_fault_is_told_at_the_next_use(
    gpu: VulkanDevice, packs: dict[str, Path], capfd: pytest.CaptureFixture[str]
) -> None:
    pack = gristmill.load(packs["push"], device=gpu)
    array = gpu.array(np.zeros(10, np.int32))
    uses: list[Callable[[], Any]] = [lambda: pack.double(array), gpu.synchronize, array.numpy]
    for use in uses:
        gpu.instance.api.hook.before = lambda name: -2 if name == "vkQueueSubmit" else 0
        pack.double(array)
        until(lambda: gpu._late_fault is not None)
        gpu.instance.api.hook.before = None
        with pytest.raises(VulkanError, match=r"GM0930.*1 queued launches and copies have not run: vkQueueSubmit gave"):
            use()
        gpu.synchronize()
        assert array.numpy()[0] == 0
    pack.double(array)
    assert array.numpy()[0] == 1
    assert capfd.readouterr().err == ""


@pytest.mark.usefixtures("timed")
def test_a_fault_while_somebody_waits(gpu: VulkanDevice, packs: dict[str, Path]) -> None:
    """Who has begun to wait already is told too, for what is waited for has not run."""
    pack = gristmill.load(packs["push"], device=gpu)
    array = gpu.array(np.zeros(10, np.int32))
    wait_for_all = gpu.stream.wait_for_all

    def late() -> None:
        gpu.instance.api.hook.before = lambda name: -2 if name == "vkQueueSubmit" else 0
        until(lambda: gpu._late_fault is not None)
        gpu.instance.api.hook.before = None
        wait_for_all()

    gpu.instance.api.hook.before = lambda name: -2 if name == "vkQueueSubmit" else 0
    pack.double(array)
    gpu.stream.wait_for_all = late  # type: ignore[method-assign]
    with pytest.raises(VulkanError, match="vkQueueSubmit"):
        gpu.synchronize()
    del gpu.stream.wait_for_all
    assert array.numpy()[0] == 0


@pytest.mark.usefixtures("timed")
def test_a_device_that_is_lost_meanwhile(
    driver: Driver, packs: dict[str, Path], capfd: pytest.CaptureFixture[str]
) -> None:
    device = driver.open()
    pack = gristmill.load(packs["push"], device=device)
    array = device.array(np.zeros(10, np.int32))
    driver.instance.api.hook.before = lambda name: DEVICE_LOST if name == "vkQueueSubmit" else 0
    pack.double(array)
    until(lambda: not device.is_usable)
    driver.instance.api.hook.before = None
    for _ in range(2):
        with pytest.raises(GristmillError, match=r"GM0934.*was lost"):
            pack.double(array)
    device.close()
    assert not device.stream.timer._thread.is_alive()  # type: ignore[union-attr]
    assert capfd.readouterr().err == ""


def test_a_device_that_nobody_holds_is_closed(driver: Driver, packs: dict[str, Path]) -> None:
    device = driver.open()
    pack = gristmill.load(packs["push"], device=device)
    array = device.array(np.zeros(10, np.int32))
    pack.double(array)
    found, parts = weakref.ref(device), device._parts
    until(lambda: not parts.timer._is_armed)  # type: ignore[union-attr]
    thread = parts.timer._thread  # type: ignore[union-attr]
    assert thread is not None
    assert thread.is_alive()
    del device, pack, array
    gc.collect()
    assert found() is None
    assert parts.is_closed
    assert not thread.is_alive()


def test_the_thread_is_the_last_to_hold_the_device(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then it closes the device itself, and ends."""
    inside, may_go_on = threading.Event(), threading.Event()

    def slow(_: VulkanDevice) -> None:
        inside.set()
        assert may_go_on.wait(60)

    monkeypatch.setattr(VulkanDevice, "submit_late", slow)
    device = driver.open()
    with device._lock:
        device.stream.commands()
    assert inside.wait(60)
    parts = device._parts
    del device
    gc.collect()
    assert not parts.is_closed
    may_go_on.set()
    parts.end()
    until(lambda: parts.is_closed)
    assert not parts.timer._thread.is_alive()  # type: ignore[union-attr]


def test_without_threads(driver: Driver, packs: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the process can have no more, all goes on as it can."""

    def start(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    device = driver.open()
    pack = gristmill.load(packs["push"], device=device)
    array = device.array(np.zeros(10, np.int32))
    for _ in range(10):
        pack.double(array)
    assert array.numpy()[0] == 1023
    assert not device.stream.timer.is_started
    device.close()
