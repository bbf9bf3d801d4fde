"""Launches recorded by native support code: no Python runs for one.

The state of the stream lives in Python's objects while the device's lock is held, and in a :class:`DeviceState` else:
:class:`DeviceLock` takes it from there and puts it back. Machine code looks at it only while nobody has the lock (the
word ``busy``), and hands every launch that it cannot record to the device's own :meth:`~VulkanDevice.launch`.
"""

from __future__ import annotations

import ctypes
import json
import os
import time
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gristmill.plugin.protocols import NativeLaunch
from gristmill.runtime.native_support import NoSupport, SupportCode, find_support
from gristmill_vulkan import stream as stream_module
from gristmill_vulkan.kernels import Kernel
from gristmill_vulkan.logical import PUSH_DESCRIPTORS
from gristmill_vulkan.native_state import DeviceState, KernelState, SlotState, difference

if TYPE_CHECKING:
    from gristmill_vulkan.device import VulkanDevice
    from gristmill_vulkan.recording import Recorder
    from gristmill_vulkan.stream import Stream

NAME = "vulkan_launch"
_LAYOUT, _LAUNCH = "gristmill_layout", "gristmill_vulkan_launch"
_ACQUIRE, _RELEASE = "gristmill_vulkan_acquire", "gristmill_vulkan_release"
# Of a kernel and of a slot, as the code numbers them. Kernels of form 0 are not launched by it.
_KERNEL_FORMS = {"push": 1, "address": 1, "address_block": 2, "uniform": 3}
_SLOT_FORMS = {"address": 0, "offset": 1, "i32": 2, "i64": 3, "f32": 4, "f64": 5}
_AXES = {
    f"{kind}.{axis}": place
    for place, (kind, axis) in enumerate((k, a) for k in ("blockIdx", "threadIdx") for a in "xyz")
}
_UNLIMITED = (1 << 32) - 1


def native_code() -> SupportCode | NoSupport:
    """The code, or why there is none that this runtime can use."""
    found = find_support(NAME)
    if isinstance(found, SupportCode) and (wrong := difference(found.text(_LAYOUT))):
        return NoSupport(f"{found.origin or NAME} is for another version: {wrong}")
    return found


