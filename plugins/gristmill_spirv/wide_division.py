"""Division of int64: that of the magnitudes, with the signs put right afterwards.

GPUs have no instruction for it, so drivers do the same; and NVIDIA's (580, on an H200) was seen to lose the sign of a
dividend that had been widened from fewer bits, where it divides by a constant and every thread does so alike. Magnitudes
are right for all operands: ``MIN`` is its own magnitude as an unsigned number, so ``MIN / -1 = MIN`` and ``MIN % -1 = 0``
come of themselves.
"""

from __future__ import annotations

from gristmill.ir.dtype import DType
from gristmill_spirv.enumerants import Op
from gristmill_spirv.function_writer import FunctionWriter
from gristmill_spirv.registers import constant, register_type, select


def quotient(writer: FunctionWriter, dtype: DType, a: int, b: int, known: int | None, *, floors: bool) -> int:
    """``a / b`` rounded towards zero, or (``floors``) down. ``b`` is not zero; ``known`` is it where constant."""
    negative, dividend = _magnitude(writer, dtype, a)
    opposite, divisor = _opposite(writer, dtype, negative, b, known)
    type_ = register_type(writer.module, dtype)
    found = writer.value(Op.UDiv, type_, dividend, divisor)
    below = writer.value(Op.SNegate, type_, found)
    if floors:
        product = writer.value(Op.IMul, type_, found, divisor)
        is_whole = writer.value(Op.IEqual, writer.module.type_bool(), product, dividend)
        # ~x = -x - 1.
        below = select(writer, dtype, is_whole, below, writer.value(Op.Not, type_, found))
    return select(writer, dtype, opposite, below, found)


def remainder(writer: FunctionWriter, dtype: DType, a: int, b: int, known: int | None, *, floors: bool) -> int:
    """``a - b * quotient(a, b)``: with the sign of ``a``, or (``floors``) of ``b``."""
    negative, dividend = _magnitude(writer, dtype, a)
    opposite, divisor = _opposite(writer, dtype, negative, b, known)
    type_, condition = register_type(writer.module, dtype), writer.module.type_bool()
    rest = writer.value(Op.UMod, type_, dividend, divisor)
    if not floors:
        return select(writer, dtype, negative, writer.value(Op.SNegate, type_, rest), rest)
    # Never a number below zero that something is added to: indices are such remainders, and a driver may add to the
    # address first.
    some = writer.value(Op.INotEqual, condition, rest, constant(writer, dtype, 0))
    moves = writer.value(Op.LogicalAnd, condition, some, opposite)
    size = select(writer, dtype, moves, writer.value(Op.ISub, type_, divisor, rest), rest)
    if known is not None and known > 0:
        return size
    below = writer.value(Op.SLessThan, condition, b, constant(writer, dtype, 0))
    return select(writer, dtype, below, writer.value(Op.SNegate, type_, size), size)


def _magnitude(writer: FunctionWriter, dtype: DType, a: int) -> tuple[int, int]:
    """Whether a number is negative, and its magnitude as an unsigned number."""
    negative = writer.value(Op.SLessThan, writer.module.type_bool(), a, constant(writer, dtype, 0))
    flipped = writer.value(Op.SNegate, register_type(writer.module, dtype), a)
    return negative, select(writer, dtype, negative, flipped, a)


def _opposite(writer: FunctionWriter, dtype: DType, negative: int, b: int, known: int | None) -> tuple[int, int]:
    """Whether the signs of the operands differ, and the magnitude of the divisor."""
    condition = writer.module.type_bool()
    if known is None:
        below, divisor = _magnitude(writer, dtype, b)
        return writer.value(Op.LogicalNotEqual, condition, negative, below), divisor
    if known > 0:
        return negative, b
    return writer.value(Op.LogicalNot, condition, negative), constant(writer, dtype, -known)
