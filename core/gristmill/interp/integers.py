"""Integer arithmetic that is total: every operation has a result for all operands (the node docstrings say which).

Values are Python integers within the range of their type, and so are the results. ``least`` and ``most`` are the
bounds of the type, ``bits`` its width.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from gristmill.ir.dtype import DType


@cache
def wrapping_to(dtype: DType) -> Callable[[int], int]:
    """The function that reduces any integer to the integer type, modulo 2**bits."""
    mask = (1 << dtype.bits) - 1
    if not dtype.is_signed:
        return lambda value: value & mask
    half = 1 << (dtype.bits - 1)
    return lambda value: ((value + half) & mask) - half


def dot_of_bytes(a: int, b: int, total: int, a_is_signed: bool, b_is_signed: bool) -> int:
    """The total and the four products of the bytes of two words, which wraps only where the caller wraps it."""
    for place in range(0, 32, 8):
        one, other = a >> place & 255, b >> place & 255
        if a_is_signed:
            one -= one >> 7 << 8
        if b_is_signed:
            other -= other >> 7 << 8
        total += one * other
    return total


def divide_towards_zero(a: int, b: int, most: int) -> int:
    """The quotient rounded towards zero; by zero 0; ``MIN / -1`` is MIN."""
    if b == 0:
        return 0
    quotient = abs(a) // abs(b)
    if (a < 0) != (b < 0):
        return -quotient
    # The one quotient outside the type is -MIN = most + 1.
    return quotient if quotient <= most else a


def remainder_towards_zero(a: int, b: int) -> int:
    """The remainder with the sign of ``a``; by zero 0."""
    if b == 0:
        return 0
    remainder = abs(a) % abs(b)
    return -remainder if a < 0 else remainder


def divide_floor(a: int, b: int, most: int) -> int:
    """The quotient rounded towards minus infinity; by zero 0; ``MIN // -1`` is MIN."""
    if b == 0:
        return 0
    quotient = a // b
    return quotient if quotient <= most else a


def remainder_floor(a: int, b: int) -> int:
    """The remainder with the sign of ``b``; by zero 0."""
    return a % b if b else 0


def shift_left(a: int, b: int, bits: int, wrap: Callable[[int], int]) -> int:
    """``a << b``, wrapped. The count is read as unsigned, so a negative one is over the width too: 0."""
    return wrap(a << b) if 0 <= b < bits else 0


def shift_right(a: int, b: int, bits: int) -> int:
    """``a >> b``, arithmetic as Python's. The count is read as unsigned; over the width the sign fills."""
    if 0 <= b < bits:
        return a >> b
    return -1 if a < 0 else 0


def saturate(value: float, least: int, most: int) -> int:
    """A float truncated towards zero, held within the bounds; NaN gives 0."""
    if least <= value <= most:
        return int(value)
    if value != value:
        return 0
    return most if value > 0 else least


def count_ones(value: int, mask: int) -> int:
    """How many bits are set; ``mask`` has the bits of the type."""
    return (value & mask).bit_count()


def leading_zeros(value: int, mask: int) -> int:
    """How many zero bits stand above the highest set one; of 0 the width."""
    return mask.bit_length() - (value & mask).bit_length()


def trailing_zeros(value: int, mask: int) -> int:
    """How many zero bits stand below the lowest set one; of 0 the width."""
    value &= mask
    return (value & -value).bit_length() - 1 if value else mask.bit_length()
