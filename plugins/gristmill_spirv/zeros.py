"""The float zeros as drivers must not know them.

Mesa's driver for CPUs (found with lavapipe 22.3) takes short cuts where an operand is the constant 0.0, whatever the code
says of exactness: ``x + 0.0`` is ``x``, also for -0.0, ``x * 0.0`` is 0.0, also for a NaN, ``x / 0.0`` is anything; and so
for ``x - -0.0`` and the like. So zeros of computations are made from the number of the thread, of which no bit is ever
set where this looks; and so are integers that become floats, for the driver may find out that one is always zero.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from gristmill.ir.build import constant_value
from gristmill.ir.dtype import DType
from gristmill.ir.expr import Expr, Load
from gristmill.ir.memory import Scope
from gristmill_spirv.context import FunctionContext
from gristmill_spirv.enumerants import Op
from gristmill_spirv.registers import Lanes, constant, float_bits, float_from_bits, width_of, word, word_constant
from gristmill_spirv.threads import thread_number


def float_constant(context: FunctionContext, dtype: DType, value: float) -> int:
    """A float that computations may use; a constant of the module, unless it is zero."""
    if context.fast or value != 0.0:
        return constant(context.writer, dtype, value)
    return _hidden_zero(context, dtype, math.copysign(1.0, value) < 0.0)


def hidden(context: FunctionContext, node: Expr, lanes: Lanes) -> Lanes:
    """The lanes of an expression that become floats; what is read from memory of the caller nobody can know."""
    dtype = node.dtype.element
    is_known = isinstance(node, Load) and node.buffer.scope is Scope.GLOBAL
    if context.fast or dtype.is_float or is_known:
        return lanes
    writer = context.writer
    zero = _zero_word(context)
    if dtype.is_bool:
        no = writer.value(Op.INotEqual, writer.module.type_bool(), zero, word_constant(writer, 0))
        return tuple(writer.value(Op.LogicalOr, writer.module.type_bool(), lane, no) for lane in lanes)
    type_ = word(writer, width_of(dtype))
    if width_of(dtype) == 64:
        zero = writer.value(Op.UConvert, type_, zero)
    return tuple(writer.value(Op.BitwiseOr, type_, lane, zero) for lane in lanes)


def unknown(context: FunctionContext, operands: Sequence[Expr], lanes: Lanes) -> Lanes:
    """The lanes of the first operand of an operation of floats; if all are constants, so that nobody works it out."""
    dtype = operands[0].dtype.element
    if context.fast or not dtype.is_float or any(constant_value(operand) is None for operand in operands):
        return lanes
    writer, type_ = context.writer, word(context.writer)
    zero = _zero_word(context)
    if width_of(dtype) == 32:
        bits = [writer.value(Op.BitwiseOr, type_, float_bits(writer, dtype, lane), zero) for lane in lanes]
        return tuple(float_from_bits(writer, dtype, found) for found in bits)
    pair = writer.module.vector(type_, 2)
    zeros = writer.value(Op.CompositeConstruct, pair, zero, zero)
    words = [writer.value(Op.BitwiseOr, pair, writer.value(Op.Bitcast, pair, lane), zeros) for lane in lanes]
    return tuple(float_from_bits(writer, dtype, found) for found in words)


def _zero_word(context: FunctionContext) -> int:
    type_ = word(context.writer)
    return context.writer.value(Op.ShiftRightLogical, type_, thread_number(context), word_constant(context.writer, 31))


def _hidden_zero(context: FunctionContext, dtype: DType, negative: bool) -> int:
    writer, type_ = context.writer, word(context.writer)
    zero = upper = _zero_word(context)
    if negative:
        upper = writer.value(Op.BitwiseOr, type_, zero, word_constant(writer, 0x80000000))
    if width_of(dtype) == 64:
        # Of two words, so that it does not need arithmetic of int64.
        pair = writer.value(Op.CompositeConstruct, writer.module.vector(type_, 2), zero, upper)
        return float_from_bits(writer, dtype, pair)
    return float_from_bits(writer, dtype, upper)
