"""Folding of constants by the language's own total arithmetic, for every dtype.

Only exact operations are folded, so that a folded program gives bit for bit what the unfolded one gives: float
division, square roots and mathematical functions stay.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from gristmill.arith.interval import truncated_quotient, truncated_remainder
from gristmill.ir.build import Number, round_to
from gristmill.ir.dtype import DType
from gristmill.ir.expr import (
    Add,
    And,
    BitAnd,
    BitNot,
    BitOr,
    BitXor,
    Div,
    Equal,
    Expr,
    FloorDiv,
    FloorMod,
    Greater,
    GreaterEqual,
    Less,
    LessEqual,
    Max,
    Min,
    Mod,
    Mul,
    Negate,
    Not,
    NotEqual,
    Or,
    ShiftLeft,
    ShiftRight,
    Sub,
)

# The greatest bit length that a double holds exactly with room for a sticky bit; see _integer_to_float.
_EXACT_BITS = 52


def _shift_left(a: int, b: int, dtype: DType) -> int:
    amount = b % (1 << dtype.bits)
    return 0 if amount >= dtype.bits else a << amount


def _shift_right(a: int, b: int, dtype: DType) -> int:
    return a >> min(b % (1 << dtype.bits), dtype.bits)


_INTEGER: dict[type[Expr], Callable[[int, int, DType], int]] = {
    Add: lambda a, b, dtype: a + b,
    Sub: lambda a, b, dtype: a - b,
    Mul: lambda a, b, dtype: a * b,
    Div: lambda a, b, dtype: truncated_quotient(a, b) if b else 0,
    Mod: lambda a, b, dtype: truncated_remainder(a, b) if b else 0,
    FloorDiv: lambda a, b, dtype: a // b if b else 0,
    FloorMod: lambda a, b, dtype: a % b if b else 0,
    Min: lambda a, b, dtype: min(a, b),
    Max: lambda a, b, dtype: max(a, b),
    BitAnd: lambda a, b, dtype: a & b,
    BitOr: lambda a, b, dtype: a | b,
    BitXor: lambda a, b, dtype: a ^ b,
    ShiftLeft: _shift_left,
    ShiftRight: _shift_right,
    And: lambda a, b, dtype: a & b,
    Or: lambda a, b, dtype: a | b,
}

_COMPARE: dict[type[Expr], Callable[[Number, Number], bool]] = {
    Equal: lambda a, b: a == b,
    NotEqual: lambda a, b: a != b,
    Less: lambda a, b: a < b,
    LessEqual: lambda a, b: a <= b,
    Greater: lambda a, b: a > b,
    GreaterEqual: lambda a, b: a >= b,
}


def _float_multiply(a: float, b: float) -> float:
    # Python raises for nothing here: infinities and NaNs propagate as IEEE 754 says.
    return a * b


# Sum, difference and product of two floats of at most 24 bits of precision, made in double and rounded once more, are
# the correctly rounded ones: 53 >= 2 * 24 + 2 (Figueroa, "When is double rounding innocuous?", 1995).
_FLOAT: dict[type[Expr], Callable[[float, float], float]] = {
    Add: lambda a, b: a + b,
    Sub: lambda a, b: a - b,
    Mul: _float_multiply,
    Min: lambda a, b: b if math.isnan(a) else a if math.isnan(b) else min(a, b),
    Max: lambda a, b: b if math.isnan(a) else a if math.isnan(b) else max(a, b),
}


def fold_binary(kind: type[Expr], a: Number, b: Number, dtype: DType) -> Number | None:
    """The value of a binary node over two constants of the scalar type ``dtype``; None if it is not to be folded.

    For comparisons the result is 0 or 1, a bool.
    """
    compare = _COMPARE.get(kind)
    if compare is not None:
        return int(compare(a, b))
    if dtype.is_float:
        operation = _FLOAT.get(kind)
        return None if operation is None else round_to(operation(float(a), float(b)), dtype)
    integer = _INTEGER.get(kind)
    return None if integer is None else dtype.wrap(integer(int(a), int(b), dtype))


def fold_unary(kind: type[Expr], a: Number, dtype: DType) -> Number | None:
    """The value of a unary node over a constant; None if it is not to be folded."""
    if kind is Negate:
        return -float(a) if dtype.is_float else dtype.wrap(-int(a))
    if kind is BitNot:
        return dtype.wrap(~int(a))
    if kind is Not:
        return int(not a)
    return None


def fold_cast(value: Number, source: DType, target: DType) -> Number | None:
    """The constant converted from one scalar type to another, as :class:`~gristmill.ir.expr.Cast` says."""
    if target.is_handle or source.is_handle:
        return None
    if target.is_bool:
        return int(value != 0)
    if source.is_float:
        number = float(value)
        if target.is_float:
            return round_to(number, target)
        if math.isnan(number):
            return 0
        if math.isinf(number):
            return target.maximum if number > 0 else target.minimum
        return min(max(int(number), target.minimum), target.maximum)
    if target.is_float:
        return _integer_to_float(int(value), target)
    return target.wrap(int(value))


def _integer_to_float(value: int, dtype: DType) -> float:
    """The integer rounded once to the type: what does not fit a double keeps its lost bits as one sticky bit."""
    excess = abs(value).bit_length() - _EXACT_BITS
    if excess <= 0 or dtype.bits == 64:
        return round_to(float(value), dtype)
    kept, lost = abs(value) >> excess, abs(value) & ((1 << excess) - 1)
    magnitude = math.ldexp(float(kept << 1 | (lost != 0)), excess - 1)
    return round_to(math.copysign(magnitude, value), dtype)


def fold_call(name: str, args: tuple[Number, ...], operand: DType) -> Number | None:
    """The value of an exact operation over constants of the scalar type ``operand``; None if it is not to be folded."""
    if operand.is_float:
        return _fold_float_call(name, [float(value) for value in args], operand)
    if operand.is_integer:
        return _fold_integer_call(name, [int(value) for value in args], operand)
    return args[0] if name == "likely" else None


def _fold_float_call(name: str, args: list[float], operand: DType) -> Number | None:
    a = args[0]
    match name:
        case "floor" | "ceil" | "trunc" | "round" if not math.isfinite(a) or a == 0:
            return a
        case "floor":
            return float(math.floor(a))
        case "ceil":
            return math.copysign(float(math.ceil(a)), a)
        case "trunc":
            return math.copysign(float(math.trunc(a)), a)
        case "round":
            return math.copysign(float(round(a)), a)
        case "abs":
            return math.fabs(a)
        case "copysign":
            return math.copysign(a, args[1])
        case "isnan":
            return int(math.isnan(a))
        case "isinf":
            return int(math.isinf(a))
        case "isfinite":
            return int(math.isfinite(a))
        case "fmod" if math.isfinite(a) and args[1] != 0:
            return math.fmod(a, args[1])
    return None


def _fold_integer_call(name: str, args: list[int], dtype: DType) -> Number | None:
    a, bits = args[0], dtype.bits
    pattern = a & ((1 << bits) - 1)
    match name:
        case "popcount":
            return pattern.bit_count()
        case "clz":
            return bits - pattern.bit_length()
        case "ctz":
            return (pattern & -pattern).bit_length() - 1 if pattern else bits
        case "abs":
            return dtype.wrap(abs(a))
        case "dot4" | "dot4_mixed":
            is_mixed = name == "dot4_mixed"
            left = _bytes(pattern, is_mixed or dtype.is_signed)
            right = _bytes(args[1] & ((1 << bits) - 1), dtype.is_signed and not is_mixed)
            return dtype.wrap(args[2] + sum(x * y for x, y in zip(left, right, strict=True)))
        case "quotient" if _may_divide(a, args[1], dtype):
            return truncated_quotient(a, args[1])
        case "remainder" if _may_divide(a, args[1], dtype):
            return truncated_remainder(a, args[1])
        case "shift_left" if 0 <= args[1] < bits:
            return dtype.wrap(a << args[1])
        case "shift_right" if 0 <= args[1] < bits:
            return a >> args[1]
    return None


def _bytes(word: int, is_signed: bool) -> list[int]:
    """The bytes of 32 bits, the lowest first."""
    return [byte - (byte >> 7 << 8) if is_signed else byte for byte in word.to_bytes(4, "little")]


def _may_divide(a: int, b: int, dtype: DType) -> bool:
    """Whether the partial division is defined; where it is not, the executor shall report it, so it is not folded."""
    return b != 0 and not (dtype.is_signed and a == dtype.minimum and b == -1)
