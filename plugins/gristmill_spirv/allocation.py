"""Memory that kernels allocate: of a block (shared) and of a thread (local)."""

from __future__ import annotations

from dataclasses import replace

from gristmill.ir.build import constant_value
from gristmill.ir.dtype import DType, TypeCode, dtype_of
from gristmill.ir.expr import AddressOf, BufferRef, CallFunction, Expr, Var
from gristmill.ir.functor import walk
from gristmill.ir.memory import MATRIX_SCOPES, Buffer, Scope
from gristmill.ir.span import Span
from gristmill.ir.stmt import Allocate, View
from gristmill_spirv.atomics import shared_floats
from gristmill_spirv.context import FunctionContext
from gristmill_spirv.enumerants import Op, StorageClass
from gristmill_spirv.matrices import FEATURE, allocate_tiles, narrow_in_shared
from gristmill_spirv.places import VariablePlace, WordPlace
from gristmill_spirv.refusals import refused_construct
from gristmill_spirv.registers import register_type, width_of, word, word_constant
from gristmill_spirv.threads import most_threads, thread_number

_WORD_BYTES = 4
DYNAMIC_SPEC_ID = 3
"""SpecId of the number of elements of the dynamic shared array; 0 to 2 are the threads of a block along x, y, z."""


def allocate(context: FunctionContext, node: Allocate) -> None:
    """Make the variable of a buffer. Raises Unsupported for memory that shaders cannot have."""
    buffer = node.buffer
    if buffer.scope in MATRIX_SCOPES:
        allocate_tiles(context, buffer, node.span)
        return
    context.kernel.require_dtype(buffer.dtype, node.span)
    if buffer.scope is Scope.LOCAL:
        _local(context, buffer, node.span)
    elif buffer.scope is Scope.SHARED:
        _shared(context, buffer, node.span)
    elif buffer.scope is Scope.SHARED_DYNAMIC:
        _dynamic(context, buffer)
    elif buffer.scope is Scope.WARP:
        _warp(context, buffer, node.span)
    else:
        raise refused_construct(
            f"memory of scope `{buffer.scope.value}` that a kernel allocates",
            context.kernel.profile.target,
            "allocate it outside of loops over threads, or as `shared` or `local`",
            node.span,
        )


def _local(context: FunctionContext, buffer: Buffer, span: Span | None) -> None:
    writer = context.writer
    if _is_seen_otherwise(context, buffer):
        array = _array(context, word(writer), _word_count(context, buffer, span))
        context.places[buffer.data] = WordPlace(writer.variable(array), array, storage=StorageClass.Function)
        return
    element = register_type(writer.module, buffer.dtype.element)
    is_array = bool(buffer.shape) or buffer.dtype.is_vector
    pointee = _array(context, element, _count(context, buffer, span)) if is_array else element
    variable = writer.variable(pointee)
    place = VariablePlace(variable, StorageClass.Function, buffer.dtype.element, is_array, pointee)
    context.places[buffer.data] = place


def _shared(context: FunctionContext, buffer: Buffer, span: Span | None) -> None:
    writer, kernel = context.writer, context.kernel
    count = _count(context, buffer, span)
    if _is_seen_otherwise(context, buffer):
        words = _word_count(context, buffer, span)
        kernel.shared_bytes += words * _WORD_BYTES
        context.places[buffer.data] = _words(context, buffer, _array(context, word(writer), words))
        return
    context.places[buffer.data] = _shared_array(context, buffer, count)


def _shared_array(context: FunctionContext, buffer: Buffer, count: int) -> VariablePlace:
    kernel, module = context.kernel, context.writer.module
    element = buffer.dtype.element
    if element.is_float and element in shared_floats(kernel):
        element = dtype_of(TypeCode.UINT, element.bits)
    narrow = element.bits if narrow_in_shared(kernel, buffer) else 0
    held = register_type(module, element)
    if narrow:
        kernel.require(FEATURE, "memory of tiles of matrices", buffer.span)
        kernel.require(f"int{narrow}", f"shared memory of `{element}` that tiles of matrices come from", buffer.span)
        held = module.type_int(narrow, signed=False)
    pointee = _array(context, held, count)
    variable = module.variable(module.pointer(StorageClass.Workgroup, pointee), StorageClass.Workgroup)
    module.name(variable, buffer.name)
    kernel.interface.variables.append(variable)
    kernel.shared_bytes += count * (narrow or width_of(element)) // 8
    return VariablePlace(variable, StorageClass.Workgroup, element, True, pointee, narrow=narrow)


