"""Atomic operations, on the bits of elements: memory that kernels share is integers here (see :mod:`gristmill_spirv.places`).

All are relaxed: they order nothing else. A sum of floats is made by comparing and exchanging the bits until no other
thread has come between, which every device can do; of float32 behind an address by an instruction, where the target has it.
"""

from __future__ import annotations

from gristmill.ir.dtype import FLOAT32, DType
from gristmill.ir.effects import atomic_element
from gristmill.ir.expr import AddressOf, Call
from gristmill.ir.functor import walk
from gristmill.ir.memory import Scope as MemoryScope
from gristmill_spirv import floats, memory, places
from gristmill_spirv.context import FunctionContext, KernelModule
from gristmill_spirv.conversions import from_bits, to_bits
from gristmill_spirv.enumerants import Capability, MemoryModel, Op, Scope
from gristmill_spirv.places import AddressPlace, BoundPlace, Place, WordPlace
from gristmill_spirv.refusals import refused_construct
from gristmill_spirv.registers import Lanes, word, word_constant

_COMBINED = {
    "atomic_exchange": Op.AtomicExchange,
    "atomic_add": Op.AtomicIAdd,
    "atomic_min": Op.AtomicUMin,
    "atomic_max": Op.AtomicUMax,
    "atomic_and": Op.AtomicAnd,
    "atomic_or": Op.AtomicOr,
    "atomic_xor": Op.AtomicXor,
}
FLOAT32_SUM = "atomic_float32_add"
_SIGNED = {"atomic_min": Op.AtomicSMin, "atomic_max": Op.AtomicSMax}


def atomic(context: FunctionContext, node: Call) -> Lanes:
    """Write an atomic operation; its value, none for a store. Evaluates the index, then the operands.

    Raises Unsupported for elements of 64 bits where the target does not state them, or that lie in words.
    """
    element, name, writer = node.args[0], node.op.name, context.writer
    assert isinstance(element, AddressOf)
    dtype = element.buffer.dtype
    place, index = _place(context, node, element)
    if name == "atomic_add" and dtype == FLOAT32 and isinstance(place, AddressPlace) and _has_sums(context):
        return (_instruction_of_sum(context, place, index, node),)
    is_global = isinstance(place, (BoundPlace, AddressPlace))
    pointer = places.element_pointer(writer, context.kernel.interface, place, index, dtype.bits)
    values = [to_bits(writer, context.evaluate(value)[0], dtype) for value in node.args[1:]]
    scope, relaxed = word_constant(writer, _scope(context, is_global)), word_constant(writer, 0)
    type_ = word(writer, dtype.bits)
    if name == "atomic_store":
        writer.effect(Op.AtomicStore, pointer, scope, relaxed, values[0])
        return ()
    if name == "atomic_load":
        found = writer.value(Op.AtomicLoad, type_, pointer, scope, relaxed)
    elif name == "atomic_compare_exchange":
        expected, new = values
        found = writer.value(Op.AtomicCompareExchange, type_, pointer, scope, relaxed, relaxed, new, expected)
    elif name == "atomic_add" and dtype.is_float:
        found = _float_sum(context, dtype, pointer, scope, values[0])
    else:
        op = (_SIGNED if dtype.is_signed and name in _SIGNED else _COMBINED)[name]
        found = writer.value(op, type_, pointer, scope, relaxed, values[0])
    return (from_bits(writer, found, dtype),)


def _scope(context: FunctionContext, is_global: bool) -> Scope:
    if not is_global:
        return Scope.Workgroup
    # Under Vulkan's memory model the scope of a device is a feature of its own, and one queue runs all that we start.
    is_vulkan = context.writer.module.memory_model is MemoryModel.Vulkan
    return Scope.QueueFamily if is_vulkan else Scope.Device


def _place(context: FunctionContext, node: Call, element: AddressOf) -> tuple[Place, int]:
    """Where the element's buffer is, and the id of the element's index there."""
    place = memory.place_of_buffer(context, element.buffer, node.span)
    bits, kernel = element.buffer.dtype.bits, context.kernel
    is_global = isinstance(place, (BoundPlace, AddressPlace))
    if bits == 64:
        if isinstance(place, WordPlace):
            raise refused_construct(
                f"`{node.op}` of 64 bits in shared memory that is laid out in words",
                kernel.profile.target,
                "give it an array of its own, of a constant size, that is not seen in other widths",
                node.span,
            )
        kernel.require("int64", f"`{node.op}` of 64 bits", node.span)
        feature = "atomic_int64" if is_global else "atomic_shared_int64"
        where = "global" if is_global else "shared"
        kernel.require(feature, f"`{node.op}` of 64 bits in {where} memory", node.span)
        context.writer.module.capability(Capability.Int64Atomics)
    (index,) = memory.element_indices(context, place, element)
    return place, index


def _has_sums(context: FunctionContext) -> bool:
    return FLOAT32_SUM in context.kernel.profile.features


def _instruction_of_sum(context: FunctionContext, place: AddressPlace, index: int, node: Call) -> int:
    """What was there before, a float32."""
    writer, module = context.writer, context.writer.module
    context.kernel.require(FLOAT32_SUM, f"`{node.op}` of float32", node.span)
    module.capability(Capability.AtomicFloat32AddEXT)
    module.extension("SPV_EXT_shader_atomic_float_add")
    (addend,) = context.evaluate(node.args[1])
    pointer = places.float_pointer(writer, context.kernel.interface, place, index)
    scope, relaxed = word_constant(writer, _scope(context, True)), word_constant(writer, 0)
    return writer.value(Op.AtomicFAddEXT, module.type_float(32), pointer, scope, relaxed, addend)


def _float_sum(context: FunctionContext, dtype: DType, pointer: int, scope: int, addend: int) -> int:
    """The bits of what was there before the addend came to it."""
    writer, relaxed = context.writer, word_constant(context.writer, 0)
    type_ = word(writer, dtype.bits)
    expected = writer.variable(type_)
    writer.effect(Op.Store, expected, writer.value(Op.AtomicLoad, type_, pointer, scope, relaxed))
    value = from_bits(writer, addend, dtype)
    seen: list[int] = []

    def goes_on() -> int:
        held = writer.value(Op.Load, type_, expected)
        total = floats.arithmetic(writer, Op.FAdd, dtype, from_bits(writer, held, dtype), value, fast=context.fast)
        new = to_bits(writer, total, dtype)
        found = writer.value(Op.AtomicCompareExchange, type_, pointer, scope, relaxed, relaxed, new, held)
        writer.effect(Op.Store, expected, found)
        seen.append(found)
        return writer.value(Op.INotEqual, writer.module.type_bool(), found, held)

    with writer.loop(goes_on):
        pass
    return seen[0] if seen else writer.value(Op.Load, type_, expected)


def shared_floats(kernel: KernelModule) -> frozenset[DType]:
    """The types of floats whose elements in shared memory the module has atomic operations on: those lie there as bits."""
    elements = (found for node in walk(kernel.source) if (found := atomic_element(node)) is not None)
    buffers = [element.buffer for element in elements if element.buffer.scope is not MemoryScope.GLOBAL]
    return frozenset(buffer.dtype for buffer in buffers if buffer.dtype.is_float)
