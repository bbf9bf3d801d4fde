"""Integer arithmetic as the language defines it for every operand: wrapping, total division and shifts, bit counting.

SPIR-V leaves results open for a zero divisor, for ``MIN / -1``, for shifts by the width or more, and in Vulkan for
remainders of negative numbers (Vulkan specification, "Precision and Operation of SPIR-V Instructions"). The pass
``guard_arithmetic`` removes these nodes where bounds prove operands harmless; what is left gets its guards here.
"""

from __future__ import annotations

from gristmill.ir import expr as ir
from gristmill.ir.dtype import DType
from gristmill_spirv import wide_division
from gristmill_spirv.enumerants import Op
from gristmill_spirv.function_writer import FunctionWriter
from gristmill_spirv.glsl450 import GLSL450
from gristmill_spirv.registers import constant, is_narrow, register_type, select, width_of, word, word_constant

_PLAIN = {
    ir.Add: Op.IAdd,
    ir.Sub: Op.ISub,
    ir.Mul: Op.IMul,
    ir.BitAnd: Op.BitwiseAnd,
    ir.BitOr: Op.BitwiseOr,
    ir.BitXor: Op.BitwiseXor,
}
_STAY_NARROW = (ir.BitAnd, ir.BitOr, ir.BitXor)
"""Operations whose result is extended rightly if the operands are."""


def wrap(writer: FunctionWriter, dtype: DType, value: int) -> int:
    """A register with the right low bits made right as a whole."""
    if not is_narrow(dtype):
        return value
    type_ = word(writer)
    if not dtype.is_signed:
        return writer.value(Op.BitwiseAnd, type_, value, word_constant(writer, dtype.maximum))
    # Shifts rather than a bit-field instruction: drivers have them all, and fold them as well.
    amount = word_constant(writer, 32 - dtype.bits)
    high = writer.value(Op.ShiftLeftLogical, type_, value, amount)
    return writer.value(Op.ShiftRightArithmetic, type_, high, amount)


def binary(writer: FunctionWriter, node: ir.BinaryExpr, dtype: DType, a: int, b: int, known: int | None) -> int:
    """One lane of an integer :class:`~gristmill.ir.expr.BinaryExpr`. ``known`` is the second operand where constant."""
    kind = type(node)
    if kind in _PLAIN:
        found = writer.value(_PLAIN[kind], register_type(writer.module, dtype), a, b)
        return found if kind in _STAY_NARROW else wrap(writer, dtype, found)
    if kind is ir.ShiftLeft:
        return shift_left(writer, dtype, a, b, known)
    if kind is ir.ShiftRight:
        return shift_right(writer, dtype, a, b, known)
    if kind in (ir.Min, ir.Max):
        less = writer.value(Op.SLessThan if dtype.is_signed else Op.ULessThan, writer.module.type_bool(), a, b)
        return select(writer, dtype, less, a, b) if kind is ir.Min else select(writer, dtype, less, b, a)
    return divide(writer, node, dtype, a, b, known)


def negate(writer: FunctionWriter, dtype: DType, a: int) -> int:
    return wrap(writer, dtype, writer.value(Op.SNegate, register_type(writer.module, dtype), a))


def invert(writer: FunctionWriter, dtype: DType, a: int) -> int:
    return wrap(writer, dtype, writer.value(Op.Not, register_type(writer.module, dtype), a))


def divide(writer: FunctionWriter, node: ir.BinaryExpr, dtype: DType, a: int, b: int, known: int | None) -> int:
    """``Div``, ``Mod``, ``FloorDiv`` and ``FloorMod``."""
    type_, condition = register_type(writer.module, dtype), writer.module.type_bool()
    signed = dtype.is_signed
    zero, one = constant(writer, dtype, 0), constant(writer, dtype, 1)
    is_zero = 0
    if known is None or known == 0:
        is_zero = writer.value(Op.IEqual, condition, b, zero)
        b, known = select(writer, dtype, is_zero, one, b), None
    wants_quotient = isinstance(node, (ir.Div, ir.FloorDiv))
    floors = signed and isinstance(node, (ir.FloorDiv, ir.FloorMod))
    if signed and dtype.bits == 64:
        # x % 1 = 0, so the remainder by zero needs nothing more.
        if not wants_quotient:
            return wide_division.remainder(writer, dtype, a, b, known, floors=floors)
        found = wide_division.quotient(writer, dtype, a, b, known, floors=floors)
        return select(writer, dtype, is_zero, zero, found) if is_zero else found
    # Registers of narrow types have room for -MIN, which wraps to MIN at the end.
    if signed and not is_narrow(dtype) and (known is None or known == -1):
        least = writer.value(Op.IEqual, condition, a, constant(writer, dtype, dtype.minimum))
        minus = writer.value(Op.IEqual, condition, b, constant(writer, dtype, -1))
        both = writer.value(Op.LogicalAnd, condition, least, minus)
        # MIN / 1 = MIN and MIN % 1 = 0 are what MIN / -1 and MIN % -1 shall be.
        b = select(writer, dtype, both, one, b)
    if not signed and not wants_quotient:
        return writer.value(Op.UMod, type_, a, b)
    quotient = writer.value(Op.SDiv if signed else Op.UDiv, type_, a, b)
    remainder = below = 0
    if floors or not wants_quotient:
        remainder = _remainder(writer, type_, quotient, a, b)
    if floors:
        below = _needs_floor(writer, dtype, remainder, b, zero)
    if not wants_quotient:
        # x % 1 = 0, so a zero divisor needs nothing more.
        if not floors:
            return remainder
        return select(writer, dtype, below, writer.value(Op.IAdd, type_, remainder, b), remainder)
    if floors:
        quotient = select(writer, dtype, below, writer.value(Op.ISub, type_, quotient, one), quotient)
    if is_zero:
        quotient = select(writer, dtype, is_zero, zero, quotient)
    return wrap(writer, dtype, quotient)


