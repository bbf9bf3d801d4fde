"""Calls of functions that are registered with TVM FFI by name.

The function is looked up at each call, so a registration made later counts. A buffer travels as a tensor object (a bare
``DLTensor*`` cannot be exported from Python again): a view, with a shape of its own, of a tensor without elements that
is made for the call. Its data belong to the caller, so the callee may not use it after it returned. References are kept
in ``cleanups`` while they are held, so that every way out gives them back.
"""

from __future__ import annotations

from gristmill.codegen.packed_interface import ANY_BYTES, ANY_VALUE_OFFSET, packed_dtype
from gristmill.ir.dtype import UINT8, DType
from gristmill.ir.expr import BufferRef, CallPacked, StringImm
from gristmill.ir.host_interface import CPU_DEVICE_TYPE, TypeIndex
from gristmill.ir.memory import Buffer
from gristmill_llvm import packed
from gristmill_llvm.calls import pointer_argument
from gristmill_llvm.context import FunctionContext
from gristmill_llvm.memory import as_index
from gristmill_llvm.messages import Form
from gristmill_llvm.raising import raise_described, raise_error
from gristmill_llvm.refusals import refused_packed
from gristmill_llvm.types import register_type
from gristmill_llvm.writer import UNLIKELY

_KIND_NAMES = {TypeIndex.INT: "an int", TypeIndex.BOOL: "a bool", TypeIndex.FLOAT: "a float"}


def call_packed(context: FunctionContext, node: CallPacked) -> str:
    """Call the function, leave with its error if it fails, and convert its result."""
    writer, module = context.writer, context.module
    for part in (*node.args, node):
        if part.dtype.is_vector:
            raise refused_packed(node.name, f"with a vector ({part.dtype})", context.profile.target, node.span)
    held = len(context.cleanups)
    function = _look_up(context, node.name)
    count = len(node.args)
    # One more than needed: an array of no elements would be a pointer to nothing.
    array = writer.slot(f"[{max(count, 1)} x {packed.ANY}]", 8)
    # All arguments first: one of them may itself hold a packed call, which must not see a half-filled array.
    values = [_argument(context, argument) for argument in node.args]
    for place, (kind, bits) in enumerate(values):
        start = packed.field(context, array, place * ANY_BYTES)
        writer.effect(f"store i64 {kind}, ptr {start}, align 8")
        writer.effect(f"store i64 {bits}, ptr {packed.field(context, start, ANY_VALUE_OFFSET)}, align 8")
    result = writer.slot(packed.ANY, 8)
    writer.effect(f"store i64 {TypeIndex.NONE}, ptr {result}, align 8")
    writer.effect(f"store i64 0, ptr {packed.field(context, result, ANY_VALUE_OFFSET)}, align 8")
    call = module.declare("TVMFFIFunctionCall", "i32", "ptr, ptr, i32, ptr")
    status = writer.value(f"call i32 {call}(ptr {function}, ptr {array}, i32 {count}, ptr {result})")
    context.clean_up(held)
    del context.cleanups[held:]
    context.fail_if(writer.value(f"icmp ne i32 {status}, 0"))
    return _result(context, node, result)


def _look_up(context: FunctionContext, name: str) -> str:
    """The handle of the registered function, to be released after use."""
    writer, module = context.writer, context.module
    text = module.string(name)
    size = len(name.encode("utf-8", "surrogatepass"))
    key = module.shared_global("name", f"private constant {{ ptr, i64 }} {{ ptr {text}, i64 {size} }}, align 8")
    handle = writer.slot("ptr", 8)
    writer.effect(f"store ptr null, ptr {handle}, align 8")
    get = module.declare("TVMFFIFunctionGetGlobal", "i32", "ptr, ptr")
    status = writer.value(f"call i32 {get}(ptr {key}, ptr {handle})")
    context.fail_if(writer.value(f"icmp ne i32 {status}, 0"))
    function = writer.value(f"load ptr, ptr {handle}, align 8")
    absent = writer.value(f"icmp eq ptr {function}, null")
    bad, good = writer.new_label("absent"), writer.new_label("found")
    writer.branch_if(absent, bad, good, UNLIKELY)
    writer.block(bad)
    message = f"no function is registered with TVM FFI under the name `{name}`, which the kernel calls"
    raise_error(context, "ValueError", (message,))
    writer.block(good)
    _hold(context, function)
    return function