class NativeRecording:
    """The state that a device shares with the code, and the handles of its kernels."""

    def __init__(
        self,
        code: SupportCode,
        recorder: Recorder,
        stream: Stream,
        grid: tuple[int, ...],
        is_open: Callable[[], bool],
    ) -> None:
        """``grid`` is the greatest number of blocks along x, y, z, 0 for no limit; ``is_open`` says whether to record."""
        self._is_open = is_open
        self._stream = stream
        self._memory = stream.memory
        self._limits = json.loads(code.text(_LAYOUT))["limits"]
        self._code = code
        self.launch_address = code.address(_LAUNCH)
        # These keep the interpreter lock: they are shorter than letting it go.
        self._acquire = ctypes.PYFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(code.address(_ACQUIRE))
        self._release = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(code.address(_RELEASE))
        self.state = DeviceState()
        self.address = ctypes.addressof(self.state)
        self._seen = 0
        self._fill(recorder, grid)
        _forget_in_forks(self.state)

    @property
    def launches(self) -> int:
        """How many launches the code has recorded."""
        return int(self.state.launches)

    def _fill(self, recorder: Recorder, grid: tuple[int, ...]) -> None:
        state, api, device = self.state, self._stream.api, self._stream.device
        state.grid_x, state.grid_y, state.grid_z = (limit or _UNLIMITED for limit in grid)
        state.storage_alignment = recorder.storage_alignment
        state.block_alignment = recorder.uniform_alignment
        state.largest_range = recorder.largest_range
        state.nothing = ctypes.addressof(recorder.nothing.state)
        state.launch_barrier = self._pointer(self._stream.barriers.between_launches)
        state.bind_pipeline = api.address("vkCmdBindPipeline")
        state.push_constants = api.address("vkCmdPushConstants")
        state.pipeline_barrier = api.address("vkCmdPipelineBarrier")
        state.dispatch = api.address("vkCmdDispatch")
        state.fence_status = api.address("vkGetFenceStatus")
        if PUSH_DESCRIPTORS in device.extensions:
            state.push_descriptors = api.address("vkCmdPushDescriptorSetWithTemplateKHR")
        if device.instance.is_validated:
            state.begin_label = api.address("vkCmdBeginDebugUtilsLabelEXT")
            state.end_label = api.address("vkCmdEndDebugUtilsLabelEXT")
        state.handle = self._pointer(device.handle)
        clock = ctypes.CDLL(None).clock_gettime
        state.clock = ctypes.cast(clock, ctypes.c_void_p).value or 0

    def _pointer(self, handle: Any) -> int:
        return int(self._stream.api.ffi.cast("uintptr_t", handle)) if handle is not None else 0

    # The lock

    def take(self) -> None:
        """Have the state to oneself, and bring Python's objects up to date. Called with the device's lock."""
        while not self._acquire(self.address):
            # A thread without the interpreter lock is recording: that takes a microsecond.
            time.sleep(0)
        state, stream = self.state, self._stream
        if state.launches != self._seen:
            self._seen = state.launches
            if state.epoch != stream.epoch:
                stream.barriers.note_launches()
            stream.epoch, stream.recorded = state.epoch, state.recorded
            # Which one is bound does not matter, only that it is not the one that Python bound.
            stream.bound_pipeline = None
            if stream.recording is not None and stream.recording.parameters:
                stream.recording.parameter_bytes = state.block_used

    def give(self) -> None:
        """Say what holds now, and let the code record."""
        state, stream = self.state, self._stream
        recording = stream.recording
        state.commands = 0
        if recording is not None and self._is_open():
            state.batch = stream_module.LARGEST_BATCH
            state.recorded = stream.recorded
            state.bound_pipeline = self._pointer(stream.bound_pipeline)
            state.epoch, state.number = stream.epoch, stream.next_number
            state.stages, barrier = stream.barriers.next
            state.memory_barrier = self._pointer(barrier)
            state.early, state.deadline = stream.early, stream.deadline
            state.last_fence = self._pointer(stream.last_fence)
            state.starts, _ = self._memory.starts.buffer_info()
            state.states, state.count = self._memory.states.buffer_info()
            state.block_memory = 0
            if recording.parameters:
                last = recording.parameters[-1]
                state.block_memory, state.block_address = last.mapped, last.address
                state.block_buffer, state.block_offset = last.state.buffer, last.offset
                state.block_used, state.block_size = recording.parameter_bytes, last.size
            state.commands = self._pointer(recording.commands)
        self._release(self.address)

    # Kernels

    def handle(self, kernel: Kernel) -> int:
        """What stands for a kernel in a context table: the address of its state, which the kernel keeps."""
        state = KernelState()
        form, record = kernel.form, kernel.record
        slots = (SlotState * max(len(form.slots), 1))()
        for place, slot in enumerate(form.slots):
            slots[place] = SlotState(slot.offset, _SLOT_FORMS[slot.form], bool(kernel.writes[place]), 0)
        axes = (ctypes.c_int32 * max(len(record.axes), 1))(*(_AXES.get(axis, 0) for axis in record.axes))
        state.argument_count, state.axis_count = len(form.slots), len(record.axes)
        state.block_bytes = form.block_bytes
        state.slots, state.axes = ctypes.addressof(slots), ctypes.addressof(axes)
        state.layout = self._pointer(kernel.layout)
        label = text = None
        if self.state.begin_label:
            api = self._stream.api
            text = api.ffi.new("char[]", record.name.encode())
            label = api.new("VkDebugUtilsLabelEXT", pLabelName=text)
            state.label = self._pointer(label)
        kernel.native_state = (state, slots, axes, label, text)
        if self._can_launch(kernel):
            if form.is_bound:
                state.template = self._pointer(kernel.update_template())
            state.form = _KERNEL_FORMS[form.arguments]
        return ctypes.addressof(state)

    def _can_launch(self, kernel: Kernel) -> bool:
        form, record = kernel.form, kernel.record
        arrays = sum(argument.kind == "buffer" for argument in record.arguments)
        return (
            all(axis in _AXES for axis in record.axes)
            and arrays <= self._limits["buffers"]
            and form.push_bytes <= self._limits["push_bytes"]
            and (not form.is_bound or kernel.uses_push_descriptors)
        )

    def launched(self, kernel: Kernel, pipeline: Any, block: tuple[int, ...], dynamic_shared: int) -> None:
        """Let the code record launches with this block and dynamic shared memory. Called with the device's lock."""
        if kernel.native_state is not None:
            state = kernel.native_state[0]
            state.block_x, state.block_y, state.block_z = block
            state.dynamic = dynamic_shared
            state.pipeline = self._pointer(pipeline)


def native_launch(device: VulkanDevice, native: NativeRecording) -> NativeLaunch:
    """The functions for context tables: the code's, and those in Python that it hands to what it cannot do."""
    from gristmill_vulkan.callbacks import callbacks_of_device, flush_callback

    callbacks, flushing = callbacks_of_device(device), flush_callback(device)
    native.state.slow_launch = callbacks.launch
    native.state.flush = int(device.logical.api.ffi.cast("uintptr_t", flushing))
    owner = (callbacks, flushing, native)
    return NativeLaunch(native.address, native.launch_address, callbacks.allocate, callbacks.release, owner)


def _forget_in_forks(state: DeviceState) -> None:
    """In a forked process nothing is recorded any more: the device is the other process's."""
    found = weakref.ref(state)

    def forget() -> None:
        if (kept := found()) is not None:
            kept.commands = kept.busy = 0

    os.register_at_fork(after_in_child=forget)
