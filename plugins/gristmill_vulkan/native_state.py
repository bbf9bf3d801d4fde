"""What Python and the machine code that records launches both read and write, as C structures.

The code states the layout that it was made for, and :func:`difference` compares it with this one, so that neither takes
the other's fields for something else. The fields of an allocation live here also where there is no such code.
"""

from __future__ import annotations

import ctypes
import json

LAYOUT_VERSION = 2


class AllocationState(ctypes.Structure):
    """An allocation: where it lies, and when it was used last (see :mod:`gristmill_vulkan.hazards`)."""

    _fields_ = (
        ("address", ctypes.c_uint64),
        ("size", ctypes.c_uint64),
        ("buffer", ctypes.c_uint64),
        ("offset", ctypes.c_uint64),
        ("last_use", ctypes.c_int64),
        ("read_epoch", ctypes.c_int64),
        ("write_epoch", ctypes.c_int64),
    )
    address: int
    size: int
    buffer: int
    """The VkBuffer that it is a part of."""
    offset: int
    """Where in the buffer it begins, in bytes."""
    last_use: int
    read_epoch: int
    write_epoch: int


class SlotState(ctypes.Structure):
    """Where and how an argument stands in the block of parameters."""

    _fields_ = (
        ("offset", ctypes.c_uint32),
        ("form", ctypes.c_uint32),
        ("writes", ctypes.c_uint32),
        ("last", ctypes.c_uint32),
    )


class KernelState(ctypes.Structure):
    """A kernel, and what it was launched with last: the pipeline belongs to that."""

    _fields_ = (
        ("form", ctypes.c_uint32),
        ("argument_count", ctypes.c_uint32),
        ("axis_count", ctypes.c_uint32),
        ("block_bytes", ctypes.c_uint32),
        ("slots", ctypes.c_uint64),
        ("axes", ctypes.c_uint64),
        ("layout", ctypes.c_uint64),
        ("template", ctypes.c_uint64),
        ("pipeline", ctypes.c_uint64),
        ("block_x", ctypes.c_int64),
        ("block_y", ctypes.c_int64),
        ("block_z", ctypes.c_int64),
        ("dynamic", ctypes.c_int64),
        ("label", ctypes.c_uint64),
    )


class DeviceState(ctypes.Structure):
    """A device: what is being recorded, where memory lies, limits, and the functions that are called."""

    _fields_ = (
        ("busy", ctypes.c_uint32),
        ("batch", ctypes.c_uint32),
        ("recorded", ctypes.c_uint32),
        ("stages", ctypes.c_uint32),
        ("commands", ctypes.c_uint64),
        ("bound_pipeline", ctypes.c_uint64),
        ("epoch", ctypes.c_int64),
        ("number", ctypes.c_int64),
        ("starts", ctypes.c_uint64),
        ("states", ctypes.c_uint64),
        ("count", ctypes.c_int64),
        ("grid_x", ctypes.c_int64),
        ("grid_y", ctypes.c_int64),
        ("grid_z", ctypes.c_int64),
        ("storage_alignment", ctypes.c_int64),
        ("largest_range", ctypes.c_int64),
        ("nothing", ctypes.c_uint64),
        ("block_alignment", ctypes.c_int64),
        ("block_memory", ctypes.c_uint64),
        ("block_address", ctypes.c_uint64),
        ("block_buffer", ctypes.c_uint64),
        ("block_offset", ctypes.c_int64),
        ("block_used", ctypes.c_int64),
        ("block_size", ctypes.c_int64),
        ("memory_barrier", ctypes.c_uint64),
        ("launch_barrier", ctypes.c_uint64),
        ("bind_pipeline", ctypes.c_uint64),
        ("push_constants", ctypes.c_uint64),
        ("push_descriptors", ctypes.c_uint64),
        ("pipeline_barrier", ctypes.c_uint64),
        ("dispatch", ctypes.c_uint64),
        ("slow_device", ctypes.c_uint64),
        ("slow_launch", ctypes.c_uint64),
        ("flush", ctypes.c_uint64),
        ("clock", ctypes.c_uint64),
        ("early", ctypes.c_int64),
        ("deadline", ctypes.c_int64),
        ("fence_status", ctypes.c_uint64),
        ("handle", ctypes.c_uint64),
        ("last_fence", ctypes.c_uint64),
        ("begin_label", ctypes.c_uint64),
        ("end_label", ctypes.c_uint64),
        ("launches", ctypes.c_int64),
    )


_STRUCTURES = {"allocation": AllocationState, "slot": SlotState, "kernel": KernelState, "device": DeviceState}


def difference(text: str) -> str:
    """In what the layout that machine code states (JSON) is not this one, in a clause; an empty text if in nothing."""
    stated = json.loads(text)
    if stated["version"] != LAYOUT_VERSION:
        return f"it is of layout {stated['version']}, and this is {LAYOUT_VERSION}"
    for name, structure in _STRUCTURES.items():
        names = [field[0] for field in structure._fields_]
        ours = [(field, getattr(structure, field).offset, getattr(structure, field).size) for field in names]
        sizes = {"i32": 4, "i64": 8, "ptr": 8}
        theirs = [(field, offset, sizes[type_]) for field, type_, offset in stated["structures"].get(name, ())]
        if ours != theirs:
            return f"its structure `{name}` is another one"
    return ""
