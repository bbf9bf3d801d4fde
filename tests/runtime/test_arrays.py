"""Arrays of the null device: every element type there and back, and what tvm-ffi sees of them."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
import tvm_ffi

from gristmill.errors import MissingError, UserError
from gristmill.ir.dtype import BFLOAT16, SCALARS, DType
from gristmill.runtime.arrays import Array, numpy_dtype
from gristmill.runtime.null import NULL_DEVICE_TYPE, NullDevice

DEVICE = NullDevice()


@pytest.mark.parametrize("dtype", SCALARS, ids=str)
def test_every_element_type_there_and_back(dtype: DType) -> None:
    values = np.arange(6).reshape(2, 3).astype(numpy_dtype(dtype))
    array = DEVICE.array(values)
    assert (array.shape, array.dtype, array.ndim, array.size) == ((2, 3), str(dtype), 2, 6)
    assert array.nbytes == values.nbytes
    assert len(array) == 2
    np.testing.assert_array_equal(array.numpy(), values)
    assert array.numpy().dtype == values.dtype
    tensor = array.__tvm_ffi_object__()
    assert tuple(tensor.shape) == (2, 3)
    assert str(tensor.dtype) == str(dtype)
    assert tuple(int(part) for part in array.__dlpack_device__()) == (NULL_DEVICE_TYPE, 0)


def test_it_reads_as_an_array_and_prints() -> None:
    array = DEVICE.array(np.array([[1.0, 2.0]], np.float32))
    np.testing.assert_array_equal(np.asarray(array), [[1.0, 2.0]])
    assert np.asarray(array, dtype=np.float64).dtype == np.float64
    assert np.array(array, copy=True) is not array.numpy()
    assert repr(array) == "<gristmill array of float32, shape (1, 2), on null:0>"
    assert array.device is DEVICE


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,), 4])
def test_shapes(shape: tuple[int, ...] | int) -> None:
    array = DEVICE.empty(shape, "int16")
    assert array.shape == ((shape,) if isinstance(shape, int) else shape)
    assert array.numpy().shape == array.shape
    if not array.shape:
        with pytest.raises(TypeError, match="without dimensions"):
            len(array)


@pytest.mark.parametrize(
    ("shape", "expected"), [((-1,), "negative"), ((1 << 40, 1 << 40), "too large"), ("x", "no sh")]
)
def test_shapes_that_are_none(shape: tuple[int, ...], expected: str) -> None:
    with pytest.raises(UserError, match=f"GM0907.*{expected}"):
        DEVICE.empty(shape, "float32")


def test_element_types_that_are_none() -> None:
    with pytest.raises(UserError, match=r"(?s)GM0906.*`float31`.*did you mean `float3?"):
        DEVICE.empty((1,), "float31")
    with pytest.raises(UserError, match=r"GM0906.*complex128"):
        DEVICE.array(np.zeros(2, np.complex128))
    assert DEVICE.empty((1,), np.dtype("int32")).dtype == "int32"  # type: ignore[arg-type]
    assert DEVICE.empty((1,), np.float64).dtype == "float64"  # type: ignore[arg-type]


def test_bfloat16_needs_ml_dtypes(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    with pytest.raises(MissingError, match="GM0908"):
        numpy_dtype(BFLOAT16)


def test_foreign_byte_order_and_layout_are_straightened() -> None:
    values = np.arange(12, dtype=">i4").reshape(3, 4)[:, ::2]
    array = DEVICE.array(values)
    np.testing.assert_array_equal(array.numpy(), values)
    assert tuple(array.__tvm_ffi_object__().strides) == (2, 1)


def test_memory_lives_as_long_as_the_last_tensor_over_it() -> None:
    class Owner:
        pass

    from gristmill.ir.dtype import FLOAT32
    from gristmill.runtime.dlpack import tensor_over

    memory = np.arange(4, dtype=np.float32)
    owner = Owner()
    gone = weakref.ref(owner)
    tensor = tensor_over(memory.ctypes.data, (4,), FLOAT32, (1, 0), owner)
    del owner
    assert gone() is not None
    np.testing.assert_array_equal(np.from_dlpack(tensor), memory)
    other = tvm_ffi.from_dlpack(tensor)
    del tensor
    gc.collect()
    assert gone() is not None
    del other
    gc.collect()
    assert gone() is None


def test_an_array_that_is_dropped_gives_its_memory_back_at_once() -> None:
    gc.disable()
    try:
        array: Array | None = DEVICE.empty((10,), "float32")
        gone = weakref.ref(array)
        array = None
        assert gone() is None
    finally:
        gc.enable()
