"""Kernels: the entry point, the numbers of threads, and the block of parameters.

How arguments reach a kernel is said in its record (``KernelRecord.extra``), and the runtime obeys that:

* ``arguments``: ``push`` (arrays are storage buffers, bound in order from binding 0; all else is in push constants),
  ``uniform`` (all else is in a uniform buffer, the last binding), ``address`` (push constants hold addresses and scalars,
  and nothing is bound), ``address_block`` (the only push constant is the uint64 address of the block);
* ``layout``: for each argument ``OFFSET:FORM``, separated by commas: its place in the block, in bytes, and ``address``
  (uint64), ``offset`` (uint32: how many bytes the array starts behind the start of what is bound), ``i32`` (bools and
  integers of up to 32 bits, extended), ``i64``, ``f32`` (float16 and bfloat16 too), ``f64``;
* ``block_bytes``: the size of the block;
* ``asserts``: texts of the asserts that report to the host (:mod:`gristmill_spirv.asserts`; absent: there are none);
* ``subgroup``: how many threads every subgroup must have (absent: the code does not ask). Where the threads of a block
  along x are a multiple, every subgroup must be full.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gristmill.ir.dtype import DType
from gristmill.ir.expr import Var
from gristmill.ir.functor import walk
from gristmill.ir.memory import MATRIX_SCOPES
from gristmill.ir.module import Function, Module
from gristmill.ir.stmt import Allocate, Barrier, BarrierScope
from gristmill_spirv.asserts import texts_of
from gristmill_spirv.builder import ModuleBuilder, Section, short_name, text_words
from gristmill_spirv.context import FunctionContext, KernelModule
from gristmill_spirv.enumerants import (
    AddressingModel,
    Capability,
    Decoration,
    ExecutionMode,
    ExecutionModel,
    MemoryAccess,
    MemoryModel,
    Op,
    StorageClass,
)
from gristmill_spirv.function_writer import FunctionWriter
from gristmill_spirv.functions import write_body
from gristmill_spirv.idle_lanes import has_a_thread, lanes_may_idle, launched_size
from gristmill_spirv.matrices import Shape
from gristmill_spirv.places import AddressPlace, Binding, BoundPlace, Interface, address_pointer
from gristmill_spirv.profile import Profile
from gristmill_spirv.registers import word, word_constant
from gristmill_spirv.threads import declare_block_size, known_size, load_thread_numbers

FLOAT_CONTROLS = {32: "float_controls", 64: "float_controls64"}
"""The features of devices that do as asked with floats, by the width of those."""
MEMORY_MODEL = "vulkan_memory_model"
"""The feature of devices that know Vulkan's memory model: what a barrier makes visible is said by scope then."""


@dataclass(frozen=True, slots=True)
class Slot:
    """Where an argument stands in the block of parameters, and in which form."""

    offset: int
    form: str

    @property
    def bits(self) -> int:
        return 64 if self.form in ("address", "i64", "f64") else 32


@dataclass(frozen=True, slots=True)
class WrittenKernel:
    """A kernel's module, and what its record says beside what the function itself says."""

    data: bytes
    arguments: str
    slots: tuple[Slot, ...]
    block_bytes: int
    features: frozenset[str]
    shared_bytes: int
    dynamic_element: int
    subgroup_size: int
    asserts: str
    matrices: frozenset[Shape]


def write_kernel(source: Module, kernel: Function, profile: Profile, block: tuple[int, int, int]) -> WrittenKernel:
    """The module of one kernel. ``block`` gives the threads of a block along x, y, z; 0 where the launch says.

    Raises Unsupported for what the target does not have.
    """
    shares = any(
        isinstance(node, Barrier) and node.scope is BarrierScope.BLOCK_AND_GLOBAL for node in walk(kernel.body)
    )
    has_model = (shares or _has_tiles(source)) and MEMORY_MODEL in profile.features
    builder = ModuleBuilder(profile.spirv, MemoryModel.Vulkan if has_model else MemoryModel.GLSL450)
    state = KernelModule(source, kernel, profile, builder, Interface(shares), block)
    builder.capability(Capability.Shader)
    writer = FunctionWriter(builder, builder.type_void(), ())
    context = FunctionContext(state, kernel, writer, is_entry=True)
    arguments, slots, block_bytes = _arguments(context)
    load_thread_numbers(context)
    may_idle = lanes_may_idle(state)
    write_body(context, has_a_thread(context) if may_idle else None)
    if builder.has_capability(Capability.Int64):
        # Whatever else needs it has asked before.
        state.require("int64", "arithmetic with the bits of `float64`", kernel.span)
    _entry_point(state, writer, launched_size(known_size(state)) if may_idle else known_size(state))
    return WrittenKernel(
        builder.data(),
        arguments,
        slots,
        block_bytes,
        frozenset(state.features),
        state.shared_bytes,
        state.dynamic_element,
        state.subgroup_size,
        texts_of(state.asserts) if state.asserts else "",
        frozenset(state.matrices),
    )


