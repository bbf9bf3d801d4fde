"""Memory of the device: few large blocks, each with one buffer over it, and allocations in them known by address.

The address of an allocation is that of the device where it has addresses (``bufferDeviceAddress``), and else one of a
range that this runtime issues: blocks get ranges that never meet, far from each other. Either way an address, also one
in the middle of an allocation, leads back to a buffer and an offset.
"""

from __future__ import annotations

import ctypes
from array import array
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Any

from gristmill_vulkan.free_ranges import FreeRanges
from gristmill_vulkan.logical import LogicalDevice
from gristmill_vulkan.native_state import AllocationState
from gristmill_vulkan.results import OUT_OF_MEMORY, DeviceMemoryError, VulkanError

MAPPED_ARRAYS = "mapped_arrays"
"""Left out by GRISTMILL_VULKAN_WITHOUT: arrays that the host sees; all copies then go through other memory."""
BLOCK_BYTES = 64 << 20
ALIGNMENT = 256
"""Of allocations; no device asks for more of a storage buffer's offset (Vulkan specification, "Limits")."""
_FIRST_ISSUED, _ISSUED_RANGE = 1 << 56, 1 << 44
_DEVICE_LOCAL, _HOST_VISIBLE, _HOST_COHERENT, _HOST_CACHED = 0x1, 0x2, 0x4, 0x8
_TRANSFER, _UNIFORM, _STORAGE, _ADDRESS = 0x3, 0x10, 0x20, 0x20000


@dataclass(eq=False, slots=True)
class Block:
    """One VkDeviceMemory, and the buffer over all of it. ``mapped`` is where the host sees it, 0 where it does not."""

    memory: Any
    buffer: Any
    size: int
    address: int
    mapped: int
    is_cached: bool
    free: FreeRanges
    kind: int


@dataclass(eq=False, slots=True)
class Allocation:
    """A part of a block. The epochs say when kernels last read and wrote it (see :mod:`gristmill_vulkan.hazards`)."""

    block: Block
    offset: int
    size: int
    """What was asked for; what is taken is more where that was nothing."""
    taken: int
    address: int
    state: AllocationState
    """What machine code that records launches changes too."""
    is_dead: bool = False

    @property
    def last_use(self) -> int:
        """The number of the last submission that uses it."""
        return self.state.last_use

    @last_use.setter
    def last_use(self, number: int) -> None:
        self.state.last_use = number

    @property
    def read_epoch(self) -> int:
        """When a kernel last read it; -1 if none did."""
        return self.state.read_epoch

    @read_epoch.setter
    def read_epoch(self, epoch: int) -> None:
        self.state.read_epoch = epoch

    @property
    def write_epoch(self) -> int:
        """When a kernel last wrote it; -1 if none did."""
        return self.state.write_epoch

    @write_epoch.setter
    def write_epoch(self, epoch: int) -> None:
        self.state.write_epoch = epoch

    @property
    def mapped(self) -> int:
        """Where the host sees the allocation; 0 where it does not."""
        return self.block.mapped and self.block.mapped + self.offset


@dataclass(slots=True)
class MemoryKind:
    """A type of memory, by what it is for."""

    index: int
    is_mapped: bool
    is_cached: bool
    blocks: list[Block] = field(default_factory=list)


