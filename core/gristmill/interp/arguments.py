"""Arguments from outside: NumPy arrays and numbers become tensors and values of the language, or are refused."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from gristmill.errors import Note
from gristmill.interp.formats import rounding_to
from gristmill.interp.memory import Opaque, Pointer, Tensor, memories_of
from gristmill.interp.reports import ExecutionError, Site, counted, report
from gristmill.ir.dtype import BFLOAT16, BOOL, SCALARS, DType
from gristmill.ir.expr import Var
from gristmill.ir.memory import Buffer
from gristmill.ir.module import Function

_BY_NUMPY_NAME = {str(dtype): dtype for dtype in SCALARS}


def dtype_of_array(array: np.ndarray[Any, Any]) -> DType | None:
    """The element type of an array in the language; None for types that it does not have."""
    if array.dtype.name == "bfloat16" and array.dtype.itemsize == 2:
        return BFLOAT16
    native = array.dtype.byteorder in ("=", "|") or (array.dtype.byteorder == "<") == (sys.byteorder == "little")
    return _BY_NUMPY_NAME.get(array.dtype.name) if native else None


def refuse(function: Function, param: Var | Buffer | None, message: str, hint: str = "") -> ExecutionError:
    """The report of a wrong argument from outside."""
    span = (param.span if param is not None else None) or function.span
    notes = (Note(f"the function is `{function.facts.signature}`"),) if function.facts.signature else ()
    return report(
        "GM0510",
        f"wrong argument of `{function.name}`: {message}",
        Site(function.name, span),
        hint=hint,
        notes=notes,
    )


def tensors_of(arrays: Sequence[np.ndarray[Any, Any]], names: Sequence[str], dtypes: Sequence[DType]) -> list[Tensor]:
    """Tensors over the memory of arrays."""
    found = []
    pointers = memories_of(arrays, names)
    for array, pointer, dtype in zip(arrays, pointers, dtypes, strict=True):
        strides = []
        for size, stride in zip(array.shape, array.strides, strict=True):
            strides.append(stride // array.itemsize if size > 1 else 1)
        found.append(Tensor(pointer, dtype, tuple(array.shape), tuple(strides), is_null=False))
    return found


def take_arguments(function: Function, args: Sequence[object]) -> list[Any]:
    """The values that generated code takes for the arguments of a call from outside."""
    if len(args) != len(function.params):
        raise refuse(
            function, None, f"it takes {counted(len(function.params), 'argument')}, and {len(args)} were passed"
        )
    found: list[Any] = [None] * len(args)
    arrays: list[tuple[int, np.ndarray[Any, Any], DType]] = []
    for number, (param, argument) in enumerate(zip(function.params, args, strict=True)):
        if isinstance(param, Buffer) or (param.dtype.is_handle and isinstance(argument, np.ndarray)):
            arrays.append((number, *_array(function, param, argument)))
        else:
            found[number] = scalar(function, param, argument)
    names = [function.params[number].name for number, _, _ in arrays]
    tensors = tensors_of([array for _, array, _ in arrays], names, [dtype for _, _, dtype in arrays])
    for (number, _, _), tensor in zip(arrays, tensors, strict=True):
        found[number] = tensor if isinstance(function.params[number], Buffer) else tensor.pointer
    return found


def _array(function: Function, param: Var | Buffer, argument: object) -> tuple[np.ndarray[Any, Any], DType]:
    if not isinstance(argument, np.ndarray):
        raise refuse(
            function,
            param,
            f"`{param.name}` is a buffer, and {argument!r} of type {type(argument).__name__} was passed",
            hint="pass a NumPy array",
        )
    dtype = dtype_of_array(argument)
    if dtype is None:
        raise refuse(function, param, f"`{param.name}` is given an array of {argument.dtype}, which the language lacks")
    for size, stride in zip(argument.shape, argument.strides, strict=True):
        if size > 1 and stride % argument.itemsize:
            raise refuse(
                function,
                param,
                f"`{param.name}` is given an array with a stride of {stride} bytes, not whole elements",
            )
    if isinstance(param, Buffer) and param.dtype.lanes > 1 and dtype == param.dtype.element:
        # A buffer of vectors takes an array with the lanes as its last dimension.
        argument, dtype = _with_lanes(function, param, argument), dtype
        return argument, param.dtype
    return argument, dtype


def _with_lanes(function: Function, param: Buffer, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    lanes = param.dtype.lanes
    if array.ndim == 0 or array.shape[-1] != lanes or array.strides[-1] != array.itemsize:
        raise refuse(
            function,
            param,
            f"`{param.name}` has elements of {param.dtype}, so the last dimension of its array must be {lanes} "
            f"neighbouring lanes; the array's shape is {list(array.shape)}",
        )
    return array.view(np.dtype((np.void, lanes * array.itemsize))).reshape(array.shape[:-1])


def scalar(function: Function, param: Var, argument: object) -> Any:
    """A number checked against a parameter's type: an int takes bools, a float ints and bools, a bool ints."""
    dtype = param.dtype
    if dtype.is_handle:
        if argument is None or isinstance(argument, (Pointer, Tensor, Opaque)):
            return argument
        if isinstance(argument, int):
            return Opaque(argument)
        return argument
    if isinstance(argument, np.ndarray) and argument.ndim == 0:
        argument = argument[()]
    if isinstance(argument, np.generic) and argument.dtype.name == "bfloat16":
        argument = float(argument)
    if isinstance(argument, np.generic):
        argument = argument.item()
    if isinstance(argument, (bool, int)):
        if dtype.is_float:
            try:
                return rounding_to(dtype)(float(argument))
            except OverflowError:
                raise refuse(function, param, f"`{param.name}` is {dtype}, which cannot hold {argument}") from None
        if dtype == BOOL:
            return bool(argument)
        number = int(argument)
        if not dtype.minimum <= number <= dtype.maximum:
            raise refuse(
                function,
                param,
                f"`{param.name}` is {dtype}, which holds {dtype.minimum} to {dtype.maximum}, and {number} was passed",
            )
        return number
    if isinstance(argument, float) and dtype.is_float:
        return rounding_to(dtype)(argument)
    raise refuse(
        function, param, f"`{param.name}` is a {dtype}, and {argument!r} of type {type(argument).__name__} was passed"
    )
