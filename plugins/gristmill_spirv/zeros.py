"""Floats as drivers must not know them: zeros, infinities, NaNs, and the same number twice.

Where a module does not declare SignedZeroInfNanPreserve, a driver may compute as if zeros had no signs and there were no
infinities and no NaNs (Vulkan specification, "Precision and Operation of SPIR-V Instructions"): ``0.0 / x`` is 0.0,
``x - x`` is 0.0, ``x / x`` is 1.0, ``x == x`` is true, ``x < inf`` is true. NVIDIA's driver (580) does the first; Mesa's
driver for CPUs (found with lavapipe 22.3) takes ``x + 0.0`` for ``x``, ``x * 0.0`` for 0.0 and the like even where it
may not. They can only do so where they know an operand. So zeros of computations are made at run time, of the number of
the thread: ``n * (n + 1)`` is even, which takes more to find out than which bits of ``n`` can be set. So are integers
that become floats, for the driver may find out that one is always zero. Where the target has no float controls, the same
goes for infinities and NaNs, and for an operand that is there twice.
"""

from __future__ import annotations

import math
import struct
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
    """A float that computations may use; a constant of the module, unless drivers might compute with it as they like."""
    if context.fast or (value != 0.0 and (math.isfinite(value) or _are_kept(context))):
        return constant(context.writer, dtype, value)
    return _hidden_constant(context, dtype, value)


def compared_constant(context: FunctionContext, dtype: DType, value: float) -> int:
    """A float that others are compared with: zero compares right whatever its sign is."""
    return constant(context.writer, dtype, value) if value == 0.0 else float_constant(context, dtype, value)


def apart(context: FunctionContext, dtype: DType, a: int, b: int) -> int:
    """The second operand of an operation of floats: if it is the first once more, so that nobody sees that it is."""
    if a != b or context.fast or not dtype.is_float or _are_kept(context):
        return b
    return _covered(context, dtype, (b,))[0]


def _are_kept(context: FunctionContext) -> bool:
    """Whether the module declares that zeros, infinities and NaNs are to be kept as they are."""
    features = context.kernel.profile.features
    return "float_controls" in features and ("float_controls64" in features or "float64" not in features)


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
    return _covered(context, dtype, lanes)


def _covered(context: FunctionContext, dtype: DType, lanes: Lanes) -> Lanes:
    """Floats of which the driver does not know that they are these."""
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
    writer, type_ = context.writer, word(context.writer)
    one = word_constant(writer, 1)
    number = thread_number(context)
    product = writer.value(Op.IMul, type_, number, writer.value(Op.IAdd, type_, number, one))
    return writer.value(Op.BitwiseAnd, type_, product, one)


def _hidden_constant(context: FunctionContext, dtype: DType, value: float) -> int:
    """A zero, an infinity or a NaN, made at run time."""
    writer, type_ = context.writer, word(context.writer)
    zero = upper = _zero_word(context)
    wide = width_of(dtype) == 64
    (bits,) = struct.unpack("<Q", struct.pack("<d", value)) if wide else struct.unpack("<I", struct.pack("<f", value))
    high = bits >> 32 if wide else bits
    if high:
        upper = writer.value(Op.BitwiseOr, type_, zero, word_constant(writer, high))
    if wide:
        # Of two words, so that it does not need arithmetic of int64; the lower one of all of these is zero.
        pair = writer.value(Op.CompositeConstruct, writer.module.vector(type_, 2), zero, upper)
        return float_from_bits(writer, dtype, pair)
    return float_from_bits(writer, dtype, upper)
