"""Calls out of the module: C symbols, packed functions and launches, which the options give as Python callables."""

from __future__ import annotations

from typing import Any

import numpy as np

from gristmill.interp.formats import rounding_to
from gristmill.interp.memory import Pointer, Tensor
from gristmill.interp.reports import ExecutionError, report
from gristmill.interp.state import Execution
from gristmill.ir.dtype import DType, TypeCode


def numpy_dtype(dtype: DType) -> np.dtype[Any]:
    """The NumPy type of elements; for bfloat16 that of the ``ml_dtypes`` package, or its bits where that is absent."""
    if dtype.code is TypeCode.BFLOAT:
        try:
            from ml_dtypes import bfloat16
        except ImportError:
            return np.dtype(np.uint16)
        wide: np.dtype[Any] = np.dtype(bfloat16)
        return wide
    found: np.dtype[Any] = np.dtype(str(dtype.element))
    return found


def _array_of(tensor: Tensor) -> np.ndarray[Any, Any]:
    """A NumPy view of a tensor's memory. Code outside may write it, so that all of it counts as written."""
    memory, offset = tensor.pointer.memory, tensor.pointer.offset
    memory.mark_written()
    size = tensor.dtype.bytes
    flat = np.frombuffer(memory.content, dtype=np.uint8)
    count = (len(flat) - offset) // size
    elements = flat[offset : offset + count * size].view(numpy_dtype(tensor.dtype))
    return np.lib.stride_tricks.as_strided(elements, tensor.shape, [stride * size for stride in tensor.strides])


def _flat_array_of(pointer: Pointer) -> np.ndarray[Any, Any]:
    pointer.memory.mark_written(pointer.offset)
    return np.frombuffer(pointer.memory.content, dtype=np.uint8)[pointer.offset :]


def _result(found: Any, dtype: DType) -> Any:
    if dtype.is_void:
        return None
    if dtype.is_bool:
        return bool(found)
    if dtype.is_integer:
        return dtype.wrap(int(found))
    if dtype.is_float:
        return rounding_to(dtype)(float(found))
    return found


def call_extern(execution: Execution, site: int, symbol: str, args: tuple[Any, ...], dtype: DType) -> Any:
    """Call what stands for a C symbol. Pointers become arrays of bytes."""
    function = execution.options.externs.get(symbol)
    if function is None:
        raise _nothing_to(f"run for the C symbol `{symbol}`", "externs", execution, site)
    return _result(function(*(_flat_array_of(arg) if isinstance(arg, Pointer) else _plain(arg) for arg in args)), dtype)


def call_packed(execution: Execution, site: int, name: str, args: tuple[Any, ...], dtype: DType) -> Any:
    """Call what stands for a registered function. Tensors become NumPy arrays."""
    function = execution.options.packed.get(name)
    if function is None:
        raise _nothing_to(f"run for the packed function `{name}`", "packed", execution, site)
    return _result(function(*(_plain(arg) for arg in args)), dtype)


def launch_elsewhere(
    execution: Execution,
    site: int,
    kernel: str,
    args: tuple[Any, ...],
    extents: tuple[int, ...],
    dynamic_shared: int | None,
) -> None:
    """Launch a kernel that the module only declares, by what the options give."""
    if any(extent <= 0 for extent in extents):
        return
    launcher = execution.options.launcher
    if launcher is None:
        raise _nothing_to(f"launch for the kernel `{kernel}`, only declared here", "launcher", execution, site)
    launcher(kernel, args, extents, dynamic_shared or 0)


def _nothing_to(what: str, option: str, execution: Execution, site: int) -> ExecutionError:
    hint = f"give a Python function for it in the option `{option}`"
    return report("GM0518", f"the executor has nothing to {what}", execution.sites[site], hint=hint)


def _plain(arg: Any) -> Any:
    return _array_of(arg) if isinstance(arg, Tensor) else arg