def quotient(writer: FunctionWriter, dtype: DType, a: int, b: int) -> int:
    """``a / b`` where ``b`` is known to be neither zero nor -1 with ``a = MIN``."""
    if dtype.is_signed and dtype.bits == 64:
        return wide_division.quotient(writer, dtype, a, b, None, floors=False)
    return writer.value(Op.SDiv if dtype.is_signed else Op.UDiv, register_type(writer.module, dtype), a, b)


def remainder(writer: FunctionWriter, dtype: DType, a: int, b: int) -> int:
    """``a - b * quotient(a, b)``."""
    type_ = register_type(writer.module, dtype)
    if not dtype.is_signed:
        return writer.value(Op.UMod, type_, a, b)
    if dtype.bits == 64:
        return wide_division.remainder(writer, dtype, a, b, None, floors=False)
    return _remainder(writer, type_, quotient(writer, dtype, a, b), a, b)


def _remainder(writer: FunctionWriter, type_: int, quotient: int, a: int, b: int) -> int:
    product = writer.value(Op.IMul, type_, quotient, b)
    return writer.value(Op.ISub, type_, a, product)


def _needs_floor(writer: FunctionWriter, dtype: DType, remainder: int, b: int, zero: int) -> int:
    """Whether rounding towards zero went up: the remainder is not zero and its sign is not that of the divisor."""
    condition = writer.module.type_bool()
    some = writer.value(Op.INotEqual, condition, remainder, zero)
    mixed = writer.value(Op.BitwiseXor, register_type(writer.module, dtype), remainder, b)
    opposite = writer.value(Op.SLessThan, condition, mixed, zero)
    return writer.value(Op.LogicalAnd, condition, some, opposite)


def shift_left(writer: FunctionWriter, dtype: DType, a: int, b: int, known: int | None) -> int:
    """``a << b`` for any ``b``, read as unsigned."""
    type_ = register_type(writer.module, dtype)
    if known is not None and 0 <= known < dtype.bits:
        return wrap(writer, dtype, writer.value(Op.ShiftLeftLogical, type_, a, b))
    amount, fits = _amount(writer, dtype, b)
    shifted = wrap(writer, dtype, writer.value(Op.ShiftLeftLogical, type_, a, amount))
    return select(writer, dtype, fits, shifted, constant(writer, dtype, 0))


def shift_right(writer: FunctionWriter, dtype: DType, a: int, b: int, known: int | None) -> int:
    """``a >> b`` for any ``b``, read as unsigned; the sign fills in from the left."""
    type_ = register_type(writer.module, dtype)
    within = known is not None and 0 <= known < dtype.bits
    if dtype.is_signed:
        if not within:
            most = constant(writer, dtype, dtype.bits - 1)
            fits = writer.value(Op.ULessThan, writer.module.type_bool(), b, most)
            b = select(writer, dtype, fits, b, most)
        return writer.value(Op.ShiftRightArithmetic, type_, a, b)
    if within:
        return writer.value(Op.ShiftRightLogical, type_, a, b)
    amount, fits = _amount(writer, dtype, b)
    return select(writer, dtype, fits, writer.value(Op.ShiftRightLogical, type_, a, amount), constant(writer, dtype, 0))


def _amount(writer: FunctionWriter, dtype: DType, b: int) -> tuple[int, int]:
    """An amount that machines can shift by, and whether it is ``b``."""
    bits = word_constant(writer, dtype.bits, width_of(dtype))
    fits = writer.value(Op.ULessThan, writer.module.type_bool(), b, bits)
    return select(writer, dtype, fits, b, constant(writer, dtype, 0)), fits


