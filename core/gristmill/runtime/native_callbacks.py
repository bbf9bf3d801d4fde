"""Devices that are written in Python, as compiled host code calls them: the three functions of a context table.

An error that a device raises goes through the compiled code as an error of TVM FFI, and comes out of the call as the
same exception object that was raised.
"""

from __future__ import annotations

import ctypes
import struct
import threading
from collections.abc import Callable
from typing import Any

from gristmill.codegen.packed_interface import OBJECT_HEADER_BYTES
from gristmill.ir.host_interface import TypeIndex
from gristmill.plugin.protocols import KernelDevice, NativeLaunch

_LAUNCH = ctypes.CFUNCTYPE(
    ctypes.c_int32,
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.c_int32,
    ctypes.POINTER(ctypes.c_int64),
    ctypes.c_int32,
    ctypes.c_int64,
)
_ALLOCATE = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32)
_RELEASE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)

# A TVMFFIAny (tvm/ffi/c_api.h): type index, padding, value.
_ANY = struct.Struct("<iIq")
_ANY_FLOAT = struct.Struct("<iId")
_KIND = b"gristmill.Raised"


class _Pending(threading.local):
    """The exception that is on its way out of compiled code, in each thread."""

    error: BaseException | None = None


_PENDING = _Pending()


class _Raised(RuntimeError):
    """What TVM FFI makes of an error of our kind: making one gives the exception that is on its way."""

    def __new__(cls, *args: Any) -> Any:
        error, _PENDING.error = _PENDING.error, None
        return super().__new__(cls, *args) if error is None else error


def set_raised(error: BaseException) -> None:
    """Make ``error`` the error that the running native call fails with."""
    import tvm_ffi

    tvm_ffi.register_error(_KIND.decode(), _Raised)
    _PENDING.error = error
    text = str(error).encode("utf-8", "replace").replace(b"\0", b"")
    tvm_ffi.LIB.TVMFFIErrorSetRaisedFromCStr(_KIND, text)


def callbacks_of(device: KernelDevice) -> NativeLaunch:
    """The functions for a device that has no machine code of its own; they keep it alive."""

    def launch(_: int, kernel: int, args: int, count: int, extents: Any, axes: int, dynamic: int) -> int:
        try:
            device.launch(kernel, values_of(args, count), extents[:axes], dynamic)
        except BaseException as error:
            set_raised(error)
            return -1
        return 0

    def allocate(_: int, size: int, alignment: int) -> int:
        try:
            return device.allocate(size, alignment)
        except Exception:
            # Whatever is wrong, compiled code gets no memory, and says so.
            return 0

    def release(_: int, data: int) -> None:
        device.release(data)

    callbacks = (_LAUNCH(launch), _ALLOCATE(allocate), _RELEASE(release))
    addresses = [_address(callback) for callback in callbacks]
    return NativeLaunch(0, addresses[0], addresses[1], addresses[2], callbacks)


def values_of(args: int, count: int) -> list[int | float | bool]:
    """The arguments of a kernel, from an array of TVMFFIAny. A uint64 comes as the int64 of the same bits."""
    data = ctypes.string_at(args, count * _ANY.size)
    found: list[int | float | bool] = []
    for number in range(count):
        start = number * _ANY.size
        kind, _, value = _ANY.unpack_from(data, start)
        if kind == TypeIndex.FLOAT:
            found.append(_ANY_FLOAT.unpack_from(data, start)[2])
        elif kind == TypeIndex.POINTER:
            found.append(value % (1 << 64))
        else:
            found.append(bool(value) if kind == TypeIndex.BOOL else value)
    return found


def _address(callback: Callable[..., Any]) -> int:
    found = ctypes.cast(callback, ctypes.c_void_p).value  # type: ignore[arg-type]
    assert found is not None
    return found


def first_device_type(args: int, count: int) -> int:
    """DLPack's type of the device of the first array among packed arguments; 0 if there is none."""
    data = ctypes.string_at(args, count * _ANY.size)
    for number in range(count):
        kind, _, value = _ANY.unpack_from(data, number * _ANY.size)
        if kind in (TypeIndex.DLTENSOR, TypeIndex.TENSOR):
            start = value % (1 << 64) + (OBJECT_HEADER_BYTES if kind == TypeIndex.TENSOR else 0)
            # A DLTensor begins with its data pointer; then comes the type of its device.
            return ctypes.c_int32.from_address(start + ctypes.sizeof(ctypes.c_void_p)).value
    return 0
