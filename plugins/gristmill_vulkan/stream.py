"""The order of work on a device: commands recorded into one buffer at a time, submitted in batches, waited for by number.

A submission is known by its number; the one that is being recorded has the next. Work is submitted when so much of it is
recorded, when somebody waits for it, or when the device would else have nothing to do.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from gristmill_vulkan.hazards import needs_barrier, note
from gristmill_vulkan.logical import LogicalDevice
from gristmill_vulkan.memory import Allocation, Memory
from gristmill_vulkan.results import NOT_READY, TIMEOUT

LARGEST_BATCH = 128
"""Launches in one submission: a submission costs the device as much as some ten of them."""
_SPIN_SECONDS = 100e-6
_PARAMETER_BYTES = 1 << 16
_FOREVER = (1 << 64) - 1
_ONE_TIME = 0x1
# VkAccessFlagBits and VkPipelineStageFlagBits.
_READ_WRITE = 0x20 | 0x40 | 0x800 | 0x1000 | 0x8
_WRITES = 0x40 | 0x1000
_HOST_READ = 0x2000
_WORK_STAGES, _HOST_STAGE = 0x800 | 0x1000, 0x4000


@dataclass(eq=False, slots=True)
class Submission:
    """One command buffer: being recorded, on the device, or done and to be used again."""

    commands: Any
    fence: Any
    number: int = 0
    parameters: list[Allocation] = field(default_factory=list)
    """Memory for blocks of parameters that do not fit into push constants."""
    parameter_bytes: int = 0
    """How much of the last of them is taken."""
    when_done: list[Callable[[], None]] = field(default_factory=list)


class Stream:
    """Not safe for several threads by itself: the device holds its lock around every call."""

    def __init__(self, device: LogicalDevice, memory: Memory) -> None:
        self.device = device
        self.memory = memory
        api, ffi = device.api, device.api.ffi
        self.api = api
        pool = ffi.new("VkCommandPool *")
        # Each buffer is reset by itself.
        info = api.new("VkCommandPoolCreateInfo", flags=0x2, queueFamilyIndex=device.physical.queue_family)
        api.call("vkCreateCommandPool", device.handle, info, ffi.NULL, pool)
        self.pool = pool[0]
        self.epoch = 0
        self.next_number = 1
        self.completed = 0
        self.recording: Submission | None = None
        self.recorded = 0
        self.bound_pipeline: Any = None
        self._submitted: deque[Submission] = deque()
        self._idle: list[Submission] = []
        self._before = api.new("VkMemoryBarrier", srcAccessMask=_WRITES, dstAccessMask=_READ_WRITE)
        self._to_host = api.new("VkMemoryBarrier", srcAccessMask=_WRITES, dstAccessMask=_HOST_READ)

    # Recording

    def commands(self) -> Any:
        """The command buffer to record into."""
        if self.recording is None:
            self._begin()
        assert self.recording is not None
        return self.recording.commands

    def order(self, uses: list[tuple[Allocation, bool]]) -> None:
        """Put a barrier before the next command where it needs one, and remember what it uses."""
        self.commands()
        if needs_barrier(uses, self.epoch):
            self.barrier()
        note(uses, self.epoch, self.next_number)

    def barrier(self) -> None:
        """Make all that comes after wait for all that came before."""
        self._record_barrier(self._before, _WORK_STAGES)
        self.epoch += 1

    def count(self) -> None:
        """A command was recorded: submit if there are enough of them, or if the device has nothing to do."""
        self.recorded += 1
        if self.recorded >= LARGEST_BATCH or not self._submitted:
            self.flush()

    def parameters(self, data: bytes, alignment: int) -> tuple[Allocation, int]:
        """Memory with a block of parameters, which stays as it is until the submission is done; and where in it."""
        self.commands()
        current = self.recording
        assert current is not None
        start = -(-current.parameter_bytes // alignment) * alignment
        if not current.parameters or start + len(data) > current.parameters[-1].size:
            current.parameters.append(self.memory.allocate(max(_PARAMETER_BYTES, len(data)), staging=True))
            start = 0
        allocation = current.parameters[-1]
        self.api.ffi.memmove(self.api.ffi.cast("char *", allocation.mapped + start), data, len(data))
        current.parameter_bytes = start + len(data)
        return allocation, start

    def when_done(self, action: Callable[[], None]) -> None:
        """Do something once all that is recorded now is done."""
        self.commands()
        assert self.recording is not None
        self.recording.when_done.append(action)

    def _begin(self) -> None:
        api, ffi = self.api, self.api.ffi
        current = self._idle.pop() if self._idle else self._new()
        info = api.new("VkCommandBufferBeginInfo", flags=_ONE_TIME)
        try:
            api.call("vkBeginCommandBuffer", current.commands, info)
        except BaseException:
            self._idle.append(current)
            raise
        current.number = self.next_number
        self.recording = current
        self.recorded = 0
        self.bound_pipeline = None
        # What was submitted before is ordered by nothing but this.
        if self.next_number > 1:
            self.barrier()
        del ffi

    def _new(self) -> Submission:
        api, ffi, device = self.api, self.api.ffi, self.device.handle
        commands, fence = ffi.new("VkCommandBuffer *"), ffi.new("VkFence *")
        api.call("vkCreateFence", device, api.new("VkFenceCreateInfo"), ffi.NULL, fence)
        info = api.new("VkCommandBufferAllocateInfo", commandPool=self.pool, commandBufferCount=1)
        try:
            api.call("vkAllocateCommandBuffers", device, info, commands)
        except BaseException:
            api.run("vkDestroyFence", device, fence[0], ffi.NULL)
            raise
        return Submission(commands[0], fence[0])

    def _record_barrier(self, barrier: Any, after: int) -> None:
        assert self.recording is not None
        null = self.api.ffi.NULL
        self.api.run(
            "vkCmdPipelineBarrier", self.recording.commands, _WORK_STAGES, after, 0, 1, barrier, 0, null, 0, null
        )

    # Submitting and waiting

    def flush(self) -> None:
        """Submit what is recorded."""
        current = self.recording
        if current is None:
            return
        api, ffi = self.api, self.api.ffi
        self.recording = None
        self._record_end(current)
        commands = ffi.new("VkCommandBuffer[]", [current.commands])
        info = api.new("VkSubmitInfo", commandBufferCount=1, pCommandBuffers=commands)
        api.call("vkQueueSubmit", self.device.queue, 1, info, current.fence)
        self._submitted.append(current)
        self.next_number += 1

    def _record_end(self, current: Submission) -> None:
        self.recording = current
        self._record_barrier(self._to_host, _HOST_STAGE)
        self.recording = None
        self.api.call("vkEndCommandBuffer", current.commands)

    def poll(self) -> None:
        """Take note of what is done."""
        while self._submitted:
            if self.api.call("vkGetFenceStatus", self.device.handle, self._submitted[0].fence) == NOT_READY:
                return
            self._finish(self._submitted.popleft())

    def wait(self, number: int) -> None:
        """Wait until the submission of that number is done; it is submitted if need be."""
        if number >= self.next_number:
            self.flush()
        started = time.perf_counter()
        while self.completed < number and self._submitted:
            self.poll()
            if self.completed < number and time.perf_counter() - started > _SPIN_SECONDS:
                self._block(number)

    def _block(self, number: int) -> None:
        last = next(found for found in self._submitted if found.number >= number)
        fences = self.api.ffi.new("VkFence[]", [last.fence])
        while self.api.call("vkWaitForFences", self.device.handle, 1, fences, 1, _FOREVER) == TIMEOUT:
            pass

    def wait_for_all(self) -> None:
        """Wait until nothing is queued."""
        self.flush()
        if self._submitted:
            self.wait(self._submitted[-1].number)

    def _finish(self, done: Submission) -> None:
        self.completed = done.number
        fences = self.api.ffi.new("VkFence[]", [done.fence])
        self.api.call("vkResetFences", self.device.handle, 1, fences)
        for allocation in done.parameters:
            self.memory.release(allocation)
        for action in done.when_done:
            action()
        done.parameters.clear()
        done.when_done.clear()
        done.parameter_bytes = 0
        self._idle.append(done)

    def close(self) -> None:
        """Destroy everything; nothing may be on the device any more."""
        api, ffi, device = self.api, self.api.ffi, self.device.handle
        everything: Iterable[Submission] = (
            *self._idle,
            *self._submitted,
            *([self.recording] if self.recording else []),
        )
        for submission in everything:
            api.run("vkDestroyFence", device, submission.fence, ffi.NULL)
        api.run("vkDestroyCommandPool", device, self.pool, ffi.NULL)
