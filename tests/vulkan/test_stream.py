"""The queue of a device: what is submitted when, barriers where data flows, and what lives how long. Counted by calls."""

from __future__ import annotations

import threading
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import gristmill
from gristmill_vulkan import stream as stream_module
from gristmill_vulkan.api import Api
from gristmill_vulkan.device import VulkanDevice
from gristmill_vulkan.results import VulkanError

if TYPE_CHECKING:
    from pathlib import Path

    from tests.vulkan.conftest import Driver

    from gristmill.runtime.loaded_pack import LoadedPack


@pytest.fixture(autouse=True)
def python_recording(monkeypatch: pytest.MonkeyPatch) -> None:
    """Recording in Python, whose calls can be counted."""
    monkeypatch.setenv("GRISTMILL_NATIVE", "0")


class Calls:
    """The names of functions as they are called, with their arguments."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.made: list[tuple[str, tuple[Any, ...]]] = []
        call, run = Api.call, Api.run

        def called(api: Api, name: str, *args: Any) -> int:
            self.made.append((name, args))
            return call(api, name, *args)

        def ran(api: Api, name: str, *args: Any) -> Any:
            self.made.append((name, args))
            return run(api, name, *args)

        monkeypatch.setattr(Api, "call", called)
        monkeypatch.setattr(Api, "run", ran)

    @property
    def counts(self) -> Counter[str]:
        return Counter(name for name, _ in self.made)


def opened(driver: Driver, packs: dict[str, Path], without: frozenset[str] = frozenset()) -> tuple[VulkanDevice, Any]:
    device = driver.open(without)
    pack: LoadedPack = gristmill.load(packs["push"], device=device)
    return device, pack


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is submitted before somebody waits."""
    monkeypatch.setattr(stream_module, "LATEST_SECONDS", 1e9)
    monkeypatch.setattr(stream_module.Stream, "count", lambda self: setattr(self, "recorded", self.recorded + 1))


