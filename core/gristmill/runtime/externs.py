"""C functions that kernels call (``extern`` in kernels.toml): where their addresses come from.

For each symbol: the address that the caller of :func:`gristmill.load` gives, if it gives one; else the library that the
pack names, which the system's loader searches by its file name, or which is at an absolute path. A relative path is
refused: it would depend on the folder that the process happens to be in.

Opening a library runs its constructors. That is no more than calling a kernel of the pack may do.
"""

from __future__ import annotations

import _ctypes
import ctypes
import os
from typing import Any

from gristmill.errors import Diagnostic, MissingError, UserError


def given_address(symbol: str, given: Any) -> int:
    """The address of a C function, given as a number or a ctypes function. Raises UserError (GM0910)."""
    found: int | None = None
    if isinstance(given, (_ctypes.CFuncPtr, ctypes.c_void_p)):
        found = ctypes.cast(given, ctypes.c_void_p).value
    elif isinstance(given, int) and not isinstance(given, bool) and 0 < given < 1 << 64:
        found = given
    if not found:
        raise UserError(
            Diagnostic(
                "GM0910",
                f"the extern {symbol!r} is {type(given).__name__} {str(given)[:80]!r}, which is no C function",
                hint="give its address as an int, or a function of ctypes: ctypes.CDLL(...).name",
            )
        )
    return found


def library_function(symbol: str, library: str) -> int:
    """The address of a C function in a library that a pack names. Raises MissingError (GM0911) if there is none."""
    if "/" in library and not os.path.isabs(library):
        raise _no_library(symbol, library, "a library is named by its file name or an absolute path")
    try:
        opened = ctypes.CDLL(library)
    except OSError as error:
        raise _no_library(symbol, library, str(error)) from None
    try:
        found = ctypes.cast(opened[symbol], ctypes.c_void_p).value
    except AttributeError:
        raise _no_library(symbol, library, "the library has no such function") from None
    assert found is not None
    return found


def _no_library(symbol: str, library: str, why: str) -> MissingError:
    return MissingError(
        "GM0911",
        f"the kernels call the C function `{symbol}` of `{library}`, which cannot be had: {why}",
        f"install the library, or give the function: load(..., externs={{{symbol!r}: address}})",
    )
