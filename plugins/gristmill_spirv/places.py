"""Where buffers live in SPIR-V, and loads and stores of single elements there.

A pointer of the language is a :class:`Place`, known when the code is written; the only part of it that is known at run
time is a number of bytes. There are four kinds:

* :class:`BoundPlace`: a storage buffer by its binding. Its variables are arrays of unsigned integers, one variable for
  each width of element that is used, so views with other element types are nothing special; of floats only for
  instructions that want them.
* :class:`AddressPlace`: an address (PhysicalStorageBuffer64).
* :class:`VariablePlace`: shared or local memory: an array of a type of register, whose elements keep their type. A view
  with another type sees the bits, as long as its elements are as wide.
* :class:`WordPlace`: shared or local memory that is seen in several widths, or shared memory whose size the launch gives:
  an array of words of 32 bits. Elements of shared memory that are narrower are written by atomic operations on their
  word, so that threads that write its other elements at the same time are not disturbed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from gristmill.ir.dtype import DType
from gristmill_spirv.conversions import from_bits, to_bits
from gristmill_spirv.enumerants import Capability, Decoration, MemoryAccess, MemoryModel, Op, Scope, StorageClass
from gristmill_spirv.function_writer import FunctionWriter
from gristmill_spirv.integers import halves, joined
from gristmill_spirv.registers import register_type, word, word_constant


@dataclass(slots=True)
class Binding:
    """A storage buffer of the kernel, and the variables made for it by the type of their elements."""

    number: int
    name: str
    variables: dict[int, int]


@dataclass(frozen=True, slots=True)
class BoundPlace:
    """``offset`` is the id of a number of bytes (uint32) behind the start of what is bound."""

    binding: Binding
    offset: int


@dataclass(frozen=True, slots=True)
class AddressPlace:
    """``address`` is the id of a uint64."""

    address: int


@dataclass(frozen=True, slots=True)
class VariablePlace:
    """``variable`` is an array (``is_array``) or a single value; ``offset`` counts elements (uint32), 0 for none."""

    variable: int
    storage: StorageClass
    element: DType
    is_array: bool
    pointee: int
    """The type of the variable."""
    offset: int = 0
    narrow: int = 0
    """So many bits an element has there, as an unsigned integer; 0: it is a register."""


@dataclass(frozen=True, slots=True)
class WordPlace:
    """``variable`` is an array of uint32; ``offset`` is the id of a number of bytes (uint32), 0 for none."""

    variable: int
    pointee: int
    """The type of the variable."""
    offset: int = 0
    storage: StorageClass = StorageClass.Workgroup


Place = BoundPlace | AddressPlace | VariablePlace | WordPlace


def element_bits(dtype: DType) -> int:
    """How wide an element is in memory."""
    return 8 if dtype.is_bool else dtype.bits


class Interface:
    """The variables of a kernel that its entry point names, made when first used."""

    def __init__(self, shares_global: bool = False) -> None:
        self.shares_global = shares_global
        """Whether threads tell each other something through global memory, so that none may keep it to itself."""
        self.variables: list[int] = []
        """All global variables, in the order of their making."""
        self.inputs: set[int] = set()
        """Those of them that the device fills in."""
        self.coherent: dict[int, int] = {}
        """By the type of an element, the structure whose only member is one, and coherent."""

    def storage_variable(self, writer: FunctionWriter, binding: Binding, element: int, size: int) -> int:
        """The variable that sees a storage buffer as an array of elements of a type, which have so many bytes."""
        found = binding.variables.get(element)
        if found is not None:
            return found
        module = writer.module
        array = module.fresh(Op.TypeRuntimeArray, element)
        module.decorate(array, Decoration.ArrayStride, size)
        block = module.fresh(Op.TypeStruct, array)
        module.decorate(block, Decoration.Block)
        module.decorate_member(block, 0, Decoration.Offset, 0)
        variable = module.variable(module.pointer(StorageClass.StorageBuffer, block), StorageClass.StorageBuffer)
        module.decorate(variable, Decoration.DescriptorSet, 0)
        module.decorate(variable, Decoration.Binding, binding.number)
        # Two arrays of the caller may be one, and one buffer may be seen in several widths.
        module.decorate(variable, Decoration.Aliased)
        if self.shares_global and module.memory_model is MemoryModel.GLSL450:
            module.decorate(variable, Decoration.Coherent)
        module.name(variable, binding.name)
        binding.variables[element] = variable
        self.variables.append(variable)
        return variable


def narrow_word(writer: FunctionWriter, bits: int) -> int:
    """The type of unsigned integers of a width in memory; narrow ones need storage of that width, no arithmetic."""
    module = writer.module
    if bits == 8:
        module.capability(Capability.StorageBuffer8BitAccess)
        if module.version < (1, 5):
            module.extension("SPV_KHR_8bit_storage")
    elif bits == 16:
        module.capability(Capability.StorageBuffer16BitAccess)
        if module.version < (1, 3):
            module.extension("SPV_KHR_16bit_storage")
    elif bits == 64:
        module.capability(Capability.Int64)
    return module.interned(Op.TypeInt, bits, 0)


# Elements -------------------------------------------------------------------------------------------------------------


def load_bits(
    writer: FunctionWriter, interface: Interface, place: BoundPlace | AddressPlace, index: int, bits: int
) -> int:
    """The bits of an element of global memory, in a register of 32 or 64. ``index`` as :func:`place_index` gives it."""
    found = writer.value(Op.Load, narrow_word(writer, bits), *located(writer, interface, place, index, bits))
    return found if bits >= 32 else writer.value(Op.UConvert, word(writer), found)


def store_bits(
    writer: FunctionWriter, interface: Interface, place: BoundPlace | AddressPlace, index: int, bits: int, value: int
) -> None:
    """Write the low bits of a register to an element of global memory."""
    if bits < 32:
        value = writer.value(Op.UConvert, narrow_word(writer, bits), value)
    pointer, *how = located(writer, interface, place, index, bits)
    writer.effect(Op.Store, pointer, value, *how)


def access(writer: FunctionWriter, alignment: int = 0) -> tuple[int, ...]:
    """The operands that a load or store of memory ends with that threads share; ``alignment`` in bytes, 0 for none.

    Where the module states Vulkan's memory model, an access is a thread's own affair unless it says otherwise.
    """
    said = MemoryAccess.Aligned if alignment else MemoryAccess.None_
    if writer.module.memory_model is MemoryModel.Vulkan:
        said |= MemoryAccess.NonPrivatePointer
    if not said:
        return ()
    return (said, alignment) if alignment else (said,)


def load_vector(
    writer: FunctionWriter, interface: Interface, place: BoundPlace | AddressPlace, index: int, count: int
) -> list[int]:
    """One, two or four words of global memory, which lie at a multiple of their size; ``index`` counts such vectors."""
    bits = _vector_bits(count)
    found = writer.value(Op.Load, _element(writer, bits), *located(writer, interface, place, index, bits))
    if count == 1:
        return [found]
    return [writer.value(Op.CompositeExtract, word(writer), found, lane) for lane in range(count)]


def store_vector(
    writer: FunctionWriter,
    interface: Interface,
    place: BoundPlace | AddressPlace,
    index: int,
    words: Sequence[int],
) -> None:
    """Write one, two or four words, as :func:`load_vector` reads them."""
    bits = _vector_bits(len(words))
    value = words[0] if len(words) == 1 else writer.value(Op.CompositeConstruct, _element(writer, bits), *words)
    pointer, *how = located(writer, interface, place, index, bits)
    writer.effect(Op.Store, pointer, value, *how)


def _vector_bits(count: int) -> int:
    """How :func:`_element` knows so many words."""
    return 32 if count == 1 else -32 * count


def _element(writer: FunctionWriter, bits: int) -> int:
    """The type of an element: an unsigned integer, or, of negative bits, a vector of words."""
    return narrow_word(writer, bits) if bits > 0 else writer.module.vector(word(writer), -bits // 32)


def located(
    writer: FunctionWriter, interface: Interface, place: BoundPlace | AddressPlace, index: int, bits: int
) -> tuple[int, ...]:
    """A pointer to an element of global memory, and the operands that an access of it ends with."""
    size = abs(bits) // 8
    if isinstance(place, BoundPlace):
        return (_bound_pointer(writer, interface, place, index, _element(writer, bits), size), *access(writer))
    pointer = _pointer_at(writer, interface, _element(writer, bits), place.address, index, size)
    return (pointer, *access(writer, size))


def _bound_pointer(
    writer: FunctionWriter, interface: Interface, place: BoundPlace, index: int, element: int, size: int
) -> int:
    variable = interface.storage_variable(writer, place.binding, element, size)
    type_ = writer.module.pointer(StorageClass.StorageBuffer, element)
    if place.offset:
        start = place.offset
        if size > 1:
            shift = word_constant(writer, size.bit_length() - 1)
            start = writer.value(Op.ShiftRightLogical, word(writer), start, shift)
        index = writer.value(Op.IAdd, word(writer), start, index)
    return writer.value(Op.AccessChain, type_, variable, word_constant(writer, 0), index)


def address_pointer(writer: FunctionWriter, type_: int, address: int, index: int, size: int) -> int:
    """A pointer to an element of so many bytes behind an address; ``index`` is the id of a uint64."""
    wide = word(writer, 64)
    scaled = index
    if size > 1:
        scaled = writer.value(Op.ShiftLeftLogical, wide, index, word_constant(writer, size.bit_length() - 1, 64))
    found = writer.value(Op.IAdd, wide, address, scaled)
    return writer.value(Op.ConvertUToPtr, writer.module.pointer(StorageClass.PhysicalStorageBuffer, type_), found)


def _pointer_at(writer: FunctionWriter, interface: Interface, type_: int, address: int, index: int, size: int) -> int:
    """As :func:`address_pointer`, coherent where threads share global memory and no memory model says what they see."""
    module = writer.module
    if not interface.shares_global or module.memory_model is MemoryModel.Vulkan:
        return address_pointer(writer, type_, address, index, size)
    # Only variables and members of structures can be coherent.
    block = interface.coherent.get(type_)
    if block is None:
        block = interface.coherent[type_] = module.fresh(Op.TypeStruct, type_)
        module.decorate(block, Decoration.Block)
        module.decorate_member(block, 0, Decoration.Offset, 0)
        module.decorate_member(block, 0, Decoration.Coherent)
    pointer = address_pointer(writer, block, address, index, size)
    element = module.pointer(StorageClass.PhysicalStorageBuffer, type_)
    return writer.value(Op.AccessChain, element, pointer, word_constant(writer, 0))


def load_variable(writer: FunctionWriter, place: VariablePlace, index: int, dtype: DType) -> int:
    """An element of shared or local memory as a register of a type as wide as the memory's own."""
    type_ = _held(writer, place)
    found = writer.value(Op.Load, type_, variable_pointer(writer, place, index), *_variable_access(writer, place))
    if place.narrow:
        return from_bits(writer, writer.value(Op.UConvert, word(writer), found), dtype)
    if dtype == place.element:
        return found
    return from_bits(writer, to_bits(writer, found, place.element), dtype)