def test_a_pipeline_is_made_once_for_each_set_of_values(
    driver: Driver, packs: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    device, pack = opened(driver, packs)
    x, y = device.array(np.arange(64, dtype=np.int32)), device.empty((64,), "int32")
    calls = Calls(monkeypatch)
    for threads in (8, 16, 8, 16, 8):
        pack.reverse_blocks(threads, x, y)
    assert calls.counts["vkCreateComputePipelines"] == 2
    workers = [threading.Thread(target=pack.reverse_blocks, args=(32, x, y)) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert calls.counts["vkCreateComputePipelines"] == 3
    device.close()


@pytest.mark.usefixtures("held")
def test_barriers_only_where_data_flows(
    driver: Driver, packs: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    device, pack = opened(driver, packs)
    a, b, c = (device.array(np.zeros(64, np.uint8)) for _ in range(3))
    pack.copy_bytes(a, b)
    calls = Calls(monkeypatch)

    def barriers(x: Any, y: Any) -> int:
        before = calls.counts["vkCmdPipelineBarrier"]
        pack.copy_bytes(x, y)
        return calls.counts["vkCmdPipelineBarrier"] - before

    # Two that read the same; then one that reads what was written; then writes what was read; then writes it again.
    assert barriers(a, c) == 0
    assert barriers(b, c) == 1
    assert barriers(c, b) == 1
    assert barriers(a, b) == 1
    assert barriers(a, c) == 0
    device.synchronize()
    device.close()


LAUNCHES, COPIES = 0x800, 0x1000
BETWEEN_LAUNCHES = (LAUNCHES, LAUNCHES, 0x40, 0x20 | 0x40)
BETWEEN_ALL = (LAUNCHES | COPIES, LAUNCHES | COPIES, 0x40 | 0x1000, 0x20 | 0x40 | 0x800 | 0x1000)


@pytest.mark.usefixtures("held")
def test_barriers_name_only_what_there_is(
    driver: Driver, packs: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Launches wait for launches; copies that are among them, before or after, are named too."""
    device, pack = opened(driver, packs, frozenset(["mapped_arrays"]))
    a, b, c = (device.array(np.zeros(64, np.uint8)) for _ in range(3))
    device.synchronize()
    calls = Calls(monkeypatch)

    def barriers(action: Any, *args: Any) -> list[tuple[int, ...]]:
        calls.made.clear()
        action(*args)
        found = [args for name, args in calls.made if name == "vkCmdPipelineBarrier"]
        return [(args[1], args[2], args[5].srcAccessMask, args[5].dstAccessMask) for args in found]

    def copied(source: Any, target: Any) -> None:
        device.transfers.copy(device.memory_of(source), device.memory_of(target), 7)

    # What filled the arrays were copies; the first launch begins a submission.
    assert barriers(pack.copy_bytes, a, b) == [BETWEEN_ALL]
    assert barriers(pack.copy_bytes, b, c) == [BETWEEN_LAUNCHES]
    # A copy of what no launch used since the last barrier, which did not stop it.
    assert barriers(copied, a, device.empty((64,), "uint8")) == [BETWEEN_ALL]
    assert barriers(copied, a, device.empty((64,), "uint8")) == []
    assert barriers(copied, a, b) == []
    assert barriers(pack.copy_bytes, b, c) == [BETWEEN_ALL]
    assert barriers(pack.copy_bytes, c, a) == [BETWEEN_LAUNCHES]
    assert barriers(copied, a, b) == [BETWEEN_ALL]
    device.synchronize()
    assert barriers(pack.copy_bytes, b, c) == [BETWEEN_ALL]
    device.synchronize()
    # What begins a submission does not know what comes.
    assert barriers(copied, b, c) == [BETWEEN_LAUNCHES, BETWEEN_ALL]
    device.synchronize()
    device.close()


@pytest.mark.usefixtures("held")
def test_barriers_that_were_lost(driver: Driver, packs: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """After a submission that failed the next barrier waits for all that was before, also for copies."""
    device, pack = opened(driver, packs)
    a, b, c = (device.array(np.zeros(64, np.uint8)) for _ in range(3))
    device.transfers.copy(device.memory_of(a), device.memory_of(b), 7)
    device.synchronize()
    pack.copy_bytes(b, c)
    driver.instance.api.hook.before = lambda name: -2 if name == "vkQueueSubmit" else 0
    with pytest.raises(VulkanError):
        device.synchronize()
    driver.instance.api.hook.before = None
    calls = Calls(monkeypatch)
    pack.copy_bytes(b, c)
    first = next(args for name, args in calls.made if name == "vkCmdPipelineBarrier")
    assert first[1] == first[2] == LAUNCHES | COPIES
    device.synchronize()
    device.close()


@pytest.mark.usefixtures("held")
def test_a_submission_waits_for_the_one_before_and_ends_with_a_barrier_to_the_host(
    driver: Driver, packs: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    device, pack = opened(driver, packs)
    array = device.array(np.zeros(64, np.int32))
    pack.double(array)
    device.synchronize()
    calls = Calls(monkeypatch)
    pack.double(array)
    device.synchronize()
    names = [name for name, _ in calls.made if name.startswith(("vkCmd", "vkBegin", "vkEnd", "vkQueue"))]
    assert [name for name in names if "DebugUtils" not in name] == [
        "vkBeginCommandBuffer",
        "vkCmdPipelineBarrier",
        "vkCmdBindPipeline",
        "vkCmdPushConstants",
        "vkCmdPushDescriptorSetKHR",
        "vkCmdDispatch",
        "vkCmdPipelineBarrier",
        "vkEndCommandBuffer",
        "vkQueueSubmit",
    ]
    last = [args for name, args in calls.made if name == "vkCmdPipelineBarrier"][-1]
    host_stage, host_read = 0x4000, 0x2000
    assert last[2] == host_stage
    assert last[5].dstAccessMask == host_read
    device.close()


def test_an_idle_device_gets_its_work_at_once(driver: Driver, packs: dict[str, Path]) -> None:
    device, pack = opened(driver, packs)
    array = device.array(np.zeros(64, np.int32))
    pack.double(array)
    # Nobody waits, and it runs all the same.
    until = time.monotonic() + 30
    while device.stream.completed == 0 and time.monotonic() < until:
        with device._lock:
            device.stream.poll()
        time.sleep(0.001)
    assert device.stream.completed == 1
    device.close()


def test_work_is_submitted_by_size(driver: Driver, packs: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_module, "_LONGEST_BATCH_SECONDS", 1e9)
    monkeypatch.setattr(stream_module, "LATEST_SECONDS", 1e9)
    monkeypatch.setattr(stream_module.Stream, "poll", lambda self: None)
    device, pack = opened(driver, packs)
    array = device.array(np.zeros(64, np.int32))
    for _ in range(1 + 2 * stream_module.LARGEST_BATCH + 5):
        pack.double(array)
    assert device.stream.next_number == 4
    assert device.stream.recorded == 5
    monkeypatch.undo()
    device.synchronize()
    device.close()


def test_work_is_submitted_by_time(driver: Driver, packs: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_module, "_LONGEST_BATCH_SECONDS", 0.0)
    monkeypatch.setattr(stream_module.Stream, "poll", lambda self: None)
    device, pack = opened(driver, packs)
    array = device.array(np.zeros(64, np.int32))
    for _ in range(3):
        pack.double(array)
    assert device.stream.next_number == 4
    monkeypatch.undo()
    device.synchronize()
    device.close()


def test_descriptor_sets_are_one_a_launch_from_pools_that_are_used_again(
    driver: Driver, packs: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    device, pack = opened(driver, packs, frozenset(["VK_KHR_push_descriptor"]))
    array = device.array(np.zeros(64, np.int32))
    calls = Calls(monkeypatch)
    for _ in range(4):
        for _ in range(100):
            pack.double(array)
        device.synchronize()
    bound, seen = 0, set[int]()
    for name, args in calls.made:
        if name == "vkQueueSubmit":
            seen.clear()
        elif name == "vkCmdBindDescriptorSets":
            bound += 1
            found = int(device.logical.api.ffi.cast("uintptr_t", args[5][0]))
            assert found not in seen
            seen.add(found)
    assert bound == 400
    assert calls.counts["vkAllocateDescriptorSets"] == 400
    assert 2 <= calls.counts["vkCreateDescriptorPool"] <= 40
    device.close()


@pytest.mark.usefixtures("held")
def test_a_full_pool_makes_another(driver: Driver, packs: dict[str, Path]) -> None:
    device, pack = opened(driver, packs, frozenset(["VK_KHR_push_descriptor"]))
    array = device.array(np.zeros(64, np.int32))
    refused = Counter[str]()

    def full(name: str) -> int:
        refused[name] += name == "vkAllocateDescriptorSets"
        return -1000069000 if name == "vkAllocateDescriptorSets" and refused[name] % 3 == 2 else 0

    driver.instance.api.hook.before = full
    for _ in range(10):
        pack.double(array)
    driver.instance.api.hook.before = None
    assert set(array.numpy().tolist()) == {1023}
    device.close()


def test_what_failed_is_said_with_what_was_lost(driver: Driver, packs: dict[str, Path]) -> None:
    device, pack = opened(driver, packs)
    array = device.array(np.zeros(64, np.int32))
    driver.instance.api.hook.before = lambda name: -2 if name == "vkQueueSubmit" else 0
    with pytest.raises(VulkanError, match=r"GM0930.*1 queued launches and copies have not run: vkQueueSubmit gave"):
        pack.double(array)
    driver.instance.api.hook.before = None
    pack.double(array)
    assert set(array.numpy().tolist()) == {1}
    device.close()


def test_a_thread_that_waits_stops_no_other(
    driver: Driver, packs: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    device, pack = opened(driver, packs)
    array, other = device.array(np.zeros(64, np.int32)), device.array(np.zeros(64, np.int32))
    pack.double(other)
    device.synchronize()
    is_waiting, may_end = threading.Event(), threading.Event()
    wait = stream_module.Stream._wait_for

    def slow(self: Any, fence: Any) -> None:
        if threading.current_thread() is waiter:
            is_waiting.set()
            assert may_end.wait(60)
        wait(self, fence)

    monkeypatch.setattr(stream_module.Stream, "_wait_for", slow)
    monkeypatch.setattr(stream_module.Stream, "poll", lambda self: None)
    pack.double(array)
    waiter = threading.Thread(target=device.synchronize)
    waiter.start()
    assert is_waiting.wait(60)
    monkeypatch.setattr(stream_module.Stream, "poll", poll)
    for _ in range(200):
        pack.double(other)
    assert other.numpy()[0] == -1
    assert waiter.is_alive()
    may_end.set()
    waiter.join()
    assert array.numpy()[0] == 1
    device.close()


poll = stream_module.Stream.poll


def test_actions_that_raise_leave_nothing_half_done(driver: Driver, packs: dict[str, Path]) -> None:
    device, pack = opened(driver, packs)
    array = device.array(np.zeros(64, np.int32))
    done: list[int] = []

    def fails() -> None:
        raise ZeroDivisionError

    with device._lock:
        device.stream.commands()
        device.stream.when_done(fails)
        device.stream.when_done(lambda: done.append(1))
    with pytest.raises(ZeroDivisionError):
        device.synchronize()
    pack.double(array)
    assert array.numpy()[0] == 1
    assert done == [1]
    device.close()
