"""C functions as Python callables, for host functions that the executor runs: the types of a call say how it is made."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from typing import Any

from gristmill.ir.dtype import DType
from gristmill.ir.expr import CallExtern
from gristmill.ir.functor import walk
from gristmill.ir.module import Module
from gristmill.runtime.externs import library_function

_TYPES: Mapping[str, Any] = {
    "void": None,
    "bool": ctypes.c_bool,
    **{f"int{bits}": getattr(ctypes, f"c_int{bits}") for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": getattr(ctypes, f"c_uint{bits}") for bits in (8, 16, 32, 64)},
    "float32": ctypes.c_float,
    "float64": ctypes.c_double,
    "handle": ctypes.c_void_p,
}


def extern_functions(module: Module, addresses: Mapping[str, int]) -> dict[str, Callable[..., Any]]:
    """A callable for each C function that a module calls, by symbol, at the address given or that of its library.

    It takes what the executor hands out: numbers, texts, None, and arrays of bytes where the function takes an address.
    Left out are functions that are called with two signatures, and those with arguments or results that ctypes lacks
    (half floats, vectors). Raises MissingError (GM0911) for a library or a function that there is not.
    """
    libraries = {extern.symbol: extern.library for extern in module.externs}
    signatures: dict[str, set[tuple[DType, ...]]] = {}
    for function in module.functions:
        for node in walk(function.body):
            if isinstance(node, CallExtern):
                signatures.setdefault(node.symbol, set()).add((node.dtype, *(arg.dtype for arg in node.args)))
    found: dict[str, Callable[..., Any]] = {}
    for symbol, ways in signatures.items():
        types = [_TYPES.get(str(dtype), _LACKING) for dtype in next(iter(ways))]
        if len(ways) > 1 or _LACKING in types or not (symbol in addresses or symbol in libraries):
            continue
        address = addresses[symbol] if symbol in addresses else library_function(symbol, libraries[symbol])
        found[symbol] = _callable(ctypes.CFUNCTYPE(*types)(address))
    return found


_LACKING = object()


def _callable(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        # The arrays live until the call returns.
        return function(*map(_passed, args))

    return call


def _passed(arg: Any) -> Any:
    if isinstance(arg, str):
        return ctypes.cast(ctypes.c_char_p(arg.encode("utf-8", "surrogatepass")), ctypes.c_void_p)
    return arg.ctypes.data if hasattr(arg, "ctypes") else arg