def _has_tiles(source: Module) -> bool:
    """Whether there are tiles of matrices, which the memory model must be Vulkan's for."""
    return any(isinstance(node, Allocate) and node.buffer.scope in MATRIX_SCOPES for node in walk(source))


# Entry point ----------------------------------------------------------------------------------------------------------


def _entry_point(state: KernelModule, writer: FunctionWriter, size: tuple[int, int, int]) -> None:
    builder, profile = state.builder, state.profile
    addresses = profile.uses_addresses
    if addresses:
        builder.capability(Capability.PhysicalStorageBufferAddresses)
        if profile.spirv < (1, 5):
            builder.extension("SPV_KHR_physical_storage_buffer")
    model = AddressingModel.PhysicalStorageBuffer64 if addresses else AddressingModel.Logical
    if builder.memory_model is MemoryModel.Vulkan:
        builder.capability(Capability.VulkanMemoryModel)
        state.features.add(MEMORY_MODEL)
        if profile.spirv < (1, 5):
            builder.extension("SPV_KHR_vulkan_memory_model")
    builder.write(Section.MEMORY_MODEL, Op.MemoryModel, (model, builder.memory_model))
    variables = state.interface.variables
    if profile.spirv < (1, 4):
        variables = [found for found in variables if found in state.interface.inputs]
    name = short_name(state.kernel.facts.symbol or state.kernel.name)
    operands = (ExecutionModel.GLCompute, writer.id, *text_words(name), *variables)
    builder.write(Section.ENTRY_POINTS, Op.EntryPoint, operands)
    operands = (writer.id, ExecutionMode.LocalSize, *size)
    builder.write(Section.EXECUTION_MODES, Op.ExecutionMode, operands)
    declare_block_size(state)
    _float_controls(state, writer)
    builder.name(writer.id, name)


def _float_controls(state: KernelModule, writer: FunctionWriter) -> None:
    """Ask for rounding to nearest even, and for signed zeros, infinities and NaNs as they are, where the target has that.

    Devices that cannot choose for each width want the same of all, so it is said of all widths in use, or of none.
    """
    builder = state.builder
    needed = {FLOAT_CONTROLS[bits]: bits for bits in builder.float_widths}
    if not needed or not state.profile.features.issuperset(needed):
        return
    if builder.version < (1, 4):
        builder.extension("SPV_KHR_float_controls")
    builder.capability(Capability.SignedZeroInfNanPreserve)
    builder.capability(Capability.RoundingModeRTE)
    state.features.update(needed)
    for bits in sorted(needed.values()):
        for mode in (ExecutionMode.SignedZeroInfNanPreserve, ExecutionMode.RoundingModeRTE):
            builder.write(Section.EXECUTION_MODES, Op.ExecutionMode, (writer.id, mode, bits))


# Arguments ------------------------------------------------------------------------------------------------------------


def _arguments(context: FunctionContext) -> tuple[str, tuple[Slot, ...], int]:
    """Define the kernel's parameters; the form of its arguments, their slots, and the size of the block."""
    profile, params = context.kernel.profile, context.kernel.kernel.params
    assert all(isinstance(param, Var) for param in params)
    variables = [param for param in params if isinstance(param, Var)]
    slots, size = _slots([param.dtype for param in variables], profile.uses_addresses)
    fits = size <= profile.push_constants_size
    if profile.uses_addresses:
        form = "address" if fits else "address_block"
    else:
        form = "push" if fits else "uniform"
    names = [param.name for param in variables]
    load = _block_reader(context, slots, names, form, sum(param.dtype.is_handle for param in variables))
    number = 0
    for param, slot in zip(variables, slots, strict=True):
        if slot.form == "address":
            context.places[param] = AddressPlace(load(slot))
        elif slot.form == "offset":
            binding = Binding(number, param.name, {})
            context.places[param] = BoundPlace(binding, load(slot))
            number += 1
        else:
            context.kernel.require_dtype(param.dtype, param.span)
            context.values[param] = (_from_slot(context, load(slot), param.dtype),)
    return form, slots, size


