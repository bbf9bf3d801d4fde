"""A Vulkan device as kernels and arrays see it: memory, loaded code, launches, and waiting for them."""

from __future__ import annotations

import ctypes
import itertools
import math
import threading
import weakref
from collections import deque
from collections.abc import Mapping, Sequence, Set
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from gristmill.plugin.artifacts import Capabilities, KernelRecord, Scalar
from gristmill.plugin.device_limits import as_properties
from gristmill.plugin.protocols import NativeLaunch
from gristmill.runtime.launch_checks import check_launch
from gristmill_vulkan.instance import Instance
from gristmill_vulkan.kernels import Kernel, kernel_form
from gristmill_vulkan.logical import LogicalDevice
from gristmill_vulkan.memory import BLOCK_BYTES, Allocation, Memory
from gristmill_vulkan.physical import PhysicalDevice
from gristmill_vulkan.recording import Recorder
from gristmill_vulkan.stream import Stream

if TYPE_CHECKING:
    import numpy as np

    from gristmill.ir.dtype import DType
    from gristmill.runtime.arrays import Array

DEVICE_TYPE = 7
"""DLPack's kDLVulkan."""


class VulkanDevice:
    """Safe to use from several threads: one lock, held while something is recorded, submitted or waited for."""

    device_type = DEVICE_TYPE

    def __init__(
        self,
        name: str,
        instance: Instance,
        physical: PhysicalDevice,
        without: Set[str] = frozenset(),
        block_bytes: int = BLOCK_BYTES,
    ) -> None:
        """``without`` names extensions and features to leave switched off. Raises VulkanError."""
        self.name = name
        self.instance = instance
        self.physical = physical
        self._lock = threading.RLock()
        self.logical = LogicalDevice(instance, physical, without)
        self.memory = Memory(name, self.logical, block_bytes)
        self.stream = Stream(self.logical, self.memory)
        self.recorder = Recorder(name, self.logical, self.memory, self.stream)
        self._limits = _limits(physical)
        self._kernels: weakref.WeakValueDictionary[int, Kernel] = weakref.WeakValueDictionary()
        self._numbers = itertools.count(1)
        self._dead: deque[Allocation] = deque()
        self._waiting: list[Allocation] = []
        self._unloaded: deque[Kernel] = deque()
        self._native: NativeLaunch | None = None
        self.is_closed = False

    # Arrays

    def empty(self, shape: Sequence[int], dtype: str) -> Array:
        """A new array; its elements are not initialised. Raises DeviceMemoryError (GM0931)."""
        from gristmill.runtime.arrays import checked_dtype, checked_shape

        element = checked_dtype(dtype)
        return self._array(checked_shape(shape, element), element)[0]

    def array(self, values: np.ndarray) -> Array:
        """A new array with a copy of the values. Raises DeviceMemoryError (GM0931)."""
        from gristmill.runtime.arrays import host_values

        found, dtype = host_values(values)
        made, allocation = self._array(found.shape, dtype)
        if found.nbytes:
            self._write(allocation, found)
        return made

    def _array(self, shape: tuple[int, ...], dtype: DType) -> tuple[Array, Allocation]:
        from gristmill.runtime.arrays import Array
        from gristmill.runtime.dlpack import tensor_over

        size = math.prod(shape) * dtype.bytes
        owner = _Owned(self, size)
        allocation = owner.allocation
        tensor = tensor_over(allocation.address, shape, dtype, (DEVICE_TYPE, self.index), owner)
        return Array(self, tensor, shape, dtype, lambda: self._read(owner.allocation, shape, dtype)), allocation

    @property
    def index(self) -> int:
        return int(self.name.rpartition(":")[2])

    def _write(self, allocation: Allocation, values: np.ndarray) -> None:
        """Fill new memory, which nothing that is queued uses."""
        if allocation.mapped:
            ctypes.memmove(allocation.mapped, values.ctypes.data, values.nbytes)
            return
        with self._lock:
            staging = self.memory.allocate(values.nbytes, staging=True)
            ctypes.memmove(staging.mapped, values.ctypes.data, values.nbytes)
            self._copy(staging, allocation, values.nbytes)
            self.stream.when_done(lambda: self.memory.release(staging))

    def _read(self, allocation: Allocation, shape: tuple[int, ...], dtype: DType) -> np.ndarray:
        import numpy as np

        from gristmill.runtime.arrays import numpy_dtype

        found = np.empty(shape, numpy_dtype(dtype))
        if not found.nbytes:
            self.synchronize()
            return found
        with self._lock:
            if allocation.mapped and allocation.block.is_cached:
                self.stream.wait(allocation.last_use)
                ctypes.memmove(found.ctypes.data, allocation.mapped, found.nbytes)
                return found
            staging = self.memory.allocate(found.nbytes, staging=True)
            try:
                self._copy(allocation, staging, found.nbytes)
                self.stream.wait(self.stream.next_number)
                ctypes.memmove(found.ctypes.data, staging.mapped, found.nbytes)
            finally:
                self._waiting.append(staging)
        return found

    def _copy(self, source: Allocation, target: Allocation, size: int) -> None:
        api = self.logical.api
        commands = self.stream.commands()
        self.stream.order([(source, False), (target, True)])
        region = api.ffi.new("VkBufferCopy *", {"srcOffset": source.offset, "dstOffset": target.offset, "size": size})
        api.run("vkCmdCopyBuffer", commands, source.block.buffer, target.block.buffer, 1, region)
        self.stream.count()

    # Memory by address

    def allocate(self, size: int, alignment: int) -> int:
        """The address of new memory. Raises DeviceMemoryError (GM0931), a MemoryError."""
        return self._allocate(size, alignment).address

    def _allocate(self, size: int, alignment: int) -> Allocation:
        with self._lock:
            self.collect()
            return self.memory.allocate(size, alignment)

    def release(self, address: int) -> None:
        """Give memory back that :meth:`allocate` gave, once the work that uses it is done."""
        with self._lock:
            found = self.memory.at(address)
            if found is not None:
                self._dead.append(found[0])

    def collect(self) -> None:
        """Give back what nothing holds and nothing queued uses any more."""
        while self._dead:
            self._waiting.append(self._dead.popleft())
        while self._unloaded:
            # Whatever is recorded or queued may use it.
            self.stream.when_done(self._unloaded.popleft().destroy)
        if not self._waiting:
            return
        self.stream.poll()
        kept = [found for found in self._waiting if found.last_use > self.stream.completed]
        for allocation in self._waiting:
            if allocation.last_use <= self.stream.completed:
                self.memory.release(allocation)
        self._waiting = kept

    # Kernels

    def load(
        self,
        data: memoryview,
        entry_points: Sequence[str],
        kernels: Sequence[KernelRecord],
        externs: Mapping[str, int] = MappingProxyType({}),
    ) -> VulkanCode:
        """Make the kernels of a blob. Raises UserError (GM0914) for a malformed record, VulkanError."""
        with self._lock:
            return VulkanCode(self, bytes(data), kernels)

    def launch(self, kernel: int, args: Sequence[Any], extents: Sequence[int], dynamic_shared: int) -> None:
        """Queue a kernel. Raises UserError: GM0920-GM0922 for what the device cannot launch, GM0923, GM0933."""
        if any(extent <= 0 for extent in extents):
            return
        found = self._kernels[kernel]
        record = found.record
        check_launch(self.name, self._limits, record, extents, dynamic_shared)
        by_axis = dict(zip(record.axes, extents, strict=True))
        grid = tuple(by_axis.get(f"blockIdx.{axis}", 1) for axis in "xyz")
        block = tuple(by_axis.get(f"threadIdx.{axis}", 1) for axis in "xyz")
        with self._lock:
            self.collect()
            self.recorder.record(found, args, grid, block, dynamic_shared)  # type: ignore[arg-type]

    def native_launch(self) -> NativeLaunch:
        """The functions for the context tables of host code."""
        from gristmill.runtime.native_callbacks import callbacks_of

        with self._lock:
            if self._native is None:
                self._native = callbacks_of(self)
            return self._native

    def synchronize(self) -> None:
        """Wait until all work queued on the device is done."""
        with self._lock:
            self.stream.wait_for_all()
            self.collect()

    def properties(self) -> Mapping[str, Scalar]:
        return device_properties(self.physical)

    def close(self) -> None:
        """Wait for what is queued, and let go of the device. Arrays of it can no longer be used."""
        with self._lock:
            if self.is_closed:
                return
            self.is_closed = True
            self.collect()
            self.stream.wait_for_all()
            for kernel in (*self._kernels.values(), *self._unloaded):
                kernel.destroy()
            self.stream.close()
            self.memory.close()
            self.logical.close()


