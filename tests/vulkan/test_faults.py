"""Every Vulkan call of a run fails once, in several ways: an error that says which, nothing left behind, and on it goes."""

from __future__ import annotations

import re
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import gristmill
from gristmill_vulkan.api import Api
from gristmill_vulkan.device import VulkanDevice
from gristmill_vulkan.results import DEVICE_LOST, NOT_READY, TIMEOUT, DeviceGoneError, DeviceMemoryError, VulkanError
from gristmill_vulkan.runtime import VulkanRuntime

if TYPE_CHECKING:
    from pathlib import Path
    from types import FrameType

    from gristmill.runtime.loaded_pack import LoadedPack

OUT_OF_DEVICE_MEMORY = -2
RESULTS = {
    "no memory": OUT_OF_DEVICE_MEMORY,
    "lost": DEVICE_LOST,
    "timeout": TIMEOUT,
    "not ready": NOT_READY,
}
WAYS = {
    "push descriptors": ("push", frozenset[str]()),
    "sets, a uniform buffer, staging": ("uniform", frozenset(["VK_KHR_push_descriptor", "mapped_arrays"])),
    "addresses of blocks": ("address_block", frozenset[str]()),
}
_MADE = re.compile(r"vkCreate(?P<kind>\w+?)s?|vkAllocate(?P<memory>Memory)")
_GONE = re.compile(r"vkDestroy(?P<kind>\w+)|vkFree(?P<memory>Memory)")
_MOST_POLLS = 6
_KINDS = {"ComputePipeline": "Pipeline"}


