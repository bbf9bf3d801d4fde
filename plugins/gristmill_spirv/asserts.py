"""Asserts of kernels that reach the host: the first thread whose assert fails writes down which, where, and the values.

A shader cannot stop its launch. So a module with asserts (``asserts = true`` in the target) has memory of its own to
write to, whose address the runtime gives as the specialisation constants of SpecId 4 (low 32 bits) and 5 (high ones).
It is read when the host next waits. In words of 32 bits: the number of the assert from 1 on, 0 as long as none has
failed; the block along x, y, z; the thread along x, y, z; and from word 8 on the values of the message, two words each.
The kernel's record has the texts: ``asserts`` in its ``extra`` is a list in JSON of ``[class of the exception, message,
place]``, where a message is a list of texts, and for values of lists of one word: ``["signed"]``, ``["unsigned"]``, ``["bool"]``.
"""

from __future__ import annotations

import json

from gristmill.ir.dtype import INT64, UINT64, DType
from gristmill.ir.expr import Expr
from gristmill.ir.stmt import Assert
from gristmill_spirv.context import FunctionContext
from gristmill_spirv.conversions import cast
from gristmill_spirv.enumerants import MemoryModel, Op, Scope
from gristmill_spirv.integers import halves, joined
from gristmill_spirv.places import access, address_pointer
from gristmill_spirv.registers import word, word_constant
from gristmill_spirv.threads import numbers_along_axes

ADDRESS_SPEC_IDS = (4, 5)
_FIRST_VALUE = 8
_WORDS = 64
VALUES_AT_MOST = (_WORDS - _FIRST_VALUE) // 2
"""How many values of a message the memory has room for; of more the first are told."""


def write_assert(context: FunctionContext, node: Assert) -> None:
    """Check the condition, and report it where it is false; the thread goes on, for others may wait for it."""
    writer = context.writer
    (condition,) = context.evaluate(node.condition)
    failed = writer.value(Op.LogicalNot, writer.module.type_bool(), condition)
    writer.selection(failed, lambda: _report(context, node))


def texts_of(asserts: list[Assert]) -> str:
    """What the kernel's record says of its asserts."""
    return json.dumps([[node.kind, _message(node), _place(node)] for node in asserts], ensure_ascii=True)


def _message(node: Assert) -> list[str | list[str]]:
    parts: list[str | list[str]] = []
    count = 0
    for part in node.message:
        if isinstance(part, str):
            parts.append(part)
        elif count < VALUES_AT_MOST:
            parts.append([_kind(part.dtype)])
            count += 1
        else:
            parts.append("...")
    return parts


def _kind(dtype: DType) -> str:
    return "bool" if dtype.is_bool else "signed" if dtype.is_signed else "unsigned"


def _place(node: Assert) -> str:
    if node.span is None:
        return ""
    # The file by its name alone, so that the same input gives the same bytes wherever it lies.
    name = node.span.place.file.replace("\\", "/").rpartition("/")[2]
    return f"{name}:{node.span.place.line}"


def _report(context: FunctionContext, node: Assert) -> None:
    writer, kernel = context.writer, context.kernel
    kernel.asserts.append(node)
    address, type_ = _address(context), word(writer)
    zero = word_constant(writer, 0)
    # Under Vulkan's memory model the scope of a device is a feature of its own, and one queue runs all that we start.
    is_vulkan = writer.module.memory_model is MemoryModel.Vulkan
    scope = word_constant(writer, Scope.QueueFamily if is_vulkan else Scope.Device)
    pointer = address_pointer(writer, type_, address, word_constant(writer, 0, 64), 4)
    number = word_constant(writer, len(kernel.asserts))
    before = writer.value(Op.AtomicCompareExchange, type_, pointer, scope, zero, zero, number, zero)
    is_first = writer.value(Op.IEqual, writer.module.type_bool(), before, zero)
    writer.selection(is_first, lambda: _tell(context, node, address))


def _tell(context: FunctionContext, node: Assert, address: int) -> None:
    writer, type_ = context.writer, word(context.writer)
    block, thread = numbers_along_axes(context)
    words = dict(enumerate((*block, *thread), 1))
    values = [part for part in node.message if isinstance(part, Expr)][:VALUES_AT_MOST]
    for place, part in enumerate(values):
        (value,) = context.evaluate(part)
        wide = cast(writer, value, part.dtype, INT64 if part.dtype.is_signed else UINT64)
        words[_FIRST_VALUE + 2 * place], words[_FIRST_VALUE + 2 * place + 1] = halves(writer, wide)
    for place, value in words.items():
        pointer = address_pointer(writer, type_, address, word_constant(writer, place, 64), 4)
        writer.effect(Op.Store, pointer, value, *access(writer, 4))


def _address(context: FunctionContext) -> int:
    kernel, module = context.kernel, context.writer.module
    kernel.require("int64", "the report of an assert", None)
    if kernel.assert_address is None:
        type_ = module.type_int(32, signed=False)
        low, high = (module.spec_constant(type_, 0, number) for number in ADDRESS_SPEC_IDS)
        kernel.assert_address = low, high
    return joined(context.writer, *kernel.assert_address)
