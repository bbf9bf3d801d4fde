"""A Vulkan device as kernels and arrays see it: memory, loaded code, launches, and waiting for them."""

from __future__ import annotations

import itertools
import math
import os
import weakref
from collections import deque
from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from gristmill.plugin.artifacts import Capabilities, KernelRecord, Scalar
from gristmill.plugin.device_limits import as_properties
from gristmill.plugin.protocols import NativeLaunch, device_number
from gristmill.runtime.launch_checks import check_launch
from gristmill.runtime.native_support import NoSupport
from gristmill_vulkan.asserts import Reports
from gristmill_vulkan.code import VulkanCode
from gristmill_vulkan.device_parts import DeviceParts, until_the_end
from gristmill_vulkan.instance import Instance
from gristmill_vulkan.kernels import Kernel
from gristmill_vulkan.memory import BLOCK_BYTES, Allocation, Memory
from gristmill_vulkan.native_recording import NativeRecording, native_code, native_launch
from gristmill_vulkan.physical import PhysicalDevice
from gristmill_vulkan.pipeline_cache import PipelineCache
from gristmill_vulkan.recording import Recorder
from gristmill_vulkan.requirements import lacking
from gristmill_vulkan.results import DeviceGoneError, DeviceMemoryError
from gristmill_vulkan.stream import Stream
from gristmill_vulkan.submission_timer import SubmissionTimer
from gristmill_vulkan.transfers import CHUNK_BYTES, Transfers

if TYPE_CHECKING:
    import numpy as np

    from gristmill.ir.dtype import DType
    from gristmill.runtime.arrays import Array

DEVICE_TYPE = 7
"""DLPack's kDLVulkan."""


