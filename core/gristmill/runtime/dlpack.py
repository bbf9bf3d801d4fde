"""Making a ``tvm_ffi.Tensor`` over memory that no Python package can export itself: device memory, bfloat16 elements.

The structures are those of DLPack (dlpack.h, version 1.1): ``DLTensor`` and ``DLManagedTensor``.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

from gristmill.ir.dtype import DLPACK_CODES, DType

_CAPSULE_NAME = b"dltensor"


class _DLTensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _DLManagedTensor(ctypes.Structure):
    _fields_ = (("tensor", _DLTensor), ("manager", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


def _delete(managed: int) -> None:
    """Called by the consumer when it lets the tensor go, on whatever thread: drops the reference on the keeper."""
    manager = ctypes.cast(managed, ctypes.POINTER(_DLManagedTensor)).contents.manager
    keeper = ctypes.cast(manager, ctypes.py_object).value
    ctypes.pythonapi.Py_DecRef(ctypes.py_object(keeper))


_DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(_delete)


class _Keeper:
    """What must live as long as the tensor: its description, its shape, and whatever owns the memory."""

    def __init__(self, managed: _DLManagedTensor, lists: Any, owner: object) -> None:
        self.managed = managed
        self.lists = lists
        self.owner = owner


class _Exporter:
    """A DLPack producer for one tensor, to be consumed once."""

    def __init__(self, capsule: Any, device: tuple[int, int]) -> None:
        self.capsule = capsule
        self.device = device

    def __dlpack__(self, **options: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device


def tensor_over(
    address: int,
    shape: Sequence[int],
    dtype: DType,
    device: tuple[int, int],
    owner: object,
    strides: Sequence[int] = (),
) -> Any:
    """A ``tvm_ffi.Tensor`` over memory at ``address`` (0: null) of the DLPack device (type, number).

    Compact unless ``strides`` (in elements) are given. ``owner`` lives until the last reference to the tensor is gone,
    in Python or in compiled code.
    """
    import tvm_ffi

    rank = len(shape)
    lists = (ctypes.c_int64 * max(2 * rank, 1))(*shape, *(strides or _compact(shape)))
    pointer = ctypes.POINTER(ctypes.c_int64)
    first = ctypes.addressof(lists)
    managed = _DLManagedTensor()
    tensor = managed.tensor
    tensor.data = address or None
    tensor.device_type, tensor.device_id = device
    tensor.ndim = rank
    tensor.code, tensor.bits, tensor.lanes = DLPACK_CODES[dtype.code], dtype.bits, dtype.lanes
    tensor.shape = ctypes.cast(first, pointer)
    tensor.strides = ctypes.cast(first + 8 * rank, pointer)
    managed.deleter = ctypes.cast(_DELETER, ctypes.c_void_p).value
    keeper = _Keeper(managed, lists, owner)
    new_capsule = ctypes.pythonapi.PyCapsule_New
    new_capsule.restype = ctypes.py_object
    new_capsule.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    capsule = new_capsule(ctypes.addressof(managed), _CAPSULE_NAME, None)
    # An address, not a reference: that would be a circle, and the memory would wait for the garbage collector.
    managed.manager = id(keeper)
    # The tensor's own reference, which _delete drops.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(keeper))
    return tvm_ffi.from_dlpack(_Exporter(capsule, device))


def _compact(shape: Sequence[int]) -> list[int]:
    found = [1] * len(shape)
    for place in range(len(shape) - 2, -1, -1):
        found[place] = found[place + 1] * shape[place + 1]
    return found
