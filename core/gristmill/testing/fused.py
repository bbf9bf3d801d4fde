"""An oracle for fma: exact whole numbers rounded once; and triples of operands at which an fma goes wrong.

Shares nothing with the library or the executor: no rounding to odd, no error-free sums, no fractions.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from gristmill.ir.dtype import DType

Array = np.ndarray[Any, Any]


def exact_fma(a: float, b: float, c: float, dtype: DType) -> float:
    """``a * b + c`` of values of float32 or float64, rounded once to nearest, half to even."""
    digits, least, most = (53, -1074, 1024) if dtype.bits == 64 else (24, -149, 128)
    if not (math.isfinite(a) and math.isfinite(b)):
        if math.isnan(a) or math.isnan(b) or math.isnan(c) or a == 0 or b == 0:
            return math.nan
        infinity = math.copysign(math.inf, a) * math.copysign(1.0, b)
        return math.nan if c == -infinity else infinity
    if not math.isfinite(c):
        return c
    (a_whole, a_power), (b_whole, b_power), (c_whole, c_power) = _whole(a), _whole(b), _whole(c)
    product, power = a_whole * b_whole, a_power + b_power
    if not product:
        power = c_power
    elif not c_whole:
        c_power = power
    exponent = min(power, c_power)
    total = (product << (power - exponent)) + (c_whole << (c_power - exponent))
    if not total:
        negative = math.copysign(1.0, a) * math.copysign(1.0, b) < 0 and math.copysign(1.0, c) < 0
        return -0.0 if negative else 0.0
    size = abs(total)
    drop = max(size.bit_length() - digits, least - exponent)
    if drop > 0:
        rest = size & ((1 << drop) - 1)
        size >>= drop
        half = 1 << (drop - 1)
        size += rest > half or (rest == half and size & 1)
        exponent += drop
    found = math.ldexp(size, exponent) if size.bit_length() + exponent <= most else math.inf
    return -found if total < 0 else found


def _whole(value: float) -> tuple[int, int]:
    """A finite float as a whole number times a power of two."""
    fraction, exponent = math.frexp(value)
    return int(fraction * 2.0**53), exponent - 53


def exact_fma_of(a: Array, b: Array, c: Array, dtype: DType) -> Array:
    """The results for arrays of triples."""
    found = (exact_fma(*triple, dtype) for triple in zip(a.tolist(), b.tolist(), c.tolist(), strict=True))
    return np.fromiter(found, np.dtype(str(dtype)), len(a))


def special_values(dtype: DType) -> Array:
    """Zeros, infinities, NaN, the ends of the normal and the denormal numbers, and their neighbours; of both signs."""
    info = np.finfo(str(dtype))
    kind = info.dtype.type
    one, tiny, least, most = kind(1), info.smallest_normal, info.smallest_subnormal, info.max
    root = np.sqrt(tiny)
    positive = [kind(0), least, least * kind(3), tiny - least, tiny, tiny + least, tiny * kind(2) - least]
    positive += [root, np.nextafter(root, one), one - info.epsneg, one, one + info.eps, kind(1.5), kind(3), most]
    positive += [np.nextafter(most, kind(0)), most / kind(2), np.sqrt(most), one / info.eps, info.eps, kind(np.inf)]
    found = np.array([*positive, *(-value for value in positive), kind(np.nan)], str(dtype))
    assert len(np.unique(found.view(f"u{found.itemsize}"))) == len(found)
    return found


def special_triples(dtype: DType) -> tuple[Array, Array, Array]:
    """All triples of special values."""
    values = special_values(dtype)
    triples = np.array(list(itertools.product(values, repeat=3)), values.dtype)
    return triples[:, 0].copy(), triples[:, 1].copy(), triples[:, 2].copy()


def random_triples(dtype: DType, seed: int, count: int) -> tuple[Array, Array, Array]:
    """``count`` triples, of seven kinds in equal parts.

    Any bits; addends near the product in size; sums that cancel; addends with a product of about half their last bit;
    products with an addend of about half their last bit; results about the least normal number and below; results about
    the greatest number.
    """
    kinds = [_anything, _near_in_size, _cancelling, _half_by_product, _half_by_addend, _denormal, _overflowing]
    draw = _Draw(dtype, seed)
    parts = []
    with np.errstate(all="ignore"):
        for number, kind in enumerate(kinds):
            parts.append(kind(draw, count // len(kinds) + (number < count % len(kinds))))
    a, b, c = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return a, b, c


class _Draw:
    """Random floats of a type."""

    def __init__(self, dtype: DType, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.kind = np.dtype(str(dtype))
        self.digits, self.bias = (53, 1023) if dtype.bits == 64 else (24, 127)

    def significands(self, count: int) -> Array:
        """From 1 to 2 and negative ones; a third of them of any bits, others of few bits, or just beside 1."""
        size = self.digits - 1
        any_bits = self.random.integers(0, 1 << size, count)
        few = any_bits & self.random.integers(0, 1 << size, count) & self.random.integers(0, 1 << size, count)
        few &= -1 << self.random.integers(0, size, count)
        beside = self.random.integers(-2, 3, count) & ((1 << size) - 1)
        chosen = np.choose(self.random.integers(0, 3, count), [any_bits, few, beside])
        return (1.0 + chosen * 2.0**-size).astype(self.kind) * self.signs(count)

    def signs(self, count: int) -> Array:
        return self.random.choice(np.array([-1, 1], self.kind), count)

    def within(self, low: int, high: int, count: int) -> Array:
        """Whole numbers, both ends among them."""
        return self.random.integers(low, high + 1, count)

    def steps(self, values: Array, most: int) -> Array:
        """Moved by a few neighbours towards or away from zero."""
        bits = values.view(f"i{self.kind.itemsize}")
        moved: Array = bits + self.within(-most, most, len(values)).astype(bits.dtype)
        return moved.view(self.kind)


def _scaled(values: Array, exponents: Array) -> Array:
    return np.ldexp(values, exponents.astype(np.int32))


_Triples = tuple[Array, Array, Array]


def _anything(draw: _Draw, count: int) -> _Triples:
    unsigned = f"u{draw.kind.itemsize}"
    top = 2 ** (8 * draw.kind.itemsize) - 1
    a, b, c = (draw.random.integers(0, top, count, unsigned, endpoint=True).view(draw.kind) for _ in range(3))
    return a, b, c


def _near_in_size(draw: _Draw, count: int) -> _Triples:
    third = draw.bias // 3
    a_power, b_power = draw.within(-third, third, count), draw.within(-third, third, count)
    c_power = a_power + b_power + draw.within(-3 * draw.digits, 3 * draw.digits, count)
    powers = (a_power, b_power, np.clip(c_power, 1 - draw.bias - draw.digits, draw.bias))
    a, b, c = (_scaled(draw.significands(count), power) for power in powers)
    return a, b, c


def _cancelling(draw: _Draw, count: int) -> _Triples:
    a = _scaled(draw.significands(count), draw.within(-draw.bias // 2, draw.bias // 2, count))
    b = _scaled(draw.significands(count), draw.within(-draw.bias // 2, draw.bias // 2 - 1, count))
    return a, b, draw.steps(-(a * b), 2)


def _half_by_product(draw: _Draw, count: int) -> _Triples:
    power = draw.within(-draw.bias // 2, draw.bias // 2, count)
    split = draw.within(-draw.digits, draw.digits, count)
    a = draw.steps(_scaled(draw.signs(count), split), 1)
    b = draw.steps(_scaled(draw.signs(count), power - split - draw.digits), 1)
    return a, b, _scaled(draw.significands(count), power)


def _half_by_addend(draw: _Draw, count: int) -> _Triples:
    half = draw.bias // 3
    a_power, b_power = draw.within(-half, half, count), draw.within(-half, half, count)
    a, b = _scaled(draw.significands(count), a_power), _scaled(draw.significands(count), b_power)
    c = draw.steps(
        _scaled(draw.signs(count), a_power + b_power - draw.within(draw.digits - 1, 2 * draw.digits, count)), 1
    )
    return a, b, c


def _denormal(draw: _Draw, count: int) -> _Triples:
    least = 1 - draw.bias
    a_power = draw.within(least - draw.digits + 1, draw.digits, count)
    b_power = np.clip(draw.within(least - draw.digits - 3, least + 3, count) - a_power, least - draw.digits, draw.bias)
    c_power = draw.within(least - 2 * draw.digits, least + 2, count)
    a, b, c = (_scaled(draw.significands(count), power) for power in (a_power, b_power, c_power))
    return a, b, c


def _overflowing(draw: _Draw, count: int) -> _Triples:
    a_power = draw.within(0, draw.bias, count)
    b_power = np.clip(draw.within(draw.bias - 2, draw.bias + 1, count) - a_power, 1 - draw.bias, draw.bias)
    c_power = draw.bias - np.where(draw.random.random(count) < 0.5, draw.within(0, 3, count), draw.within(0, 99, count))
    a, b, c = (_scaled(draw.significands(count), power) for power in (a_power, b_power, c_power))
    return a, b, c