class Memory:
    """All memory of a device: ``arrays`` for kernels, ``staging`` for the host to read and write."""

    def __init__(self, name: str, device: LogicalDevice, block_bytes: int = BLOCK_BYTES) -> None:
        self.name = name
        self.device = device
        self.block_bytes = block_bytes
        self.has_addresses = "address" in device.features
        self.arrays = self._kind(array_type(device), MAPPED_ARRAYS not in device.without)
        self.staging = self._kind(staging_type(device), True)
        # Both as C arrays, which machine code searches.
        self.starts = array("Q")
        self.states = array("Q")
        self._allocations: list[Allocation] = []
        # No two devices issue the same.
        self._issued = _FIRST_ISSUED + next(device.instance.numbers) * _ISSUED_RANGE

    def _kind(self, index: int, may_map: bool) -> MemoryKind:
        flags = self.device.physical.memory_types[index][0]
        mapped = _HOST_VISIBLE | _HOST_COHERENT
        return MemoryKind(index, may_map and flags & mapped == mapped, bool(flags & _HOST_CACHED))

    @property
    def count(self) -> int:
        """How many allocations there are."""
        return len(self._allocations)

    @property
    def block_count(self) -> int:
        return len(self.arrays.blocks) + (0 if self.staging is self.arrays else len(self.staging.blocks))

    def allocate(self, size: int, alignment: int = ALIGNMENT, staging: bool = False) -> Allocation:
        """New memory; nothing asked for is something too. Raises DeviceMemoryError (GM0931)."""
        kind = self.staging if staging else self.arrays
        step = max(alignment, ALIGNMENT)
        taken = -(-max(size, 1) // step) * step
        for block in kind.blocks:
            start = block.free.take(taken, step)
            if start is not None:
                return self._made(block, start, size, taken)
        block = self._new_block(kind, max(self.block_bytes, taken) if taken <= self.block_bytes // 2 else taken, size)
        kind.blocks.append(block)
        start = block.free.take(taken, step)
        assert start is not None
        return self._made(block, start, size, taken)

    def _made(self, block: Block, start: int, size: int, taken: int) -> Allocation:
        address = block.address + start
        buffer = int(self.device.api.ffi.cast("uintptr_t", block.buffer))
        found = Allocation(block, start, size, taken, address, AllocationState(address, size, buffer, start, 0, -1, -1))
        place = bisect_right(self.starts, address)
        self.starts.insert(place, address)
        self.states.insert(place, ctypes.addressof(found.state))
        self._allocations.insert(place, found)
        return found

    def release(self, allocation: Allocation) -> None:
        """Give memory back, once nothing uses it. A block with nothing in it goes, but for the last of its kind."""
        place = bisect_right(self.starts, allocation.address) - 1
        assert self._allocations[place] is allocation
        del self.starts[place], self.states[place], self._allocations[place]
        block = allocation.block
        block.free.give_back(allocation.offset, allocation.taken)
        for kind in (self.arrays, self.staging):
            if block in kind.blocks and block.free.is_whole and (len(kind.blocks) > 1 or block.size > self.block_bytes):
                kind.blocks.remove(block)
                self._destroy(block)

    def at(self, address: int) -> tuple[Allocation, int] | None:
        """The allocation that an address lies in (or just behind), and how far from its start."""
        place = bisect_right(self.starts, address) - 1
        if place < 0:
            return None
        found = self._allocations[place]
        offset = address - found.address
        return (found, offset) if offset <= found.size else None

    def close(self) -> None:
        """Destroy all blocks."""
        for kind in (self.arrays, self.staging):
            for block in kind.blocks:
                self._destroy(block)
            kind.blocks.clear()
        del self.starts[:], self.states[:]
        self._allocations.clear()

    # Blocks

    def _new_block(self, kind: MemoryKind, size: int, asked: int) -> Block:
        api, ffi, device = self.device.api, self.device.api.ffi, self.device.handle
        usage = _TRANSFER | _UNIFORM | _STORAGE | (_ADDRESS if self.has_addresses else 0)
        buffer, memory = ffi.new("VkBuffer *"), ffi.new("VkDeviceMemory *")
        try:
            api.call("vkCreateBuffer", device, api.new("VkBufferCreateInfo", size=size, usage=usage), ffi.NULL, buffer)
            needs = ffi.new("VkMemoryRequirements *")
            api.run("vkGetBufferMemoryRequirements", device, buffer[0], needs)
            flags = api.new("VkMemoryAllocateFlagsInfo", flags=2)
            info = api.new("VkMemoryAllocateInfo", allocationSize=needs.size, memoryTypeIndex=kind.index)
            if self.has_addresses:
                info.pNext = flags
            api.call("vkAllocateMemory", device, info, ffi.NULL, memory)
            api.call("vkBindBufferMemory", device, buffer[0], memory[0], 0)
            mapped = 0
            if kind.is_mapped:
                where = ffi.new("void **")
                api.call("vkMapMemory", device, memory[0], 0, needs.size, 0, where)
                mapped = int(ffi.cast("uintptr_t", where[0]))
        except VulkanError as error:
            api.run("vkDestroyBuffer", device, buffer[0], ffi.NULL)
            api.run("vkFreeMemory", device, memory[0], ffi.NULL)
            if error.result in OUT_OF_MEMORY:
                raise DeviceMemoryError(self.name, asked, error.call, error.result) from None
            raise
        return Block(
            memory[0],
            buffer[0],
            size,
            self._address(buffer[0], size),
            mapped,
            kind.is_cached,
            FreeRanges(size),
            kind.index,
        )

    def _address(self, buffer: Any, size: int) -> int:
        if self.has_addresses:
            info = self.device.api.new("VkBufferDeviceAddressInfo", buffer=buffer)
            return int(self.device.api.run("vkGetBufferDeviceAddress", self.device.handle, info))
        found = self._issued
        # A gap, so that the end of one block is not the start of the next.
        self._issued += -(-(size + ALIGNMENT) // ALIGNMENT) * ALIGNMENT
        return found

    def _destroy(self, block: Block) -> None:
        api = self.device.api
        api.run("vkDestroyBuffer", self.device.handle, block.buffer, api.ffi.NULL)
        api.run("vkFreeMemory", self.device.handle, block.memory, api.ffi.NULL)


def array_type(device: LogicalDevice) -> int:
    """The type of memory for arrays: of the device, and seen by the host too where that costs nothing.

    It costs nothing where the whole heap is so (resizable BAR, or a device that shares memory with the host); a small
    window of it is left to others.
    """
    physical = device.physical
    local = [place for place, (flags, _) in enumerate(physical.memory_types) if flags & _DEVICE_LOCAL]
    if not local:
        local = list(range(len(physical.memory_types)))
    largest = max(physical.heaps[physical.memory_types[place][1]][0] for place in local)

    def worth(place: int) -> tuple[bool, bool, int]:
        flags, heap = physical.memory_types[place]
        visible = flags & (_HOST_VISIBLE | _HOST_COHERENT) == _HOST_VISIBLE | _HOST_COHERENT
        whole = physical.heaps[heap][0] >= largest
        return whole, visible, -place

    return max(local, key=worth)


def staging_type(device: LogicalDevice) -> int:
    """The type of memory that the host reads and writes: cached if there is such."""
    wanted = _HOST_VISIBLE | _HOST_COHERENT
    found = [place for place, (flags, _) in enumerate(device.physical.memory_types) if flags & wanted == wanted]
    types = device.physical.memory_types
    # Of the host before of the device: reading over the bus is slow.
    return max(
        found, key=lambda place: (bool(types[place][0] & _HOST_CACHED), not types[place][0] & _DEVICE_LOCAL, -place)
    )