def store_variable(writer: FunctionWriter, place: VariablePlace, index: int, dtype: DType, value: int) -> None:
    """Write a register to an element of shared or local memory."""
    if place.narrow:
        value = writer.value(Op.UConvert, _held(writer, place), to_bits(writer, value, dtype))
    elif dtype != place.element:
        value = from_bits(writer, to_bits(writer, value, dtype), place.element)
    writer.effect(Op.Store, variable_pointer(writer, place, index), value, *_variable_access(writer, place))


def _held(writer: FunctionWriter, place: VariablePlace) -> int:
    """The type of an element of shared or local memory as it lies there."""
    if place.narrow:
        return writer.module.interned(Op.TypeInt, place.narrow, 0)
    return register_type(writer.module, place.element)


def _variable_access(writer: FunctionWriter, place: VariablePlace) -> tuple[int, ...]:
    return access(writer) if place.storage is StorageClass.Workgroup else ()


def variable_pointer(writer: FunctionWriter, place: VariablePlace, index: int) -> int:
    """A pointer to an element; ``index`` is the id of a uint32, 0 for the first."""
    if not place.is_array:
        return place.variable
    type_ = writer.module.pointer(place.storage, _held(writer, place))
    if place.offset and index:
        index = writer.value(Op.IAdd, word(writer), place.offset, index)
    return writer.value(Op.AccessChain, type_, place.variable, index or place.offset or word_constant(writer, 0))


