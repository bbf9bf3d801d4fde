"""Buffers: addresses of elements, loads, stores.

An index inside the shape makes every step of the address arithmetic stay within the buffer, and an index outside is an
error of the program (the executor reports it). That is why addresses may carry ``nsw`` and ``inbounds``.
"""

from __future__ import annotations

from gristmill.ir.build import constant_value
from gristmill.ir.dtype import DType
from gristmill.ir.expr import Expr, Ramp
from gristmill.ir.memory import Buffer
from gristmill_llvm.context import FunctionContext
from gristmill_llvm.types import memory_type, register_type, suffix


def as_index(context: FunctionContext, index: Expr) -> str:
    """The scalar index as an ``i64`` operand."""
    operand = context.evaluate(index)
    return widen(context, operand, index.dtype)


def widen(context: FunctionContext, operand: str, dtype: DType) -> str:
    """An integer operand (scalar or vector) as 64 bits a lane."""
    if dtype.bits == 64 and not dtype.is_bool:
        return operand
    if not operand.startswith(("%", "<", "splat", "zero", "true", "false")):
        # Register types of integers are signless: an unsigned constant may be written as a negative number.
        value = int(operand)
        return str(value % (1 << dtype.bits) if dtype.is_unsigned else value)
    step = "sext" if dtype.is_signed else "zext"
    wide = "i64" if dtype.lanes == 1 else f"<{dtype.lanes} x i64>"
    return context.writer.value(f"{step} {register_type(dtype)} {operand} to {wide}")


def element_offset(context: FunctionContext, buffer: Buffer, indices: list[str]) -> str:
    """The distance of an element from ``data``, in elements, as an ``i64`` operand. Indices are ``i64`` operands."""
    total = ""
    if buffer.strides:
        for index, stride in zip(indices, buffer.strides, strict=True):
            total = _add(context, total, _multiply(context, index, as_index(context, stride)))
    else:
        for position, index in enumerate(indices):
            if total:
                total = _multiply(context, total, as_index(context, buffer.shape[position]))
            total = _add(context, total, index)
    if buffer.offset is not None:
        total = _add(context, total, as_index(context, buffer.offset))
    return total or "0"


def _add(context: FunctionContext, a: str, b: str) -> str:
    if not a or a == "0":
        return b
    if b == "0":
        return a
    return context.writer.value(f"add nsw i64 {a}, {b}")


def _multiply(context: FunctionContext, a: str, b: str) -> str:
    if "0" in (a, b):
        return "0"
    if a == "1":
        return b
    if b == "1":
        return a
    return context.writer.value(f"mul nsw i64 {a}, {b}")


def data_pointer(context: FunctionContext, buffer: Buffer) -> str:
    """The typed operand of a buffer's ``data``."""
    return f"{context.profile.pointer(buffer.scope)} {context.values[buffer.data]}"


def address(context: FunctionContext, buffer: Buffer, offset: str, inbounds: bool = True) -> str:
    """The typed pointer to the element at a distance (``i64`` operand, in elements) from ``data``."""
    base = data_pointer(context, buffer)
    if buffer.dtype.lanes > 1:
        # An LLVM array of <3 x float> has padding, ours has none: count in scalars.
        offset = _multiply(context, offset, str(buffer.dtype.lanes))
    if offset == "0":
        return base
    flag = "inbounds " if inbounds else ""
    element = memory_type(buffer.dtype.element)
    found = context.writer.value(f"getelementptr {flag}{element}, {base}, i64 {offset}")
    return f"{context.profile.pointer(buffer.scope)} {found}"


def element_address(context: FunctionContext, buffer: Buffer, indices: tuple[Expr, ...]) -> str:
    """The typed pointer to an element, valid also for one past the end."""
    places = [as_index(context, index) for index in indices]
    return address(context, buffer, element_offset(context, buffer, places), inbounds=False)


def _alignment(buffer: Buffer) -> int:
    """What is sure of the address of every element; of a view of bytes as floats, that of the bytes."""
    own = buffer.dtype.element.bytes
    return own if buffer.data.pointer is None else min(own, buffer.data.pointer.element.element.bytes)