def _hold(context: FunctionContext, handle: str) -> None:
    """Give the reference back on every way out from here on."""
    context.cleanups.append(lambda: _release(context, handle))


def _release(context: FunctionContext, handle: str) -> None:
    release = context.module.declare("TVMFFIObjectDecRef", "i32", "ptr")
    context.writer.value(f"call i32 {release}(ptr {handle})")


def _argument(context: FunctionContext, argument: object) -> tuple[int, str]:
    """The type index of an argument and the 64 bits of its value."""
    writer = context.writer
    if isinstance(argument, BufferRef):
        tensor = _tensor(context, _describe(context, argument))
        return TypeIndex.TENSOR, writer.value(f"ptrtoint ptr {tensor} to i64")
    if isinstance(argument, StringImm):
        text = context.evaluate(argument)
        return TypeIndex.RAW_TEXT, writer.value(f"ptrtoint ptr {text} to i64")
    operand = context.evaluate(argument)  # type: ignore[arg-type]
    dtype: DType = argument.dtype  # type: ignore[attr-defined]
    return packed.type_index_of(dtype), packed.as_any_bits(context, operand, dtype)


def _tensor(context: FunctionContext, description: str) -> str:
    """A tensor object of what a DLTensor describes, with its own shape and strides, to be released after the call.

    A view needs a tensor to view: one over a constant DLManagedTensor without elements and without a deleter.
    """
    writer, module = context.writer, context.module
    empty = module.shared_global("empty", "private constant [1 x i64] zeroinitializer, align 8")
    # DLManagedTensor: a DLTensor (data, CPU, one dimension, uint8, shape, no strides, offset), context, deleter.
    layout = "{ ptr, i32, i32, i32, i32, ptr, ptr, i64, ptr, ptr }"
    head = f"ptr null, i32 {CPU_DEVICE_TYPE}, i32 0, i32 1, i32 {packed_dtype(UINT8)}"
    fields = f"{head}, ptr {empty}, ptr null, i64 0, ptr null, ptr null"
    base = module.shared_global("base", f"private constant {layout} {{ {fields} }}, align 8")
    slot = writer.slot("ptr", 8)
    make = module.declare("TVMFFITensorFromDLPack", "i32", "ptr, i32, i32, ptr")
    status = writer.value(f"call i32 {make}(ptr {base}, i32 0, i32 0, ptr {slot})")
    context.fail_if(writer.value(f"icmp ne i32 {status}, 0"))
    source = writer.value(f"load ptr, ptr {slot}, align 8")
    view = module.declare("TVMFFITensorCreateUnsafeView", "i32", "ptr, ptr, ptr")
    status = writer.value(f"call i32 {view}(ptr {source}, ptr {description}, ptr {slot})")
    # The view keeps what it views alive.
    _release(context, source)
    context.fail_if(writer.value(f"icmp ne i32 {status}, 0"))
    tensor = writer.value(f"load ptr, ptr {slot}, align 8")
    _hold(context, tensor)
    return tensor


