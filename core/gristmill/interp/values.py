"""What is known of an expression while Python text for it is written."""

from __future__ import annotations

import math
from dataclasses import dataclass

from gristmill.ir.dtype import DType

DEPTH_AT_MOST = 8
"""Parentheses within parentheses, after which a value gets a name (Python's parser nests to about a hundred)."""


@dataclass(frozen=True, slots=True)
class Value:
    """Python text of a value. It reads only names that are assigned once, so it may be put anywhere later.

    ``depth`` is its nesting, 0 for a name or a literal. Integers carry the bounds that are known. ``unrounded``: the
    text gives a double that is still to be rounded to ``dtype``.
    """

    text: str
    dtype: DType
    depth: int = 0
    low: int = 0
    high: int = 0
    unrounded: bool = False

    @property
    def is_constant(self) -> bool:
        """Whether this is an integer with only one possible value."""
        return self.dtype.lanes == 1 and not self.dtype.is_float and self.low == self.high


def value(text: str, dtype: DType, depth: int = 0) -> Value:
    """A value of which nothing but the type is known."""
    if dtype.is_integer or dtype.is_bool:
        return Value(text, dtype, depth, dtype.minimum, dtype.maximum)
    return Value(text, dtype, depth, 0, 1)


def integer(number: int, dtype: DType) -> Value:
    """An integer or bool constant."""
    text = str(number) if number >= 0 else f"({number})"
    return Value(text, dtype, 0, number, number)


def floating(number: float, dtype: DType) -> Value:
    """A float constant."""
    if math.isnan(number):
        text = "NAN"
    elif math.isinf(number):
        text = "INFINITY" if number > 0 else "(-INFINITY)"
    else:
        text = repr(number) if math.copysign(1.0, number) > 0 else f"({number!r})"
    return Value(text, dtype, 0, 0, 1)
