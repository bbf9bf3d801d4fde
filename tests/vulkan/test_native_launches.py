"""Launches recorded by native support code: without Python, from several threads, and as Python records them."""

from __future__ import annotations

import ctypes
import gc
import os
import random
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import gristmill
from gristmill.errors import GristmillError
from gristmill_vulkan import stream as stream_module
from gristmill_vulkan.device import VulkanDevice
from gristmill_vulkan.native_recording import NativeRecording
from gristmill_vulkan.native_state import LAYOUT_VERSION, difference

if TYPE_CHECKING:
    from tests.vulkan.conftest import Driver

FORMS = ("push", "uniform", "address", "address_block")
FAR = 1 << 62


def recording_of(device: VulkanDevice) -> NativeRecording:
    assert device.native is not None, device.native_reason
    return device.native


@pytest.fixture(params=FORMS)
def loaded(request: pytest.FixtureRequest, gpu: VulkanDevice, packs: dict[str, Path]) -> Any:
    return gristmill.load(packs[request.param], device=gpu)


@pytest.fixture
def unsubmitted(gpu: VulkanDevice, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """Makes the device record, and submit nothing of it by itself: what is recorded waits for somebody."""
    monkeypatch.setattr(stream_module, "LATEST_SECONDS", 1e9)
    api, handle = gpu.logical.api, gpu.logical.handle
    fence = api.ffi.new("VkFence *")
    api.call("vkCreateFence", handle, api.new("VkFenceCreateInfo"), api.ffi.NULL, fence)

    def begin() -> None:
        with gpu._lock:
            gpu.stream.commands()
            # Memory for blocks of parameters, which Python gets.
            gpu.stream.parameters(b"", 4)
        state = recording_of(gpu).state
        state.deadline, state.batch = FAR, 1 << 30
        state.last_fence = int(api.ffi.cast("uintptr_t", fence[0]))

    yield begin
    gpu.synchronize()
    api.run("vkDestroyFence", handle, fence[0], api.ffi.NULL)


def frames_during(action: Callable[[], None]) -> list[str]:
    """The Python functions that are entered, beside the action itself."""
    entered: list[str] = []

    def profile(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            entered.append(frame.f_code.co_name)

    sys.setprofile(profile)
    try:
        action()
    finally:
        sys.setprofile(None)
    return entered[1:]


def test_no_python_for_a_launch(loaded: Any, gpu: VulkanDevice, unsubmitted: Callable[[], None]) -> None:
    x, y = gpu.array(np.arange(100, dtype=np.float32)), gpu.array(np.zeros(100, np.float32))
    saxpy = loaded.saxpy
    for _ in range(2):
        saxpy(0.0, x, y)
    gpu.synchronize()
    unsubmitted()
    before = recording_of(gpu).launches

    def launch() -> None:
        for _ in range(200):
            saxpy(1.0, x, y)

    assert frames_during(launch) == []
    assert recording_of(gpu).launches == before + 200
    np.testing.assert_array_equal(y.numpy(), 200 * np.arange(100, dtype=np.float32))


def test_python_for_a_launch_where_it_is_switched_off(
    driver: Driver, packs: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What counts frames does count them."""
    monkeypatch.setenv("GRISTMILL_NATIVE", "0")
    device = driver.open()
    assert device.native is None
    assert device.native_reason == "GRISTMILL_NATIVE switches it off"
    pack = gristmill.load(packs["push"], device=device)
    x = device.array(np.zeros(10, np.int32))
    double = pack.double
    assert len(frames_during(lambda: double(x))) > 5
    device.close()


def test_launches_are_recorded_by_it(loaded: Any, gpu: VulkanDevice) -> None:
    array = gpu.array(np.zeros(1000, np.int32))
    before = recording_of(gpu).launches
    for number in range(400):
        loaded.fill(number, array)
    # How many are the first of a submission, and so recorded in Python, depends on how fast the device is.
    assert recording_of(gpu).launches > before
    assert set(array.numpy().tolist()) == {399}


def test_other_blocks_and_shared_memory_get_their_own_pipelines(loaded: Any, gpu: VulkanDevice) -> None:
    """What changes from launch to launch is left to Python, and what stays is not."""
    given = gpu.array(np.arange(192, dtype=np.int32))
    results = [gpu.empty((192,), "int32") for _ in range(60)]
    blocks = [(32, 32, 64)[place % 3] for place in range(60)]
    for threads, result in zip(blocks, results, strict=True):
        loaded.reverse_blocks(threads, given, result)
    for threads, result in zip(blocks, results, strict=True):
        expected = np.arange(192).reshape(-1, threads)[:, ::-1].reshape(-1)
        np.testing.assert_array_equal(result.numpy(), expected)


def test_barriers_of_both_ways_together(loaded: Any, gpu: VulkanDevice) -> None:
    """Launches that Python records, copies, and launches that it does not, on the same arrays in turn."""
    native = recording_of(gpu)
    array, other = gpu.array(np.zeros(3000, np.int32)), gpu.array(np.zeros(3000, np.int32))
    expected = 0
    state = loaded.double
    for number in range(200):
        state(array)
        state(other)
        expected = expected * 2 + 1
        if number % 5 == 0:
            # The next launch finds no pipeline, and goes through Python.
            for kernel in gpu.kernels():
                assert kernel.native_state is not None
                kernel.native_state[0].pipeline = 0
        if number % 28 == 0:
            assert set(array.numpy().tolist()) == {expected}
            array, expected = gpu.array(np.zeros(3000, np.int32)), 0
    assert set(array.numpy().tolist()) == {expected}
    assert native.launches > 0


def test_barriers_name_only_what_there_is(
    gpu: VulkanDevice, packs: dict[str, Path], unsubmitted: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Launches wait for launches, and the first after a copy for that too; a copy after them for all."""
    pack = gristmill.load(packs["address"], device=gpu)
    a, b = gpu.array(np.zeros(10, np.int32)), gpu.array(np.zeros(10, np.int32))
    pack.double(a)
    gpu.synchronize()
    native = recording_of(gpu)
    recorded: list[tuple[int, int, int, int]] = []
    kind = ctypes.CFUNCTYPE(None, *(ctypes.c_void_p, *[ctypes.c_uint32] * 4, ctypes.POINTER(ctypes.c_uint32)))

    def barrier(commands: int, before: int, after: int, flags: int, count: int, masks: Any) -> None:
        # Behind sType and pNext.
        recorded.append((before, after, masks[4], masks[5]))
        api = gpu.logical.api
        null, memory = api.ffi.NULL, api.new("VkMemoryBarrier", srcAccessMask=masks[4], dstAccessMask=masks[5])
        handle = api.ffi.cast("VkCommandBuffer", commands)
        api.run("vkCmdPipelineBarrier", handle, before, after, flags, count, memory, 0, null, 0, null)

    called = kind(barrier)
    unsubmitted()
    monkeypatch.setattr(gpu.stream, "count", lambda: None)
    gpu.transfers.copy(gpu.memory_of(a), gpu.memory_of(b), 4)
    unsubmitted()
    native.state.pipeline_barrier = ctypes.cast(called, ctypes.c_void_p).value or 0
    before = native.launches
    for _ in range(3):
        pack.double(b)
    assert native.launches == before + 3
    launches, copies = 0x800, 0x1000
    between_launches = (launches, launches, 0x40, 0x60)
    between_all = (launches | copies, launches | copies, 0x1040, 0x1860)
    assert recorded == [between_all, between_launches, between_launches]
    with gpu._lock:
        assert gpu.stream.barriers.stopped_launches_only
        assert not gpu.stream.barriers.has_copies
    assert b.numpy().tolist() == [15] + [7] * 9


def random_work(device: VulkanDevice, pack: Any, seed: int, count: int) -> list[str]:
    """Launches, arrays made and let go, results read, at random; what was wrong."""
    chosen = random.Random(seed)
    arrays: list[tuple[Any, np.ndarray]] = []
    wrong = []
    for _ in range(count):
        what = chosen.randrange(12)
        if what == 0 or not arrays:
            values = np.arange(chosen.randrange(1, 2000), dtype=np.int32)
            arrays.append((device.array(values), values))
        elif what == 1:
            array, expected = arrays.pop(chosen.randrange(len(arrays)))
            if not np.array_equal(array.numpy(), expected):
                wrong.append(f"seed {seed}: {array.numpy()} is not {expected}")
        elif what == 2 and len(arrays) > 6:
            arrays.pop(chosen.randrange(len(arrays)))
        elif what < 7:
            place, value = chosen.randrange(len(arrays)), chosen.randrange(1 << 20)
            pack.fill(value, arrays[place][0])
            arrays[place] = (arrays[place][0], np.full_like(arrays[place][1], value))
        else:
            place = chosen.randrange(len(arrays))
            pack.double(arrays[place][0])
            arrays[place] = (arrays[place][0], arrays[place][1] * 2 + 1)
    for array, expected in arrays:
        if not np.array_equal(array.numpy(), expected):
            wrong.append(f"seed {seed}: {array.numpy()} is not {expected}")
    return wrong


@pytest.mark.parametrize("release_gil", [False, True])
def test_threads(loaded: Any, gpu: VulkanDevice, release_gil: bool) -> None:
    """Also where a call lets other threads run: then several record at once, and all but one go through Python."""
    gpu.synchronize()
    gc.collect()
    gpu.synchronize()
    before = gpu.memory.count
    for name in ("fill", "double"):
        getattr(loaded, name).release_gil = release_gil
    wrong: list[str] = []

    def run(seed: int) -> None:
        try:
            wrong.extend(random_work(gpu, loaded, seed, 250))
        except BaseException as error:
            wrong.append(f"seed {seed}: {error!r}")

    seeds = [random.randrange(1 << 30) for _ in range(4)]
    print("seeds", seeds)
    threads = [threading.Thread(target=run, args=(seed,)) for seed in seeds]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    gc.collect()
    gpu.synchronize()
    assert gpu.memory.count == before
    assert recording_of(gpu).launches > 0


def test_a_lost_device(gpu: VulkanDevice, packs: dict[str, Path]) -> None:
    """After the loss nothing is recorded, however it would have been."""
    pack = gristmill.load(packs["address"], device=gpu)
    array = gpu.array(np.zeros(10, np.int32))

    def many() -> None:
        for _ in range(1000):
            pack.double(array)

    many()
    hook = gpu.instance.api.hook
    hook.before = lambda name: -4 if name in ("vkQueueSubmit", "vkGetFenceStatus", "vkWaitForFences") else 0
    try:
        with pytest.raises(GristmillError, match="DEVICE_LOST"):
            many()
        before = recording_of(gpu).launches
        for _ in range(3):
            with pytest.raises(GristmillError, match="GM0934"):
                pack.double(array)
        assert recording_of(gpu).launches == before
    finally:
        hook.before = None


def test_a_closed_device(driver: Driver, packs: dict[str, Path], unsubmitted: Callable[[], None]) -> None:
    device = driver.open()
    pack = gristmill.load(packs["address"], device=device)
    array = device.array(np.zeros(10, np.int32))
    for _ in range(50):
        pack.double(array)
    device.close()
    with pytest.raises(GristmillError, match="GM0934"):
        pack.double(array)


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_fork_records_nothing(gpu: VulkanDevice, packs: dict[str, Path], unsubmitted: Callable[[], None]) -> None:
    pack = gristmill.load(packs["address"], device=gpu)
    array = gpu.array(np.zeros(10, np.int32))
    pack.double(array)
    gpu.synchronize()
    unsubmitted()
    assert recording_of(gpu).state.commands
    child = os.fork()
    if not child:
        status = 1
        try:
            pack.double(array)
        except GristmillError as error:
            status = 0 if "GM0934" in str(error) else 2
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    pack.double(array)
    assert array.numpy()[0] == 3


def test_code_for_another_layout(driver: Driver, packs: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gristmill_vulkan.native_state.LAYOUT_VERSION", LAYOUT_VERSION + 1)
    device = driver.open()
    assert device.native is None
    assert f"is for another version: it is of layout {LAYOUT_VERSION}" in device.native_reason
    pack = gristmill.load(packs["push"], device=device)
    array = device.array(np.zeros(10, np.int32))
    pack.double(array)
    assert array.numpy()[0] == 1
    device.close()


def test_differences_of_layouts() -> None:
    assert "layout 7" in difference('{"version": 7}')
    assert (
        difference(f'{{"version": {LAYOUT_VERSION}, "structures": {{}}}}')
        == "its structure `allocation` is another one"
    )


def test_a_command_buffer_is_begun_ahead_and_not_submitted_empty(loaded: Any, gpu: VulkanDevice) -> None:
    """The launch after a submission finds one, and blocks of parameters in memory find room; waiting sends none of it."""
    array = gpu.array(np.zeros(10, np.int32))
    for number in range(3):
        loaded.fill(number, array)
    assert recording_of(gpu).state.commands
    gpu.synchronize()
    number, kept = gpu.stream.next_number, gpu.memory.count
    for _ in range(3):
        gpu.synchronize()
    assert (gpu.stream.next_number, gpu.memory.count) == (number, kept)
    assert not gpu.stream.is_recording
    assert array.numpy()[0] == 2
    gpu.synchronize()
    assert gpu.memory.count == kept