def load(context: FunctionContext, buffer: Buffer, indices: tuple[Expr, ...], dtype: DType) -> str:
    """The elements at the indices, as a value of ``dtype``."""
    if not indices or indices[-1].dtype.lanes == 1:
        return _load_at(context, address(context, buffer, _scalar_offset(context, buffer, indices)), dtype, buffer)
    last = indices[-1]
    if isinstance(last, Ramp) and _is_contiguous(buffer, last):
        offset = _scalar_offset(context, buffer, (*indices[:-1], last.base))
        return _load_at(context, address(context, buffer, offset), dtype, buffer)
    return _gather(context, buffer, indices, dtype)


def store(context: FunctionContext, buffer: Buffer, indices: tuple[Expr, ...], value: Expr) -> None:
    """Write the value to the elements at the indices. Evaluates the indices, then the value."""
    dtype = value.dtype
    last = indices[-1] if indices else None
    if last is not None and last.dtype.lanes > 1:
        if not (isinstance(last, Ramp) and _is_contiguous(buffer, last)):
            _scatter(context, buffer, indices, value)
            return
        indices = (*indices[:-1], last.base)
    pointer = address(context, buffer, _scalar_offset(context, buffer, indices))
    stored = to_memory(context, context.evaluate(value), dtype)
    context.writer.effect(f"store {memory_type(dtype)} {stored}, {pointer}, align {_alignment(buffer)}")


def to_memory(context: FunctionContext, operand: str, dtype: DType) -> str:
    """A register value as it is kept in memory."""
    if not dtype.is_bool:
        return operand
    return context.writer.value(f"zext {register_type(dtype)} {operand} to {memory_type(dtype)}")


def from_memory(context: FunctionContext, operand: str, dtype: DType) -> str:
    """A value that was read from memory as it is kept in registers; any bool byte but 0 is true."""
    if not dtype.is_bool:
        return operand
    none = "zeroinitializer" if dtype.is_vector else "0"
    return context.writer.value(f"icmp ne {memory_type(dtype)} {operand}, {none}")


def _scalar_offset(context: FunctionContext, buffer: Buffer, indices: tuple[Expr, ...]) -> str:
    return element_offset(context, buffer, [as_index(context, index) for index in indices])


def _load_at(context: FunctionContext, pointer: str, dtype: DType, buffer: Buffer) -> str:
    loaded = context.writer.value(f"load {memory_type(dtype)}, {pointer}, align {_alignment(buffer)}")
    return from_memory(context, loaded, dtype)


def _is_contiguous(buffer: Buffer, ramp: Ramp) -> bool:
    return constant_value(ramp.stride) == 1 and (not buffer.strides or constant_value(buffer.strides[-1]) == 1)


def _lane_offsets(context: FunctionContext, buffer: Buffer, indices: tuple[Expr, ...]) -> tuple[str, int]:
    """The distances of the elements that a vector index names, as a vector of ``i64``, and their number."""
    writer = context.writer
    places = [as_index(context, index) for index in indices[:-1]]
    last = indices[-1]
    lanes = last.dtype.lanes
    vector = widen(context, context.evaluate(last), last.dtype)
    if buffer.strides and constant_value(buffer.strides[-1]) != 1:
        stride = broadcast(context, as_index(context, buffer.strides[-1]), "i64", lanes)
        vector = writer.value(f"mul nsw <{lanes} x i64> {vector}, {stride}")
    start = element_offset(context, buffer, [*places, "0"])
    if start != "0":
        vector = writer.value(f"add nsw <{lanes} x i64> {vector}, {broadcast(context, start, 'i64', lanes)}")
    return vector, lanes


def broadcast(context: FunctionContext, operand: str, type_text: str, lanes: int) -> str:
    """A vector with the scalar operand in every lane."""
    if not operand.startswith("%"):
        return f"splat ({type_text} {operand})"
    vector = f"<{lanes} x {type_text}>"
    first = context.writer.value(f"insertelement {vector} poison, {type_text} {operand}, i64 0")
    return context.writer.value(f"shufflevector {vector} {first}, {vector} poison, <{lanes} x i32> zeroinitializer")


