"""Element types: names, ranges, wrapping, and rounding of constants against NumPy and ml_dtypes."""

from __future__ import annotations

import math
import random

import ml_dtypes
import numpy as np
import pytest

from gristmill.ir.build import round_to
from gristmill.ir.dtype import (
    BFLOAT16,
    BOOL,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    HANDLE,
    INT8,
    INT32,
    LANES_AT_MOST,
    SCALARS,
    SIGNED,
    UINT8,
    UNSIGNED,
    VOID,
    DType,
    dtype_of,
    parse_dtype,
)


def test_every_type_round_trips_and_is_interned():
    for element in SCALARS:
        for lanes in (1, 2, 3, 16, LANES_AT_MOST):
            dtype = element.with_lanes(lanes)
            assert parse_dtype(str(dtype)) is dtype
            assert dtype.element is element
            assert dtype == DType(dtype.code, dtype.bits, lanes)
            assert dtype_of(dtype.code, dtype.bits, lanes) is dtype
            assert dtype.bytes == element.bytes * lanes
    assert parse_dtype("handle") is HANDLE
    assert parse_dtype("void") is VOID


@pytest.mark.parametrize(
    "text",
    [
        "",
        "int",
        "int7",
        "float8",
        "Float32",
        "float32x",
        "float32x0",
        "float32x01",
        "float32x1025",
        "voidx2",
        "handlex2",
        "int32 ",
    ],
)
def test_other_names_are_refused(text: str):
    with pytest.raises(ValueError, match=r"dtype|lanes"):
        parse_dtype(text)


def test_ranges_and_wrapping_are_those_of_numpy():
    for dtype in (*SIGNED, *UNSIGNED):
        info = np.iinfo(str(dtype))
        assert (dtype.minimum, dtype.maximum) == (info.min, info.max)
        for value in (0, 1, -1, info.max, info.max + 1, info.min, info.min - 1, 1 << 70, -(1 << 70) - 5, 12345678901):
            assert dtype.wrap(value) == int(np.array([value & (1 << 64) - 1], np.uint64).astype(str(dtype))[0])
    assert [BOOL.wrap(value) for value in (0, 1, 2, -1)] == [0, 1, 1, 1]
    assert (BOOL.minimum, BOOL.maximum) == (0, 1)


def test_kinds():
    assert INT8.is_signed
    assert UINT8.is_unsigned
    assert not BOOL.is_integer
    assert BFLOAT16.is_float
    assert FLOAT32.with_lanes(4).is_vector
    assert not INT32.is_float


NUMPY = {FLOAT16: np.float16, BFLOAT16: ml_dtypes.bfloat16, FLOAT32: np.float32, FLOAT64: np.float64}


def test_rounding_is_to_nearest_even_in_every_type():
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    for dtype, kind in NUMPY.items():
        values = [0.0, -0.0, 1.0, math.inf, -math.inf, 1e308, 5e-324, 65504.0, 65519.9, 65520.0, 3.4e38, 3.4e39]
        if dtype.bits == 16:
            with np.errstate(invalid="ignore"):  # signalling NaNs
                finite = np.arange(1 << 16, dtype=np.uint16).view(kind).astype(np.float64)
            finite = np.sort(finite[np.isfinite(finite)])
            values += list(finite)
            # Ties between neighbours, and the numbers on either side of a tie.
            middles = (finite[1:] + finite[:-1]) / 2
            values += [*middles, *np.nextafter(middles, np.inf), *np.nextafter(middles, -np.inf)]
            # Beyond the greatest number: halfway to what would come next.
            step = finite[-1] - finite[-2]
            values += [finite[-1] + step / 2, np.nextafter(finite[-1] + step / 2, 0), finite[-1] + step]
        values += [chance.gauss(0, 1) * 2.0 ** chance.randint(-150, 130) for _ in range(3000)]
        array = np.array(values, np.float64)
        with np.errstate(all="ignore"):
            wanted = nearest(array, dtype, kind)
        got = np.array([round_to(float(value), dtype) for value in array])
        assert np.array_equal(got, wanted)
        assert np.array_equal(np.signbit(got), np.signbit(wanted))
    assert math.isnan(round_to(math.nan, BFLOAT16))


def nearest(array: np.ndarray, dtype: DType, kind: type) -> np.ndarray:
    """The array rounded once. ml_dtypes rounds twice (by way of float32), so ties are made odd there first."""
    if dtype != BFLOAT16:
        return array.astype(kind).astype(np.float64)
    single = array.astype(np.float32)
    exact = single.astype(np.float64) == array
    bits = single.view(np.uint32)
    # Round to odd: truncate towards zero and set the last bit where anything was cut off.
    too_far = np.abs(single.astype(np.float64)) > np.abs(array)
    truncated = np.where(too_far, bits - 1, bits).astype(np.uint32)
    odd = np.where(exact, bits, truncated | 1).astype(np.uint32).view(np.float32)
    return odd.astype(kind).astype(np.float64)
