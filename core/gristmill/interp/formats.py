"""Float formats: rounding a double to a narrower format, and the bits of float16 and bfloat16.

The executor holds every float as a Python float (a double) that is exactly representable in the value's own type. One
operation ``+ - * / sqrt`` done in double and then rounded gives the correctly rounded result of float32 and narrower
types, because a double has more than twice their precision and two bits (Figueroa, "When is double rounding
innocuous?", 1995). What has more bits than a double on the way, fma and 64-bit integers, is rounded to odd first
(Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008).
"""

from __future__ import annotations

import ctypes
import math
import struct
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

from gristmill.ir.dtype import DType, TypeCode

_HALF = struct.Struct("<e")
_UINT16 = struct.Struct("<H")
_FLOAT32 = struct.Struct("<f")
_UINT32 = struct.Struct("<I")
_FLOAT64 = struct.Struct("<d")
_UINT64 = struct.Struct("<Q")

# Halfway between the greatest finite value and the power of two after it: what rounds to infinity.
_HALF_OVERFLOW = 65520.0
_BFLOAT_OVERFLOW = math.ldexp(511.0, 119)


def round_float32(value: float) -> float:
    """``value`` rounded to float32 (nearest even, overflow to infinity): the conversion of the C language."""
    return ctypes.c_float(value).value


def round_float16(value: float) -> float:
    """``value`` rounded to float16 (nearest even, overflow to infinity)."""
    if -_HALF_OVERFLOW < value < _HALF_OVERFLOW:
        return _HALF.unpack(_HALF.pack(value))[0]  # type: ignore[no-any-return]
    return value if value != value else math.copysign(math.inf, value)


def round_bfloat16(value: float) -> float:
    """``value`` rounded to bfloat16 (nearest even, overflow to infinity), in one step from the double."""
    if not -_BFLOAT_OVERFLOW < value < _BFLOAT_OVERFLOW:
        return value if value != value else math.copysign(math.inf, value)
    # 8 bits of precision; the least denormal is 2**-133.
    _, exponent = math.frexp(value)
    step = math.ldexp(1.0, max(exponent - 8, -133))
    return math.copysign(round(value / step) * step, value)


def _same(value: float) -> float:
    return value


def rounding_to(dtype: DType) -> Callable[[float], float]:
    """The function that rounds a double to the float type."""
    if dtype.code is TypeCode.BFLOAT:
        return round_bfloat16
    return {16: round_float16, 32: round_float32, 64: _same}[dtype.bits]


# Bits -----------------------------------------------------------------------------------------------------------------


def encode_float16(value: float) -> int:
    """The 16 bits of a value that is representable in float16 (or is rounded to it)."""
    if value != value:
        return 0x7E00
    return _UINT16.unpack(_HALF.pack(round_float16(value)))[0]  # type: ignore[no-any-return]


def encode_bfloat16(value: float) -> int:
    """The 16 bits of a value that is representable in bfloat16 (or is rounded to it)."""
    if value != value:
        return 0x7FC0
    # A bfloat16 is exactly representable in float32, of which it is the upper half.
    return _UINT32.unpack(_FLOAT32.pack(round_bfloat16(value)))[0] >> 16  # type: ignore[no-any-return]


@lru_cache(maxsize=1)
def decode_float16_table() -> tuple[float, ...]:
    """The value of each of the 65,536 bit patterns of float16."""
    return struct.unpack("<65536e", struct.pack("<65536H", *range(65536)))


@lru_cache(maxsize=1)
def decode_bfloat16_table() -> tuple[float, ...]:
    """The value of each of the 65,536 bit patterns of bfloat16."""
    return struct.unpack("<65536f", struct.pack("<65536I", *(bits << 16 for bits in range(65536))))


_FORMS = {
    (TypeCode.INT, 8): "b",
    (TypeCode.INT, 16): "h",
    (TypeCode.INT, 32): "i",
    (TypeCode.INT, 64): "q",
    (TypeCode.UINT, 8): "B",
    (TypeCode.UINT, 16): "H",
    (TypeCode.UINT, 32): "I",
    (TypeCode.UINT, 64): "Q",
    (TypeCode.BOOL, 8): "B",
    (TypeCode.FLOAT, 16): "H",
    (TypeCode.FLOAT, 32): "f",
    (TypeCode.FLOAT, 64): "d",
    (TypeCode.BFLOAT, 16): "H",
}


def memory_form(dtype: DType) -> str:
    """The ``struct`` letter with which an element lies in memory; the 16-bit floats lie there as their bits."""
    return _FORMS[dtype.code, dtype.bits]


def reinterpret(lanes: list[int] | list[float], source: DType, target: DType) -> list[int] | list[float]:
    """The bits of the lanes of type ``source`` read as lanes of type ``target``, least significant bytes first."""
    if source.bits == 16 and source.is_float:
        encode = encode_bfloat16 if source.code is TypeCode.BFLOAT else encode_float16
        lanes = [encode(lane) for lane in lanes]
    data = struct.pack(f"<{source.lanes}{memory_form(source)}", *lanes)
    found = list(struct.unpack(f"<{target.lanes}{memory_form(target)}", data))
    if target.bits == 16 and target.is_float:
        table = decode_bfloat16_table() if target.code is TypeCode.BFLOAT else decode_float16_table()
        return [table[bits] for bits in found]
    return found


# What a double cannot hold on the way ---------------------------------------------------------------------------------


def round_integer(value: int, dtype: DType) -> float:
    """An integer rounded once to the float type (to infinity when too large)."""
    if -(1 << 53) <= value <= 1 << 53:
        return rounding_to(dtype)(float(value))
    if dtype.bits == 64:
        return float(value)
    # To odd: the bits that a double would lose are gathered in the last one that it keeps.
    magnitude = abs(value)
    shift = magnitude.bit_length() - 53
    kept = magnitude >> shift
    if magnitude & ((1 << shift) - 1):
        kept |= 1
    return rounding_to(dtype)(math.copysign(math.ldexp(float(kept), shift), value))


def _fma_float64(a: float, b: float, c: float) -> float:
    product = a * b
    if not (math.isfinite(a) and math.isfinite(b) and math.isfinite(c)):
        # The only trap: a finite product that overflows must not meet an infinite c.
        return c if math.isinf(c) and math.isfinite(a) and math.isfinite(b) else product + c
    if a == 0 or b == 0:
        return product + c
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        return 0.0
    try:
        # The quotient of two Python integers is correctly rounded, denormals too.
        return exact.numerator / exact.denominator
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def fma(a: float, b: float, c: float, dtype: DType) -> float:
    """``a * b + c`` rounded once to the float type."""
    if dtype.bits == 64:
        return _fma_float64(a, b, c)
    product = a * b  # exact: twice 24 bits fit in 53
    total = product + c
    if not math.isfinite(total):
        return rounding_to(dtype)(total)
    # Knuth's two-sum: ``lost`` is exactly what ``total`` misses.
    part = total - product
    lost = (product - (total - part)) + (c - part)
    if lost and not _UINT64.unpack(_FLOAT64.pack(total))[0] & 1:
        total = math.nextafter(total, math.copysign(math.inf, lost))
    return rounding_to(dtype)(total)
