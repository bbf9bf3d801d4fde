"""Closed intervals of integers, without any wrapping: the arithmetic under bounds analysis."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from gristmill.ir.dtype import DType


class Interval(NamedTuple):
    """The integers ``low`` to ``high``, both included; never empty."""

    low: int
    high: int

    @classmethod
    def of_type(cls, dtype: DType) -> Interval:
        """All values of an integer or bool type."""
        return cls(dtype.minimum, dtype.maximum)

    @classmethod
    def point(cls, value: int) -> Interval:
        return cls(value, value)

    @property
    def is_point(self) -> bool:
        return self.low == self.high

    def fits(self, dtype: DType) -> bool:
        """Whether all of it are values of the integer type."""
        return dtype.minimum <= self.low and self.high <= dtype.maximum

    def contains(self, value: int) -> bool:
        return self.low <= value <= self.high

    def union(self, other: Interval) -> Interval:
        return Interval(min(self.low, other.low), max(self.high, other.high))

    def meet(self, other: Interval) -> Interval | None:
        """What is in both; None if nothing is."""
        low, high = max(self.low, other.low), min(self.high, other.high)
        return Interval(low, high) if low <= high else None

    def plus(self, other: Interval) -> Interval:
        return Interval(self.low + other.low, self.high + other.high)

    def minus(self, other: Interval) -> Interval:
        return Interval(self.low - other.high, self.high - other.low)

    def negated(self) -> Interval:
        return Interval(-self.high, -self.low)

    def times(self, other: Interval) -> Interval:
        corners = (self.low * other.low, self.low * other.high, self.high * other.low, self.high * other.high)
        return Interval(min(corners), max(corners))

    def scaled(self, factor: int) -> Interval:
        """All of it times a constant."""
        ends = (self.low * factor, self.high * factor)
        return Interval(min(ends), max(ends))

    def floor_divided(self, other: Interval) -> Interval:
        """Quotients rounded towards minus infinity, with ``x // 0 = 0``."""
        return self._divided(other, lambda a, b: a // b)

    def truncate_divided(self, other: Interval) -> Interval:
        """Quotients rounded towards zero, with ``x / 0 = 0``."""
        return self._divided(other, truncated_quotient)

    def _divided(self, other: Interval, quotient: Callable[[int, int], int]) -> Interval:
        divisors = {value for value in (other.low, other.high, -1, 1) if value != 0 and other.contains(value)}
        found = [quotient(value, divisor) for value in self for divisor in divisors]
        if other.contains(0):
            found.append(0)
        return Interval(min(found), max(found))

    def floor_remainder(self, other: Interval) -> Interval:
        """Remainders with the sign of the divisor, with ``x % 0 = 0``."""
        if other.is_point and other.low > 0 and self.low // other.low == self.high // other.low:
            return Interval(self.low % other.low, self.high % other.low)
        low = min(0, other.low + 1) if other.low < 0 else 0
        high = max(0, other.high - 1) if other.high > 0 else 0
        if self.low >= 0 and other.low >= 0:
            high = min(high, self.high)
        return Interval(low, high)

    def truncate_remainder(self, other: Interval) -> Interval:
        """Remainders with the sign of the dividend, with ``x % 0 = 0``."""
        most = max(abs(other.low), abs(other.high)) - 1
        low = max(self.low, -most) if self.low < 0 else 0
        high = min(self.high, most) if self.high > 0 else 0
        return Interval(min(low, 0), max(high, 0))


def truncated_quotient(a: int, b: int) -> int:
    """``a / b`` rounded towards zero; ``b`` is not 0."""
    quotient = abs(a) // abs(b)
    return quotient if (a >= 0) == (b >= 0) else -quotient


def truncated_remainder(a: int, b: int) -> int:
    """``a - b * truncated_quotient(a, b)``; ``b`` is not 0."""
    return a - b * truncated_quotient(a, b)
