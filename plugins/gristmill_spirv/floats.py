"""Float arithmetic: exact operations rounded once, tests that no fast-math driver can remove, and narrow floats.

float16 and bfloat16 are computed in float32 and rounded. For + - * / and square roots that gives the correctly rounded
result, since float32 has more than twice as many bits of significand and two more (S. A. Figueroa, "When is double
rounding innocuous?", SIGNUM Newsletter 30(3), 1995: p >= 2q + 2; 24 >= 2 * 11 + 2).
"""

from __future__ import annotations

from gristmill.ir import expr as ir
from gristmill.ir.dtype import FLOAT32, DType
from gristmill_spirv.enumerants import Decoration, Op
from gristmill_spirv.function_writer import FunctionWriter
from gristmill_spirv.registers import (
    constant,
    float_bits,
    float_from_bits,
    is_narrow,
    register_type,
    select,
    width_of,
    word,
    word_constant,
)

_ARITHMETIC = {ir.Add: Op.FAdd, ir.Sub: Op.FSub, ir.Mul: Op.FMul, ir.Div: Op.FDiv}
_EXPONENT = {32: 0x7F800000, 64: 0x7FF0000000000000}
"""The bits of the exponent, which are also those of infinity."""


def binary(writer: FunctionWriter, node: ir.BinaryExpr, dtype: DType, a: int, b: int, fast: bool) -> int:
    """One lane of an :class:`~gristmill.ir.expr.BinaryExpr` of floats."""
    kind = type(node)
    if kind in (ir.Min, ir.Max):
        return _extreme(writer, kind is ir.Min, dtype, a, b)
    return arithmetic(writer, _ARITHMETIC[kind], dtype, a, b, fast=fast)


def arithmetic(writer: FunctionWriter, op: Op, dtype: DType, *operands: int, fast: bool = False) -> int:
    """An operation of the machine, never contracted with another unless ``fast``, rounded to the type."""
    found = writer.value(op, register_type(writer.module, dtype), *operands)
    if not fast and writer.is_open:
        writer.module.decorate(found, Decoration.NoContraction)
    return rounded(writer, dtype, found)


def _extreme(writer: FunctionWriter, least: bool, dtype: DType, a: int, b: int) -> int:
    """The lesser or the greater operand; of a NaN and a number, the number."""
    condition = writer.module.type_bool()
    better = writer.value(Op.FOrdLessThan if least else Op.FOrdGreaterThan, condition, b, a)
    take = writer.value(Op.LogicalOr, condition, better, is_nan(writer, dtype, a))
    return select(writer, dtype, take, b, a)


def negate(writer: FunctionWriter, dtype: DType, a: int) -> int:
    """The sign bit flipped: as integers, since FNegate may flush denormals and lose the sign of a NaN."""
    width = width_of(dtype)
    flipped = writer.value(
        Op.BitwiseXor,
        word(writer, width),
        float_bits(writer, dtype, a),
        word_constant(writer, 1 << (width - 1), width),
    )
    return float_from_bits(writer, dtype, flipped)


# Tests ----------------------------------------------------------------------------------------------------------------


def magnitude_bits(writer: FunctionWriter, dtype: DType, a: int) -> int:
    """The bits without the sign, as an integer."""
    width = width_of(dtype)
    mask = word_constant(writer, (1 << (width - 1)) - 1, width)
    return writer.value(Op.BitwiseAnd, word(writer, width), float_bits(writer, dtype, a), mask)


def is_nan(writer: FunctionWriter, dtype: DType, a: int) -> int:
    return _against_infinity(writer, Op.UGreaterThan, dtype, a)


def is_infinite(writer: FunctionWriter, dtype: DType, a: int) -> int:
    return _against_infinity(writer, Op.IEqual, dtype, a)


def is_finite(writer: FunctionWriter, dtype: DType, a: int) -> int:
    return _against_infinity(writer, Op.ULessThan, dtype, a)


def is_not_zero(writer: FunctionWriter, dtype: DType, a: int) -> int:
    """Whether a value is neither of the zeros; true for a NaN, and for denormals that a comparison would flush."""
    width = width_of(dtype)
    return writer.value(
        Op.INotEqual, writer.module.type_bool(), magnitude_bits(writer, dtype, a), word_constant(writer, 0, width)
    )


