"""The packed host interface: reading arguments and tensors, writing the result.

Layouts are those of the C API of TVM FFI (tvm/ffi/c_api.h) and of DLPack (dlpack.h), on machines with 64-bit pointers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gristmill.codegen.packed_interface import ANY_BYTES, ANY_VALUE_OFFSET, OBJECT_HEADER_BYTES
from gristmill.ir.dtype import UINT64, DType
from gristmill.ir.expr import Call, Expr
from gristmill.ir.host_interface import TypeIndex
from gristmill_llvm.context import FunctionContext
from gristmill_llvm.memory import as_index
from gristmill_llvm.messages import Form
from gristmill_llvm.types import register_type
from gristmill_llvm.writer import LIKELY

ANY = "{ i32, i32, i64 }"
"""A TVMFFIAny: type index, padding, 8 bytes of value."""

# DLTensor
TENSOR_DATA = 0
TENSOR_DEVICE_TYPE = 8
TENSOR_DEVICE_ID = 12
TENSOR_RANK = 16
TENSOR_DTYPE = 20
TENSOR_SHAPE = 24
TENSOR_STRIDES = 32
TENSOR_BYTE_OFFSET = 40
TENSOR_BYTES = 48


def type_index_of(dtype: DType) -> TypeIndex:
    """As what a scalar travels."""
    if dtype.is_handle:
        return TypeIndex.POINTER
    if dtype.is_bool:
        return TypeIndex.BOOL
    return TypeIndex.FLOAT if dtype.is_float else TypeIndex.INT


def as_any_bits(context: FunctionContext, operand: str, dtype: DType) -> str:
    """A scalar as the 64 bits of a TVMFFIAny's value."""
    writer = context.writer
    text = register_type(dtype)
    if dtype.is_handle:
        return writer.value(f"ptrtoint ptr {operand} to i64")
    if dtype.is_float:
        if dtype.bits < 64:
            operand = writer.value(f"fpext {text} {operand} to double")
        return writer.value(f"bitcast double {operand} to i64")
    if dtype.bits == 64:
        return operand
    return writer.value(f"{'sext' if dtype.is_signed else 'zext'} {text} {operand} to i64")


def field(context: FunctionContext, pointer: str, offset: int) -> str:
    """A pointer ``offset`` bytes after another."""
    if offset == 0:
        return pointer
    return context.writer.value(f"getelementptr inbounds i8, ptr {pointer}, i64 {offset}")


def _load_field(context: FunctionContext, type_text: str, pointer: str, offset: int, align: int) -> str:
    return context.writer.value(f"load {type_text}, ptr {field(context, pointer, offset)}, align {align}")


def _argument(context: FunctionContext, node: Call, offset: int) -> str:
    """The address of a field of the argument that the operands (array, index) name."""
    array = context.evaluate(node.args[0])
    index = as_index(context, node.args[1])
    if not index.startswith("%"):
        return field(context, array, int(index) * ANY_BYTES + offset)
    place = context.writer.value(f"getelementptr inbounds {ANY}, ptr {array}, i64 {index}")
    return field(context, place, offset)


def _reads_argument(type_text: str, offset: int, align: int) -> Callable[[FunctionContext, Call], str]:
    def emit(context: FunctionContext, node: Call) -> str:
        return context.writer.value(f"load {type_text}, ptr {_argument(context, node, offset)}, align {align}")

    return emit


def _tensor(context: FunctionContext, node: Call) -> str:
    writer = context.writer
    start = _argument(context, node, 0)
    kind = writer.value(f"load i32, ptr {start}, align 8")
    held = _load_field(context, "ptr", start, ANY_VALUE_OFFSET, 8)
    inside = writer.value(f"getelementptr i8, ptr {held}, i64 {OBJECT_HEADER_BYTES}")
    bare = writer.value(f"icmp eq i32 {kind}, {TypeIndex.DLTENSOR}")
    return writer.value(f"select i1 {bare}, ptr {held}, ptr {inside}")


