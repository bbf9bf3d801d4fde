"""Tiles of matrices: cooperative matrices of a subgroup (SPV_KHR_cooperative_matrix), in variables of the function.

A group of threads is a whole subgroup, so the width of operations is the size of subgroups that the target states, and the
threads of a block fill whole subgroups. What sizes and types of tiles a device multiplies, the target lists.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from gristmill.ir.build import constant_value
from gristmill.ir.dtype import DType, TypeCode
from gristmill.ir.effects import matrix_element
from gristmill.ir.expr import AddressOf, Call, Expr
from gristmill.ir.functor import walk
from gristmill.ir.memory import Buffer, Scope
from gristmill.ir.span import Span
from gristmill.ir.verify_matrices import tile_shape
from gristmill_spirv import memory, places
from gristmill_spirv.context import FunctionContext, KernelModule
from gristmill_spirv.enumerants import Capability, CooperativeMatrixOperands, CooperativeMatrixUse, Op, StorageClass
from gristmill_spirv.enumerants import Scope as Group
from gristmill_spirv.places import AddressPlace, BoundPlace, VariablePlace, element_bits
from gristmill_spirv.refusals import refused_construct, refused_matrices
from gristmill_spirv.registers import word, word_constant

FEATURE = "cooperative_matrix"
_USES = {
    Scope.MATRIX_A: CooperativeMatrixUse.MatrixAKHR,
    Scope.MATRIX_B: CooperativeMatrixUse.MatrixBKHR,
    Scope.MATRIX_ACCUMULATOR: CooperativeMatrixUse.MatrixAccumulatorKHR,
}


@dataclass(frozen=True, slots=True)
class Shape:
    """Tiles that a device multiplies: m x k by k x n, the type of the factors and that of the sums."""

    m: int
    n: int
    k: int
    factor: str
    total: str

    def __str__(self) -> str:
        return f"{self.m}x{self.n}x{self.k}:{self.factor}:{self.total}"

    def has(self, buffer: Buffer) -> bool:
        """Whether the tiles of a buffer have a place in it."""
        rows, columns = tile_shape(buffer)
        if buffer.scope is Scope.MATRIX_ACCUMULATOR:
            return (rows, columns, str(buffer.dtype)) == (self.m, self.n, self.total)
        wanted = (self.m, self.k) if buffer.scope is Scope.MATRIX_A else (self.k, self.n)
        return (rows, columns) == wanted and str(buffer.dtype) == self.factor


def shapes_of(text: str) -> tuple[Shape, ...]:
    """The shapes that a target lists: ``16x16x16:float16:float32`` and the like (m x n x k), separated by commas.

    Raises ValueError with a sentence for the user.
    """
    found = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        sizes, _, types = part.partition(":")
        factor, _, total = types.partition(":")
        numbers = sizes.split("x")
        if len(numbers) != 3 or not all(number.isdigit() and int(number) for number in numbers) or not total:
            raise ValueError(f"`{part}` is no size of matrices; write `MxNxK:TYPE:SUM`, as `16x16x16:float16:float32`")
        m, n, k = map(int, numbers)
        found.append(Shape(m, n, k, factor, total))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class TilePlace:
    """The variable of a buffer of tiles: one cooperative matrix, or an array of them."""

    variable: int
    type_: int
    is_array: bool


# Allocation -----------------------------------------------------------------------------------------------------------


def allocate_tiles(context: FunctionContext, buffer: Buffer, span: Span | None) -> None:
    """Make the variable of a buffer of tiles. Raises Unsupported (GM0680, GM0684) for tiles that the target has not."""
    kernel, module = context.kernel, context.writer.module
    kernel.require(FEATURE, "memory of tiles of matrices", span)
    kernel.require("vulkan_memory_model", "memory of tiles of matrices", span)
    module.capability(Capability.CooperativeMatrixKHR)
    module.extension("SPV_KHR_cooperative_matrix")
    if not any(shape.has(buffer) for shape in kernel.profile.matrices):
        rows, columns = tile_shape(buffer)
        what = f"`{buffer.name}`, tiles of {rows} x {columns} of {buffer.dtype} in `{buffer.scope.value}`,"
        raise refused_matrices(what, kernel.profile.matrices, kernel.profile.target, span)
    group = word_constant(context.writer, Group.Subgroup)
    sizes = (word_constant(context.writer, size) for size in tile_shape(buffer))
    use = word_constant(context.writer, _USES[buffer.scope])
    component = _component(context, buffer.dtype, span)
    type_ = module.interned(Op.TypeCooperativeMatrixKHR, component, group, *sizes, use)
    count = math.prod(int(constant_value(size) or 1) for size in buffer.shape[:-2])
    pointee = type_
    if buffer.rank > 2:
        pointee = module.interned(Op.TypeArray, type_, module.constant_int(count, 32, signed=False))
    context.tiles[buffer.data] = TilePlace(context.writer.variable(pointee), type_, buffer.rank > 2)


def _component(context: FunctionContext, dtype: DType, span: Span | None) -> int:
    """The type of the elements of a tile, as wide as they are."""
    kernel, module = context.kernel, context.writer.module
    if dtype.code is TypeCode.BFLOAT:
        raise refused_construct(
            "tiles of `bfloat16`", kernel.profile.target, "convert to float16, or multiply with plain loops", span
        )
    if dtype.is_float:
        if dtype.bits == 16:
            kernel.require("float16", "tiles of `float16`", span)
            module.capability(Capability.Float16)
            # Not by `type_float`: nothing is computed with single elements, so float controls do not concern them.
            return module.interned(Op.TypeFloat, 16)
        return module.type_float(32)
    if dtype.bits == 8:
        kernel.require("int8", f"tiles of `{dtype}`", span)
        module.capability(Capability.Int8)
    return module.interned(Op.TypeInt, dtype.bits, int(dtype.is_signed))


def narrow_in_shared(kernel: KernelModule, buffer: Buffer) -> bool:
    """Whether elements of shared memory must be as narrow as they are, since tiles are loaded from there or stored to it."""
    if buffer.dtype.bits >= 32 or buffer.dtype.is_bool:
        return False
    elements = (found for node in walk(kernel.source) if (found := matrix_element(node)) is not None)
    return any(element.buffer.data is buffer.data for element in elements)


# Operations -----------------------------------------------------------------------------------------------------------


def matrix_operation(context: FunctionContext, node: Call) -> None:
    """Write an operation on tiles. Raises Unsupported (GM0681, GM0684) for groups and products that the target has not."""
    _check_group(context, node)
    _OPERATIONS[node.op.name](context, node)


def _check_group(context: FunctionContext, node: Call) -> None:
    kernel = context.kernel
    size = kernel.require_subgroups(f"`{node.op}`, an operation of a warp on tiles of matrices,", node.span)
    width, threads = constant_value(node.args[-1]), math.prod(kernel.block)
    target = kernel.profile.target
    if width != size:
        remedy = f"write `width={size}`: matrices are of a whole subgroup, which has {size} threads there"
        raise refused_construct(f"`{node.op}` with a width of {width}", target, remedy, node.span)
    if not threads or threads % size:
        what = f"`{node.op}` in blocks of {threads or 'an unknown number of'} threads"
        remedy = f"give blocks a constant number of threads that {size} divides"
        raise refused_construct(what, target, remedy, node.span)


def _fill(context: FunctionContext, node: Call) -> None:
    tile, dtype, writer = node.args[0], node.args[1].dtype, context.writer
    assert isinstance(tile, AddressOf)
    pointer, type_ = _tile(context, tile)
    (value,) = context.evaluate(node.args[1])
    component = _component(context, dtype, node.span)
    if dtype.is_float and dtype.bits == 16:
        # Exact: registers hold float16 as the float32 of the same value.
        value = writer.value(Op.FConvert, component, value)
    elif dtype.bits < 32:
        value = writer.value(Op.SConvert, component, value)
    elif dtype.is_signed and not dtype.is_float:
        value = writer.value(Op.Bitcast, component, value)
    writer.effect(Op.Store, pointer, writer.value(Op.CompositeConstruct, type_, value))


def _multiply(context: FunctionContext, node: Call) -> None:
    d, a, b, c = node.args[:-1]
    assert isinstance(a, AddressOf)
    assert isinstance(b, AddressOf)
    assert isinstance(c, AddressOf)
    assert isinstance(d, AddressOf)
    known = context.kernel.profile.matrices
    used = next((shape for shape in known if all(shape.has(tile.buffer) for tile in (a, b, c))), None)
    if used is None:
        (m, k), n = tile_shape(a.buffer), tile_shape(b.buffer)[1]
        what = f"the product `{m}x{n}x{k}:{a.buffer.dtype}:{c.buffer.dtype}` of tiles"
        raise refused_matrices(what, known, context.kernel.profile.target, node.span)
    context.kernel.matrices.add(used)
    writer = context.writer
    target, type_ = _tile(context, d)
    values = [writer.value(Op.Load, own, pointer) for pointer, own in (_tile(context, tile) for tile in (a, b, c))]
    is_signed = a.buffer.dtype.is_signed and not a.buffer.dtype.is_float
    more = (sum(CooperativeMatrixOperands),) if is_signed else ()
    writer.effect(Op.Store, target, writer.value(Op.CooperativeMatrixMulAddKHR, type_, *values, *more))


def _load(context: FunctionContext, node: Call) -> None:
    tile, element, stride, by_column, _ = node.args
    assert isinstance(tile, AddressOf)
    assert isinstance(element, AddressOf)
    pointer, type_ = _tile(context, tile)
    source, how, lines = _memory(context, element, stride, by_column)
    found = context.writer.value(Op.CooperativeMatrixLoadKHR, type_, source, *lines, *how)
    context.writer.effect(Op.Store, pointer, found)


def _store(context: FunctionContext, node: Call) -> None:
    element, tile, stride, by_column, _ = node.args
    assert isinstance(tile, AddressOf)
    assert isinstance(element, AddressOf)
    target, how, lines = _memory(context, element, stride, by_column)
    pointer, type_ = _tile(context, tile)
    value = context.writer.value(Op.Load, type_, pointer)
    context.writer.effect(Op.CooperativeMatrixStoreKHR, target, value, *lines, *how)


_OPERATIONS = {"matrix_fill": _fill, "matrix_load": _load, "matrix_multiply": _multiply, "matrix_store": _store}


def _tile(context: FunctionContext, node: AddressOf) -> tuple[int, int]:
    """A pointer to a tile, and the type of tiles."""
    writer, place = context.writer, context.tiles[node.buffer.data]
    if not place.is_array:
        return place.variable, place.type_
    type_ = word(writer)
    number = 0
    for index, size in zip(_words(context, node.indices[:-2]), node.buffer.shape, strict=False):
        if number:
            extent = word_constant(writer, int(constant_value(size) or 1))
            number = writer.value(Op.IMul, type_, number, extent)
            number = writer.value(Op.IAdd, type_, number, index)
        else:
            number = index
    pointer = writer.module.pointer(StorageClass.Function, place.type_)
    return writer.value(Op.AccessChain, pointer, place.variable, number), place.type_


def _words(context: FunctionContext, indices: tuple[Expr, ...]) -> Iterator[int]:
    for index in indices:
        (value,) = context.evaluate(index)
        yield context.writer.value(Op.UConvert, word(context.writer), value) if index.dtype.bits == 64 else value


def _memory(
    context: FunctionContext, element: AddressOf, stride: Expr, by_column: Expr
) -> tuple[int, tuple[int, ...], tuple[int, int]]:
    """A pointer to an element of memory, what an access of it ends with, and layout and stride."""
    writer, buffer = context.writer, element.buffer
    place = memory.place_of_buffer(context, buffer, element.span)
    (index,) = memory.element_indices(context, place, element)
    if isinstance(place, (BoundPlace, AddressPlace)):
        bits = element_bits(buffer.dtype)
        pointer, *how = places.located(writer, context.kernel.interface, place, index, bits)
    elif isinstance(place, VariablePlace):
        pointer, how = places.variable_pointer(writer, place, index), list(places.access(writer))
    else:
        raise refused_construct(
            f"a tile in `{buffer.name}`, shared memory that is seen as elements of several widths,",
            context.kernel.profile.target,
            "give it one type of element, and a constant size",
            element.span,
        )
    (lines,) = context.evaluate(stride)
    return pointer, tuple(how), (word_constant(writer, int(constant_value(by_column) or 0)), lines)