def _slots(dtypes: Sequence[DType], addresses: bool) -> tuple[tuple[Slot, ...], int]:
    found: list[Slot] = []
    size = 0
    for dtype in dtypes:
        slot = Slot(0, _form(dtype, addresses))
        step = slot.bits // 8
        size = -(-size // step) * step
        found.append(Slot(size, slot.form))
        size += step
    return tuple(found), size


def _form(dtype: DType, addresses: bool) -> str:
    if dtype.is_handle:
        return "address" if addresses else "offset"
    wide = dtype.bits == 64
    if dtype.is_float:
        return "f64" if wide else "f32"
    return "i64" if wide else "i32"


def _block_reader(
    context: FunctionContext, slots: Sequence[Slot], names: Sequence[str], form: str, bindings: int
) -> Callable[[Slot], int]:
    """A function that loads a slot of the block."""
    writer, state = context.writer, context.kernel
    module = writer.module
    if form == "address_block":
        pushed = _block_variable(context, [Slot(0, "address")], ["block"], StorageClass.PushConstant)
        pointer = module.pointer(StorageClass.PushConstant, word(writer, 64))
        state.require("int64", "arithmetic with addresses", None)
        where = writer.value(Op.AccessChain, pointer, pushed, word_constant(writer, 0))
        address = writer.value(Op.Load, word(writer, 64), where)

        def from_memory(slot: Slot) -> int:
            type_ = _slot_type(module, slot)
            index = word_constant(writer, slot.offset, 64)
            at = address_pointer(writer, type_, address, index, 1)
            return writer.value(Op.Load, type_, at, MemoryAccess.Aligned, slot.bits // 8)

        return from_memory
    if not slots:
        return lambda slot: 0
    storage = StorageClass.Uniform if form == "uniform" else StorageClass.PushConstant
    variable = _block_variable(context, slots, names, storage)
    if form == "uniform":
        module.decorate(variable, Decoration.DescriptorSet, 0)
        module.decorate(variable, Decoration.Binding, bindings)
    members = {slot.offset: member for member, slot in enumerate(slots)}

    def from_block(slot: Slot) -> int:
        type_ = _slot_type(module, slot)
        if slot.bits == 64:
            what = "an argument of 64 bits" if slot.form != "address" else "arithmetic with addresses"
            state.require("float64" if slot.form == "f64" else "int64", what, None)
        member = word_constant(writer, members[slot.offset])
        where = writer.value(Op.AccessChain, module.pointer(storage, type_), variable, member)
        return writer.value(Op.Load, type_, where)

    return from_block


def _block_variable(
    context: FunctionContext, slots: Sequence[Slot], names: Sequence[str], storage: StorageClass
) -> int:
    module = context.writer.module
    block = module.fresh(Op.TypeStruct, *(_slot_type(module, slot) for slot in slots))
    module.decorate(block, Decoration.Block)
    for member, (slot, name) in enumerate(zip(slots, names, strict=True)):
        module.decorate_member(block, member, Decoration.Offset, slot.offset)
        module.name_member(block, member, name)
    variable = module.variable(module.pointer(storage, block), storage)
    module.name(variable, "parameters")
    context.kernel.interface.variables.append(variable)
    return variable


def _slot_type(module: ModuleBuilder, slot: Slot) -> int:
    return module.type_float(slot.bits) if slot.form.startswith("f") else module.type_int(slot.bits, signed=False)


def _from_slot(context: FunctionContext, value: int, dtype: DType) -> int:
    """The value of a scalar argument: what was widened for the block is narrowed again."""
    if not dtype.is_bool:
        return value
    return context.writer.value(
        Op.INotEqual, context.writer.module.type_bool(), value, word_constant(context.writer, 0)
    )