def _return(context: FunctionContext, node: Call) -> str:
    result = context.evaluate(node.args[0])
    value: Expr = node.args[1]
    dtype, writer = value.dtype, context.writer
    if dtype.is_void:
        _store_any(context, result, TypeIndex.NONE, "0")
        return ""
    bits = as_any_bits(context, context.evaluate(value), dtype)
    if dtype != UINT64:
        _store_any(context, result, type_index_of(dtype), bits)
        return ""
    small, big, done = (writer.new_label(purpose) for purpose in ("small", "big", "returned"))
    writer.branch_if(writer.value(f"icmp sge i64 {bits}, 0"), small, big, LIKELY)
    writer.block(big)
    _return_big(context, result, bits)
    writer.branch(done)
    writer.block(small)
    _store_any(context, result, TypeIndex.INT, bits)
    writer.block(done)
    return ""


def _store_any(context: FunctionContext, place: str, kind: int, bits: str) -> None:
    # The four bytes after the type index must be zero: one store does both.
    context.writer.effect(f"store i64 {kind}, ptr {place}, align 8")
    context.writer.effect(f"store i64 {bits}, ptr {field(context, place, ANY_VALUE_OFFSET)}, align 8")


def _return_big(context: FunctionContext, result: str, bits: str) -> None:
    """Return an integer beyond int64: a BigInt object, made from words in two's complement."""
    writer = context.writer
    words, content = writer.slot("[2 x i64]", 8), writer.slot("{ ptr, i64 }", 8)
    writer.effect(f"store i64 {bits}, ptr {words}, align 8")
    writer.effect(f"store i64 0, ptr {field(context, words, 8)}, align 8")
    writer.effect(f"store ptr {words}, ptr {content}, align 8")
    writer.effect(f"store i64 16, ptr {field(context, content, 8)}, align 8")
    make = context.module.declare("TVMFFIBigIntFromByteArray", "i32", "ptr, ptr")
    status = writer.value(f"call i32 {make}(ptr {content}, ptr {result})")
    context.fail_if(writer.value(f"icmp ne i32 {status}, 0"))


def _big_words(context: FunctionContext, node: Call) -> str:
    """A pointer to what a BigInt object holds: the number of its words, then the words, the lowest first."""
    held = context.writer.value(f"load ptr, ptr {_argument(context, node, ANY_VALUE_OFFSET)}, align 8")
    return field(context, held, OBJECT_HEADER_BYTES)


def _big_fits(context: FunctionContext, node: Call) -> str:
    # From 2**63 to 2**64 - 1 there are two words, the second all zero: one would be an int64. BigInts have one at least.
    writer = context.writer
    start = _big_words(context, node)
    two = writer.value(f"icmp eq i64 {_load_field(context, 'i64', start, 0, 8)}, 2")
    more, done = writer.new_label("words"), writer.new_label("fits")
    before = writer.label
    writer.branch_if(two, more, done)
    writer.block(more)
    none = writer.value(f"icmp eq i64 {_load_field(context, 'i64', start, 16, 8)}, 0")
    after = writer.label
    writer.block(done)
    return writer.phi("i1", [("false", before), (none, after)])


def _big(context: FunctionContext, node: Call) -> str:
    return _load_field(context, "i64", _big_words(context, node), 8, 8)


def _reads_tensor(type_text: str, offset: int, align: int) -> Callable[[FunctionContext, Call], str]:
    def emit(context: FunctionContext, node: Call) -> str:
        return _load_field(context, type_text, context.evaluate(node.args[0]), offset, align)

    return emit


def _reads_list(offset: int) -> Callable[[FunctionContext, Call], str]:
    """An element of the shape or the strides."""

    def emit(context: FunctionContext, node: Call) -> str:
        tensor = context.evaluate(node.args[0])
        index = as_index(context, node.args[1])
        first = _load_field(context, "ptr", tensor, offset, 8)
        place = context.writer.value(f"getelementptr inbounds i64, ptr {first}, i64 {index}")
        return context.writer.value(f"load i64, ptr {place}, align 8")

    return emit


