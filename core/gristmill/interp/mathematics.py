"""The mathematical operations on doubles, total: domain errors give NaN, poles and overflow give infinities.

A result is rounded to the operation's own type by the caller. For float32 and narrower types that makes it correctly
rounded but for rare ties; for float64 it is as good as the C library that Python was built with.
"""

from __future__ import annotations

import math
from collections.abc import Callable

NAN = math.nan
INFINITY = math.inf


def divide(a: float, b: float) -> float:
    """The IEEE quotient."""
    try:
        return a / b
    except ZeroDivisionError:
        if a == 0 or a != a:
            return NAN
        return math.copysign(INFINITY, a) * math.copysign(1.0, b)


def exp(a: float) -> float:
    try:
        return math.exp(a)
    except OverflowError:
        return INFINITY


def exp2(a: float) -> float:
    try:
        return math.exp2(a)
    except OverflowError:
        return INFINITY


def _logarithm(function: Callable[[float], float]) -> Callable[[float], float]:
    def logarithm(a: float) -> float:
        if a > 0:
            return function(a)
        return -INFINITY if a == 0 else NAN

    return logarithm


log = _logarithm(math.log)
log2 = _logarithm(math.log2)


def sqrt(a: float) -> float:
    return math.sqrt(a) if a >= 0 else NAN


def rsqrt(a: float) -> float:
    if a > 0:
        return 1.0 / math.sqrt(a)
    return math.copysign(INFINITY, a) if a == 0 else NAN


def sin(a: float) -> float:
    return math.sin(a) if math.isfinite(a) else NAN


def cos(a: float) -> float:
    return math.cos(a) if math.isfinite(a) else NAN


def sigmoid(a: float) -> float:
    if a >= 0:
        return 1.0 / (1.0 + math.exp(-a))
    # exp(-a) would overflow for large negative a; this form keeps every digit there.
    power = exp(a)
    return power / (1.0 + power)


def power(a: float, b: float) -> float:
    """C's pow (IEEE 754 section 9.2.1); Python's differs in raising for poles, overflow and negative bases."""
    try:
        return math.pow(a, b)
    except OverflowError:
        return -INFINITY if a < 0 and b % 2 == 1 else INFINITY
    except ValueError:
        if a != 0:
            return NAN
        # A pole: 0 to a negative power. Only odd whole powers keep the sign of the zero.
        return math.copysign(INFINITY, a) if b % 2 == 1 else INFINITY


def floor(a: float) -> float:
    # copysign: a result of zero keeps the sign of the operand.
    return math.copysign(float(math.floor(a)), a) if math.isfinite(a) else a


def ceil(a: float) -> float:
    return math.copysign(float(math.ceil(a)), a) if math.isfinite(a) else a


def round_even(a: float) -> float:
    return math.copysign(float(round(a)), a) if math.isfinite(a) else a


def truncate(a: float) -> float:
    return math.copysign(float(math.trunc(a)), a) if math.isfinite(a) else a


def fmod(a: float, b: float) -> float:
    if math.isinf(a) or b == 0:
        return NAN
    return math.fmod(a, b)


def minimum(a: float, b: float) -> float:
    """The lesser operand; of a NaN and a number, the number. Python's and C's comparisons agree on NaNs."""
    return a if a < b or b != b else b


def maximum(a: float, b: float) -> float:
    return a if a > b or b != b else b


ONE_OPERAND: dict[str, Callable[[float], float]] = {
    "exp": exp,
    "exp2": exp2,
    "log": log,
    "log2": log2,
    "sqrt": sqrt,
    "rsqrt": rsqrt,
    "sin": sin,
    "cos": cos,
    "tanh": math.tanh,
    "sigmoid": sigmoid,
    "floor": floor,
    "ceil": ceil,
    "round": round_even,
    "trunc": truncate,
}
TWO_OPERANDS: dict[str, Callable[[float, float], float]] = {
    "pow": power,
    "fmod": fmod,
    "copysign": math.copysign,
}
EXACT_IN_TYPE = frozenset({"floor", "ceil", "round", "trunc", "fmod", "copysign"})
"""Operations whose result is representable in the operands' type already, so that nothing is to be rounded."""
