"""Functions of machine code that get a table as ``self``, as ``tvm_ffi.Function``."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

_WORD = 8


class NativeTable:
    """A table of 64-bit words that machine code gets as ``self``. It lives as long as any function made over it."""

    def __init__(self, words: Sequence[int], owner: object) -> None:
        """``owner`` is kept as long as the table: whatever the words point to."""
        self.owner = owner
        # The word before the table says which object to let go with a function.
        self._words = (ctypes.c_uint64 * (len(words) + 1))(id(self), *words)
        self.address = ctypes.addressof(self._words) + _WORD

    def function(self, code: int, release_gil: bool = False) -> Any:
        """The ``tvm_ffi.Function`` that calls machine code at ``code`` with this table."""
        import tvm_ffi

        handle = ctypes.c_void_p()
        create = tvm_ffi.LIB.TVMFFIFunctionCreate
        _checked(create(ctypes.c_void_p(self.address), ctypes.c_void_p(code), _DELETER, ctypes.byref(handle)))
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self))
        try:
            return _function_of(handle, release_gil)
        finally:
            tvm_ffi.LIB.TVMFFIObjectDecRef(handle)


class _Name(ctypes.Structure):
    """``TVMFFIByteArray``."""

    _fields_ = (("data", ctypes.c_char_p), ("size", ctypes.c_size_t))


def _function_of(handle: ctypes.c_void_p, release_gil: bool) -> Any:
    """The Python object for a function's handle, which only a global function can be asked for."""
    import tvm_ffi

    name = f"gristmill.private.{handle.value:x}"
    text = name.encode()
    _checked(tvm_ffi.LIB.TVMFFIFunctionSetGlobal(ctypes.byref(_Name(text, len(text))), handle, 1))
    try:
        found = tvm_ffi.get_global_func(name)
    finally:
        tvm_ffi.remove_global_func(name)
    found.release_gil = release_gil
    return found


def _checked(status: int) -> None:
    if status != 0:
        raise MemoryError("TVM FFI makes no function")


def _delete(address: int) -> None:
    """Called with the last reference to a function, on whatever thread."""
    table = ctypes.c_void_p.from_address(address - _WORD)
    keeper = ctypes.cast(table, ctypes.py_object).value
    ctypes.pythonapi.Py_DecRef(ctypes.py_object(keeper))


_DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(_delete)
