"""Loads and stores of buffers: from an index expression to the elements of a :mod:`place <gristmill_spirv.places>`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from gristmill.ir.build import is_constant
from gristmill.ir.dtype import INT32, UINT32, DType
from gristmill.ir.expr import AddressOf, BufferRef, Expr, Load, Var
from gristmill.ir.memory import Buffer
from gristmill.ir.span import Span
from gristmill.ir.stmt import Store
from gristmill_spirv import places, vectors
from gristmill_spirv.context import FunctionContext
from gristmill_spirv.conversions import from_bits, to_bits
from gristmill_spirv.enumerants import Op
from gristmill_spirv.integers import sign_extended
from gristmill_spirv.places import AddressPlace, BoundPlace, Place, VariablePlace, WordPlace, element_bits
from gristmill_spirv.refusals import refused_construct
from gristmill_spirv.registers import Lanes, width_of, word, word_constant


def load(context: FunctionContext, node: Load) -> Lanes:
    """The lanes of the elements at the index."""
    place = place_of_buffer(context, node.buffer, node.span, vectors.bytes_at_once(context, node))
    if isinstance(place, (BoundPlace, AddressPlace)):
        at_once = vectors.load(context, place, node)
        if at_once is not None:
            return at_once
    element = node.buffer.dtype.element
    return tuple(_load_element(context, place, index, element) for index in element_indices(context, place, node))


def store(context: FunctionContext, node: Store) -> None:
    """Write the lanes to the elements at the index, in ascending order."""
    place = place_of_buffer(context, node.buffer, node.span, vectors.bytes_at_once(context, node))
    if isinstance(place, (BoundPlace, AddressPlace)) and vectors.store(context, place, node):
        return
    element = node.buffer.dtype.element
    indices = list(element_indices(context, place, node))
    values = context.evaluate(node.value)
    writer, interface = context.writer, context.kernel.interface
    for index, value in zip(indices, values, strict=True):
        if isinstance(place, VariablePlace):
            places.store_variable(writer, place, index, element, value)
            continue
        bits = to_bits(writer, value, element)
        if isinstance(place, WordPlace):
            places.store_words(writer, place, index, element_bits(element), bits)
        else:
            places.store_bits(writer, interface, place, index, element_bits(element), bits)


def _load_element(context: FunctionContext, place: Place, index: int, element: DType) -> int:
    writer = context.writer
    if isinstance(place, VariablePlace):
        return places.load_variable(writer, place, index, element)
    if isinstance(place, WordPlace):
        return from_bits(writer, places.load_words(writer, place, index, element_bits(element)), element)
    bits = places.load_bits(writer, context.kernel.interface, place, index, element_bits(element))
    return from_bits(writer, bits, element)


def element_indices(context: FunctionContext, place: Place, node: Load | Store | AddressOf) -> Iterator[int]:
    """The index of each scalar element, as the place wants it; 0 (no id) for the only element of a scalar."""
    width = node.buffer.dtype.lanes
    if not node.indices:
        for lane in range(width):
            yield place_constant(context, place, lane) if lane or not isinstance(place, VariablePlace) else 0
        return
    for lane in index_lanes(context, place, node.buffer, node.indices, node.span):
        if width == 1:
            yield lane
            continue
        wide = 64 if isinstance(place, AddressPlace) else 32
        type_ = word(context.writer, wide)
        first = context.writer.value(Op.IMul, type_, lane, word_constant(context.writer, width, wide))
        for inner in range(width):
            yield context.writer.value(Op.IAdd, type_, first, word_constant(context.writer, inner, wide))


def place_constant(context: FunctionContext, place: Place, value: int) -> int:
    return word_constant(context.writer, value, 64 if isinstance(place, AddressPlace) else 32)


def index_lanes(
    context: FunctionContext,
    place: Place,
    buffer: Buffer,
    indices: Sequence[Expr],
    span: Span | None,
    within: bool = True,
) -> Lanes:
    """The lanes of how many elements behind ``data`` one lies: uint64 for an address, else uint32.

    A buffer of several dimensions states its strides: all others are flat. ``within``: the element is read or written,
    so that no index is negative.
    """
    wide = 64 if isinstance(place, AddressPlace) else 32
    if wide == 64:
        context.kernel.require("int64", "arithmetic with addresses", span)
    lanes = _strided(context, indices[-1], buffer.strides[-1] if buffer.strides else None, wide, within)
    outer = [
        _strided(context, index, stride, wide, within)[0]
        for index, stride in zip(indices[:-1], buffer.strides[:-1], strict=True)
    ]
    if buffer.offset is not None:
        (offset,) = context.evaluate(buffer.offset)
        outer.append(_as_index(context, offset, buffer.offset.dtype, wide))
    for start in outer:
        lanes = tuple(context.writer.value(Op.IAdd, word(context.writer, wide), start, lane) for lane in lanes)
    return lanes


def _strided(context: FunctionContext, index: Expr, stride: Expr | None, bits: int, within: bool) -> Lanes:
    """The lanes of an index, times the stride if there is one."""
    # Zeros above the bits of a number that is not negative take one instruction, signs three.
    dtype = UINT32 if within and index.dtype.element == INT32 else index.dtype.element
    lanes = tuple(_as_index(context, lane, dtype, bits) for lane in context.evaluate(index))
    if stride is None or is_constant(stride, 1):
        return lanes
    (raw,) = context.evaluate(stride)
    step = _as_index(context, raw, stride.dtype, bits)
    return tuple(context.writer.value(Op.IMul, word(context.writer, bits), lane, step) for lane in lanes)


def _as_index(context: FunctionContext, value: int, dtype: DType, bits: int) -> int:
    if width_of(dtype) == bits:
        return value
    if bits == 64:
        if dtype.is_signed:
            return sign_extended(context.writer, value)
        return context.writer.value(Op.UConvert, word(context.writer, 64), value)
    return context.writer.value(Op.UConvert, word(context.writer), value)


def place_of_buffer(context: FunctionContext, buffer: Buffer, span: Span | None, at_once: int = 0) -> Place:
    """Where a buffer lives; ``at_once``: so many bytes of it are accessed as whole words, 0 for single elements.

    Raises Unsupported for a view that the place cannot give, or for what the device lacks.
    """
    place = context.places[buffer.data]
    if isinstance(place, (BoundPlace, AddressPlace)):
        if at_once:
            context.kernel.require_dtype(buffer.dtype, span)
        else:
            context.kernel.require_storage(buffer.dtype, span)
        return place
    context.kernel.require_dtype(buffer.dtype, span)
    if isinstance(place, WordPlace):
        if buffer.dtype.bits == 64:
            context.kernel.require("int64", f"shared memory of `{buffer.dtype.element}`", span)
        return place
    if width_of(place.element) != width_of(buffer.dtype.element) or (
        place.element != buffer.dtype.element and min(place.element.bits, buffer.dtype.bits) < 32
    ):
        raise refused_construct(
            f"a view of `{place.element}` memory of a block or a thread as `{buffer.dtype.element}`",
            context.kernel.profile.target,
            "give each type of element an array of its own, or use types of 32 bits, or of 64",
            span,
        )
    return place


def moved(context: FunctionContext, place: Place, buffer: Buffer, indices: Sequence[Expr], span: Span | None) -> Place:
    """The place of an element of a buffer: what a pointer to it stands for."""
    writer = context.writer
    if not indices and buffer.offset is None:
        return place
    wide = 64 if isinstance(place, AddressPlace) else 32
    if indices:
        (elements,) = index_lanes(context, place, buffer, indices, span, within=False)
    else:
        assert buffer.offset is not None
        (raw,) = context.evaluate(buffer.offset)
        elements = _as_index(context, raw, buffer.offset.dtype, wide)
    type_ = word(writer, wide)
    if isinstance(place, VariablePlace):
        lanes = buffer.dtype.lanes
        if lanes > 1:
            elements = writer.value(Op.IMul, type_, elements, word_constant(writer, lanes))
        offset = writer.value(Op.IAdd, type_, place.offset, elements) if place.offset else elements
        return replace(place, offset=offset)
    size = buffer.dtype.bytes if not buffer.dtype.is_bool else buffer.dtype.lanes
    count = writer.value(Op.IMul, type_, elements, word_constant(writer, size, wide))
    if isinstance(place, AddressPlace):
        return AddressPlace(writer.value(Op.IAdd, type_, place.address, count))
    offset = writer.value(Op.IAdd, type_, place.offset, count) if place.offset else count
    if isinstance(place, WordPlace):
        return replace(place, offset=offset)
    return BoundPlace(place.binding, offset)


def pointed_to(context: FunctionContext, node: Expr) -> Place:
    """What a pointer expression stands for. Raises Unsupported for one that is chosen while the kernel runs."""
    if isinstance(node, Var):
        return context.places[node]
    if isinstance(node, AddressOf):
        place = context.places[node.buffer.data]
        return moved(context, place, node.buffer, node.indices, node.span)
    if isinstance(node, BufferRef):
        return moved(context, context.places[node.buffer.data], node.buffer, (), node.span)
    raise refused_construct(
        "a pointer that is computed",
        context.kernel.profile.target,
        "index arrays instead; a pointer is an array, or the address of one of its elements",
        node.span,
    )
