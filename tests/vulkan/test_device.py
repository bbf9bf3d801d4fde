"""A device as an object: closing, several at once, memory, what it says of itself."""

from __future__ import annotations

import gc
import os
import threading
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import gristmill
import gristmill_vulkan.plugin
from gristmill.errors import UserError
from gristmill.ir.dtype import INT32
from gristmill.plugin.registry import Registry
from gristmill.runtime.devices import Runtimes
from gristmill.runtime.dlpack import tensor_over
from gristmill_vulkan.device import VulkanDevice
from gristmill_vulkan.results import NOT_READY, DeviceGoneError, DeviceMemoryError, VulkanError

if TYPE_CHECKING:
    from pathlib import Path

    from tests.vulkan.conftest import Driver


def test_a_closed_device_says_so(driver: Driver, packs: dict[str, Path]) -> None:
    device = driver.open()
    pack = gristmill.load(packs["push"], device=device)
    array = device.array(np.zeros(4, np.int32))
    pack.double(array)
    device.close()
    device.close()
    assert device.is_closed
    assert not device.is_usable
    for use in (
        lambda: device.empty((1,), "int8"),
        lambda: device.array(np.zeros(1)),
        lambda: array.numpy(),
        lambda: pack.double(array),
        lambda: device.synchronize(),
        lambda: gristmill.load(packs["push"], device=device),
    ):
        with pytest.raises(DeviceGoneError, match=r"GM0934.*vulkan:0 was closed"):
            use()


def test_arrays_and_packs_that_outlive_their_device(driver: Driver, packs: dict[str, Path]) -> None:
    device = driver.open()
    kept = [gristmill.load(packs["push"], device=device), device.empty((5,), "int8")]
    device.close()
    kept.clear()
    gc.collect()


@pytest.mark.parametrize("without", [frozenset[str](), frozenset(["mapped_arrays"])], ids=["mapped", "staging"])
def test_closing_while_other_threads_use_it(driver: Driver, packs: dict[str, Path], without: frozenset[str]) -> None:
    """They get results that are right, or are told; whatever they are in the middle of."""
    for delay in range(12):
        device = driver.open(without, chunk_bytes=1 << 14)
        ready, faults = threading.Barrier(5), []

        def use(device: VulkanDevice = device, ready: threading.Barrier = ready, faults: Any = faults) -> None:
            ready.wait()
            try:
                while True:
                    pack = gristmill.load(packs["few_double"], device=device)
                    array = device.array(np.zeros(20000, np.int32))
                    pack.double(array)
                    copied = device.array(array)
                    assert (copied.numpy() == 1).all()
            except DeviceGoneError:
                pass
            except BaseException as fault:
                faults.append(fault)

        threads = [threading.Thread(target=use) for _ in range(4)]
        for thread in threads:
            thread.start()
        ready.wait()
        time.sleep(0.003 * delay)
        device.close()
        for thread in threads:
            thread.join()
        assert faults == []
    driver.instance.report()


def test_a_device_that_was_closed_is_opened_anew(driver: Driver) -> None:
    class Runtime:
        name = "vulkan"

        def probe(self) -> Any:
            from gristmill.plugin.protocols import DeviceDescription, Probe

            return Probe((DeviceDescription(0, "one"),))

        def open(self, index: int) -> VulkanDevice:
            return driver.open()

    runtimes = Runtimes.__new__(Runtimes)
    Runtimes.__init__(runtimes, None)  # type: ignore[arg-type]
    first = runtimes.open(Runtime(), 0)  # type: ignore[arg-type]
    assert runtimes.open(Runtime(), 0) is first  # type: ignore[arg-type]
    first.close()  # type: ignore[attr-defined]
    second = runtimes.open(Runtime(), 0)  # type: ignore[arg-type]
    assert second is not first
    assert second.array(np.arange(3)).numpy().tolist() == [0, 1, 2]
    second.close()  # type: ignore[attr-defined]