def _lane_pointers(context: FunctionContext, buffer: Buffer, vector: str, lanes: int) -> str:
    element = memory_type(buffer.dtype.element)
    return context.writer.value(
        f"getelementptr inbounds {element}, {data_pointer(context, buffer)}, <{lanes} x i64> {vector}"
    )


def _gather(context: FunctionContext, buffer: Buffer, indices: tuple[Expr, ...], dtype: DType) -> str:
    """Elements that are not side by side."""
    vector, lanes = _lane_offsets(context, buffer, indices)
    writer = context.writer
    width = buffer.dtype.lanes
    if width == 1:
        pointers = _lane_pointers(context, buffer, vector, lanes)
        name = _masked(context, "gather", buffer, dtype)
        loaded = writer.value(
            f"call {memory_type(dtype)} {name}(<{lanes} x ptr> align {_alignment(buffer)} {pointers}, "
            f"<{lanes} x i1> splat (i1 true), {memory_type(dtype)} poison)"
        )
        return from_memory(context, loaded, dtype)
    found = "poison"
    for lane in range(lanes):
        offset = writer.value(f"extractelement <{lanes} x i64> {vector}, i64 {lane}")
        part = _load_at(context, address(context, buffer, offset), buffer.dtype, buffer)
        for inner in range(width):
            found = move_lane(context, part, buffer.dtype, inner, found, dtype, lane * width + inner)
    return found


def _scatter(context: FunctionContext, buffer: Buffer, indices: tuple[Expr, ...], value: Expr) -> None:
    """Elements that are not side by side, lanes in ascending order."""
    vector, lanes = _lane_offsets(context, buffer, indices)
    writer = context.writer
    width = buffer.dtype.lanes
    dtype = value.dtype
    operand = context.evaluate(value)
    if width == 1:
        pointers = _lane_pointers(context, buffer, vector, lanes)
        stored = to_memory(context, operand, dtype)
        name = _masked(context, "scatter", buffer, dtype)
        writer.effect(
            f"call void {name}({memory_type(dtype)} {stored}, <{lanes} x ptr> align {_alignment(buffer)} {pointers}, "
            f"<{lanes} x i1> splat (i1 true))"
        )
        return
    for lane in range(lanes):
        offset = writer.value(f"extractelement <{lanes} x i64> {vector}, i64 {lane}")
        part = "poison"
        for inner in range(width):
            part = move_lane(context, operand, dtype, lane * width + inner, part, buffer.dtype, inner)
        pointer = address(context, buffer, offset)
        stored = to_memory(context, part, buffer.dtype)
        writer.effect(f"store {memory_type(buffer.dtype)} {stored}, {pointer}, align {_alignment(buffer)}")


def _masked(context: FunctionContext, kind: str, buffer: Buffer, dtype: DType) -> str:
    lanes = dtype.lanes
    in_memory = memory_type(dtype)
    bits = f"v{lanes}i8" if dtype.is_bool else suffix(dtype)
    name = f"llvm.masked.{kind}.{bits}.v{lanes}p0"
    if kind == "gather":
        return context.module.declare(name, in_memory, f"<{lanes} x ptr>, <{lanes} x i1>, {in_memory}")
    return context.module.declare(name, "void", f"{in_memory}, <{lanes} x ptr>, <{lanes} x i1>")


def move_lane(
    context: FunctionContext, source: str, source_type: DType, lane: int, target: str, target_type: DType, into: int
) -> str:
    """``target`` with lane ``into`` replaced by lane ``lane`` of ``source``."""
    writer = context.writer
    element = register_type(source_type.element)
    taken = source
    if source_type.is_vector:
        taken = writer.value(f"extractelement {register_type(source_type)} {source}, i64 {lane}")
    return writer.value(f"insertelement {register_type(target_type)} {target}, {element} {taken}, i64 {into}")