class _Owned:
    """The memory of an array; given back with the last reference to it, on whatever thread that goes."""

    def __init__(self, device: VulkanDevice, size: int) -> None:
        self.allocation = device._allocate(size, 1)
        weakref.finalize(self, device._dead.append, self.allocation).atexit = False


class VulkanCode:
    """The kernels of one blob on the device."""

    def __init__(self, device: VulkanDevice, data: bytes, records: Sequence[KernelRecord]) -> None:
        self._device = device
        self._handles: dict[str, int] = {}
        self._kept: list[Kernel] = []
        for record in records:
            form = kernel_form(record, len(data))
            code = data[form.start : form.start + form.size]
            kernel = Kernel(device.logical, device.logical.api.ffi.NULL, code, record, form)
            number = next(device._numbers)
            device._kernels[number] = kernel
            self._kept.append(kernel)
            self._handles[record.name] = number
        weakref.finalize(self, device._unloaded.extend, self._kept).atexit = False

    def handle(self, kernel: str) -> int:
        """What stands for the kernel in a context table; valid as long as this object lives."""
        return self._handles[kernel]

    def function(self, entry: str) -> Any:
        """Kernels are launched by host functions; they are no functions themselves."""
        raise KeyError(entry)


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
        **limits,
        **as_properties(_limits(physical)),
    }
