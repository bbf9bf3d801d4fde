"""The float zeros as drivers must not know them.

Mesa's driver for CPUs (found with lavapipe 22.3) takes short cuts where an operand is the constant 0.0, whatever the code
says of exactness: ``x + 0.0`` is ``x``, also for -0.0, ``x * 0.0`` is 0.0, also for a NaN, ``x / 0.0`` is anything; and so
for ``x - -0.0`` and the like. So zeros of computations are made from the number of the thread, of which no bit is ever
set where this looks.
"""

from __future__ import annotations

import math

from gristmill.ir.dtype import DType
from gristmill_spirv.context import FunctionContext
from gristmill_spirv.enumerants import Op
from gristmill_spirv.registers import constant, float_from_bits, width_of, word, word_constant
from gristmill_spirv.threads import thread_number


def float_constant(context: FunctionContext, dtype: DType, value: float) -> int:
    """A float that computations may use; a constant of the module, unless it is zero."""
    if context.fast or value != 0.0:
        return constant(context.writer, dtype, value)
    return _hidden_zero(context, dtype, math.copysign(1.0, value) < 0.0)


def _hidden_zero(context: FunctionContext, dtype: DType, negative: bool) -> int:
    writer, type_ = context.writer, word(context.writer)
    number = thread_number(context)
    zero = writer.value(Op.ShiftRightLogical, type_, number, word_constant(writer, 31))
    upper = zero
    if negative:
        upper = writer.value(Op.BitwiseOr, type_, zero, word_constant(writer, 0x80000000))
    if width_of(dtype) == 64:
        # Of two words, so that it does not need arithmetic of int64.
        pair = writer.value(Op.CompositeConstruct, writer.module.vector(type_, 2), zero, upper)
        return float_from_bits(writer, dtype, pair)
    return float_from_bits(writer, dtype, upper)