def element_pointer(writer: FunctionWriter, interface: Interface, place: Place, index: int, bits: int) -> int:
    """A pointer to the bits of an element, as atomic operations want it; of memory in words, one of 32 bits.

    Shared memory is integers (see :func:`gristmill_spirv.atomics.shared_floats`).
    """
    if isinstance(place, VariablePlace):
        return variable_pointer(writer, place, index)
    if isinstance(place, WordPlace):
        return _word_pointer(writer, place, index)
    return located(writer, interface, place, index, bits)[0]


def float_pointer(
    writer: FunctionWriter, interface: Interface, place: BoundPlace | AddressPlace, index: int, bits: int
) -> int:
    """A pointer to an element of global memory as a float of so many bits."""
    element = writer.module.type_float(bits)
    if isinstance(place, BoundPlace):
        return _bound_pointer(writer, interface, place, index, element, bits // 8)
    return _pointer_at(writer, interface, element, place.address, index, bits // 8)


# Words ----------------------------------------------------------------------------------------------------------------


def load_words(writer: FunctionWriter, place: WordPlace, index: int, bits: int) -> int:
    """The bits of an element of memory in words, in a register of 32 or 64."""
    type_ = word(writer)
    if bits == 64:
        first = writer.value(Op.ShiftLeftLogical, type_, index, word_constant(writer, 1))
        pointers = _pair_of_words(writer, place, first)
        low, high = (writer.value(Op.Load, type_, pointer, *access(writer)) for pointer in pointers)
        return joined(writer, low, high)
    if bits == 32:
        return writer.value(Op.Load, type_, _word_pointer(writer, place, index), *access(writer))
    pointer, shift = _part_of_word(writer, place, index, bits)
    whole = writer.value(Op.Load, type_, pointer, *access(writer))
    shifted = writer.value(Op.ShiftRightLogical, type_, whole, shift)
    return writer.value(Op.BitwiseAnd, type_, shifted, word_constant(writer, (1 << bits) - 1))


def store_words(writer: FunctionWriter, place: WordPlace, index: int, bits: int, value: int) -> None:
    """Write the low bits of a register to an element of memory in words."""
    type_ = word(writer)
    if bits == 64:
        first = writer.value(Op.ShiftLeftLogical, type_, index, word_constant(writer, 1))
        for pointer, half in zip(_pair_of_words(writer, place, first), halves(writer, value), strict=True):
            writer.effect(Op.Store, pointer, half, *access(writer))
        return
    if bits == 32:
        writer.effect(Op.Store, _word_pointer(writer, place, index), value, *access(writer))
        return
    pointer, shift = _part_of_word(writer, place, index, bits)
    mask = word_constant(writer, (1 << bits) - 1)
    hole = writer.value(Op.Not, type_, writer.value(Op.ShiftLeftLogical, type_, mask, shift))
    low = writer.value(Op.BitwiseAnd, type_, value, mask)
    moved = writer.value(Op.ShiftLeftLogical, type_, low, shift)
    if place.storage is StorageClass.Function:
        kept = writer.value(Op.BitwiseAnd, type_, writer.value(Op.Load, type_, pointer), hole)
        writer.effect(Op.Store, pointer, writer.value(Op.BitwiseOr, type_, kept, moved))
        return
    scope, relaxed = word_constant(writer, Scope.Workgroup), word_constant(writer, 0)
    writer.value(Op.AtomicAnd, type_, pointer, scope, relaxed, hole)
    writer.value(Op.AtomicOr, type_, pointer, scope, relaxed, moved)


def _pair_of_words(writer: FunctionWriter, place: WordPlace, first: int) -> tuple[int, int]:
    second = writer.value(Op.IAdd, word(writer), first, word_constant(writer, 1))
    return _word_pointer(writer, place, first), _word_pointer(writer, place, second)


def _part_of_word(writer: FunctionWriter, place: WordPlace, index: int, bits: int) -> tuple[int, int]:
    """The word that a narrow element is in, and by how many bits it lies above the word's lowest."""
    type_ = word(writer)
    start = index
    if bits == 16:
        start = writer.value(Op.ShiftLeftLogical, type_, index, word_constant(writer, 1))
    if place.offset:
        start = writer.value(Op.IAdd, type_, place.offset, start)
    number = writer.value(Op.ShiftRightLogical, type_, start, word_constant(writer, 2))
    part = writer.value(Op.BitwiseAnd, type_, start, word_constant(writer, 3))
    shift = writer.value(Op.ShiftLeftLogical, type_, part, word_constant(writer, 3))
    return _word_pointer(writer, replace(place, offset=0), number), shift


def _word_pointer(writer: FunctionWriter, place: WordPlace, number: int) -> int:
    if place.offset:
        start = writer.value(Op.ShiftRightLogical, word(writer), place.offset, word_constant(writer, 2))
        number = writer.value(Op.IAdd, word(writer), start, number)
    type_ = writer.module.pointer(place.storage, word(writer))
    return writer.value(Op.AccessChain, type_, place.variable, number)