def _describe(context: FunctionContext, node: BufferRef) -> str:
    """A DLTensor on the stack for the buffer: always with strides, data at its first element."""
    writer, buffer = context.writer, node.buffer
    tensor = writer.slot(f"[{packed.TENSOR_BYTES // 8} x i64]", 8)
    lists = writer.slot(f"[{max(2 * buffer.rank, 1)} x i64]", 8)
    data = pointer_argument(context, node)
    sizes = [as_index(context, size) for size in buffer.shape]
    strides = _strides(context, buffer, sizes)
    for place, value in enumerate((*sizes, *strides)):
        writer.effect(f"store i64 {value}, ptr {packed.field(context, lists, 8 * place)}, align 8")
    fields = (
        ("ptr", data, packed.TENSOR_DATA),
        ("i32", str(CPU_DEVICE_TYPE), packed.TENSOR_DEVICE_TYPE),
        ("i32", "0", packed.TENSOR_DEVICE_ID),
        ("i32", str(buffer.rank), packed.TENSOR_RANK),
        ("i32", str(packed_dtype(buffer.dtype)), packed.TENSOR_DTYPE),
        ("ptr", lists, packed.TENSOR_SHAPE),
        ("ptr", packed.field(context, lists, 8 * buffer.rank), packed.TENSOR_STRIDES),
        ("i64", "0", packed.TENSOR_BYTE_OFFSET),
    )
    for text, operand, offset in fields:
        writer.effect(f"store {text} {operand}, ptr {packed.field(context, tensor, offset)}, align 4")
    return tensor


def _strides(context: FunctionContext, buffer: Buffer, sizes: list[str]) -> list[str]:
    if buffer.strides:
        return [as_index(context, stride) for stride in buffer.strides]
    found = ["1"]
    for size in reversed(sizes[1:]):
        found.append(context.writer.value(f"mul nsw i64 {found[-1]}, {size}"))
    return found[::-1][: buffer.rank] if buffer.rank else []


def _result(context: FunctionContext, node: CallPacked, result: str) -> str:
    """The result as the type that the call states; a result of another kind is a TypeError.

    A result that is dropped, or refused, is released if it is an object.
    """
    writer, dtype = context.writer, node.dtype
    kind = writer.value(f"load i32, ptr {result}, align 8")
    value = packed.field(context, result, ANY_VALUE_OFFSET)
    if dtype.is_void:
        _release_object(context, kind, value)
        return ""
    wanted = packed.type_index_of(dtype)
    accepted = {
        TypeIndex.INT: (TypeIndex.INT, TypeIndex.BOOL),
        TypeIndex.BOOL: (TypeIndex.BOOL, TypeIndex.INT),
        TypeIndex.FLOAT: (TypeIndex.FLOAT, TypeIndex.INT, TypeIndex.BOOL),
        TypeIndex.POINTER: (TypeIndex.POINTER, TypeIndex.NONE),
    }[wanted]
    tests = [writer.value(f"icmp eq i32 {kind}, {index}") for index in accepted]
    fits = tests[0]
    for test in tests[1:]:
        fits = writer.value(f"or i1 {fits}, {test}")
    bad, good = writer.new_label("unfit"), writer.new_label("fit")
    writer.branch_if(fits, good, bad, UNLIKELY[::-1])
    writer.block(bad)
    _release_object(context, kind, value)
    wide = writer.value(f"sext i32 {kind} to i64")
    expected = _KIND_NAMES.get(wanted, "a pointer")
    before = f"the packed function `{node.name}` returned a value that is not {expected} (its TVM FFI type index is "
    raise_described(context, "TypeError", (before, Form.SIGNED, ")"), (wide,))
    writer.block(good)
    if dtype.is_handle:
        return writer.value(f"load ptr, ptr {value}, align 8")
    bits = writer.value(f"load i64, ptr {value}, align 8")
    text = register_type(dtype)
    if dtype.is_bool:
        return writer.value(f"icmp ne i64 {bits}, 0")
    if not dtype.is_float:
        return bits if dtype.bits == 64 else writer.value(f"trunc i64 {bits} to {text}")
    as_float = writer.value(f"bitcast i64 {bits} to double")
    from_int = writer.value(f"sitofp i64 {bits} to double")
    number = writer.value(f"select i1 {tests[0]}, double {as_float}, double {from_int}")
    return number if dtype.bits == 64 else writer.value(f"fptrunc double {number} to {text}")


def _release_object(context: FunctionContext, kind: str, value: str) -> None:
    writer = context.writer
    held = writer.value(f"icmp sge i32 {kind}, {TypeIndex.OBJECT}")
    release, done = writer.new_label("release"), writer.new_label("released")
    writer.branch_if(held, release, done)
    writer.block(release)
    _release(context, writer.value(f"load ptr, ptr {value}, align 8"))
    writer.block(done)
