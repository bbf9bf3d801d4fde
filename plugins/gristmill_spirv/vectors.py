"""Accesses of neighbouring elements at once: 8 or 16 bytes, or one word of narrow elements.

It takes two things that are known when the code is written: a promise of the buffer's alignment, and an index that is a
multiple of as many elements. Memory is then seen as vectors of words, which hold elements of any type.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from gristmill.ir import expr as ir
from gristmill.ir.build import constant_value, is_constant
from gristmill.ir.stmt import Store
from gristmill_spirv import memory
from gristmill_spirv.context import FunctionContext
from gristmill_spirv.conversions import from_bits, regrouped, to_bits
from gristmill_spirv.enumerants import Op
from gristmill_spirv.places import AddressPlace, BoundPlace, element_bits, load_vector, store_vector
from gristmill_spirv.registers import Lanes, word, word_constant

_SIZES = (16, 8)
_MOST = 16
"""What is asked of multiples, at the most."""


def load(context: FunctionContext, place: BoundPlace | AddressPlace, node: ir.Load) -> Lanes | None:
    """The lanes of a load, or None where the elements must be loaded one by one."""
    size = bytes_at_once(context, node)
    if not size:
        return None
    element, writer = node.buffer.dtype.element, context.writer
    bits, words = element_bits(element), []
    for index in _indices(context, place, node, size):
        words += load_vector(writer, context.kernel.interface, place, index, size // 4)
    return tuple(from_bits(writer, piece, element) for piece in regrouped(writer, words, 32, bits))


def store(context: FunctionContext, place: BoundPlace | AddressPlace, node: Store) -> bool:
    """Store the lanes; False, and nothing is done, where the elements must be stored one by one."""
    size = bytes_at_once(context, node)
    if not size:
        return False
    element, writer = node.buffer.dtype.element, context.writer
    bits = element_bits(element)
    indices = list(_indices(context, place, node, size))
    pieces = [to_bits(writer, lane, element) for lane in context.evaluate(node.value)]
    words = regrouped(writer, pieces, bits, 32)
    step = size // 4
    for place_, index in enumerate(indices):
        part = words[place_ * step : place_ * step + step]
        store_vector(writer, context.kernel.interface, place, index, part)
    return True


def _indices(
    context: FunctionContext, place: BoundPlace | AddressPlace, node: ir.Load | Store, size: int
) -> Iterator[int]:
    """The numbers of the vectors that the elements lie in."""
    last = node.indices[-1]
    assert isinstance(last, ir.Ramp)
    (first,) = memory.index_lanes(context, place, node.buffer, (last.base,), node.span)
    wide, writer = 64 if isinstance(place, AddressPlace) else 32, context.writer
    elements = size * 8 // element_bits(node.buffer.dtype.element)
    shift = word_constant(writer, elements.bit_length() - 1, wide)
    start = writer.value(Op.ShiftRightLogical, word(writer, wide), first, shift)
    for number in range(last.lanes // elements):
        yield writer.value(Op.IAdd, word(writer, wide), start, word_constant(writer, number, wide)) if number else start


def bytes_at_once(context: FunctionContext, node: ir.Load | Store) -> int:
    """How many bytes can be accessed at once; 0 for those of one element."""
    buffer = node.buffer
    last = node.indices[-1] if len(node.indices) == 1 and not buffer.strides else None
    if not isinstance(last, ir.Ramp) or not is_constant(last.stride, 1) or buffer.dtype.is_vector:
        return 0
    bits = element_bits(buffer.dtype.element)
    offset = _MOST if buffer.offset is None else divisor(buffer.offset, context.bindings)
    elements = math.gcd(divisor(last.base, context.bindings), offset, last.lanes)
    aligned = min(buffer.alignment, elements * bits // 8)
    sizes = (*_SIZES, 4) if bits < 32 else _SIZES
    return next((size for size in sizes if size <= aligned and size * 8 > bits), 0)


def divisor(node: ir.Expr, bindings: dict[ir.Var, ir.Expr]) -> int:
    """A power of two, at most 16, that divides an integer whatever its variables are; wrapping does not change that."""
    if isinstance(node, ir.IntImm):
        return math.gcd(node.value, _MOST)
    if isinstance(node, ir.Var):
        bound = bindings.get(node)
        return 1 if bound is None else divisor(bound, bindings)
    if isinstance(node, ir.Cast):
        # From an integer, that is: bits are cut off, or the sign fills in, above those that count here.
        return divisor(node.value, bindings) if node.value.dtype.is_integer else 1
    if isinstance(node, ir.Mul):
        return min(divisor(node.a, bindings) * divisor(node.b, bindings), _MOST)
    if isinstance(node, (ir.Add, ir.Sub, ir.Min, ir.Max, ir.FloorMod)):
        return math.gcd(divisor(node.a, bindings), divisor(node.b, bindings))
    if isinstance(node, ir.Select):
        return math.gcd(divisor(node.a, bindings), divisor(node.b, bindings))
    if isinstance(node, ir.ShiftLeft):
        amount = constant_value(node.b)
        return min(divisor(node.a, bindings) << min(int(amount), 4), _MOST) if amount is not None and amount >= 0 else 1
    return 1