class VulkanDevice:
    """Safe to use from several threads. One lock is held while something is recorded or submitted, none while waiting.

    A device that is closed, or that the driver lost, is used no more: everything raises DeviceGoneError (GM0934).
    """

    device_type = DEVICE_TYPE

    def __init__(
        self,
        name: str,
        instance: Instance,
        physical: PhysicalDevice,
        without: Set[str] = frozenset(),
        block_bytes: int = BLOCK_BYTES,
        chunk_bytes: int = CHUNK_BYTES,
    ) -> None:
        """``without`` names extensions and features to leave switched off. Raises VulkanError."""
        self.name = name
        self._late_fault: BaseException | None = None
        """Why submitting late failed, until somebody is told."""
        self.instance = instance
        self.physical = physical
        self._parts = DeviceParts(name, instance, physical, without)
        self._finalizer = weakref.finalize(self, self._parts.close)
        self._finalizer.atexit = False
        self.wait_for_the_end = self._parts.wait_for_the_end
        self._lock = self._parts.lock
        self.logical = self._parts.logical
        try:
            self.cache = self._parts.cache = PipelineCache(self.logical)
            self.memory = self._parts.memory = Memory(name, self.logical, block_bytes)
            timer = self._parts.timer = SubmissionTimer(name, self.submit_late)
            self.stream = self._parts.stream = Stream(self.logical, self.memory, self._lock, timer)
            self.recorder = Recorder(name, self.logical, self.memory, self.stream)
        except BaseException:
            self.close()
            raise
        self.transfers = Transfers(
            self.logical, self.memory, self.stream, self._lock, chunk_bytes, self._parts.copy_kernel
        )
        self._limits = _limits(physical)
        self._kernels = self._parts.kernels
        self._unloaded = self._parts.unloaded
        self.reports = Reports(self.memory, self._lock)
        self._numbers = itertools.count(1)
        self._dead: deque[Allocation] = deque()
        self._owned: weakref.WeakKeyDictionary[Array, _Owned] = weakref.WeakKeyDictionary()
        self._native: NativeLaunch | None = None
        code = native_code()
        self.native: NativeRecording | None = None
        self.native_reason = ""
        """Why launches go through Python; empty where they do not."""
        if isinstance(code, NoSupport):
            self.native_reason = code.reason
        else:
            self.native = NativeRecording(
                code, self.recorder, self.stream, self._limits.max_grid_size, self._parts.is_open
            )
            self._lock.share(self.native)
        instance.devices.add(self)

    @property
    def is_closed(self) -> bool:
        return self._parts.is_closed

    @property
    def is_usable(self) -> bool:
        """Whether the device can still be used; where not, opening it again gives another one."""
        return not (self._parts.is_closed or self.logical.api.is_lost or self._parts.process != os.getpid())

    def _check_usable(self) -> None:
        """Raises DeviceGoneError (GM0934), and VulkanError for what was submitted late and failed."""
        if self._parts.is_closed:
            raise DeviceGoneError(self.name, "was closed")
        if self.logical.api.is_lost:
            raise DeviceGoneError(self.name, "was lost by its driver (VK_ERROR_DEVICE_LOST)")
        if self._parts.process != os.getpid():
            raise DeviceGoneError(self.name, "was opened before this process was forked, and belongs to the other one")
        self._tell_late_fault()

    def _tell_late_fault(self) -> None:
        if self._late_fault is not None:
            with self._lock:
                fault, self._late_fault = self._late_fault, None
            if fault is not None:
                raise fault

    # Arrays

    @until_the_end
    def empty(self, shape: Sequence[int], dtype: str) -> Array:
        """A new array; its elements are not initialised. Raises DeviceMemoryError (GM0931)."""
        from gristmill.runtime.arrays import checked_dtype, checked_shape

        element = checked_dtype(dtype)
        return self._array(checked_shape(shape, element), element)[0]

    @until_the_end
    def array(self, values: np.ndarray | Array) -> Array:
        """A new array with a copy of the values, which may be an array of this device too.

        Raises DeviceMemoryError (GM0931).
        """
        from gristmill.runtime.arrays import Array, checked_dtype, host_values

        if isinstance(values, Array) and values.device is self:
            made, allocation = self._array(values.shape, checked_dtype(values.dtype))
            if values.nbytes:
                self.transfers.copy(self.memory_of(values), allocation, values.nbytes)
            return made
        found, dtype = host_values(values)
        made, allocation = self._array(found.shape, dtype)
        if found.nbytes:
            self.transfers.write(allocation, found)
        return made

    def memory_of(self, array: Array) -> Allocation:
        """The memory of an array of this device. Raises KeyError for another."""
        return self._owned[array].allocation

    def _array(self, shape: tuple[int, ...], dtype: DType) -> tuple[Array, Allocation]:
        from gristmill.runtime.arrays import Array
        from gristmill.runtime.dlpack import tensor_over

        size = math.prod(shape) * dtype.bytes
        owner = _Owned(self, size)
        allocation = owner.allocation
        tensor = tensor_over(allocation.address, shape, dtype, (DEVICE_TYPE, self.index), owner)
        made = Array(self, tensor, shape, dtype, lambda: self._read(owner.allocation, shape, dtype))
        self._owned[made] = owner
        return made, allocation

    @property
    def index(self) -> int:
        return device_number(self.name)

    @until_the_end
    def _read(self, allocation: Allocation, shape: tuple[int, ...], dtype: DType) -> np.ndarray:
        import numpy as np

        from gristmill.runtime.arrays import numpy_dtype

        self._check_usable()
        found = np.empty(shape, numpy_dtype(dtype))
        if found.nbytes:
            self.transfers.read(allocation, found)
        else:
            self.stream.wait_for_all()
        self.instance.report()
        # What was waited for may have been submitted late meanwhile.
        self._tell_late_fault()
        self.reports.raise_failure()
        return found

    # Memory by address

    @until_the_end
    def allocate(self, size: int, alignment: int) -> int:
        """The address of new memory. Raises DeviceMemoryError (GM0931), a MemoryError."""
        return self._allocate(size, alignment).address

    def _allocate(self, size: int, alignment: int) -> Allocation:
        self._check_usable()
        with self._lock:
            self.collect()
            with suppress(DeviceMemoryError):
                return self.memory.allocate(size, alignment)
        # What is queued may be all that holds memory.
        self.stream.wait_for_all()
        with self._lock:
            self.collect()
            return self.memory.allocate(size, alignment)

    def has_address(self, address: int) -> bool:
        """Whether an address is one of memory of this device, as far as one can tell while other threads go on."""
        # Without the lock: who asks holds that of another device.
        with suppress(IndexError):
            return self.memory.at(address) is not None
        return False

    def release(self, address: int) -> None:
        """Give memory back that :meth:`allocate` gave, once the work that uses it is done."""
        with self._lock:
            if self.is_closed:
                return
            found = self.memory.at(address)
            if found is not None and not found[0].is_dead:
                found[0].is_dead = True
                self._dead.append(found[0])

    def collect(self) -> None:
        """Give back what nothing holds and nothing queued uses any more."""
        self.stream.poll()
        while self._dead:
            self.stream.bury(self._dead.popleft())
        while self._unloaded:
            # Whatever is recorded or queued may use it.
            self.stream.when_done(partial(self.reports.destroy, self._unloaded.popleft()))

    # Kernels

    @until_the_end
    def load(
        self,
        data: memoryview,
        entry_points: Sequence[str],
        kernels: Sequence[KernelRecord],
        externs: Mapping[str, int] = MappingProxyType({}),
    ) -> VulkanCode:
        """Make the kernels of a blob. Raises UserError: GM0914 for a malformed record, GM0935; VulkanError."""
        self._check_usable()
        with self.stream.in_use():
            return VulkanCode(self, bytes(data), kernels)

    def kernels(self) -> list[Kernel]:
        """All kernels that are loaded."""
        return list(self._kernels.values())

    @until_the_end
    def launch(self, kernel: int, args: Sequence[Any], extents: Sequence[int], dynamic_shared: int) -> None:
        """Queue a kernel. Raises UserError: GM0920-GM0922 for what the device cannot launch, GM0923, GM0933."""
        if any(extent <= 0 for extent in extents):
            return
        found = self._kernels[kernel]
        record = found.record
        check_launch(self.name, self._limits, record, len(args), extents, dynamic_shared)
        by_axis = dict(zip(record.axes, extents, strict=True))
        grid = tuple(by_axis.get(f"blockIdx.{axis}", 1) for axis in "xyz")
        block = tuple(by_axis.get(f"threadIdx.{axis}", 1) for axis in "xyz")
        self._check_usable()
        # Compiling takes long; meanwhile other threads go on.
        pipeline = found.pipeline(block, dynamic_shared)  # type: ignore[arg-type]
        with self._lock:
            self._check_usable()
            self.collect()
            self.recorder.record(found, pipeline, args, grid)  # type: ignore[arg-type]
            if self.native is not None:
                self.native.launched(found, pipeline, block, dynamic_shared)
                self.stream.prepare()
            is_full = self.stream.is_full
        if is_full:
            self.stream.wait_for_room()

    @until_the_end
    def submit_if_due(self) -> None:
        """Submit what machine code has recorded, if it is time to; wait if too much is queued. Raises VulkanError."""
        # Before the lock too: in a forked process nobody gives it back that had it.
        self._check_usable()
        with self._lock:
            self._check_usable()
            self.collect()
            self.stream.flush_if_due()
            self.stream.prepare()
            is_full = self.stream.is_full
        if is_full:
            self.stream.wait_for_room()

    def submit_late(self) -> float | None:
        """For the device's own thread: submit what was recorded long ago. Says when to call it again, and raises nothing."""
        with self._lock:
            try:
                return self.stream.flush_late()
            except BaseException as fault:
                # The next use of the device tells it; a traceback would hold the device.
                self._late_fault = fault.with_traceback(None)
                return None

    def native_launch(self) -> NativeLaunch:
        """The functions for the context tables of host code."""
        from gristmill_vulkan.callbacks import callbacks_of_device

        with self._lock:
            if self._native is None:
                native = self.native
                self._native = callbacks_of_device(self) if native is None else native_launch(self, native)
            return self._native

    @until_the_end
    def synchronize(self) -> None:
        """Wait until all work that is queued now is done. Raises VulkanError, and what asserts of kernels say that failed.

        What the validation layer said is given as warnings (:class:`VulkanValidationWarning`), if it runs.
        """
        self._check_usable()
        self.stream.wait_for_all()
        with self._lock:
            self.collect()
        self.instance.report()
        # What was waited for may have been submitted late meanwhile.
        self._tell_late_fault()
        self.reports.raise_failure()

    def refusal(self, kind: str, target: str, host: str, requirements: Mapping[str, Scalar]) -> str:
        """What this device lacks for a code that the runtime takes; an empty text if nothing."""
        return lacking(self.physical, requirements, self.physical.features - self.logical.features)

    def properties(self) -> Mapping[str, Scalar]:
        return device_properties(self.physical)

    def close(self) -> None:
        """Wait for what is submitted, and let go of the device. Arrays of it can no longer be used."""
        self._finalizer()


