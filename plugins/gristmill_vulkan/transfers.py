"""Copies between host and device, and on the device.

Memory of the device that the host sees is written directly (it is new: nothing that is queued uses it), and read directly
where the host's caches hold it. All else goes through memory of the host that the device sees, in chunks, so that copying
on the host and copying by the device overlap. The device's lock is held only to record; nobody waits with it.
"""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from gristmill_vulkan.copy_kernel import BYTES_A_THREAD, PARAMETERS, THREADS
from gristmill_vulkan.device_lock import DeviceLock
from gristmill_vulkan.kernels import COMPUTE, COMPUTE_STAGE, Kernel
from gristmill_vulkan.logical import LogicalDevice
from gristmill_vulkan.memory import Allocation, Memory
from gristmill_vulkan.stream import Stream

if TYPE_CHECKING:
    import numpy as np

CHUNK_BYTES = 8 << 20
_CHUNKS_AT_ONCE = 2
_SHORT_COPY_BYTES = 1 << 16


class Transfers:
    """The copies of one device."""

    def __init__(
        self,
        device: LogicalDevice,
        memory: Memory,
        stream: Stream,
        lock: DeviceLock,
        chunk_bytes: int = CHUNK_BYTES,
        make_kernel: Callable[[], Kernel | None] = lambda: None,
    ) -> None:
        """``make_kernel`` gives the kernel that copies on the device; None where the driver's own copies serve."""
        self.device = device
        self.memory = memory
        self.stream = stream
        self.lock = lock
        self.chunk_bytes = chunk_bytes
        self._make_kernel = make_kernel
        self._most_blocks: int = device.physical.limits["max_grid_size"][0]

    def write(self, target: Allocation, values: np.ndarray) -> None:
        """Fill new memory with compact values. Raises VulkanError, DeviceMemoryError, DeviceGoneError."""
        with self.stream.in_use():
            self._write(target, values)

    def _write(self, target: Allocation, values: np.ndarray) -> None:
        if target.mapped:
            self._on_host(target.mapped, values.ctypes.data, values.nbytes)
            return
        queued: deque[int] = deque()
        for start in range(0, values.nbytes, self.chunk_bytes):
            size = min(self.chunk_bytes, values.nbytes - start)
            if len(queued) == _CHUNKS_AT_ONCE:
                self.stream.wait(queued.popleft())
            staging = self._staging(size)
            try:
                self._on_host(staging.mapped, values.ctypes.data + start, size)
                queued.append(self._record(staging, 0, target, start, size))
            finally:
                with self.lock:
                    self.stream.bury(staging)

    def read(self, source: Allocation, found: np.ndarray) -> None:
        """Wait for what is queued with this memory, and fill ``found``. Raises as :meth:`write` does."""
        with self.stream.in_use():
            self._read(source, found)

    def _read(self, source: Allocation, found: np.ndarray) -> None:
        where = found.ctypes.data
        if source.mapped and source.block.is_cached:
            self.stream.wait(source.last_use)
            self._on_host(where, source.mapped, found.nbytes)
            return
        queued: deque[tuple[Allocation, int, int]] = deque()
        try:
            for start in range(0, found.nbytes, self.chunk_bytes):
                if len(queued) == _CHUNKS_AT_ONCE:
                    self._fetch(queued, where)
                size = min(self.chunk_bytes, found.nbytes - start)
                queued.append((self._staging(size), start, size))
                self._record(source, start, queued[-1][0], 0, size)
            while queued:
                self._fetch(queued, where)
        finally:
            with self.lock:
                for staging, _, _ in queued:
                    self.stream.bury(staging)

    def _fetch(self, queued: deque[tuple[Allocation, int, int]], where: int) -> None:
        """Wait for the oldest chunk, and put it in its place."""
        staging, start, size = queued[0]
        self.stream.wait(staging.last_use)
        self._on_host(where + start, staging.mapped, size)
        queued.popleft()
        with self.lock:
            self.stream.bury(staging)

    def copy(self, source: Allocation, target: Allocation, size: int) -> None:
        """Queue a copy from one allocation of the device to another. Raises VulkanError, DeviceGoneError."""
        with self.stream.in_use():
            self._copy(source, target, size)

    def _copy(self, source: Allocation, target: Allocation, size: int) -> None:
        kernel = self._make_kernel()
        start = 0
        if kernel is not None and source.address % BYTES_A_THREAD == target.address % BYTES_A_THREAD == 0:
            start = size // BYTES_A_THREAD * BYTES_A_THREAD
            if start:
                self._launch(kernel, source, target, start // BYTES_A_THREAD)
        if start < size:
            self._record(source, start, target, start, size - start)

    def _launch(self, kernel: Kernel, source: Allocation, target: Allocation, count: int) -> None:
        """Queue the copy of so many units of 16 bytes by a kernel; several launches if there are more than one can have."""
        api = self.device.api
        pipeline = kernel.pipeline((THREADS, 1, 1), 0)
        with self.lock:
            commands = self.stream.commands()
            self.stream.order([(source, False), (target, True)])
            api.run("vkCmdBindPipeline", commands, COMPUTE, pipeline)
            self.stream.bound_pipeline = pipeline
            for first in range(0, count, self._most_blocks * THREADS):
                here = min(count - first, self._most_blocks * THREADS)
                start = first * BYTES_A_THREAD
                data = PARAMETERS.pack(source.address + start, target.address + start, here)
                api.run(
                    "vkCmdPushConstants",
                    commands,
                    kernel.layout,
                    COMPUTE_STAGE,
                    0,
                    len(data),
                    api.ffi.from_buffer(data),
                )
                api.run("vkCmdDispatch", commands, -(-here // THREADS), 1, 1)
            self.stream.count()

    def _staging(self, size: int) -> Allocation:
        with self.lock:
            self.stream.poll()
            return self.memory.allocate(size, staging=True)

    def _record(self, source: Allocation, start: int, target: Allocation, to: int, size: int) -> int:
        """Queue the copy of a range; the number of its submission."""
        api = self.device.api
        region = api.ffi.new(
            "VkBufferCopy *", {"srcOffset": source.offset + start, "dstOffset": target.offset + to, "size": size}
        )
        with self.lock:
            commands = self.stream.commands()
            number = self.stream.next_number
            self.stream.order([(source, False), (target, True)], is_copy=True)
            api.run("vkCmdCopyBuffer", commands, source.block.buffer, target.block.buffer, 1, region)
            self.stream.count()
        return number

    def _on_host(self, to: int, from_: int, size: int) -> None:
        """Copy on the host: a long copy lets other threads of Python run, a short one does not pay for that."""
        if size > _SHORT_COPY_BYTES:
            ctypes.memmove(to, from_, size)
        else:
            ffi = self.device.api.ffi
            ffi.memmove(ffi.cast("char *", to), ffi.cast("char *", from_), size)
