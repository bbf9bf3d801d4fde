"""Calls of helper functions: one SPIR-V function for each helper and each set of things that its pointers stand for.

A pointer cannot be passed to a function in Vulkan, but for local memory. So what is fixed of it (the binding, the shared
array) is part of which function is called, and only the number of bytes is passed.
"""

from __future__ import annotations

from dataclasses import replace

from gristmill.ir.dtype import DType
from gristmill.ir.expr import CallFunction, Var
from gristmill.ir.module import Function
from gristmill_spirv.builder import ModuleBuilder
from gristmill_spirv.context import FunctionContext, KernelModule
from gristmill_spirv.enumerants import Op, StorageClass
from gristmill_spirv.function_writer import FunctionWriter
from gristmill_spirv.memory import pointed_to
from gristmill_spirv.places import AddressPlace, BoundPlace, Place, VariablePlace, WordPlace
from gristmill_spirv.registers import Lanes, register_type


def call_function(context: FunctionContext, node: CallFunction) -> Lanes:
    """Call the instance of a helper that fits its arguments; it is written when first called."""
    kernel, writer = context.kernel, context.writer
    callee = kernel.source.get(node.function)
    assert callee is not None
    operands: list[int] = []
    given: list[Place | None] = []
    for argument in node.args:
        if argument.dtype.is_handle:
            place = pointed_to(context, argument)
            given.append(place)
            operands += _passed(place)
        else:
            given.append(None)
            operands += context.evaluate(argument)
    function = _instance(kernel, callee, tuple(given))
    result = _result_type(writer.module, callee.returns)
    found = writer.value(Op.FunctionCall, result, function, *operands)
    lanes = callee.returns.lanes
    if callee.returns.is_void or lanes == 1:
        return () if callee.returns.is_void else (found,)
    element = register_type(writer.module, callee.returns.element)
    return tuple(writer.value(Op.CompositeExtract, element, found, lane) for lane in range(lanes))


def _passed(place: Place) -> list[int]:
    """The run-time part of a pointer."""
    if isinstance(place, AddressPlace):
        return [place.address]
    found = [place.offset] if place.offset else []
    if isinstance(place, (VariablePlace, WordPlace)) and place.storage is StorageClass.Function:
        found.append(place.variable)
    return found


def _fixed(place: Place | None) -> tuple[object, ...]:
    """The part of a pointer that is known when the code is written."""
    if place is None:
        return ()
    if isinstance(place, AddressPlace):
        return ("address",)
    if isinstance(place, BoundPlace):
        return ("bound", place.binding.number, bool(place.offset))
    shared = place.variable if place.storage is StorageClass.Workgroup else place.pointee
    if isinstance(place, WordPlace):
        return ("words", place.storage, shared, bool(place.offset))
    return (place.storage, shared, place.element, place.is_array, bool(place.offset))


def _instance(kernel: KernelModule, callee: Function, given: tuple[Place | None, ...]) -> int:
    key = (callee.name, *(_fixed(place) for place in given))
    found = kernel.instances.get(key)
    if found is not None:
        return found
    from gristmill_spirv.functions import write_body

    types: list[int] = []
    module = kernel.builder
    for param, place in zip(callee.params, given, strict=True):
        types += _param_types(kernel, param.dtype, place)
    writer = FunctionWriter(module, _result_type(module, callee.returns), types)
    kernel.instances[key] = writer.id
    context = FunctionContext(kernel, callee, writer, is_entry=False)
    ids = iter(writer.params)
    for param, place in zip(callee.params, given, strict=True):
        assert isinstance(param, Var)
        if place is None:
            lanes = context.values[param] = tuple(next(ids) for _ in range(param.dtype.lanes))
            if len(lanes) == 1:
                module.name(lanes[0], param.name)
        elif isinstance(place, AddressPlace):
            context.places[param] = AddressPlace(next(ids))
        elif isinstance(place, BoundPlace):
            context.places[param] = BoundPlace(place.binding, next(ids) if place.offset else 0)
        else:
            offset = next(ids) if place.offset else 0
            variable = next(ids) if place.storage is StorageClass.Function else place.variable
            context.places[param] = replace(place, variable=variable, offset=offset)
    module.name(writer.id, callee.name)
    write_body(context)
    return writer.id


def _param_types(kernel: KernelModule, dtype: DType, place: Place | None) -> list[int]:
    module = kernel.builder
    if place is None:
        return [register_type(module, dtype.element)] * dtype.lanes
    if isinstance(place, AddressPlace):
        return [module.type_int(64, signed=False)]
    found = [module.type_int(32, signed=False)] if place.offset else []
    if isinstance(place, (VariablePlace, WordPlace)) and place.storage is StorageClass.Function:
        found.append(module.pointer(StorageClass.Function, place.pointee))
    return found


def _result_type(module: ModuleBuilder, dtype: DType) -> int:
    if dtype.is_void:
        return module.type_void()
    element = register_type(module, dtype.element)
    return element if dtype.lanes == 1 else module.interned(Op.TypeStruct, *[element] * dtype.lanes)
