"""Atomic operations, on the bits of elements: memory that kernels share is integers here (see :mod:`gristmill_spirv.places`).

All are relaxed: they order nothing else. A sum of floats is made by comparing and exchanging the bits until no other
thread has come between, which every device can do; or by an instruction, where the target has it for the type and the
memory. Those want floats in memory: global memory is seen as such for them, and shared memory is floats where no other
atomic operation is meant for it.
"""

from __future__ import annotations

from gristmill.ir.dtype import FLOAT32, FLOAT64, DType
from gristmill.ir.effects import atomic_element
from gristmill.ir.expr import AddressOf, Call
from gristmill.ir.functor import walk
from gristmill.ir.memory import Scope as MemoryScope
from gristmill.ir.stmt import View
from gristmill_spirv import floats, memory, places
from gristmill_spirv.context import FunctionContext, KernelModule
from gristmill_spirv.conversions import from_bits, to_bits
from gristmill_spirv.enumerants import Capability, MemoryModel, Op, Scope
from gristmill_spirv.places import AddressPlace, BoundPlace, Place, VariablePlace, WordPlace
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
_SUM_CAPABILITIES = {FLOAT32: Capability.AtomicFloat32AddEXT, FLOAT64: Capability.AtomicFloat64AddEXT}
_SUM_FEATURES = {
    (FLOAT32, True): "atomic_float32_add",
    (FLOAT32, False): "atomic_shared_float32_add",
    (FLOAT64, True): "atomic_float64_add",
    (FLOAT64, False): "atomic_shared_float64_add",
}
"""What a target states for sums by an instruction, by the type and whether the memory is global."""
_SIGNED = {"atomic_min": Op.AtomicSMin, "atomic_max": Op.AtomicSMax}


def atomic(context: FunctionContext, node: Call) -> Lanes:
    """Write an atomic operation; its value, none for a store. Evaluates the index, then the operands.

    Raises Unsupported for elements of 64 bits where the target does not state them, or that lie in words.
    """
    element, name, writer = node.args[0], node.op.name, context.writer
    assert isinstance(element, AddressOf)
    dtype = element.buffer.dtype
    place = memory.place_of_buffer(context, element.buffer, node.span)
    if name == "atomic_add" and _has_sums(context.kernel, place, dtype):
        return (_instruction_of_sum(context, place, element, node),)
    _require(context, node, place, dtype)
    (index,) = memory.element_indices(context, place, element)
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


def _require(context: FunctionContext, node: Call, place: Place, dtype: DType) -> None:
    """What an operation on the bits of an element needs."""
    kernel, is_global = context.kernel, isinstance(place, (BoundPlace, AddressPlace))
    if dtype.bits == 64:
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


def _has_sums(kernel: KernelModule, place: Place, dtype: DType) -> bool:
    """Whether a sum is an instruction there."""
    is_global = isinstance(place, (BoundPlace, AddressPlace))
    holds_floats = is_global or (isinstance(place, VariablePlace) and place.element == dtype)
    return holds_floats and _SUM_FEATURES.get((dtype, is_global)) in kernel.profile.features


def _instruction_of_sum(context: FunctionContext, place: Place, element: AddressOf, node: Call) -> int:
    """What was there before."""
    writer, module, dtype = context.writer, context.writer.module, element.buffer.dtype
    is_global = isinstance(place, (BoundPlace, AddressPlace))
    context.kernel.require(_SUM_FEATURES[dtype, is_global], f"`{node.op}` of {dtype}", node.span)
    module.capability(_SUM_CAPABILITIES[dtype])
    module.extension("SPV_EXT_shader_atomic_float_add")
    (index,) = memory.element_indices(context, place, element)
    (addend,) = context.evaluate(node.args[1])
    if isinstance(place, (BoundPlace, AddressPlace)):
        pointer = places.float_pointer(writer, context.kernel.interface, place, index, dtype.bits)
    else:
        pointer = places.element_pointer(writer, context.kernel.interface, place, index, dtype.bits)
    scope, relaxed = word_constant(writer, _scope(context, is_global)), word_constant(writer, 0)
    return writer.value(Op.AtomicFAddEXT, module.type_float(dtype.bits), pointer, scope, relaxed, addend)


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
    """The types of floats whose elements in shared memory lie there as bits, for the module's atomic operations on them.

    Not those of which it has nothing but sums by an instruction.
    """
    operations: dict[DType, set[str]] = {}
    has_views = False
    for node in walk(kernel.source):
        has_views |= isinstance(node, View) and node.buffer.scope is not MemoryScope.GLOBAL
        element = atomic_element(node)
        if element is not None and isinstance(node, Call) and element.buffer.scope is not MemoryScope.GLOBAL:
            operations.setdefault(element.buffer.dtype, set()).add(node.op.name)
    found = set()
    for dtype in (FLOAT32, FLOAT64):
        here = {kind for kind in operations if kind == dtype or (has_views and kind.bits == dtype.bits)}
        by_instruction = _SUM_FEATURES[dtype, False] in kernel.profile.features
        if here and not (by_instruction and here == {dtype} and operations[dtype] == {"atomic_add"}):
            found.add(dtype)
    return frozenset(found)
