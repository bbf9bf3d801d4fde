"""What Python and the machine code that records launches both read and write, as C structures.

Where there is no such code the fields of an allocation live here all the same.
"""

from __future__ import annotations

import ctypes


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