def _warp(context: FunctionContext, buffer: Buffer, span: Span | None) -> None:
    """Shared memory with a part for each warp of the block."""
    kernel, writer = context.kernel, context.writer
    size = kernel.require_subgroups(f"`{buffer.name}`, memory of a warp,", span)
    warps = -(-most_threads(kernel) // size)
    count = _count(context, buffer, span)
    warp = writer.value(Op.UDiv, word(writer), thread_number(context), word_constant(writer, size))
    if _is_seen_otherwise(context, buffer):
        words = _word_count(context, buffer, span)
        kernel.shared_bytes += words * warps * _WORD_BYTES
        place = _words(context, buffer, _array(context, word(writer), words * warps))
        start = writer.value(Op.IMul, word(writer), warp, word_constant(writer, words * _WORD_BYTES))
        context.places[buffer.data] = replace(place, offset=start)
        return
    found = _shared_array(context, buffer, count * warps)
    start = writer.value(Op.IMul, word(writer), warp, word_constant(writer, count))
    context.places[buffer.data] = replace(found, offset=start)


def _dynamic(context: FunctionContext, buffer: Buffer) -> None:
    kernel, module = context.kernel, context.writer.module
    length = module.spec_constant(module.type_int(32, signed=False), 1, DYNAMIC_SPEC_ID)
    kernel.dynamic_element = _WORD_BYTES
    context.places[buffer.data] = _words(
        context, buffer, module.fresh(Op.TypeArray, module.type_int(32, signed=False), length)
    )


def _words(context: FunctionContext, buffer: Buffer, array: int) -> WordPlace:
    """Shared memory as an array of words."""
    module = context.writer.module
    variable = module.variable(module.pointer(StorageClass.Workgroup, array), StorageClass.Workgroup)
    module.name(variable, buffer.name)
    context.kernel.interface.variables.append(variable)
    return WordPlace(variable, array)


def _word_count(context: FunctionContext, buffer: Buffer, span: Span | None) -> int:
    return -(-_count(context, buffer, span) * buffer.dtype.element.bytes // _WORD_BYTES)


def _is_seen_otherwise(context: FunctionContext, buffer: Buffer) -> bool:
    """Whether some view of an array of the function has elements of another width, or narrow ones of another type.

    Helpers are given their pointers' element types, so the calls of them say what they see.
    """
    own = buffer.dtype.element
    data = {buffer.data}
    for node in walk(context.function.body):
        if isinstance(node, View):
            source = node.buffer.data if node.source is None else _root(node.source)
            if source in data:
                data.add(node.buffer.data)
                if _differ(own, node.buffer.dtype.element):
                    return True
        elif isinstance(node, CallFunction):
            callee = context.kernel.source.get(node.function)
            for argument, param in zip(node.args, callee.params if callee is not None else (), strict=False):
                if argument.dtype.is_handle and _root(argument) in data:
                    pointer = param.pointer if isinstance(param, Var) else None
                    if pointer is None or _differ(own, pointer.element.element):
                        return True
    return False


def _differ(own: DType, other: DType) -> bool:
    return own != other and (own.bits != other.bits or min(own.bits, other.bits) < 32)


def _root(pointer: Expr) -> Var | None:
    if isinstance(pointer, Var):
        return pointer
    return pointer.buffer.data if isinstance(pointer, (AddressOf, BufferRef)) else None


def _count(context: FunctionContext, buffer: Buffer, span: Span | None) -> int:
    """How many scalar elements a buffer has, at least one."""
    count = buffer.dtype.lanes
    for extent in buffer.shape:
        size = constant_value(extent)
        if size is None:
            raise refused_construct(
                f"`{buffer.name}`, memory in `{buffer.scope.value}` whose size is not constant,",
                context.kernel.profile.target,
                "give it a constant size, or, for memory of a block, the scope `shared.dyn`",
                span,
            )
        count *= int(size)
    return max(count, 1)


def _array(context: FunctionContext, element: int, count: int) -> int:
    module = context.writer.module
    return module.interned(Op.TypeArray, element, module.constant_int(count, 32, signed=False))
