"""Building vectors: ramps and shuffles."""

from __future__ import annotations

from gristmill.ir.build import constant_value
from gristmill.ir.expr import Ramp, Shuffle
from gristmill_llvm.context import FunctionContext
from gristmill_llvm.memory import broadcast, move_lane
from gristmill_llvm.types import register_type


def ramp(context: FunctionContext, node: Ramp, base: str, stride: str) -> str:
    """``base + stride * [0, 1, 2, ...]``, wrapping."""
    writer, dtype = context.writer, node.dtype
    text, element = register_type(dtype), register_type(dtype.element)
    known = constant_value(node.stride)
    if known is not None:
        wrapped = (dtype.element.wrap(lane * int(known)) for lane in range(node.lanes))
        steps = "<" + ", ".join(f"{element} {_signless(value, dtype.bits)}" for value in wrapped) + ">"
    else:
        count = "<" + ", ".join(f"{element} {_signless(lane, dtype.bits)}" for lane in range(node.lanes)) + ">"
        steps = writer.value(f"mul {text} {broadcast(context, stride, element, node.lanes)}, {count}")
    return writer.value(f"add {text} {broadcast(context, base, element, node.lanes)}, {steps}")


def _signless(value: int, bits: int) -> int:
    """A number reduced to ``bits`` bits, written as LLVM reads it."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def shuffle(context: FunctionContext, node: Shuffle, operands: list[str]) -> str:
    """Chosen lanes of the concatenation of the operands."""
    writer, dtype = context.writer, node.dtype
    types = [vector.dtype for vector in node.vectors]
    places = [(which, lane) for which, found in enumerate(types) for lane in range(found.lanes)]
    if len(node.indices) == 1:
        which, lane = places[node.indices[0]]
        if not types[which].is_vector:
            return operands[which]
        return writer.value(f"extractelement {register_type(types[which])} {operands[which]}, i64 {lane}")
    if types[0].is_vector and len(types) <= 2 and types[0] == types[-1]:
        text = register_type(types[0])
        second = operands[1] if len(types) == 2 else "poison"
        mask = ", ".join(f"i32 {index}" for index in node.indices)
        return writer.value(
            f"shufflevector {text} {operands[0]}, {text} {second}, <{len(node.indices)} x i32> <{mask}>"
        )
    found = "poison"
    for into, index in enumerate(node.indices):
        which, lane = places[index]
        found = move_lane(context, operands[which], types[which], lane, found, dtype, into)
    return found
