"""Launches of kernels by host code, and memory of the device that it allocates, through the context table.

The layout of the table is that of :mod:`gristmill.codegen.context_table`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gristmill.codegen import context_table as table
from gristmill.codegen.packed_interface import ANY_BYTES, ANY_VALUE_OFFSET
from gristmill.ir.expr import Call, Expr, Var
from gristmill.ir.functor import walk
from gristmill.ir.memory import Buffer
from gristmill.ir.module import Function, Module
from gristmill.ir.stmt import Launch
from gristmill_llvm import packed
from gristmill_llvm.context import FunctionContext
from gristmill_llvm.memory import as_index
from gristmill_llvm.raising import raise_if, raise_without_memory
from gristmill_llvm.refusals import refused_construct
from gristmill_llvm.writer import UNLIKELY

_NO_TABLE = "the kernels of this library have no device: the library must be loaded by gristmill, from its pack"
_LEAST_ALIGNMENT = 64


def launched_kernels(module: Module) -> tuple[str, ...]:
    """The kernels that the functions of a host part launch, in the order of the context table: as they are found."""
    found: dict[str, None] = {}
    for function in module.functions:
        for node in walk(function.body):
            if isinstance(node, Launch):
                found[node.kernel] = None
    return tuple(found)


def launch(context: FunctionContext, node: Launch) -> None:
    """Hand the launch to the device that the table names, unless some extent is zero; an error of it is ours."""
    writer = context.writer
    if node.context is None:
        remedy = "run the launch lowering of the device's plugin first"
        raise refused_construct(f"the launch of `{node.kernel}`", context.profile.target, remedy, node.span)
    where = _checked_table(context, node.context)
    given = [(packed.type_index_of(arg.dtype), _bits(context, node, arg)) for arg in node.args]
    extents = [as_index(context, extent) for extent in node.extents]
    dynamic = "0" if node.dynamic_shared is None else as_index(context, node.dynamic_shared)
    go, done = writer.new_label("launch"), writer.new_label("launched")
    empty = "false"
    for extent in extents:
        none = writer.value(f"icmp slt i64 {extent}, 1")
        empty = none if empty == "false" else writer.value(f"or i1 {empty}, {none}")
    writer.branch_if(empty, done, go, UNLIKELY)
    writer.block(go)
    args = writer.slot(f"[{max(len(given), 1)} x {packed.ANY}]", 8)
    for place, (kind, bits) in enumerate(given):
        start = packed.field(context, args, place * ANY_BYTES)
        writer.effect(f"store i64 {int(kind)}, ptr {start}, align 8")
        writer.effect(f"store i64 {bits}, ptr {packed.field(context, start, ANY_VALUE_OFFSET)}, align 8")
    sizes = writer.slot(f"[{max(len(extents), 1)} x i64]", 8)
    for place, extent in enumerate(extents):
        writer.effect(f"store i64 {extent}, ptr {packed.field(context, sizes, 8 * place)}, align 8")
    number = context.generation.kernels.index(node.kernel)
    device, code = _field(context, where, table.DEVICE), _field(context, where, table.LAUNCH)
    kernel = _field(context, where, table.kernel_offset(number))
    status = writer.value(
        f"call i32 {code}(ptr {device}, ptr {kernel}, ptr {args}, i32 {len(given)}, ptr {sizes}, "
        f"i32 {len(extents)}, i64 {dynamic})"
    )
    context.fail_if(writer.value(f"icmp ne i32 {status}, 0"))
    writer.block(done)


def context_device_id(context: FunctionContext, node: Call) -> str:
    """The number of the device that the table is for; without a table the function leaves with a RuntimeError."""
    where = packed.field(context, _checked_table(context, node.args[0]), table.DEVICE_ID)
    return context.writer.value(f"load i32, ptr {where}, align 4")


CONTEXT_VALUES: Mapping[str, Callable[[FunctionContext, Call], str]] = {"context_device_id": context_device_id}
"""Operations that read the context table."""


def allocate_on_device(context: FunctionContext, buffer: Buffer, size: str) -> None:
    """Define ``buffer.data`` as memory of the device of ``size`` bytes (an ``i64``), given back on every way out."""
    writer = context.writer
    where = _checked_table(context, _parameter(context.function))
    device = _field(context, where, table.DEVICE)
    alignment = max(buffer.alignment, _LEAST_ALIGNMENT)
    code = _field(context, where, table.ALLOCATE)
    pointer = writer.value(f"call ptr {code}(ptr {device}, i64 {size}, i32 {alignment})")
    raise_without_memory(context, pointer, buffer, size, " of the device")
    context.values[buffer.data] = pointer
    release = _field(context, where, table.RELEASE)
    context.cleanups.append(lambda: writer.effect(f"call void {release}(ptr {device}, ptr {pointer})"))


def takes_table(function: Function) -> bool:
    """Whether a function is given the context table by its callers: it launches, or calls one that does."""
    return any(_is_table(param) for param in function.params)


def _is_table(param: Var | Buffer) -> bool:
    # After it stand the symbolic sizes, which become parameters later.
    return isinstance(param, Var) and param.name == table.CONTEXT_PARAMETER and param.dtype.is_handle


def _parameter(function: Function) -> Var:
    found = next(param for param in reversed(function.params) if _is_table(param))
    assert isinstance(found, Var)
    return found


def _checked_table(context: FunctionContext, expression: Expr) -> str:
    """The table; without one the function leaves with a RuntimeError."""
    where = context.evaluate(expression)
    raise_if(context, context.writer.value(f"icmp eq ptr {where}, null"), "RuntimeError", (_NO_TABLE,))
    return where


def _field(context: FunctionContext, where: str, offset: int) -> str:
    return context.writer.value(f"load ptr, ptr {packed.field(context, where, offset)}, align 8")


def _bits(context: FunctionContext, node: Launch, arg: Expr) -> str:
    if arg.dtype.is_vector:
        remedy = "pass its lanes one by one"
        construct = f"a vector ({arg.dtype}) as an argument of the kernel `{node.kernel}`"
        raise refused_construct(construct, context.profile.target, remedy, arg.span or node.span)
    return packed.as_any_bits(context, context.evaluate(arg), arg.dtype)