def _against_infinity(writer: FunctionWriter, op: Op, dtype: DType, a: int) -> int:
    width = width_of(dtype)
    return writer.value(
        op, writer.module.type_bool(), magnitude_bits(writer, dtype, a), word_constant(writer, _EXPONENT[width], width)
    )


def absolute(writer: FunctionWriter, dtype: DType, a: int) -> int:
    return float_from_bits(writer, dtype, magnitude_bits(writer, dtype, a))


def with_sign_of(writer: FunctionWriter, dtype: DType, a: int, b: int) -> int:
    """The magnitude of ``a`` with the sign bit of ``b``."""
    width = width_of(dtype)
    type_ = word(writer, width)
    sign = writer.value(
        Op.BitwiseAnd, type_, float_bits(writer, dtype, b), word_constant(writer, 1 << (width - 1), width)
    )
    both = writer.value(Op.BitwiseOr, type_, magnitude_bits(writer, dtype, a), sign)
    return float_from_bits(writer, dtype, both)


# Narrow floats --------------------------------------------------------------------------------------------------------

# Of float32: the bits of the least normal float16, 2**-14, and of 2**16, the first power of two that float16 lacks.
_LEAST_NORMAL_HALF = 0x38800000
_OVER_HALF = 0x47800000


def rounded(writer: FunctionWriter, dtype: DType, value: int) -> int:
    """A float32 rounded to the nearest value of a narrow type, halves to even; other types as they are."""
    if not is_narrow(dtype):
        return value
    bits = float_bits(writer, FLOAT32, value)
    found = _rounded_to_half(writer, value, bits) if str(dtype) == "float16" else _rounded_to_brain(writer, bits)
    return float_from_bits(
        writer, FLOAT32, writer.value(Op.Select, word(writer), is_nan(writer, FLOAT32, value), bits, found)
    )


def _rounded_to_brain(writer: FunctionWriter, bits: int) -> int:
    """The upper 16 bits; what rounds up over the greatest number is infinity by itself."""
    return _dropped(writer, bits, 16)


def _dropped(writer: FunctionWriter, bits: int, count: int) -> int:
    """The bits with the lowest ``count`` rounded away to nearest even."""
    type_ = word(writer)
    last = writer.value(
        Op.BitwiseAnd,
        type_,
        writer.value(Op.ShiftRightLogical, type_, bits, word_constant(writer, count)),
        word_constant(writer, 1),
    )
    half = writer.value(Op.IAdd, type_, bits, word_constant(writer, (1 << (count - 1)) - 1))
    sum_ = writer.value(Op.IAdd, type_, half, last)
    return writer.value(Op.BitwiseAnd, type_, sum_, word_constant(writer, -1 << count))


def _rounded_to_half(writer: FunctionWriter, value: int, bits: int) -> int:
    type_, condition = word(writer), writer.module.type_bool()
    sign = writer.value(Op.BitwiseAnd, type_, bits, word_constant(writer, 0x80000000))
    size = writer.value(Op.BitwiseAnd, type_, bits, word_constant(writer, 0x7FFFFFFF))
    normal = _dropped(writer, size, 13)
    over = writer.value(Op.UGreaterThanEqual, condition, normal, word_constant(writer, _OVER_HALF))
    normal = writer.value(Op.Select, type_, over, word_constant(writer, _EXPONENT[32]), normal)
    # Below the normal numbers a step is 2**-24, the last place of float32 numbers from 0.5 to 1.
    half = constant(writer, FLOAT32, 0.5)
    magnitude = float_from_bits(writer, FLOAT32, size)
    shifted = arithmetic(writer, Op.FAdd, FLOAT32, magnitude, half)
    small = float_bits(writer, FLOAT32, arithmetic(writer, Op.FSub, FLOAT32, shifted, half))
    is_small = writer.value(Op.ULessThan, condition, size, word_constant(writer, _LEAST_NORMAL_HALF))
    found = writer.value(Op.Select, type_, is_small, small, normal)
    return writer.value(Op.BitwiseOr, type_, found, sign)


