"""The packed host interface as the executor models it: arguments as TVMFFIAny values, tensors as DLTensor.

Each operation of ``PACKED_INTERFACE`` in :mod:`gristmill.ir.op` is a function here, called by generated code with the
execution and the number of the site. Misuse (an argument read as what it is not, an index past the end) is reported:
the checks that come before such a read are what is under test.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gristmill.interp.memory import Pointer, Tensor
from gristmill.interp.state import Execution
from gristmill.ir.dtype import DLPACK_CODES, DType
from gristmill.ir.host_interface import TypeIndex
from gristmill.ir.packed_texts import dtype_text, kind_text


@dataclass(frozen=True, slots=True)
class AnyValue:
    """One argument: its type index and what it holds."""

    kind: int
    held: Any


@dataclass(slots=True, eq=False)
class AnyResult:
    """Where a packed function stores its result."""

    found: AnyValue = AnyValue(TypeIndex.NONE, None)


@dataclass(frozen=True, slots=True, eq=False)
class AnyArguments:
    """The argument array of a packed call."""

    values: tuple[AnyValue, ...]


def any_value(found: object) -> AnyValue:
    """A Python value or a tensor as an argument."""
    if found is None:
        return AnyValue(TypeIndex.NONE, None)
    if isinstance(found, bool):
        return AnyValue(TypeIndex.BOOL, found)
    if isinstance(found, int):
        return AnyValue(TypeIndex.INT if -(1 << 63) <= found < 1 << 63 else TypeIndex.BIG_INT, found)
    if isinstance(found, float):
        return AnyValue(TypeIndex.FLOAT, found)
    if isinstance(found, Tensor):
        return AnyValue(TypeIndex.DLTENSOR, found)
    if isinstance(found, str):
        return AnyValue(TypeIndex.TEXT, found)
    return AnyValue(TypeIndex.POINTER, found)


def _argument(execution: Execution, site: int, operation: str, array: Any, index: int, kinds: tuple[int, ...]) -> Any:
    if not isinstance(array, AnyArguments):
        execution.precondition(site, operation, "the first operand is the array of arguments", (array, index), None)
    if not 0 <= index < len(array.values):
        needs = f"there are {len(array.values)} arguments"
        execution.precondition(site, operation, needs, ("args", index), None)
    found = array.values[index]
    if kinds and found.kind not in kinds:
        needs = f"argument {index} has the type index {found.kind}"
        execution.precondition(site, operation, needs, ("args", index), None)
    return found


def packed_kind(execution: Execution, site: int, array: Any, index: int) -> int:
    return int(_argument(execution, site, "packed_kind", array, index, ()).kind)


def packed_is_null(execution: Execution, site: int, array: Any) -> bool:
    return array is None


def packed_kind_text(execution: Execution, site: int, array: Any, index: int) -> str:
    return kind_text(_argument(execution, site, "packed_kind_text", array, index, ()).kind)


def packed_int(execution: Execution, site: int, array: Any, index: int) -> int:
    return int(_argument(execution, site, "packed_int", array, index, (TypeIndex.INT, TypeIndex.BOOL)).held)


def packed_float(execution: Execution, site: int, array: Any, index: int) -> float:
    return float(_argument(execution, site, "packed_float", array, index, (TypeIndex.FLOAT,)).held)


def packed_big_fits(execution: Execution, site: int, array: Any, index: int) -> bool:
    found = _argument(execution, site, "packed_big_fits", array, index, (TypeIndex.BIG_INT,)).held
    return bool(1 << 63 <= found < 1 << 64)


def packed_big(execution: Execution, site: int, array: Any, index: int) -> int:
    found = int(_argument(execution, site, "packed_big", array, index, (TypeIndex.BIG_INT,)).held)
    if not 1 << 63 <= found < 1 << 64:
        execution.precondition(site, "packed_big", "the argument is from 2**63 to 2**64 - 1", (found,), None)
    return found


def packed_pointer(execution: Execution, site: int, array: Any, index: int) -> Any:
    return _argument(execution, site, "packed_pointer", array, index, (TypeIndex.NONE, TypeIndex.POINTER)).held


def packed_tensor(execution: Execution, site: int, array: Any, index: int) -> Any:
    return _argument(execution, site, "packed_tensor", array, index, (TypeIndex.DLTENSOR, TypeIndex.TENSOR)).held


def packed_return(execution: Execution, site: int, result: Any, found: Any, dtype: DType) -> None:
    if not isinstance(result, AnyResult):
        execution.precondition(site, "packed_return", "the first operand is the place of the result", (result,), None)
    if dtype.is_bool:
        result.found = AnyValue(TypeIndex.BOOL, bool(found))
    elif dtype.is_integer:
        # What int64 cannot hold travels as an object, which Python reads as the same int.
        result.found = any_value(int(found))
    elif dtype.is_float:
        result.found = AnyValue(TypeIndex.FLOAT, float(found))
    elif dtype.is_void:
        result.found = AnyValue(TypeIndex.NONE, None)
    else:
        result.found = AnyValue(TypeIndex.POINTER, found)


def _tensor(execution: Execution, site: int, operation: str, tensor: Any) -> Tensor:
    if not isinstance(tensor, Tensor):
        execution.precondition(site, operation, "the operand is a tensor", (tensor,), None)
    return tensor


def _dimension(execution: Execution, site: int, operation: str, tensor: Any, dimension: int) -> Tensor:
    found = _tensor(execution, site, operation, tensor)
    if not 0 <= dimension < len(found.shape):
        needs = f"the tensor has {len(found.shape)} dimensions"
        execution.precondition(site, operation, needs, ("tensor", dimension), None)
    return found


def tensor_rank(execution: Execution, site: int, tensor: Any) -> int:
    return len(_tensor(execution, site, "tensor_rank", tensor).shape)


def tensor_dtype(execution: Execution, site: int, tensor: Any) -> int:
    dtype = _tensor(execution, site, "tensor_dtype", tensor).dtype
    return DLPACK_CODES[dtype.code] | dtype.bits << 8 | dtype.lanes << 16


def tensor_dtype_text(execution: Execution, site: int, tensor: Any) -> str:
    return dtype_text(tensor_dtype(execution, site, tensor))


def tensor_size(execution: Execution, site: int, tensor: Any, dimension: int) -> int:
    return _dimension(execution, site, "tensor_size", tensor, dimension).shape[dimension]


def tensor_has_strides(execution: Execution, site: int, tensor: Any) -> bool:
    return _tensor(execution, site, "tensor_has_strides", tensor).states_strides


def tensor_stride(execution: Execution, site: int, tensor: Any, dimension: int) -> int:
    found = _dimension(execution, site, "tensor_stride", tensor, dimension)
    if not found.states_strides:
        execution.precondition(site, "tensor_stride", "the tensor states strides", ("tensor", dimension), None)
    return found.strides[dimension]


def tensor_data(execution: Execution, site: int, tensor: Any) -> Pointer | None:
    found = _tensor(execution, site, "tensor_data", tensor)
    return None if found.is_null else found.pointer


def tensor_is_null(execution: Execution, site: int, tensor: Any) -> bool:
    return _tensor(execution, site, "tensor_is_null", tensor).is_null


def tensor_is_aligned(execution: Execution, site: int, tensor: Any, alignment: int) -> bool:
    pointer = _tensor(execution, site, "tensor_is_aligned", tensor).pointer
    return (pointer.memory.address + pointer.offset) % alignment == 0


def tensor_device_type(execution: Execution, site: int, tensor: Any) -> int:
    return _tensor(execution, site, "tensor_device_type", tensor).device_type


def tensor_device_id(execution: Execution, site: int, tensor: Any) -> int:
    return _tensor(execution, site, "tensor_device_id", tensor).device_id


def context_device_id(execution: Execution, site: int, context: Any) -> int:
    return execution.options.device_id


PACKED_HELPERS: dict[str, object] = {
    function.__name__: function
    for function in (
        packed_is_null,
        packed_kind,
        packed_kind_text,
        packed_int,
        packed_float,
        packed_big_fits,
        packed_big,
        packed_pointer,
        packed_tensor,
        packed_return,
        tensor_rank,
        tensor_dtype,
        tensor_dtype_text,
        tensor_size,
        tensor_has_strides,
        tensor_stride,
        tensor_data,
        tensor_is_null,
        tensor_is_aligned,
        tensor_device_type,
        tensor_device_id,
        context_device_id,
    )
}
"""What generated code calls, by the operation's name."""