@pytest.mark.parametrize("host", ["compiled", "interpreted"])
@pytest.mark.parametrize("without", [frozenset[str](), frozenset(["address"])])
def test_an_array_of_another_vulkan_device(
    driver: Driver, packs: dict[str, Path], without: frozenset[str], host: str
) -> None:
    first = driver.open(without)
    second = VulkanDevice("vulkan:1", driver.instance, driver.physical, without)
    # Without a runtime for the host's processor the executor runs host functions.
    runtimes = Runtimes(Registry.of([gristmill_vulkan.plugin])) if host == "interpreted" else None
    pack = gristmill.load(packs["push"], device=first, runtimes=runtimes)
    foreign = second.array(np.zeros(4, np.int32))
    wrong = r"double: argument `x` \(number 1\) is an array of the Vulkan device 1, but .* on the Vulkan device 0"
    with pytest.raises(ValueError, match=wrong):
        pack.double(foreign)
    # Two devices may give the same addresses.
    own = first.array(np.zeros(4, np.int32))
    address = first.memory_of(own).address
    with pytest.raises(ValueError, match=wrong):
        pack.double(tensor_over(address, (4,), INT32, (7, 1), own))
    pack.double(tensor_over(address, (4,), INT32, (7, 0), own))
    assert own.numpy().tolist() == [1] * 4
    # An address that is not the device's, whatever the number says.
    lying = tensor_over(second.memory_of(foreign).address, (4,), INT32, (7, 0), foreign)
    with pytest.raises(UserError, match=r"GM0923.*`x_data` an array of vulkan:1, and runs on vulkan:0"):
        pack.double(lying)
    # On the other device it is the other way round.
    there = gristmill.load(packs["push"], device=second, runtimes=runtimes)
    there.double(foreign)
    with pytest.raises(ValueError, match=r"is an array of the Vulkan device 0, but .* on the Vulkan device 1"):
        there.double(own)
    assert foreign.numpy().tolist() == [1] * 4
    # A copy is made through the host.
    assert first.array(foreign).numpy().tolist() == [1] * 4
    first.close()
    second.close()


def test_memory_that_queued_work_holds_is_waited_for(driver: Driver, packs: dict[str, Path]) -> None:
    """An array that finds no memory gets that of arrays which were let go, once their work is done."""
    device = driver.open(block_bytes=1 << 20)
    pack = gristmill.load(packs["push"], device=device)
    array = device.array(np.zeros(1000, np.int32))
    refused = 0

    def first_refused(name: str) -> int:
        nonlocal refused
        if name == "vkGetFenceStatus" and not refused:
            return NOT_READY
        if name == "vkAllocateMemory" and not refused:
            refused += 1
            return -2
        return 0

    driver.instance.api.hook.before = first_refused
    try:
        pack.double(array)
        del array
        large = device.empty((1 << 20,), "int32")
    finally:
        driver.instance.api.hook.before = None
    assert refused == 1
    pack.fill(3, large)
    assert large.numpy().sum() == 3 << 20
    device.close()


def test_a_failure_while_host_code_takes_memory(driver: Driver, packs: dict[str, Path]) -> None:
    device = driver.open()
    pack = gristmill.load(packs["push"], device=device)
    x, y = device.array(np.zeros(8, np.float32)), device.empty((8,), "float32")
    pack.with_temporary(x, y)
    taken = device.stream.poll

    def fails() -> None:
        raise VulkanError("vkGetFenceStatus", -2)

    device.stream.poll = fails  # type: ignore[method-assign]
    with pytest.raises(MemoryError):
        pack.with_temporary(x, y)
    device.stream.poll = taken  # type: ignore[method-assign]
    pack.with_temporary(x, y)
    assert y.numpy().tolist() == [1.0] * 8
    device.close()


def test_no_memory(gpu: VulkanDevice) -> None:
    with pytest.raises(DeviceMemoryError, match=r"GM0931.*vulkan:0 has no memory for 1024.0 GiB more"):
        gpu.empty((1 << 38,), "float32")
    assert gpu.array(np.arange(3)).numpy().tolist() == [0, 1, 2]


def test_a_fork_does_not_use_the_device(gpu: VulkanDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    own = os.getpid()
    with monkeypatch.context() as patch:
        patch.setattr(os, "getpid", lambda: own + 1)
        assert not gpu.is_usable
        with pytest.raises(DeviceGoneError, match=r"GM0934.*before this process was forked"):
            gpu.empty((3,), "int8")
    assert gpu.is_usable


def test_bfloat16_and_host_orders(gpu: VulkanDevice) -> None:
    import ml_dtypes

    values = np.arange(5).astype(ml_dtypes.bfloat16)
    assert gpu.array(values).numpy().astype(np.int32).tolist() == [0, 1, 2, 3, 4]
    assert gpu.array(np.arange(6).reshape(2, 3).T).numpy().tolist() == [[0, 3], [1, 4], [2, 5]]
    assert gpu.array(np.array(3.5)).numpy() == 3.5
    assert gpu.array(np.arange(3, dtype=">i4")).numpy().tolist() == [0, 1, 2]
