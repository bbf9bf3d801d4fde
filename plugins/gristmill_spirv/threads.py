"""The threads of a launch: variables that the device fills in with their numbers, and how many threads a block has.

Devices need not fill a subgroup beyond a row of threads along x (Mesa's lavapipe does not). So blocks of kernels that use
subgroups are launched as one row, in the order in which the language counts threads.
"""

from __future__ import annotations

import math

from gristmill.ir.effects import is_collective
from gristmill.ir.functor import walk
from gristmill.ir.memory import Scope
from gristmill.ir.stmt import Allocate, Barrier, BarrierScope, For, ThreadAxis
from gristmill_spirv.builder import ModuleBuilder, Section
from gristmill_spirv.context import FunctionContext, KernelModule
from gristmill_spirv.enumerants import BuiltIn, Capability, Decoration, Op, StorageClass
from gristmill_spirv.registers import word, word_constant

_AXES = {
    "blockIdx": (BuiltIn.WorkgroupId, (ThreadAxis.BLOCK_X, ThreadAxis.BLOCK_Y, ThreadAxis.BLOCK_Z)),
    "threadIdx": (BuiltIn.LocalInvocationId, (ThreadAxis.THREAD_X, ThreadAxis.THREAD_Y, ThreadAxis.THREAD_Z)),
}


def input_variable(state: KernelModule, built_in: BuiltIn, type_: int, name: str) -> int:
    """The variable that the device fills in with something, made when first asked for."""
    found = state.inputs.get(built_in)
    if found is None:
        module = state.builder
        found = state.inputs[built_in] = module.variable(module.pointer(StorageClass.Input, type_), StorageClass.Input)
        module.decorate(found, Decoration.BuiltIn, built_in)
        module.name(found, name)
        state.interface.variables.append(found)
        state.interface.inputs.add(found)
    return found


def load_thread_numbers(context: FunctionContext) -> None:
    """Load the numbers of thread and block once, at the start: what loads them later may not be on every way."""
    writer, state = context.writer, context.kernel
    state.in_row = state.block[1:] != (1, 1) and _uses_subgroups(state)
    used = {node.thread for node in walk(state.kernel.body) if isinstance(node, For) and node.thread is not None}
    for name, (built_in, axes) in _AXES.items():
        if used.isdisjoint(axes):
            continue
        if state.in_row and built_in is BuiltIn.LocalInvocationId:
            state.axes.update(zip(axes, _places_in_row(context), strict=True))
            continue
        triple = writer.module.vector(word(writer), 3)
        numbers = writer.value(Op.Load, triple, input_variable(state, built_in, triple, name))
        for place, axis in enumerate(axes):
            if axis in used:
                state.axes[axis] = writer.value(Op.CompositeExtract, word(writer), numbers, place)


def numbers_along_axes(context: FunctionContext) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The numbers of the block and of the thread along x, y, z, loaded here; for what is seldom reached."""
    writer, state = context.writer, context.kernel
    triple = writer.module.vector(word(writer), 3)

    def loaded(name: str) -> tuple[int, ...]:
        numbers = writer.value(Op.Load, triple, input_variable(state, _AXES[name][0], triple, name))
        return tuple(writer.value(Op.CompositeExtract, word(writer), numbers, place) for place in range(3))

    return loaded("blockIdx"), _places_in_row(context) if state.in_row else loaded("threadIdx")


def _uses_subgroups(state: KernelModule) -> bool:
    """Whether the kernel, or a function that it calls, has anything to do with warps."""
    for function in state.functions():
        for node in walk(function.body):
            if is_collective(node):
                return True
            if isinstance(node, Barrier) and node.scope is BarrierScope.WARP:
                return True
            if isinstance(node, Allocate) and node.buffer.scope is Scope.WARP:
                return True
    return False


def _places_in_row(context: FunctionContext) -> tuple[int, int, int]:
    """The thread's numbers along x, y and z, from its number in the row."""
    writer, type_ = context.writer, word(context.writer)
    x, y, _ = block_sizes(context.kernel)
    index = thread_number(context)
    row = writer.value(Op.UDiv, type_, index, x)
    return (
        writer.value(Op.UMod, type_, index, x),
        writer.value(Op.UMod, type_, row, y),
        writer.value(Op.UDiv, type_, row, y),
    )


def thread_number(context: FunctionContext) -> int:
    """The number of the thread in its block, x fastest."""
    type_ = word(context.writer)
    variable = input_variable(context.kernel, BuiltIn.LocalInvocationIndex, type_, "thread_number")
    return context.writer.value(Op.Load, type_, variable)


def number_in_subgroup(context: FunctionContext) -> int:
    """The number of the thread in its subgroup."""
    context.kernel.builder.capability(Capability.GroupNonUniform)
    context.kernel.features.add("subgroup_basic")
    assert context.kernel.subgroup_size
    type_ = word(context.writer)
    variable = input_variable(context.kernel, BuiltIn.SubgroupLocalInvocationId, type_, "number_in_subgroup")
    return context.writer.value(Op.Load, type_, variable)


# Threads of a block ---------------------------------------------------------------------------------------------------


def block_sizes(state: KernelModule) -> tuple[int, int, int]:
    """The ids of the threads of a block along x, y, z: constants, or specialisation constants of SpecId 0, 1, 2."""
    if state.sizes is None:
        module = state.builder
        x, y, z = (_size(module, size, number) for number, size in enumerate(state.block))
        state.sizes = x, y, z
    return state.sizes


def _size(module: ModuleBuilder, size: int, number: int) -> int:
    type_ = module.type_int(32, signed=False)
    return module.constant_int(size, 32, signed=False) if size else module.spec_constant(type_, 1, number)


def threads_of_block(context: FunctionContext) -> int:
    """How many threads a block has, as an id."""
    writer, state = context.writer, context.kernel
    if 0 not in state.block:
        return word_constant(writer, math.prod(state.block))
    x, y, z = block_sizes(state)
    return writer.value(Op.IMul, word(writer), writer.value(Op.IMul, word(writer), x, y), z)


def most_threads(state: KernelModule) -> int:
    """How many threads a block has at the most."""
    known = math.prod(state.block)
    return known or state.profile.max_threads_per_block


def known_size(state: KernelModule) -> tuple[int, int, int]:
    """The threads of a block along x, y and z as the device launches them, with 1 for what the launch decides."""
    x, y, z = (size or 1 for size in state.block)
    return (x * y * z, 1, 1) if state.in_row else (x, y, z)


def declare_block_size(state: KernelModule) -> None:
    """Say how many threads a block has where the launch decides."""
    if 0 not in state.block:
        return
    builder = state.builder
    type_ = builder.type_int(32, signed=False)
    triple = builder.vector(type_, 3)
    sizes = block_sizes(state)
    if state.in_row:
        one = builder.constant_int(1, 32, signed=False)
        x, y, z = sizes
        sizes = _product(builder, _product(builder, x, y), z), one, one
    found = builder.new_id()
    builder.write(Section.GLOBALS, Op.SpecConstantComposite, (triple, found, *sizes))
    builder.decorate(found, Decoration.BuiltIn, BuiltIn.WorkgroupSize)


def _product(builder: ModuleBuilder, a: int, b: int) -> int:
    """The product of two constants, which may be specialised."""
    found = builder.new_id()
    type_ = builder.type_int(32, signed=False)
    builder.write(Section.GLOBALS, Op.SpecConstantOp, (type_, found, Op.IMul, a, b))
    return found