def _has_strides(context: FunctionContext, node: Call) -> str:
    strides = _load_field(context, "ptr", context.evaluate(node.args[0]), TENSOR_STRIDES, 8)
    return context.writer.value(f"icmp ne ptr {strides}, null")


def _data(context: FunctionContext, node: Call) -> str:
    tensor = context.evaluate(node.args[0])
    data = _load_field(context, "ptr", tensor, TENSOR_DATA, 8)
    offset = _load_field(context, "i64", tensor, TENSOR_BYTE_OFFSET, 8)
    return context.writer.value(f"getelementptr i8, ptr {data}, i64 {offset}")


def _is_null(context: FunctionContext, node: Call) -> str:
    data = _load_field(context, "ptr", context.evaluate(node.args[0]), TENSOR_DATA, 8)
    return context.writer.value(f"icmp eq ptr {data}, null")


def _is_aligned(context: FunctionContext, node: Call) -> str:
    data = _data(context, node)
    unit = as_index(context, node.args[1])
    writer = context.writer
    number = writer.value(f"ptrtoint ptr {data} to i64")
    rest = writer.value(f"urem i64 {number}, {unit}")
    return writer.value(f"icmp eq i64 {rest}, 0")


def _args_are_null(context: FunctionContext, node: Call) -> str:
    return context.writer.value(f"icmp eq ptr {context.evaluate(node.args[0])}, null")


def _shown_kind(context: FunctionContext, node: Call) -> tuple[str, Form]:
    kind = context.writer.value(f"load i32, ptr {_argument(context, node, 0)}, align 8")
    return context.writer.value(f"sext i32 {kind} to i64"), Form.KIND


def _shown_dtype(context: FunctionContext, node: Call) -> tuple[str, Form]:
    dtype = _load_field(context, "i32", context.evaluate(node.args[0]), TENSOR_DTYPE, 4)
    return context.writer.value(f"zext i32 {dtype} to i64"), Form.DTYPE


MESSAGE_VALUES: Mapping[str, Callable[[FunctionContext, Call], tuple[str, Form]]] = {
    "packed_kind_text": _shown_kind,
    "tensor_dtype_text": _shown_dtype,
}
"""Operations that are parts of messages: what to store for the function that makes the text, as an ``i64``."""

PACKED: Mapping[str, Callable[[FunctionContext, Call], str]] = {
    "packed_is_null": _args_are_null,
    "packed_kind": _reads_argument("i32", 0, 8),
    "packed_int": _reads_argument("i64", ANY_VALUE_OFFSET, 8),
    "packed_float": _reads_argument("double", ANY_VALUE_OFFSET, 8),
    "packed_big_fits": _big_fits,
    "packed_big": _big,
    "packed_pointer": _reads_argument("ptr", ANY_VALUE_OFFSET, 8),
    "packed_tensor": _tensor,
    "packed_return": _return,
    "tensor_rank": _reads_tensor("i32", TENSOR_RANK, 4),
    "tensor_dtype": _reads_tensor("i32", TENSOR_DTYPE, 4),
    "tensor_size": _reads_list(TENSOR_SHAPE),
    "tensor_has_strides": _has_strides,
    "tensor_stride": _reads_list(TENSOR_STRIDES),
    "tensor_data": _data,
    "tensor_is_null": _is_null,
    "tensor_is_aligned": _is_aligned,
    "tensor_device_type": _reads_tensor("i32", TENSOR_DEVICE_TYPE, 4),
    "tensor_device_id": _reads_tensor("i32", TENSOR_DEVICE_ID, 4),
}
"""Operation name to the function that writes it."""


def emit_packed(context: FunctionContext, node: Call) -> str:
    """The value of an operation of the packed interface."""
    return PACKED[node.op.name](context, node)