def narrow_bits(writer: FunctionWriter, dtype: DType, value: int) -> int:
    """The 16 bits of a value of a narrow type, in a register of 32."""
    type_ = word(writer)
    bits = float_bits(writer, FLOAT32, value)
    if str(dtype) == "bfloat16":
        upper = writer.value(Op.ShiftRightLogical, type_, bits, word_constant(writer, 16))
        # A NaN whose only bits are in the lower half must stay one.
        quiet = writer.value(Op.BitwiseOr, type_, upper, word_constant(writer, 0x40))
        return writer.value(Op.Select, type_, is_nan(writer, FLOAT32, value), quiet, upper)
    condition = writer.module.type_bool()
    size = writer.value(Op.BitwiseAnd, type_, bits, word_constant(writer, 0x7FFFFFFF))
    normal = writer.value(
        Op.ShiftRightLogical,
        type_,
        writer.value(Op.ISub, type_, size, word_constant(writer, 0x38000000)),
        word_constant(writer, 13),
    )
    # Exact: a multiple of 2**-24 below 2**-14.
    magnitude = float_from_bits(writer, FLOAT32, size)
    is_small = writer.value(Op.ULessThan, condition, size, word_constant(writer, _LEAST_NORMAL_HALF))
    scaled = arithmetic(writer, Op.FMul, FLOAT32, magnitude, constant(writer, FLOAT32, 2.0**24))
    tame = select(writer, FLOAT32, is_small, scaled, constant(writer, FLOAT32, 0.0))
    small = writer.value(Op.ConvertFToU, type_, tame)
    found = writer.value(Op.Select, type_, is_small, small, normal)
    infinity = writer.value(Op.UGreaterThanEqual, condition, size, word_constant(writer, _EXPONENT[32]))
    found = writer.value(Op.Select, type_, infinity, word_constant(writer, 0x7C00), found)
    nan = is_nan(writer, FLOAT32, value)
    found = writer.value(Op.Select, type_, nan, word_constant(writer, 0x7E00), found)
    sign = writer.value(
        Op.BitwiseAnd,
        type_,
        writer.value(Op.ShiftRightLogical, type_, bits, word_constant(writer, 16)),
        word_constant(writer, 0x8000),
    )
    return writer.value(Op.BitwiseOr, type_, found, sign)


def narrow_from_bits(writer: FunctionWriter, dtype: DType, bits: int) -> int:
    """The value of a narrow type with these 16 bits (in a register of 32, zeros above)."""
    type_ = word(writer)
    if str(dtype) == "bfloat16":
        found = writer.value(Op.ShiftLeftLogical, type_, bits, word_constant(writer, 16))
        return float_from_bits(writer, FLOAT32, found)
    condition = writer.module.type_bool()
    size = writer.value(Op.BitwiseAnd, type_, bits, word_constant(writer, 0x7FFF))
    moved = writer.value(Op.ShiftLeftLogical, type_, size, word_constant(writer, 13))
    normal = writer.value(Op.IAdd, type_, moved, word_constant(writer, 0x38000000))
    special = writer.value(Op.IAdd, type_, moved, word_constant(writer, 0x70000000))
    is_special = writer.value(Op.UGreaterThanEqual, condition, size, word_constant(writer, 0x7C00))
    found = writer.value(Op.Select, type_, is_special, special, normal)
    count = writer.value(Op.ConvertUToF, register_type(writer.module, FLOAT32), size)
    small = arithmetic(writer, Op.FMul, FLOAT32, count, constant(writer, FLOAT32, 2.0**-24))
    is_small = writer.value(Op.ULessThan, condition, size, word_constant(writer, 0x400))
    found = writer.value(Op.Select, type_, is_small, float_bits(writer, FLOAT32, small), found)
    sign = writer.value(
        Op.ShiftLeftLogical,
        type_,
        writer.value(Op.BitwiseAnd, type_, bits, word_constant(writer, 0x8000)),
        word_constant(writer, 16),
    )
    return float_from_bits(writer, FLOAT32, writer.value(Op.BitwiseOr, type_, found, sign))
