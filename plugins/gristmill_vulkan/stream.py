"""The order of work on a device: commands recorded into one buffer at a time, submitted in batches, waited for by number.

A submission is known by its number; the one that is being recorded has the next. Work is submitted when so much of it is
recorded, when the device would else have nothing to do, when somebody waits for it, and when some time has passed since
it was begun: the next launch sees that, and where none comes, a thread (:mod:`gristmill_vulkan.submission_timer`).

All but the methods that wait are called with the device's lock held. Those that wait are called without it, and hold it
only to look: other threads go on launching meanwhile.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from typing import Any

from gristmill_vulkan.barriers import Barriers
from gristmill_vulkan.device_lock import DeviceLock, Users
from gristmill_vulkan.hazards import needs_barrier, note
from gristmill_vulkan.logical import LogicalDevice
from gristmill_vulkan.memory import Allocation, Memory
from gristmill_vulkan.results import DEVICE_LOST, NOT_READY, TIMEOUT, DeviceGoneError, DeviceMemoryError, VulkanError
from gristmill_vulkan.submission_timer import SubmissionTimer
from gristmill_vulkan.submissions import Submission, destroy, make_ready, new_submission

LARGEST_BATCH = 128
"""Launches in one submission: a submission costs the device as much as some ten of them."""
LARGEST_QUEUE = 16
"""Submissions that are queued at a time; who launches more waits."""
_LONGEST_BATCH_SECONDS = 200e-6
_SHORTEST_BATCH_SECONDS = 60e-6
"""For how long machine code records on although the device has nothing to do: a submission costs the host as much."""
LATEST_SECONDS = 1e-3
"""After what time a batch is submitted that no later launch has submitted; the launches after the longest one all do."""
_SPIN_SECONDS = 100e-6
"""For how long a thread looks at a fence before it blocks, unless the device is the processor that it would keep busy."""
_BLOCK_NANOSECONDS = 50_000_000
"""For how long a thread blocks before it looks whether it is interrupted."""
_PARAMETER_BYTES = 1 << 16
_ONE_TIME = 0x1


class Stream:
    """The queue of a device."""

    def __init__(self, device: LogicalDevice, memory: Memory, lock: DeviceLock, timer: SubmissionTimer) -> None:
        """Raises VulkanError."""
        self.device = device
        self.timer = timer
        self.memory = memory
        self.lock = lock
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
        self._is_used = False
        self._has_blocks = False
        """Whether there were blocks of parameters in memory."""
        self.bound_pipeline: Any = None
        self._begun = 0.0
        self._submitted: deque[Submission] = deque()
        self._idle: list[Submission] = []
        self._watched: set[Submission] = set()
        """Those that threads look at without the lock."""
        self._users = Users(lock)
        self.is_closed = False
        """Set by who closes the device, before it waits for the device to be idle: nothing is recorded any more."""
        self.barriers = Barriers(api)

    # Recording

    def commands(self) -> Any:
        """The command buffer to record into. Raises VulkanError; then nothing has changed."""
        self.check_open()
        if self.recording is None:
            self._begin()
        assert self.recording is not None
        self._is_used = True
        return self.recording.commands

    def prepare(self) -> None:
        """Have a command buffer for machine code to record into. Where there is none, launches go without that code."""
        if self.recording is None:
            with suppress(VulkanError, DeviceMemoryError):
                self._begin()
                if self.recording is not None and self._has_blocks:
                    self.recording.parameters.append(self.memory.allocate(_PARAMETER_BYTES, staging=True))

    def _rest(self) -> None:
        """Give back the memory that was prepared, where nothing was recorded."""
        if self.recording is not None and not self.is_recording:
            for allocation in self.recording.parameters:
                self.memory.release(allocation)
            self.recording.parameters.clear()
            self.recording.parameter_bytes = 0

    @property
    def is_recording(self) -> bool:
        """Whether something is recorded that is not submitted."""
        return self.recording is not None and (self._is_used or self.recorded > 0)

    def order(self, uses: list[tuple[Allocation, bool]], is_copy: bool = False) -> None:
        """Put a barrier before the next launch or copy where it needs one, and remember what it uses."""
        self.commands()
        if needs_barrier(uses, self.epoch) or (is_copy and self.barriers.stopped_launches_only):
            self._barrier(is_copy)
        self.barriers.has_copies |= is_copy
        note(uses, self.epoch, self.next_number)

    def _barrier(self, is_copy: bool) -> None:
        assert self.recording is not None
        self.barriers.record(self.recording.commands, is_copy)
        self.epoch += 1

    def count(self) -> None:
        """A command was recorded: submit if it is time to."""
        self.recorded += 1
        self.flush_if_due()

    def flush_if_due(self) -> None:
        """Submit if enough is recorded, if the first was recorded long ago, or if the device has nothing to do."""
        if self.recorded < LARGEST_BATCH and time.perf_counter() - self._begun < _LONGEST_BATCH_SECONDS:
            self.poll()
            if self._submitted:
                return
        self.flush()

    def flush_late(self) -> float | None:
        """Submit what was begun long ago; after how many seconds to look again, None if not before the next is begun."""
        if self.recording is not None and not self.is_closed:
            rest = self._begun + LATEST_SECONDS - time.perf_counter()
            if rest > 0:
                return rest
        # First, for submitting may fail.
        self.timer.disarm()
        self.flush()
        return None

    def parameters(self, data: bytes, alignment: int) -> tuple[Allocation, int]:
        """Memory with a block of parameters, which stays as it is until the submission is done; and where in it."""
        self.commands()
        current = self.recording
        assert current is not None
        self._has_blocks = True
        start = -(-current.parameter_bytes // alignment) * alignment
        if not current.parameters or start + len(data) > current.parameters[-1].size:
            current.parameters.append(self.memory.allocate(max(_PARAMETER_BYTES, len(data)), staging=True))
            start = 0
        allocation = current.parameters[-1]
        self.api.ffi.memmove(self.api.ffi.cast("char *", allocation.mapped + start), data, len(data))
        current.parameter_bytes = start + len(data)
        return allocation, start

    def descriptor_set(self, layout: Any, buffers: int) -> Any:
        """A set for one launch, as an array of one. Raises VulkanError."""
        self.commands()
        assert self.recording is not None
        return self.recording.descriptors.take(layout, buffers)

    def when_done(self, action: Callable[[], None]) -> None:
        """Do something once all that is queued or recorded now is done: at once if nothing is."""
        last = self.recording if self.is_recording else self._submitted[-1] if self._submitted else None
        if last is None:
            action()
        else:
            last.when_done.append(action)

    def bury(self, allocation: Allocation) -> None:
        """Give memory back that nothing new will use, once the work that uses it is done."""
        number = allocation.last_use
        if number <= self.completed:
            self.memory.release(allocation)
        elif self.recording is not None and number >= self.recording.number:
            self.recording.dead.append(allocation)
        else:
            # Numbers follow each other without gaps.
            self._submitted[number - self._submitted[0].number].dead.append(allocation)

    def _begin(self) -> None:
        current = self._idle.pop() if self._idle else new_submission(self.device, self.pool)
        try:
            self.api.call(
                "vkBeginCommandBuffer", current.commands, self.api.new("VkCommandBufferBeginInfo", flags=_ONE_TIME)
            )
        except BaseException:
            self._idle.append(current)
            raise
        current.number = self.next_number
        self.recording = current
        self.recorded = 0
        self._is_used = False
        self.bound_pipeline = None
        self._begun = time.perf_counter()
        self.timer.arm()
        # What was submitted before is ordered by nothing but this.
        if self.next_number > 1:
            self._barrier(is_copy=False)

    @property
    def deadline(self) -> int:
        """When what is being recorded is to be submitted at the latest, in nanoseconds of the monotonic clock."""
        return int((self._begun + _LONGEST_BATCH_SECONDS) * 1e9)

    @property
    def early(self) -> int:
        """Until when it is not submitted only because the device has nothing to do; in the same nanoseconds."""
        return int((self._begun + _SHORTEST_BATCH_SECONDS) * 1e9)

    @property
    def last_fence(self) -> Any:
        """What is signalled when the device has done all that is submitted; None where nothing is known to be."""
        last = self._submitted[-1] if self._submitted else None
        return last.fence if last is not None and last.is_submitted else None

    # Submitting

    def flush(self) -> None:
        """Submit what is recorded. Raises VulkanError; what was recorded has then gone, and the next work goes on."""
        current = self.recording
        if current is None or not self.is_recording:
            return
        self.check_open()
        api, ffi = self.api, self.api.ffi
        # The device reads memory that the host wrote before; the host reads what the device wrote after this.
        self.barriers.record_to_host(current.commands)
        self.recording = None
        self._submitted.append(current)
        self.next_number += 1
        commands = ffi.new("VkCommandBuffer[]", [current.commands])
        info = api.new("VkSubmitInfo", commandBufferCount=1, pCommandBuffers=commands)
        try:
            api.call("vkEndCommandBuffer", current.commands)
            current.is_submitted = True
            api.call("vkQueueSubmit", self.device.queue, 1, info, current.fence)
        except VulkanError as error:
            current.is_submitted = False
            self.barriers.note_loss()
            if error.result == DEVICE_LOST:
                raise
            lost = f"{self.recorded} queued launches and copies have not run"
            raise VulkanError(error.call, error.result, lost) from None

    def poll(self) -> None:
        """Take note of what is done. Raises VulkanError."""
        self._check()
        while self._submitted:
            first = self._submitted[0]
            if first.is_submitted and self._status(first.fence) == NOT_READY:
                return
            self._submitted.popleft()
            self._finish(first)

    def _status(self, fence: Any) -> int:
        return self.api.call("vkGetFenceStatus", self.device.handle, fence)

    def check_open(self) -> None:
        """Raises DeviceGoneError (GM0934) for a device that is being closed, or is."""
        if self.is_closed:
            raise DeviceGoneError(self.device.name, "was closed")

    def in_use(self) -> AbstractContextManager[None]:
        """Nothing is destroyed meanwhile, though the lock is not held. Raises DeviceGoneError (GM0934)."""
        return self._users.one_more(self.check_open)

    def _check(self) -> None:
        """After the loss of the device nobody knows what it still uses: nothing is given back until it is closed."""
        self.check_open()
        if self.api.is_lost:
            raise VulkanError("vkGetFenceStatus", DEVICE_LOST)

    def _finish(self, done: Submission) -> None:
        self.completed = done.number
        done.is_done = True
        actions, memory = list(done.when_done), [*done.parameters, *done.dead]
        done.when_done.clear()
        done.parameters.clear()
        done.dead.clear()
        for allocation in memory:
            self.memory.release(allocation)
        faults: list[BaseException] = []
        for action in actions:
            try:
                action()
            except BaseException as fault:
                faults.append(fault)
        if not done.waiting_threads:
            self._recycle(done)
        if faults:
            raise faults[0]

    def _recycle(self, done: Submission) -> None:
        try:
            make_ready(done, self.device)
        except VulkanError:
            # What cannot be used again is made anew when it is needed.
            destroy(done, self.device, self.pool)
        else:
            self._idle.append(done)

    # Waiting, without the lock

    @property
    def is_full(self) -> bool:
        """Whether so much is queued that who launches has to wait."""
        return len(self._submitted) > LARGEST_QUEUE

    def wait(self, number: int) -> None:
        """Wait until the submission of that number is done; it is submitted if need be. Raises VulkanError."""
        watched: Submission | None = None
        try:
            with self.lock:
                if number >= self.next_number:
                    self.flush()
                watched = self._watch(number)
            while watched is not None:
                self._wait_for(watched.fence)
                with self.lock:
                    watched = self._watch(number, watched)
        finally:
            with self.lock:
                self._leave(watched)

    def wait_for_all(self) -> None:
        """Wait until nothing is queued that is queued now. Raises VulkanError."""
        with self.lock:
            last = self.next_number if self.is_recording else self.next_number - 1
        self.wait(last)
        with self.lock:
            self._rest()

    def wait_for_room(self) -> None:
        """Wait until less is queued."""
        with self.lock:
            number = self._submitted[0].number if self._submitted else 0
        self.wait(number)

    def _watch(self, number: int, before: Submission | None = None) -> Submission | None:
        """What to look at until that submission is done, and no longer at the one before; None if it is."""
        self.poll()
        last = None
        for found in self._submitted:
            if found.number > number:
                break
            if found.is_submitted:
                last = found
        if last is not None:
            last.waiting_threads += 1
            self._watched.add(last)
        self._leave(before)
        return last

    def _leave(self, watched: Submission | None) -> None:
        if watched is None:
            return
        watched.waiting_threads -= 1
        if not watched.waiting_threads:
            self._watched.discard(watched)
            if watched.is_done:
                self._recycle(watched)

    def _wait_for(self, fence: Any) -> None:
        spin = 0.0 if self.device.physical.kind == "cpu" else _SPIN_SECONDS
        started = time.perf_counter()
        while time.perf_counter() - started < spin:
            if self._status(fence) != NOT_READY:
                return
        fences = self.api.ffi.new("VkFence[]", [fence])
        while self.api.call("vkWaitForFences", self.device.handle, 1, fences, 1, _BLOCK_NANOSECONDS) == TIMEOUT:
            self._check()

    @property
    def is_watched(self) -> bool:
        """Whether threads look at fences, or use memory, without the lock."""
        return bool(self._watched) or self._users.are_there

    def close(self) -> None:
        """Destroy everything; the device must be idle."""
        for submission in {
            *self._idle,
            *self._submitted,
            *self._watched,
            *([self.recording] if self.recording else []),
        }:
            destroy(submission, self.device, self.pool)
        self._idle.clear()
        self._submitted.clear()
        self.recording = None
        self.api.run("vkDestroyCommandPool", self.device.handle, self.pool, self.api.ffi.NULL)
