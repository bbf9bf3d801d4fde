"""Memory for the buffers that a function allocates.

Small buffers of constant size live on the stack, at most :data:`STACK_BYTES` a function (:data:`RECURSIVE_STACK_BYTES`
where it may call itself), and :data:`CHAIN_STACK_BYTES` in a chain of calls. All others are mapped pages of their own,
asked of Linux by a system call, for nothing may be imported from libc; they are released on every way out of their
scope.
"""

from __future__ import annotations

from collections.abc import Iterable

from gristmill.ir.build import constant_value
from gristmill.ir.memory import Buffer
from gristmill.ir.stmt import Allocate
from gristmill_llvm.context import FunctionContext
from gristmill_llvm.launches import allocate_on_device
from gristmill_llvm.machine import assembles_for
from gristmill_llvm.memory import as_index
from gristmill_llvm.raising import raise_without_memory
from gristmill_llvm.refusals import refused_construct
from gristmill_llvm.support import ALLOCATE, RELEASE
from gristmill_llvm.types import memory_type

STACK_BYTES = 256 << 10
RECURSIVE_STACK_BYTES = 8 << 10
CHAIN_STACK_BYTES = 512 << 10
"""The most that a function and those that it calls, and those that they call, have on the stack together; threads with
small stacks have a megabyte."""
_ARRAY_ALIGNMENT = 64


def constant_bytes(buffer: Buffer) -> int | None:
    """The size of a buffer in bytes where it is constant (and laid out compactly)."""
    if buffer.strides or buffer.offset is not None:
        return None
    total = buffer.dtype.bytes
    for size in buffer.shape:
        known = constant_value(size)
        if known is None:
            return None
        total *= max(int(known), 0)
    return total


def fits_stack(buffer: Buffer, used: int, budget: int) -> bool:
    """Whether a buffer goes onto the stack of a function that has ``used`` bytes of its ``budget`` there already."""
    size = constant_bytes(buffer)
    return size is not None and used + size <= budget


def stack_bytes(buffers: Iterable[Buffer], budget: int) -> int:
    """How many bytes of the buffers of a function, in order, go onto the stack."""
    used = 0
    for buffer in buffers:
        if fits_stack(buffer, used, budget):
            used += constant_bytes(buffer) or 0
    return used


def allocate(context: FunctionContext, node: Allocate) -> None:
    """Define ``buffer.data``."""
    buffer, writer = node.buffer, context.writer
    if buffer.data in context.device_buffers:
        allocate_on_device(context, buffer, _bytes(context, buffer))
        return
    if fits_stack(buffer, context.stack_bytes, context.generation.stack_budgets[context.function.name]):
        size = constant_bytes(buffer) or 0
        context.stack_bytes += size
        if size == buffer.dtype.bytes:
            # A single value, which LLVM keeps in a register.
            slot = writer.slot(memory_type(buffer.dtype))
        else:
            alignment = max(buffer.alignment, _ARRAY_ALIGNMENT if size >= _ARRAY_ALIGNMENT else buffer.dtype.bytes)
            count = size // buffer.dtype.element.bytes
            slot = writer.slot(f"[{count} x {memory_type(buffer.dtype.element)}]", _power_of_two(alignment))
        context.values[buffer.data] = slot
        return
    _map_pages(context, buffer)


def _power_of_two(value: int) -> int:
    return 1 << (value - 1).bit_length() if value > 1 else 1


def _map_pages(context: FunctionContext, buffer: Buffer) -> None:
    writer, support = context.writer, context.generation.support
    if not assembles_for(context.profile.triple):
        known = constant_bytes(buffer)
        amount = f"{known} bytes" if known is not None else "a size that is not constant"
        remedy = f"keep local buffers constant and under {STACK_BYTES} bytes a function, or build on such a machine"
        construct = f"the buffer `{buffer.name}` of {amount}, built on another kind of machine,"
        raise refused_construct(construct, context.profile.target, remedy, buffer.span)
    size = _bytes(context, buffer)
    support.update((ALLOCATE, RELEASE))
    pointer = writer.value(f"call noalias ptr @{ALLOCATE}(i64 {size})")
    raise_without_memory(context, pointer, buffer, size)
    context.values[buffer.data] = pointer
    context.cleanups.append(lambda: writer.effect(f"call void @{RELEASE}(ptr {pointer}, i64 {size})"))


def _bytes(context: FunctionContext, buffer: Buffer) -> str:
    """The size in bytes as an ``i64``, at least 1 (no pages cannot be mapped), saturating.

    With strides it is the distance to behind the last element, where the offset counts too.
    """
    writer = context.writer
    sizes = [_not_negative(context, as_index(context, size)) for size in buffer.shape]
    if buffer.strides:
        elements = "1"
        for size, stride in zip(sizes, buffer.strides, strict=True):
            # The last index; 0 for an empty dimension, which wastes a little.
            last = writer.value(f"call i64 {_maximum(context)}(i64 {size}, i64 1)")
            last = writer.value(f"sub i64 {last}, 1")
            reach = _saturating(context, "umul", last, as_index(context, stride))
            elements = _saturating(context, "uadd", elements, reach)
    else:
        elements = "1"
        for size in sizes:
            elements = size if elements == "1" else _saturating(context, "umul", elements, size)
    if buffer.offset is not None:
        elements = _saturating(context, "uadd", elements, as_index(context, buffer.offset))
    total = _saturating(context, "umul", elements, str(buffer.dtype.bytes))
    return writer.value(f"call i64 {_maximum(context)}(i64 {total}, i64 1)")


def _maximum(context: FunctionContext) -> str:
    return context.module.declare("llvm.umax.i64", "i64", "i64, i64")


def _not_negative(context: FunctionContext, size: str) -> str:
    if not size.startswith("%"):
        return str(max(int(size), 0))
    name = context.module.declare("llvm.smax.i64", "i64", "i64, i64")
    return context.writer.value(f"call i64 {name}(i64 {size}, i64 0)")


def _saturating(context: FunctionContext, operation: str, a: str, b: str) -> str:
    """Sum or product of unsigned numbers, the greatest signed number where it is too large: no mapping is that large."""
    writer = context.writer
    name = context.module.declare(f"llvm.{operation}.with.overflow.i64", "{ i64, i1 }", "i64, i64")
    both = writer.value(f"call {{ i64, i1 }} {name}(i64 {a}, i64 {b})")
    value = writer.value(f"extractvalue {{ i64, i1 }} {both}, 0")
    over = writer.value(f"extractvalue {{ i64, i1 }} {both}, 1")
    return writer.value(f"select i1 {over}, i64 9223372036854775807, i64 {value}")
