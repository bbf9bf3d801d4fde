"""Recording one launch: arguments into the block of parameters and the descriptors, the barrier, the dispatch.

Three ways, which give the same results: with push descriptors (``VK_KHR_push_descriptor``), with descriptor sets of the
submission's own pool where that extension is missing or switched off, and with addresses and no descriptors at all.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from gristmill.errors import Diagnostic, UserError
from gristmill.plugin.artifacts import KernelRecord
from gristmill_vulkan.debugging import begin_label, end_label
from gristmill_vulkan.descriptors import STORAGE_BUFFER, UNIFORM_BUFFER
from gristmill_vulkan.kernels import COMPUTE_STAGE, Kernel
from gristmill_vulkan.logical import LogicalDevice
from gristmill_vulkan.memory import Allocation, Memory
from gristmill_vulkan.results import size_text
from gristmill_vulkan.stream import Stream

_COMPUTE = 1

Uses = list[tuple[Allocation, bool]]


class Recorder:
    """Records launches into a stream. The device holds its lock."""

    def __init__(self, name: str, device: LogicalDevice, memory: Memory, stream: Stream) -> None:
        self.name = name
        self.device = device
        self.memory = memory
        self.stream = stream
        self.api = device.api
        limits = device.physical.limits
        self.storage_alignment: int = limits["storage_alignment"]
        self.uniform_alignment: int = limits["uniform_alignment"]
        self.largest_range: int = limits["max_storage_buffer_range"]
        self.nothing = memory.allocate(256)
        """What is bound for an array without elements."""

    def record(
        self,
        kernel: Kernel,
        pipeline: Any,
        args: Sequence[Any],
        grid: tuple[int, int, int],
    ) -> None:
        """Record a launch. Raises UserError (GM0923) for an address that is no memory of this device."""
        form, record = kernel.form, kernel.record
        data = bytearray(form.block_bytes)
        uses: Uses = []
        bound: list[tuple[Any, int, int]] = []
        for slot, argument, writes, value in zip(form.slots, record.arguments, kernel.writes, args, strict=True):
            if argument.kind == "buffer":
                place = self._place(record, argument.name, value)
                if place is not None:
                    uses.append((place[0], writes))
                if slot.form == "address":
                    struct.pack_into("<Q", data, slot.offset, value or 0)
                else:
                    bound.append(self._bound(record, argument.name, place, data, slot.offset))
            else:
                _put(data, slot.offset, slot.form, value)
        commands = self.stream.commands()
        pushed = bytes(data)
        parameters: tuple[Allocation, int] | None = None
        if form.arguments in ("uniform", "address_block"):
            parameters = self.stream.parameters(pushed, self.uniform_alignment)
            pushed = struct.pack("<Q", parameters[0].address + parameters[1])
        self.stream.order(uses)
        api = self.api
        if self.stream.bound_pipeline != pipeline:
            api.run("vkCmdBindPipeline", commands, _COMPUTE, pipeline)
            self.stream.bound_pipeline = pipeline
        if form.push_bytes:
            api.run(
                "vkCmdPushConstants",
                commands,
                kernel.layout,
                COMPUTE_STAGE,
                0,
                form.push_bytes,
                api.ffi.from_buffer(pushed),
            )
        if form.is_bound:
            if form.arguments == "uniform":
                assert parameters is not None
                bound.append((parameters[0].block.buffer, parameters[0].offset + parameters[1], form.block_bytes))
            self._bind(kernel, commands, bound)
        if self.device.instance.is_validated:
            begin_label(api, commands, record.name)
            api.run("vkCmdDispatch", commands, *grid)
            end_label(api, commands)
        else:
            api.run("vkCmdDispatch", commands, *grid)
        self.stream.count()

    def _place(self, record: KernelRecord, argument: str, address: int | None) -> tuple[Allocation, int] | None:
        if not address:
            return None
        found = self.memory.at(address)
        if found is None:
            raise self._foreign(record, argument, address)
        return found

    def _foreign(self, record: KernelRecord, argument: str, address: int) -> UserError:
        """GM0923: memory that is not of this device."""
        others = [device.name for device in self.device.instance.devices if device.has_address(address)]
        what = f"an array of {others[0]}, and runs" if others else "an address that is no memory of"
        return UserError(
            Diagnostic(
                "GM0923",
                f"the kernel `{record.name}` is given for `{argument}` {what} {'on ' if others else ''}{self.name}",
                hint="make the array with the device, and keep it as long as kernels use it",
            )
        )

    def _bound(
        self, record: KernelRecord, argument: str, place: tuple[Allocation, int] | None, data: bytearray, slot: int
    ) -> tuple[Any, int, int]:
        """The buffer, offset and range to bind for an array; how much later it starts goes into the block."""
        allocation, offset = place if place is not None else (self.nothing, 0)
        start = offset // self.storage_alignment * self.storage_alignment
        struct.pack_into("<I", data, slot, offset - start)
        # Rounded up to whole words, which the allocation has room for.
        size = max(-(-(allocation.size - start) // 4) * 4, 4)
        if size > self.largest_range:
            raise too_large_to_bind(record.name, argument, size, self.name, self.largest_range)
        return allocation.block.buffer, allocation.offset + start, size

    def _bind(self, kernel: Kernel, commands: Any, bound: Sequence[tuple[Any, int, int]]) -> None:
        if not bound:
            return
        api, ffi = self.api, self.api.ffi
        infos = ffi.new(
            "VkDescriptorBufferInfo[]",
            [{"buffer": buffer, "offset": offset, "range": size} for buffer, offset, size in bound],
        )
        writes = ffi.new(f"VkWriteDescriptorSet[{len(bound)}]")
        for place, write in enumerate(writes):
            write.sType = api.lib.VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET
            write.dstBinding = place
            write.descriptorCount = 1
            write.descriptorType = STORAGE_BUFFER if place < kernel.form.buffers else UNIFORM_BUFFER
            write.pBufferInfo = infos + place
        if kernel.uses_push_descriptors:
            api.run("vkCmdPushDescriptorSetKHR", commands, _COMPUTE, kernel.layout, 0, len(bound), writes)
            return
        made = self.stream.descriptor_set(kernel.set_layout, kernel.form.buffers)
        for write in writes:
            write.dstSet = made[0]
        api.run("vkUpdateDescriptorSets", self.device.handle, len(bound), writes, 0, ffi.NULL)
        api.run("vkCmdBindDescriptorSets", commands, _COMPUTE, kernel.layout, 0, 1, made, 0, ffi.NULL)


def too_large_to_bind(kernel: str, argument: str, size: int, device: str, largest: int) -> UserError:
    """GM0933: an array of more bytes than a storage buffer may have."""
    return UserError(
        Diagnostic(
            "GM0933",
            f"the kernel `{kernel}` is given for `{argument}` an array of {size_text(size)}, and "
            f"{device} binds at most {size_text(largest)}",
            hint="build the kernel with `address = true` in its target, which has no such limit",
        )
    )


def _put(data: bytearray, offset: int, form: str, value: Any) -> None:
    """A scalar in its place."""
    if form == "f32":
        struct.pack_into("<f", data, offset, _as_float32(value))
    elif form == "f64":
        struct.pack_into("<d", data, offset, value)
    elif form == "i32":
        struct.pack_into("<I", data, offset, int(value) & 0xFFFFFFFF)
    else:
        struct.pack_into("<Q", data, offset, int(value) & 0xFFFFFFFFFFFFFFFF)


def _as_float32(value: float) -> float:
    """A float that came through the packed interface; too large for float32 it is infinite, as in a cast."""
    import ctypes

    return ctypes.c_float(value).value
