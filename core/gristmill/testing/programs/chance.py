"""Seeded choices, and the values at which programs tend to go wrong."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from gristmill.interp.formats import rounding_to
from gristmill.ir.dtype import BFLOAT16, DType

T = TypeVar("T")

_LEAST_NORMAL = 2.0**-126
"""Of float32 (IEEE 754)."""


class Chance(random.Random):
    """A source of random choices, the same for the same seed on every Python version that we support."""

    denormals = True
    """Whether there are floats below the normal numbers of float32; without, zeros are in their place."""

    def happens(self, probability: float) -> bool:
        return self.random() < probability

    def pick(self, items: Sequence[T]) -> T:
        return items[int(self.random() * len(items))]

    def number(self, low: int, high: int) -> int:
        """A whole number from ``low`` to ``high``, both possible."""
        return low + int(self.random() * (high - low + 1))

    def weighted(self, choices: Sequence[tuple[float, T]]) -> T:
        """One of the choices, by their weights."""
        at = self.random() * sum(weight for weight, _ in choices)
        for weight, choice in choices:
            at -= weight
            if at < 0:
                return choice
        return choices[-1][1]

    def integer(self, dtype: DType) -> int:
        """A number of an integer or bool type, a corner of it half of the time."""
        if dtype.is_bool:
            return self.number(0, 1)
        if self.happens(0.4):
            corners = (dtype.minimum, dtype.minimum + 1, dtype.maximum, dtype.maximum - 1, 0, 1, -1, 2, -2)
            return dtype.wrap(
                self.pick((*corners, dtype.bits, dtype.bits - 1, dtype.maximum // 2, 1 << dtype.bits // 2))
            )
        if self.happens(0.5):
            return dtype.wrap(self.number(-9, 9))
        return dtype.wrap(int(self.random() * (1 << 53)) << 11 ^ int(self.random() * (1 << 53)))

    def floating(self, dtype: DType) -> float:
        """A value of a float type; specials, denormals and huge values among them."""
        found = self._floating(dtype)
        return found if self.denormals or not abs(found) < _LEAST_NORMAL else math.copysign(0.0, found)

    def _floating(self, dtype: DType) -> float:
        rounded = rounding_to(dtype)
        if self.happens(0.25):
            specials = (
                0.0,
                -0.0,
                math.inf,
                -math.inf,
                math.nan,
                1.0,
                -1.0,
                0.5,
                2.5,
                -1.5,
                1e-45,
                -5e-324,
                3.4e38,
                1e308,
            )
            more = (2147483647.0, 2147483648.0, -2147483649.0, 9.3e18, -9.3e18, 255.5, -0.5, 127.9, -128.9, 65504.0)
            return rounded(self.pick((*specials, *more)))
        if self.happens(0.5):
            return rounded(self.number(-64, 64) / 4)
        return rounded((self.random() - 0.5) * 2.0 ** self.number(-20, 20))

    def value(self, dtype: DType) -> int | float | bool:
        """A value of a scalar type."""
        if dtype.is_float:
            return self.floating(dtype)
        return bool(self.integer(dtype)) if dtype.is_bool else self.integer(dtype)


def numpy_type(dtype: DType) -> np.dtype[Any]:
    """The NumPy type of a scalar type (of the ``ml_dtypes`` package for bfloat16)."""
    if dtype == BFLOAT16:
        from ml_dtypes import bfloat16

        wide: np.dtype[Any] = np.dtype(bfloat16)
        return wide
    found: np.dtype[Any] = np.dtype(str(dtype))
    return found
