"""Arrays: memory of a device with a shape and an element type, as kernels take it.

An :class:`Array` holds a ``tvm_ffi.Tensor``, which is what compiled code gets; it is also a DLPack producer, so NumPy,
PyTorch and others can look at its memory where they can reach it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Any

from gristmill.errors import Diagnostic, MissingError, UserError, suggestion
from gristmill.ir.dtype import BFLOAT16, SCALARS, DType

if TYPE_CHECKING:
    import numpy as np

    from gristmill.plugin.protocols import Device

_DTYPES = {str(dtype): dtype for dtype in SCALARS}
_LARGEST_BYTES = 1 << 62


class Array:
    """An array of a device. Devices make them (:meth:`Device.empty`, :meth:`Device.array`)."""

    __slots__ = ("__tvm_ffi_object__", "__weakref__", "_device", "_dtype", "_read", "_shape", "_tensor")

    __tvm_ffi_object__: Callable[[], Any]
    """What TVM FFI calls for the tensor, for each argument of each call."""

    def __init__(
        self, device: Device, tensor: Any, shape: Sequence[int], dtype: DType, read: Callable[[], np.ndarray]
    ) -> None:
        """``tensor`` is the ``tvm_ffi.Tensor``; ``read`` waits for queued work and gives the elements on the host."""
        self._device = device
        self._tensor = tensor
        self._shape = tuple(shape)
        self._dtype = dtype
        self._read = read
        # Gives the tensor each time, and runs no Python code: a method would make a call with three arrays cost 1.3 to
        # 2.3 times as much.
        self.__tvm_ffi_object__ = repeat(tensor).__next__

    @property
    def device(self) -> Device:
        return self._device

    @property
    def shape(self) -> tuple[int, ...]:
        return self._shape

    @property
    def dtype(self) -> str:
        """The element type by name, as ``float32``."""
        return str(self._dtype)

    @property
    def ndim(self) -> int:
        return len(self._shape)

    @property
    def size(self) -> int:
        """How many elements there are."""
        return math.prod(self._shape)

    @property
    def nbytes(self) -> int:
        return self.size * self._dtype.bytes

    def numpy(self) -> np.ndarray:
        """The elements as a NumPy array, once all queued work on them is done.

        Of an array in host memory it is a view: what is written to one shows in the other. bfloat16 needs ml_dtypes.
        """
        return self._read()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        import numpy as np

        found = self._read()
        if copy:
            return np.array(found, dtype=dtype)
        return found if dtype is None else found.astype(dtype, copy=False)

    def __dlpack__(self, **options: Any) -> Any:
        return self._tensor.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        kind, index = self._tensor.__dlpack_device__()
        return int(kind), int(index)

    def __len__(self) -> int:
        if not self._shape:
            raise TypeError("len() of an array without dimensions")
        return self._shape[0]

    def __repr__(self) -> str:
        return f"<gristmill array of {self.dtype}, shape {self._shape}, on {self._device.name}>"


def checked_dtype(name: object) -> DType:
    """The element type of that name (or NumPy dtype). Raises UserError (GM0906) for any other."""
    text = name if isinstance(name, str) else getattr(name, "name", getattr(name, "__name__", str(name)))
    found = _DTYPES.get(text)
    if found is None:
        hint = suggestion(text, list(_DTYPES), f"element types are {', '.join(_DTYPES)}")
        raise UserError(Diagnostic("GM0906", f"arrays cannot have elements of type `{text[:80]}`", hint=hint))
    return found


def checked_shape(shape: Sequence[int] | int, dtype: DType) -> tuple[int, ...]:
    """The shape as a tuple of sizes. Raises UserError (GM0907) for sizes that are negative, or too large together."""
    import operator

    try:
        found = tuple(operator.index(size) for size in ([shape] if isinstance(shape, int) else shape))
    except TypeError:
        raise UserError(
            Diagnostic("GM0907", f"{shape!r} is no shape", hint="give a tuple of sizes, as (480, 640)")
        ) from None
    if any(size < 0 for size in found):
        raise UserError(Diagnostic("GM0907", f"the shape {found} has a negative size", hint="sizes are from 0 up"))
    if math.prod(size or 1 for size in found) * dtype.bytes > _LARGEST_BYTES:
        raise UserError(
            Diagnostic("GM0907", f"an array of {dtype} with shape {found} is too large", hint="make it smaller")
        )
    return found


def numpy_dtype(dtype: DType) -> np.dtype:
    """The NumPy type of elements. Raises MissingError (GM0908) for bfloat16 without ml_dtypes."""
    import numpy as np

    if dtype == BFLOAT16:
        try:
            import ml_dtypes
        except ImportError:
            raise MissingError(
                "GM0908", "bfloat16 arrays on the host need the package ml_dtypes", "pip install ml_dtypes"
            ) from None
        found: np.dtype = np.dtype(ml_dtypes.bfloat16)
        return found
    return np.dtype(str(dtype))


def host_values(values: Any) -> tuple[np.ndarray, DType]:
    """The values as a compact NumPy array of an element type of ours. Raises UserError (GM0906) for other types."""
    import numpy as np

    found = np.ascontiguousarray(values) if getattr(values, "ndim", 1) else np.asarray(values)
    dtype = checked_dtype(found.dtype.name)
    if not found.dtype.isnative:
        found = found.astype(found.dtype.newbyteorder("="))
    return found, dtype
