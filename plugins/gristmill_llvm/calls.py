"""Calls of functions of the module, and of C functions that the manifest declares.

C functions are called through slots, which whoever loads the object fills in (:mod:`gristmill.codegen.extern_table`).
"""

from __future__ import annotations

from gristmill.codegen.extern_table import EXTERN_TABLE
from gristmill.ir.dtype import DType
from gristmill.ir.expr import BufferRef, CallExtern, CallFunction, Expr
from gristmill_llvm.context import FunctionContext, Generation
from gristmill_llvm.memory import address, as_index
from gristmill_llvm.raising import raise_if
from gristmill_llvm.refusals import refused_extern
from gristmill_llvm.types import register_type
from gristmill_llvm.writer import quoted


def pointer_argument(context: FunctionContext, node: BufferRef) -> str:
    """A buffer where a pointer is wanted: the address of its first element."""
    buffer = node.buffer
    offset = "0" if buffer.offset is None else as_index(context, buffer.offset)
    return address(context, buffer, offset, inbounds=False).rpartition(" ")[2]


def call_function(context: FunctionContext, node: CallFunction) -> str:
    """Call a function of the module; where it fails, so does the caller."""
    writer = context.writer
    signature = context.generation.signatures[node.function]
    operands = [context.evaluate(argument) for argument in node.args]
    given = [f"{text} {operand}" for text, operand in zip(signature.parameters, operands, strict=True)]
    if not signature.fails:
        call = f"call {signature.result} {signature.name}({', '.join(given)})"
        if signature.returns.is_void:
            writer.effect(call)
            return ""
        return writer.value(call)
    result = register_type(signature.returns)
    slot = ""
    if not signature.returns.is_void:
        slot = writer.slot(result)
        given.append(f"ptr {slot}")
    status = writer.value(f"call i32 {signature.name}({', '.join(given)})")
    context.fail_if(writer.value(f"icmp ne i32 {status}, 0"))
    return writer.value(f"load {result}, ptr {slot}") if slot else ""


def call_extern(context: FunctionContext, node: CallExtern) -> str:
    """Call a C function through its slot."""
    writer, target = context.writer, context.profile.target
    extern = context.generation.externs.get(node.symbol)
    if extern is None:
        remedy = f"declare it in kernels.toml: extern = {{ {node.symbol} = LIBRARY }}"
        raise refused_extern(node.symbol, "without a declaration", target, remedy, node.span)
    for part in (*node.args, node):
        if part.dtype.is_vector:
            remedy = "pass scalars, or a pointer to an array"
            raise refused_extern(node.symbol, f"with a vector ({part.dtype})", target, remedy, part.span or node.span)
    given = [_c_argument(argument, context.evaluate(argument)) for argument in node.args]
    function = writer.value(f"load ptr, ptr {extern_slot(node.symbol)}")
    missing = writer.value(f"icmp eq ptr {function}, null")
    raise_if(
        context,
        missing,
        "RuntimeError",
        (
            f"the C function `{node.symbol}` of the library `{extern.library}` has no address: "
            "this code must be loaded by gristmill, which opens the library",
        ),
    )
    result = f"{_extension(node.dtype)}{register_type(node.dtype)}"
    call = f"call {result} {function}({', '.join(given)})"
    if node.dtype.is_void:
        writer.effect(call)
        return ""
    return writer.value(call)


def _c_argument(node: Expr, operand: str) -> str:
    extension = _extension(node.dtype)
    return f"{register_type(node.dtype)} {extension}{operand}"


def _extension(dtype: DType) -> str:
    """How C passes what is narrower than int: extended to 32 bits by the caller."""
    if not (dtype.is_bool or (dtype.is_integer and dtype.bits < 32)):
        return ""
    return "signext " if dtype.is_signed else "zeroext "


def extern_slot(symbol: str) -> str:
    """The name of the variable that holds the address of a C function."""
    return "@" + quoted(f"extern.{symbol}")


def define_extern_table(generation: Generation) -> None:
    """Define the slots and the exported table of all externs of the module, if it has any."""
    writer = generation.writer
    if not generation.externs:
        return
    entries = []
    for symbol, extern in sorted(generation.externs.items()):
        slot = writer.define_global(extern_slot(symbol), "internal global ptr null, align 8")
        name, library = writer.string(symbol), writer.string(extern.library)
        entries.append(f"{{ ptr, ptr, ptr }} {{ ptr {name}, ptr {library}, ptr {slot} }}")
    entries.append("{ ptr, ptr, ptr } zeroinitializer")
    writer.define_global(
        f"@{EXTERN_TABLE}",
        f"dso_local constant [{len(entries)} x {{ ptr, ptr, ptr }}] [{', '.join(entries)}], align 8",
    )
