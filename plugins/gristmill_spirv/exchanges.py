"""Exchanges between the threads of a warp, by operations of subgroups.

A group of ``width`` threads (see :data:`gristmill.ir.op.WARP`) lies in one subgroup: the target guarantees the size of
subgroups, the width divides it, and the threads of a block, counted with x fastest, fill one subgroup after the other.
Registers are exchanged as floats or words of 32 bits, which every device with these operations has.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from gristmill.ir.build import constant_value
from gristmill.ir.dtype import DType
from gristmill.ir.expr import Call
from gristmill.ir.op import WARP
from gristmill_spirv.context import FunctionContext
from gristmill_spirv.conversions import to_bits
from gristmill_spirv.enumerants import Capability, Op
from gristmill_spirv.enumerants import Scope as Group
from gristmill_spirv.function_writer import FunctionWriter
from gristmill_spirv.integers import halves, joined
from gristmill_spirv.registers import Lanes, float_bits, float_from_bits, register_type, select, word, word_constant
from gristmill_spirv.threads import number_in_subgroup, thread_number, threads_of_block

EXCHANGES = frozenset(op.name for op in WARP)
_VOTES = ("warp_ballot", "warp_any", "warp_all")


def exchange(context: FunctionContext, node: Call) -> Lanes:
    """The value of an exchange. Raises Unsupported (GM0680) for a target without its operation."""
    context.kernel.require_subgroups(f"`{node.op}`, an exchange between threads,", node.span)
    width = int(constant_value(node.args[-1]) or 1)
    (value,) = context.evaluate(node.args[0])
    if node.op.name in _VOTES:
        return (_vote(context, node, value, width),)
    context.kernel.require("subgroup_shuffle", f"`{node.op}`, an exchange between threads,", node.span)
    context.kernel.builder.capability(Capability.GroupNonUniformShuffle)
    (operand,) = context.evaluate(node.args[1])
    return (_shuffle(context, node, value, operand, width),)


# Shuffles -------------------------------------------------------------------------------------------------------------


def _shuffle(context: FunctionContext, node: Call, value: int, operand: int, width: int) -> int:
    writer, dtype = context.writer, node.args[0].dtype
    type_, condition = word(writer), writer.module.type_bool()
    number = number_in_subgroup(context)
    last = word_constant(writer, width - 1)
    lane = writer.value(Op.BitwiseAnd, type_, number, last)
    source, exists = _source(writer, node.op.name, lane, operand, last), 0
    if node.op.name != "warp_shuffle":
        # As unsigned numbers, lanes below the first are above the last.
        exists = writer.value(Op.ULessThanEqual, condition, source, last)
        source = writer.value(Op.BitwiseAnd, type_, source, last)
    if _may_be_cut(context, width):
        index = thread_number(context)
        first = writer.value(Op.ISub, type_, index, lane)
        place = writer.value(Op.IAdd, type_, first, source)
        there = writer.value(Op.ULessThan, condition, place, threads_of_block(context))
        exists = writer.value(Op.LogicalAnd, condition, exists, there) if exists else there
    start = writer.value(Op.ISub, type_, number, lane)
    id_ = writer.value(Op.IAdd, type_, start, source)
    group = word_constant(writer, Group.Subgroup)

    def read(type_: int, part: int) -> int:
        return writer.value(Op.GroupNonUniformShuffle, type_, group, part, id_)

    found = _by_words(writer, dtype, value, read)
    return select(writer, dtype, exists, found, value) if exists else found


def _source(writer: FunctionWriter, name: str, lane: int, operand: int, last: int) -> int:
    """The lane to read from, not yet checked."""
    if name == "warp_shuffle":
        return writer.value(Op.BitwiseAnd, word(writer), operand, last)
    op = {"warp_shuffle_xor": Op.BitwiseXor, "warp_shuffle_up": Op.ISub, "warp_shuffle_down": Op.IAdd}[name]
    return writer.value(op, word(writer), lane, operand)


def _by_words(writer: FunctionWriter, dtype: DType, value: int, read: Callable[[int, int], int]) -> int:
    """Read a register of another thread in parts that every device can exchange."""
    if dtype.is_bool:
        found = read(word(writer), to_bits(writer, value, dtype))
        return writer.value(Op.INotEqual, writer.module.type_bool(), found, word_constant(writer, 0))
    if dtype.bits < 64:
        return read(register_type(writer.module, dtype), value)
    bits = float_bits(writer, dtype, value) if dtype.is_float else value
    low, high = (read(word(writer), half) for half in halves(writer, bits))
    found = joined(writer, low, high)
    return float_from_bits(writer, dtype, found) if dtype.is_float else found


def _may_be_cut(context: FunctionContext, width: int) -> bool:
    """Whether the last group of a block may have fewer threads."""
    threads = math.prod(context.kernel.block)
    return threads == 0 or threads % width != 0


# Votes ----------------------------------------------------------------------------------------------------------------


def _vote(context: FunctionContext, node: Call, value: int, width: int) -> int:
    context.kernel.require("subgroup_ballot", f"`{node.op}`, an exchange between threads,", node.span)
    writer, condition = context.writer, context.writer.module.type_bool()
    if node.op.name == "warp_all":
        value = writer.value(Op.LogicalNot, condition, value)
    low, high = _ballot(context, value, width)
    if node.op.name == "warp_ballot":
        context.kernel.require("int64", f"the result of `{node.op}`", node.span)
        return joined(writer, low, high)
    some = low if width <= 32 else writer.value(Op.BitwiseOr, word(writer), low, high)
    op = Op.INotEqual if node.op.name == "warp_any" else Op.IEqual
    return writer.value(op, condition, some, word_constant(writer, 0))


def _ballot(context: FunctionContext, value: int, width: int) -> tuple[int, int]:
    """Two words with a bit for each lane of the group, set where the value is true; threads that ended count as false."""
    writer, type_ = context.writer, word(context.writer)
    size = context.kernel.profile.subgroup_size
    context.kernel.builder.capability(Capability.GroupNonUniformBallot)
    four = writer.module.vector(type_, 4)
    ballot = writer.value(Op.GroupNonUniformBallot, four, word_constant(writer, Group.Subgroup), value)
    zero = word_constant(writer, 0)
    if width == size <= 32:
        return writer.value(Op.CompositeExtract, type_, ballot, 0), zero
    number = number_in_subgroup(context)
    start = writer.value(Op.BitwiseAnd, type_, number, word_constant(writer, ~(width - 1)))
    if size <= 32:
        part = writer.value(Op.CompositeExtract, type_, ballot, 0)
    else:
        place = writer.value(Op.ShiftRightLogical, type_, start, word_constant(writer, 5))
        part = writer.value(Op.VectorExtractDynamic, type_, ballot, place)
        if width == 64:
            next_ = writer.value(Op.IAdd, type_, place, word_constant(writer, 1))
            return part, writer.value(Op.VectorExtractDynamic, type_, ballot, next_)
    if width == 32:
        return part, zero
    amount = writer.value(Op.BitwiseAnd, type_, start, word_constant(writer, 31))
    shifted = writer.value(Op.ShiftRightLogical, type_, part, amount)
    return writer.value(Op.BitwiseAnd, type_, shifted, word_constant(writer, (1 << width) - 1)), zero
