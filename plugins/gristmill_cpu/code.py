"""Loaded CPU code: a library, its externs filled in, and its entry points as ``tvm_ffi.Function``."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gristmill.codegen.extern_table import EXTERN_TABLE
from gristmill.codegen.host_imports import HOST_IMPORTS
from gristmill.objfile import check_shared
from gristmill.plugin.artifacts import KernelRecord
from gristmill.plugin.protocols import NativeFunction
from gristmill.runtime.externs import library_function
from gristmill_cpu.library import Library

_EXTERNS_AT_MOST = 4096
_TEXT_AT_MOST = 4096


class CpuCode:
    """The code of one blob in this process; it lives as long as any function taken from it."""

    def __init__(
        self,
        data: memoryview,
        machine: int,
        entry_points: Sequence[str],
        kernels: Sequence[KernelRecord],
        externs: Mapping[str, int],
    ) -> None:
        # Its functions are what the code imports: importing the package makes them visible to the loader.
        import tvm_ffi

        self._function_type = tvm_ffi.Function
        name = f"the code of {kernels[0].name!r}" if kernels else "the code"
        found = check_shared(data, machine, HOST_IMPORTS, name)
        self._library = Library(data, name)
        self._records = {kernel.entry: kernel for kernel in kernels}
        self._addresses = {entry: self._library.address(entry) for entry in entry_points}
        if EXTERN_TABLE in found.exports:
            for symbol, library, slot in _extern_entries(self._library.address(EXTERN_TABLE)):
                slot.value = externs[symbol] if symbol in externs else library_function(symbol, library)

    def function(self, entry: str) -> Any:
        """The ``tvm_ffi.Function`` of an entry point; the library is kept as long as it lives.

        Whether a call lets other Python threads run (``release_gil``) is what the kernel's record says; without a word
        of it a call does not: letting go of the lock costs a short kernel more than it takes.
        """
        function = self._function_type.__from_extern_c__(self._addresses[entry], keep_alive_object=self._library)
        function.release_gil = self._releases_gil(entry)
        return function

    def native(self, entry: str) -> NativeFunction:
        """The machine code of an exported function, an entry point or another. Raises UserError (GM0913) if there is none."""
        address = self._addresses.get(entry) or self._library.address(entry)
        return NativeFunction(address, 0, self._library, self._releases_gil(entry))

    def _releases_gil(self, entry: str) -> bool:
        record = self._records.get(entry)
        return record is not None and record.extra.get("release_gil") is True


def _extern_entries(address: int) -> Iterator[tuple[str, str, ctypes.c_void_p]]:
    """The entries of a table of externs: symbol, library, and the slot to fill."""
    size = ctypes.sizeof(ctypes.c_void_p)
    for place in range(_EXTERNS_AT_MOST):
        symbol, library, slot = (
            int.from_bytes(ctypes.string_at(address + (3 * place + part) * size, size), sys.byteorder)
            for part in range(3)
        )
        if not symbol or not library or not slot:
            return
        yield _text(symbol), _text(library), ctypes.c_void_p.from_address(slot)


def _text(address: int) -> str:
    return ctypes.string_at(address)[:_TEXT_AT_MOST].decode("utf-8", "replace")
