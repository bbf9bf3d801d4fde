"""Casts between all element types, one lane at a time, with the results that the language states; and reinterpretation."""

from __future__ import annotations

from collections.abc import Sequence

from gristmill.ir.dtype import FLOAT32, FLOAT64, DType
from gristmill_spirv import floats
from gristmill_spirv.enumerants import Op
from gristmill_spirv.function_writer import FunctionWriter
from gristmill_spirv.integers import halves, joined, sign_extended, wrap
from gristmill_spirv.registers import (
    Lanes,
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


def cast(writer: FunctionWriter, value: int, source: DType, target: DType) -> int:
    """One lane in another element type."""
    if source == target:
        return value
    if target.is_bool:
        if source.is_float:
            return floats.is_not_zero(writer, source, value)
        return writer.value(Op.INotEqual, writer.module.type_bool(), value, constant(writer, source, 0))
    if source.is_bool:
        return select(writer, target, value, constant(writer, target, 1), constant(writer, target, 0))
    if source.is_float:
        return (
            _float_to_float(writer, value, source, target)
            if target.is_float
            else _to_integer(writer, value, source, target)
        )
    return (
        _to_float(writer, value, source, target)
        if target.is_float
        else _integer_to_integer(writer, value, source, target)
    )


def _integer_to_integer(writer: FunctionWriter, value: int, source: DType, target: DType) -> int:
    before, after = width_of(source), width_of(target)
    if before < after:
        if source.is_signed:
            return sign_extended(writer, value)
        return writer.value(Op.UConvert, word(writer, 64), value)
    if before > after:
        value = writer.value(Op.UConvert, word(writer), value)
    return wrap(writer, target, value)


# From floats ----------------------------------------------------------------------------------------------------------


def _float_to_float(writer: FunctionWriter, value: int, source: DType, target: DType) -> int:
    if source.bits == 64:
        if is_narrow(target):
            # Rounded twice it would be wrong where the first rounding ends in the middle between two results.
            value = _to_odd_float32(writer, value)
        else:
            value = writer.value(Op.FConvert, register_type(writer.module, FLOAT32), value)
        return floats.rounded(writer, target, value)
    if target.bits == 64:
        return writer.value(Op.FConvert, register_type(writer.module, FLOAT64), value)
    # Both are held as float32; what is narrowed, or leaves one narrow type for the other, is rounded.
    return floats.rounded(writer, target, value)


def _to_odd_float32(writer: FunctionWriter, value: int) -> int:
    """A float64 as float32 rounded to odd: truncated, with the last bit set where anything was cut off.

    Rounding that to a type with at least two bits less gives what rounding once gives (S. Boldo and G. Melquiond,
    "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd", IEEE Transactions on
    Computers 57(4), 2008).
    """
    type_, condition = word(writer), writer.module.type_bool()
    near = writer.value(Op.FConvert, register_type(writer.module, FLOAT32), value)
    back = writer.value(Op.FConvert, register_type(writer.module, FLOAT64), near)
    bits = float_bits(writer, FLOAT32, near)
    # As integers without the sign, floats of one sign are in order.
    exact = floats.magnitude_bits(writer, FLOAT64, value)
    found = floats.magnitude_bits(writer, FLOAT64, back)
    over = writer.value(Op.UGreaterThan, condition, found, exact)
    one = word_constant(writer, 1)
    toward_zero = writer.value(Op.Select, type_, over, writer.value(Op.ISub, type_, bits, one), bits)
    inexact = writer.value(Op.INotEqual, condition, found, exact)
    odd = writer.value(Op.BitwiseOr, type_, toward_zero, one)
    return float_from_bits(
        writer,
        FLOAT32,
        writer.value(
            Op.Select,
            type_,
            writer.value(
                Op.LogicalAnd,
                condition,
                inexact,
                writer.value(Op.LogicalNot, condition, floats.is_nan(writer, FLOAT64, value)),
            ),
            odd,
            bits,
        ),
    )


def _to_integer(writer: FunctionWriter, value: int, source: DType, target: DType) -> int:
    """Truncate towards zero, saturate, NaN to 0."""
    condition, type_ = writer.module.type_bool(), register_type(writer.module, target)
    held = FLOAT64 if source.bits == 64 else FLOAT32
    # Both bounds are powers of two or zero, exact in every float type.
    above = writer.value(Op.FOrdGreaterThanEqual, condition, value, constant(writer, held, float(target.maximum + 1)))
    low = constant(writer, held, float(target.minimum))
    below = writer.value(Op.FOrdLessThan, condition, value, low)
    inside = writer.value(
        Op.LogicalAnd,
        condition,
        writer.value(Op.FOrdGreaterThanEqual, condition, value, low),
        writer.value(Op.LogicalNot, condition, above),
    )
    tame = select(writer, held, inside, value, constant(writer, held, 0.0))
    found = writer.value(Op.ConvertFToS if target.is_signed else Op.ConvertFToU, type_, tame)
    found = writer.value(Op.Select, type_, above, constant(writer, target, target.maximum), found)
    return writer.value(Op.Select, type_, below, constant(writer, target, target.minimum), found)


# To floats ------------------------------------------------------------------------------------------------------------


def _to_float(writer: FunctionWriter, value: int, source: DType, target: DType) -> int:
    if is_narrow(target):
        value = _with_sticky_bit(writer, value, source)
    held = FLOAT64 if target.bits == 64 else FLOAT32
    op = Op.ConvertSToF if source.is_signed else Op.ConvertUToF
    return floats.rounded(writer, target, writer.value(op, register_type(writer.module, held), value))


def _with_sticky_bit(writer: FunctionWriter, value: int, source: DType) -> int:
    """An integer with at most 24 significant bits that rounds to a narrow float as ``value`` does.

    What is cut off leaves a set bit in the last place that is kept: at least ten places are, two more than the eight
    of a bfloat16 (a float16 ends below 2**16, so of it nothing is cut off).
    """
    if source.bits < 32:
        return value
    steps = ((1 << 50, 40), (1 << 36, 26), (1 << 24, 12)) if source.bits == 64 else ((1 << 24, 8),)
    for least, dropped in steps:
        value = _sticky(writer, value, source, least, dropped)
    return value


def _sticky(writer: FunctionWriter, value: int, source: DType, least: int, dropped: int) -> int:
    """Where the magnitude is ``least`` or more, clear ``dropped`` bits, and set the one above if any was set."""
    type_, condition, width = register_type(writer.module, source), writer.module.type_bool(), width_of(source)
    mask = (1 << dropped) - 1
    low = writer.value(Op.BitwiseAnd, type_, value, word_constant(writer, mask, width))
    some = writer.value(Op.INotEqual, condition, low, word_constant(writer, 0, width))
    kept = writer.value(Op.BitwiseAnd, type_, value, word_constant(writer, ~mask, width))
    sticky = writer.value(Op.BitwiseOr, type_, kept, word_constant(writer, mask + 1, width))
    cut = writer.value(Op.Select, type_, some, sticky, kept)
    if source.is_signed:
        above = writer.value(Op.SGreaterThanEqual, condition, value, constant(writer, source, least))
        below = writer.value(Op.SLessThanEqual, condition, value, constant(writer, source, -least))
        large = writer.value(Op.LogicalOr, condition, above, below)
    else:
        large = writer.value(Op.UGreaterThanEqual, condition, value, word_constant(writer, least, width))
    return writer.value(Op.Select, type_, large, cut, value)


# Bits -----------------------------------------------------------------------------------------------------------------


def to_bits(writer: FunctionWriter, value: int, dtype: DType) -> int:
    """The bits of one lane in a register of 32 or 64, zeros above those of the type; a bool is 0 or 1."""
    if dtype.is_bool:
        return writer.value(Op.Select, word(writer), value, word_constant(writer, 1), word_constant(writer, 0))
    if dtype.is_float:
        if is_narrow(dtype):
            return floats.narrow_bits(writer, dtype, value)
        return float_bits(writer, dtype, value)
    if is_narrow(dtype) and dtype.is_signed:
        return writer.value(Op.BitwiseAnd, word(writer), value, word_constant(writer, (1 << dtype.bits) - 1))
    return value


def from_bits(writer: FunctionWriter, bits: int, dtype: DType) -> int:
    """The lane with these bits; of a narrow type what stands above its bits does not matter."""
    if dtype.is_bool:
        return writer.value(Op.INotEqual, writer.module.type_bool(), bits, word_constant(writer, 0))
    if dtype.is_float:
        if is_narrow(dtype):
            low = writer.value(Op.BitwiseAnd, word(writer), bits, word_constant(writer, 0xFFFF))
            return floats.narrow_from_bits(writer, dtype, low)
        return float_from_bits(writer, dtype, bits)
    return wrap(writer, dtype, bits)


def reinterpret(writer: FunctionWriter, lanes: Sequence[int], source: DType, target: DType) -> Lanes:
    """The bits of all lanes read as another type of the same width in all."""
    pieces = [to_bits(writer, lane, source.element) for lane in lanes]
    return tuple(
        from_bits(writer, piece, target.element) for piece in regrouped(writer, pieces, source.bits, target.bits)
    )


def regrouped(writer: FunctionWriter, pieces: Sequence[int], before: int, after: int) -> list[int]:
    """Bits in pieces of ``before`` bits, low ones first, as pieces of ``after`` bits (8 to 64, powers of two)."""
    found = list(pieces)
    while before > after:
        found = [part for piece in found for part in _split(writer, piece, before)]
        before //= 2
    while before < after:
        found = [_join(writer, low, high, before) for low, high in zip(found[::2], found[1::2], strict=True)]
        before *= 2
    return found


def _split(writer: FunctionWriter, piece: int, bits: int) -> tuple[int, int]:
    if bits == 64:
        return halves(writer, piece)
    half = bits // 2
    low = writer.value(Op.BitwiseAnd, word(writer), piece, word_constant(writer, (1 << half) - 1))
    high = writer.value(Op.ShiftRightLogical, word(writer), piece, word_constant(writer, half))
    return low, writer.value(Op.BitwiseAnd, word(writer), high, word_constant(writer, (1 << half) - 1))


def _join(writer: FunctionWriter, low: int, high: int, bits: int) -> int:
    if bits == 32:
        return joined(writer, low, high)
    upper = writer.value(Op.ShiftLeftLogical, word(writer), high, word_constant(writer, bits))
    return writer.value(Op.BitwiseOr, word(writer), upper, low)