class _Owned:
    """The memory of an array; given back with the last reference to it, on whatever thread that goes."""

    def __init__(self, device: VulkanDevice, size: int) -> None:
        self.allocation = device._allocate(size, 1)
        weakref.finalize(self, device._dead.append, self.allocation).atexit = False


def _limits(physical: PhysicalDevice) -> Capabilities:
    limits = physical.limits
    return Capabilities(
        is_device=True,
        max_threads_per_block=limits["max_threads_per_block"],
        max_block_size=limits["max_block_size"],
        max_grid_size=limits["max_grid_size"],
        max_shared_memory=limits["max_shared_memory"],
    )


def device_properties(physical: PhysicalDevice) -> dict[str, Scalar]:
    """What reports show of a device, and what targets with ``from_device`` are completed with."""
    limits = {name: value for name, value in physical.limits.items() if isinstance(value, int)}
    return {
        "kind": physical.kind,
        "vulkan": f"{physical.api_version[0]}.{physical.api_version[1]}",
        "features": ",".join(sorted(physical.features)),
        "memory": max(size for size, _ in physical.heaps),
        "subgroup_size": physical.subgroup_size,
        **({"matrices": ",".join(sorted(physical.matrices))} if physical.matrices else {}),
        **limits,
        **as_properties(_limits(physical)),
    }
