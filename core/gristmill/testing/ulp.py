"""How far float32 results are from exact ones, in units in the last place."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

LEAST_EXPONENT = -126
FRACTION_BITS = 23
_OVERFLOW_FROM = 3.4028235677973366e38
"""Halfway between the greatest float32 and what would come next: from here on the nearest is infinity."""


def ulp_errors(results: Array, exact: Array) -> Array:
    """The distance of float32 ``results`` from ``exact`` (float64), in the spacing of float32 at the exact value.

    Infinite where one is a NaN and the other is not, where a zero or infinity has the wrong sign, and where one is
    infinite and the other is not (an exact value that rounds to infinity may be the greatest number: 1).
    """
    with np.errstate(all="ignore"):
        size = np.abs(exact)
        exponent = np.floor(np.log2(np.where((size > 0) & np.isfinite(size), size, 1.0)))
        spacing = np.exp2(np.clip(exponent, LEAST_EXPONENT, 127) - FRACTION_BITS)
        found = np.abs(results.astype(np.float64) - exact) / spacing
        both_nan = np.isnan(results) & np.isnan(exact)
        overflows = size >= _OVERFLOW_FROM
        greatest = np.abs(results) >= np.float32(3.4028234e38)
        same_sign = np.signbit(results) == np.signbit(exact)
        wrong = (np.isnan(results) != np.isnan(exact)) | (~both_nan & ~same_sign & (found > 0.5))
        wrong |= (results == 0) & (exact == 0) & ~same_sign
        found = np.where(np.isinf(results) & overflows & same_sign, 0.0, found)
        found = np.where(np.isfinite(results) & overflows & np.isfinite(exact) & greatest, 1.0, found)
        # An infinite result just below the limit is as wrong as the distance to the limit says.
        nearly = np.isinf(results) & ~overflows & np.isfinite(exact)
        found = np.where(nearly, (_OVERFLOW_FROM - size) / spacing + 0.5, found)
        return np.where(wrong, np.inf, np.where(both_nan, 0.0, found))