class Ledger:
    """What was made of the driver and has not been destroyed, by kind."""

    def __init__(self) -> None:
        self.open: Counter[str] = Counter()

    def watched(self, ffi: Any, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The same function, counted."""
        made, gone = _MADE.fullmatch(name), _GONE.fullmatch(name)
        if made is None and gone is None:
            return function

        def call(*args: Any) -> Any:
            result = function(*args)
            if made is not None and result == 0:
                kind = made["kind"] or made["memory"]
                self.open[_KINDS.get(kind, kind)] += 1
            # vkDestroyDevice and vkDestroyInstance name what they destroy first.
            if gone is not None and args[-2] != ffi.NULL:
                self.open[gone["kind"] or gone["memory"]] -= 1
            return result

        return call

    @property
    def left(self) -> dict[str, int]:
        return {kind: count for kind, count in self.open.items() if count}


@pytest.fixture
def ledger(monkeypatch: pytest.MonkeyPatch) -> Iterator[Ledger]:
    """Counts from here on; all must be gone at the end."""
    # Loading asks what is here, which makes the one instance of the process.
    gristmill.devices()
    found = Ledger()
    find = Api._find
    monkeypatch.setattr(Api, "_find", lambda api, name: found.watched(api.ffi, name, find(api, name)))
    yield found
    assert found.left == {}


class Nth:
    """Makes the call of that name and number fail, once; the name is part of what is counted, since polls are many."""

    def __init__(self, name: str = "", number: int = 0, result: int = 0) -> None:
        self.name = name
        self.number = number
        self.result = result
        self.calls: Counter[str] = Counter()

    def __call__(self, name: str) -> int:
        self.calls[name] += 1
        return self.result if name == self.name and self.calls[name] == self.number + 1 else 0

    @property
    def failed(self) -> str:
        return self.name if self.calls[self.name] > self.number else ""

    def every(self, result: int) -> list[Nth]:
        """One for each call that there was."""
        return [
            Nth(name, number, result)
            for name, count in self.calls.items()
            for number in range(min(count, _MOST_POLLS) if name == "vkGetFenceStatus" else count)
        ]


def work(device: VulkanDevice, pack: LoadedPack) -> None:
    """Arrays, launches and reads; the results must be right."""
    x = np.arange(600, dtype=np.float32)
    given, result = device.array(x), device.array(np.ones(600, np.float32))
    for _ in range(3):
        pack.saxpy(2.0, given, result)
    np.testing.assert_array_equal(result.numpy(), 6 * x + 1)
    passing = device.empty((600,), "float32")
    pack.with_temporary(result, passing)
    del passing
    np.testing.assert_array_equal(device.array(given).numpy(), x)
    device.synchronize()


def checked(nth: Nth, action: Callable[[], Any]) -> Any:
    """What the action gives; None if it raised, which must be an error of ours that names the call and the result."""
    try:
        return action()
    except (VulkanError, DeviceMemoryError, DeviceGoneError) as error:
        said = str(error)
        lost = isinstance(error, DeviceGoneError) or nth.result == DEVICE_LOST
    assert lost or nth.failed in said
    assert nth.failed
    assert "VK_" in said
    return None


CASES = [
    *((way, result) for way in WAYS for result in ("no memory", "lost")),
    *(("sets, a uniform buffer, staging", result) for result in ("timeout", "not ready")),
]


@pytest.mark.parametrize(("way", "result"), CASES)
def test_every_call_of_a_device(way: str, result: str, packs: dict[str, Path], ledger: Ledger) -> None:
    arguments, without = WAYS[way]
    instance, devices = VulkanRuntime().opened()
    path = packs[f"few_{arguments}"]

    def whole(nth: Nth) -> None:
        instance.api.hook.before = nth
        device = checked(nth, lambda: VulkanDevice("vulkan:0", instance, devices[0], without, block_bytes=1 << 20))
        if device is not None:
            run(nth, device, path)
            device.close()
        instance.api.hook.before = None
        assert set(ledger.left) <= {"Instance", "DebugUtilsMessengerEXT"}

    first = Nth()
    whole(first)
    assert {*first.calls} >= {"vkCreateDevice", "vkAllocateMemory", "vkCreateFence", "vkCreateShaderModule"}
    assert {*first.calls} >= {"vkCreateComputePipelines", "vkBeginCommandBuffer", "vkEndCommandBuffer"}
    assert {*first.calls} >= {"vkQueueSubmit", "vkGetFenceStatus", "vkResetFences", "vkDeviceWaitIdle"}
    for nth in first.every(RESULTS[result]):
        whole(nth)
    instance.close()


class Interrupted(Nth):
    """Ctrl-C as the call begins."""

    def __call__(self, name: str) -> int:
        if super().__call__(name):
            signal.raise_signal(signal.SIGINT)
        return 0


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Python's own handler of Ctrl-C, also in a process that was started to ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("way", WAYS)
def test_every_call_is_interrupted(way: str, packs: dict[str, Path], ledger: Ledger) -> None:
    """Ctrl-C at whatever call: it is told once, nothing stays half done, and results are right afterwards."""
    arguments, without = WAYS[way]
    instance, devices = VulkanRuntime().opened()
    hook = instance.api.hook
    device = VulkanDevice("vulkan:0", instance, devices[0], without, block_bytes=1 << 20)
    path = packs[f"few_{arguments}"]

    def whole(nth: Nth) -> None:
        hook.before = nth
        try:
            work(device, gristmill.load(path, device=device))
        finally:
            hook.before = None

    first = Nth()
    whole(first)
    assert {*first.calls} >= {
        "vkQueueSubmit",
        "vkBeginCommandBuffer",
        "vkCreateShaderModule",
        "vkCreateComputePipelines",
    }
    for nth in first.every(1):
        interrupting = Interrupted(nth.name, nth.number, 1)
        try:
            whole(interrupting)
        except KeyboardInterrupt:
            assert interrupting.failed
        else:
            # Polls are more or fewer, as time goes.
            assert not interrupting.failed
        assert not device.stream.is_watched
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        work(device, gristmill.load(path, device=device))
    device.close()
    instance.close()


@pytest.mark.parametrize("native", ["1", "0"])
def test_an_interrupt_before_a_launch_begins(
    native: str, packs: dict[str, Path], monkeypatch: pytest.MonkeyPatch, ledger: Ledger
) -> None:
    """One that comes in compiled code is told where Python goes on: in what that code calls, which has then not run."""
    monkeypatch.setenv("GRISTMILL_NATIVE", native)
    instance, devices = VulkanRuntime().opened()
    device = VulkanDevice("vulkan:0", instance, devices[0])
    pack = gristmill.load(packs["few_double"], device=device)
    array = device.array(np.ones(100, np.int32))
    pack.double(array)
    device.synchronize()

    reached: list[str] = []

    def before(frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and frame.f_code.co_name in ("launch", "flush"):
            sys.setprofile(None)
            reached.append(frame.f_code.co_name)
            raise KeyboardInterrupt

    sys.setprofile(before)
    try:
        with pytest.raises(KeyboardInterrupt):
            pack.double(array)
    finally:
        sys.setprofile(None)
    before_that = array.numpy()[0]
    pack.double(array)
    np.testing.assert_array_equal(array.numpy(), before_that * 2 + 1)
    assert reached
    if native == "0":
        # It is the launch that was interrupted; the one before is all that has run.
        assert (reached, before_that) == (["launch"], 3)
    device.close()
    instance.close()


def run(nth: Nth, device: VulkanDevice, path: Path) -> None:
    """Load and work, then again: after the failure all works, unless the device is lost."""
    hook = device.instance.api.hook
    pack = checked(nth, lambda: gristmill.load(path, device=device))
    if pack is not None:
        checked(nth, lambda: work(device, pack))
    hook.before = None
    if nth.failed and nth.result == DEVICE_LOST:
        assert not device.is_usable
        with pytest.raises(DeviceGoneError, match=r"GM0934.*vulkan:0 was lost"):
            device.array(np.zeros(3))
    else:
        work(device, pack or gristmill.load(path, device=device))
    hook.before = nth


@pytest.mark.parametrize("result", RESULTS.values(), ids=RESULTS)
def test_every_call_that_finds_devices(result: int, monkeypatch: pytest.MonkeyPatch, ledger: Ledger) -> None:
    """Probing says the reason, and finds the devices when it is next asked."""
    load = Api.load
    nth = Nth()

    def hooked() -> Api:
        found = load()
        found.hook.before = nth
        return found

    monkeypatch.setattr(Api, "load", hooked)
    runtime = VulkanRuntime()
    assert runtime.probe().devices
    runtime.opened()[0].close()
    assert {*nth.calls} >= {"vkCreateInstance", "vkEnumeratePhysicalDevices", "vkEnumerateDeviceExtensionProperties"}
    for each in nth.every(result):
        nth = each
        runtime = VulkanRuntime()
        probe = runtime.probe()
        assert nth.failed
        if not probe.devices:
            assert nth.failed in probe.reason
            assert "\n" not in probe.reason
        # Asked again it finds them.
        assert runtime.probe().devices
        runtime.opened()[0].close()