# Bits -----------------------------------------------------------------------------------------------------------------


def count_ones(writer: FunctionWriter, dtype: DType, a: int) -> int:
    """How many bits are set."""
    if dtype.bits == 64:
        low, high = halves(writer, a)
        type_ = word(writer)
        found = writer.value(
            Op.IAdd, type_, writer.value(Op.BitCount, type_, low), writer.value(Op.BitCount, type_, high)
        )
        return writer.value(Op.UConvert, word(writer, 64), found)
    if is_narrow(dtype):
        # Shifted rather than masked: NVIDIA's driver (580) counts the bits of what it knows to have 16 with their sign.
        a = writer.value(Op.ShiftLeftLogical, word(writer), a, word_constant(writer, 32 - dtype.bits))
    return writer.value(Op.BitCount, word(writer), a)


def leading_zeros(writer: FunctionWriter, dtype: DType, a: int) -> int:
    """How many zero bits stand above the highest set one; of 0 the width."""
    if dtype.bits == 64:
        low, high = halves(writer, a)
        return _of_halves(writer, high, _leading(writer, high, 32), _leading(writer, low, 32))
    return _leading(writer, _raw(writer, dtype, a), dtype.bits)


def trailing_zeros(writer: FunctionWriter, dtype: DType, a: int) -> int:
    """How many zero bits stand below the lowest set one; of 0 the width."""
    if dtype.bits == 64:
        low, high = halves(writer, a)
        return _of_halves(writer, low, _trailing(writer, low, 32), _trailing(writer, high, 32))
    return _trailing(writer, _raw(writer, dtype, a), dtype.bits)


def _raw(writer: FunctionWriter, dtype: DType, a: int) -> int:
    """The bits of a narrow value, with zeros above."""
    if not (is_narrow(dtype) and dtype.is_signed):
        return a
    return writer.value(Op.BitwiseAnd, word(writer), a, word_constant(writer, (1 << dtype.bits) - 1))


def _leading(writer: FunctionWriter, a: int, width: int) -> int:
    # The highest set bit is number -1 of zero, so the difference is right there too.
    type_ = word(writer)
    highest = extended(writer, type_, GLSL450.FindUMsb, a)
    return writer.value(Op.ISub, type_, word_constant(writer, width - 1), highest)


def _trailing(writer: FunctionWriter, a: int, width: int) -> int:
    type_ = word(writer)
    lowest = extended(writer, type_, GLSL450.FindILsb, a)
    is_zero = writer.value(Op.IEqual, writer.module.type_bool(), a, word_constant(writer, 0))
    return writer.value(Op.Select, type_, is_zero, word_constant(writer, width), lowest)


def _of_halves(writer: FunctionWriter, first: int, count: int, rest: int) -> int:
    """The count in the half that is looked at first, or, if that is zero, 32 and that in the other."""
    type_ = word(writer)
    none = writer.value(Op.IEqual, writer.module.type_bool(), first, word_constant(writer, 0))
    more = writer.value(Op.IAdd, type_, rest, word_constant(writer, 32))
    found = writer.value(Op.Select, type_, none, more, count)
    return writer.value(Op.UConvert, word(writer, 64), found)


def halves(writer: FunctionWriter, a: int) -> tuple[int, int]:
    """The low and the high 32 bits of a register of 64."""
    low = writer.value(Op.UConvert, word(writer), a)
    high = writer.value(Op.ShiftRightLogical, word(writer, 64), a, word_constant(writer, 32, 64))
    return low, writer.value(Op.UConvert, word(writer), high)


def joined(writer: FunctionWriter, low: int, high: int) -> int:
    """A register of 64 bits from two of 32."""
    type_ = word(writer, 64)
    upper = writer.value(
        Op.ShiftLeftLogical, type_, writer.value(Op.UConvert, type_, high), word_constant(writer, 32, 64)
    )
    return writer.value(Op.BitwiseOr, type_, upper, writer.value(Op.UConvert, type_, low))


def sign_extended(writer: FunctionWriter, a: int) -> int:
    """A register of 32 bits as one of 64, by its sign.

    Put together from two halves: Mesa up to 22.3 at least compares the result of OpSConvert with a constant as if both
    were unsigned numbers of 32 bits.
    """
    sign = writer.value(Op.ShiftRightArithmetic, word(writer), a, word_constant(writer, 31))
    pair = writer.value(Op.CompositeConstruct, writer.module.vector(word(writer), 2), a, sign)
    return writer.value(Op.Bitcast, word(writer, 64), pair)


def extended(writer: FunctionWriter, type_: int, instruction: GLSL450, *operands: int) -> int:
    """An instruction of GLSL.std.450."""
    return writer.value(Op.ExtInst, type_, writer.module.instructions("GLSL.std.450"), instruction, *operands)
