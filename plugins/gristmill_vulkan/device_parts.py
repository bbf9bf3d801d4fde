"""What a device is made of, and how that is destroyed."""

from __future__ import annotations

import atexit
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Set
from contextlib import suppress
from functools import wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

from gristmill_vulkan.copy_kernel import NEEDS, SWITCHED_OFF, copy_kernel
from gristmill_vulkan.device_lock import DeviceLock
from gristmill_vulkan.instance import Instance
from gristmill_vulkan.kernels import Kernel
from gristmill_vulkan.logical import LogicalDevice
from gristmill_vulkan.memory import Memory
from gristmill_vulkan.physical import PhysicalDevice
from gristmill_vulkan.pipeline_cache import PipelineCache
from gristmill_vulkan.results import DeviceGoneError, VulkanError
from gristmill_vulkan.stream import Stream
from gristmill_vulkan.submission_timer import SubmissionTimer

if TYPE_CHECKING:
    from gristmill_vulkan.device import VulkanDevice

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

_LONGEST_LEAVE_SECONDS = 5.0
"""For how long closing waits until other threads have seen that the device is idle."""


def until_the_end(
    method: Callable[Concatenate[VulkanDevice, Parameters], Result],
) -> Callable[Concatenate[VulkanDevice, Parameters], Result]:
    """A method of a device that the threads of programs call, holding no lock, and that need not return at the end."""

    @wraps(method)
    def called(device: VulkanDevice, /, *args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        try:
            return method(device, *args, **kwargs)
        except DeviceGoneError:
            device.wait_for_the_end()
            raise

    return called


class DeviceParts:
    """All that must be destroyed when a device is closed, let go, or left open at the end of the process.

    Nothing in here refers to the :class:`VulkanDevice`, so that one which nobody holds is closed.
    """

    def __init__(self, name: str, instance: Instance, physical: PhysicalDevice, without: Set[str]) -> None:
        self.lock = DeviceLock()
        self.process = os.getpid()
        self.is_closed = False
        self.kernels: weakref.WeakValueDictionary[int, Kernel] = weakref.WeakValueDictionary()
        self.unloaded: deque[Kernel] = deque()
        self.cache: PipelineCache | None = None
        self.copier: Kernel | None = None
        self.memory: Memory | None = None
        self.stream: Stream | None = None
        self.timer: SubmissionTimer | None = None
        self.logical = LogicalDevice(instance, physical, without, name)
        self._last_thread: int | None = None
        """The thread that ends the process."""
        atexit.register(self.end)

    def end(self) -> None:
        """Close the device, as the process ends: before the driver's own threads do."""
        self._last_thread = threading.get_ident()
        self.close()
        if self.timer is not None:
            # Where it is the one that closes the device.
            self.timer.join()

    def wait_for_the_end(self) -> None:
        """Never comes back if the process is ending, and this is not the thread that ends it.

        Only daemon threads are left by then. One that raised would write its traceback while the interpreter is taken
        apart, which can abort the process ("could not acquire lock for <_io.BufferedWriter name='<stderr>'>").
        """
        if self._last_thread not in (None, threading.get_ident()):
            threading.Event().wait()

    def is_open(self) -> bool:
        """Whether anything may still be recorded."""
        return not self.is_closed and not self.logical.api.is_lost

    def close(self) -> None:
        """Wait until the device is idle, and destroy everything. Never raises for what the driver says."""
        try:
            self._close()
        finally:
            atexit.unregister(self.end)

    def _close(self) -> None:
        if self.process != os.getpid():
            # A forked process has none of the driver's threads.
            self.is_closed = True
            return
        with self.lock:
            if self.is_closed:
                return
            self.is_closed = True
            if self.stream is not None:
                self.stream.is_closed = True
            # Of a lost device what is left can be destroyed too.
            with suppress(VulkanError):
                self.logical.api.call("vkDeviceWaitIdle", self.logical.handle)
        if self.timer is not None:
            self.timer.stop()
        until = time.monotonic() + _LONGEST_LEAVE_SECONDS
        while self.stream is not None and self.stream.is_watched and time.monotonic() < until:
            time.sleep(0.001)
        with self.lock:
            for kernel in (*self.kernels.values(), *self.unloaded, *([self.copier] if self.copier else [])):
                kernel.destroy()
            self.unloaded.clear()
            if self.cache is not None:
                self.cache.close()
            if self.stream is not None:
                self.stream.close()
            if self.memory is not None:
                self.memory.close()
            self.logical.close()

    def copy_kernel(self) -> Kernel | None:
        """The kernel that copies on the device, made at first use; None where the driver's own copies are as good."""
        logical = self.logical
        if not logical.features >= NEEDS or logical.physical.kind == "cpu" or SWITCHED_OFF in logical.without:
            return None
        with self.lock:
            if self.copier is None and self.cache is not None:
                self.copier = copy_kernel(logical, self.cache)
            return self.copier
