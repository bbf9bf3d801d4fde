"""Raising Python errors from compiled code.

Where an error is raised its values are stored in a slot of the function, and control goes to one shared block a
function, which hands the message (a number, see :mod:`gristmill_llvm.messages`) and the values to a support function;
that one makes texts of the values and calls ``TVMFFIErrorSetRaisedFromCStrParts``. So a check costs its condition and
a jump that is not taken.
"""

from __future__ import annotations

from collections.abc import Sequence

from gristmill.ir.expr import Call, Expr
from gristmill.ir.memory import Buffer
from gristmill_llvm.context import FAIL, RAISE, FunctionContext
from gristmill_llvm.message_support import RAISE as RAISE_FUNCTION
from gristmill_llvm.messages import MESSAGES, TEXTS, Form
from gristmill_llvm.packed import MESSAGE_VALUES
from gristmill_llvm.refusals import refused_construct
from gristmill_llvm.types import register_type
from gristmill_llvm.writer import LIKELY, UNLIKELY

VALUES = "%message.values"


def raise_if(context: FunctionContext, condition: str, kind: str, parts: Sequence[str | Expr]) -> None:
    """Leave the function with a Python error if the ``i1`` is true."""
    _raise_when(context, condition, True, kind, parts)


def raise_unless(context: FunctionContext, condition: str, kind: str, parts: Sequence[str | Expr]) -> None:
    """Leave the function with a Python error if the ``i1`` is false."""
    _raise_when(context, condition, False, kind, parts)


def _raise_when(context: FunctionContext, condition: str, wrong: bool, kind: str, parts: Sequence[str | Expr]) -> None:
    writer = context.writer
    good = writer.new_label("right")
    texts = [part for part in parts if isinstance(part, str)]
    # With no value to store and nothing to give back, straight to the shared block.
    direct = len(texts) == len(parts) and not context.cleanups
    bad = RAISE if direct else writer.new_label("wrong")
    if direct:
        context.raised.append((str(context.generation.messages.message(kind, texts)), writer.label))
    if wrong:
        writer.branch_if(condition, bad, good, UNLIKELY)
    else:
        writer.branch_if(condition, good, bad, LIKELY)
    if not direct:
        writer.block(bad)
        raise_error(context, kind, parts)
    writer.block(good)


def raise_error(context: FunctionContext, kind: str, parts: Sequence[str | Expr]) -> None:
    """Leave the function with a Python error of that kind and with that message."""
    values = []
    shown: list[str | Form] = []
    for part in parts:
        if isinstance(part, str):
            shown.append(part)
        else:
            operand, form = _message_value(context, part)
            values.append(operand)
            shown.append(form)
    raise_described(context, kind, shown, values)


def raise_described(context: FunctionContext, kind: str, parts: Sequence[str | Form], values: Sequence[str]) -> None:
    """Leave the function with an error; ``values``, each an ``i64``, are for the forms among the parts, in order."""
    writer = context.writer
    for place, value in enumerate(values):
        pointer = VALUES
        if place:
            pointer = writer.value(f"getelementptr inbounds i64, ptr {VALUES}, i64 {place}")
        writer.effect(f"store i64 {value}, ptr {pointer}, align 8")
    context.message_values = max(context.message_values, len(values))
    context.clean_up()
    context.raised.append((str(context.generation.messages.message(kind, parts)), writer.label))
    writer.branch(RAISE)


def raise_without_memory(context: FunctionContext, pointer: str, buffer: Buffer, size: str, of: str = "") -> None:
    """Leave the function with a MemoryError if the pointer to what was to be the buffer's ``size`` bytes is null."""
    writer = context.writer
    bad, good = writer.new_label("no.memory"), writer.new_label("memory")
    writer.branch_if(writer.value(f"icmp eq ptr {pointer}, null"), bad, good, UNLIKELY)
    writer.block(bad)
    message = (f"no memory{of} for the buffer `{buffer.name}` of ", Form.UNSIGNED, " bytes")
    raise_described(context, "MemoryError", message, (size,))
    writer.block(good)


def _message_value(context: FunctionContext, part: Expr) -> tuple[str, Form]:
    """A value of a message as an ``i64``, and its form."""
    if isinstance(part, Call) and part.op.name in MESSAGE_VALUES:
        return MESSAGE_VALUES[part.op.name](context, part)
    operand, dtype = context.evaluate(part), part.dtype
    if dtype.is_vector or not (dtype.is_integer or dtype.is_bool):
        remedy = "put integers and bools into the message"
        raise refused_construct(f"a value of type {dtype} in a message", context.profile.target, remedy, part.span)
    form = Form.BOOL if dtype.is_bool else Form.SIGNED if dtype.is_signed else Form.UNSIGNED
    if dtype.bits == 64:
        return operand, form
    step = "sext" if dtype.is_signed else "zext"
    return context.writer.value(f"{step} {register_type(dtype)} {operand} to i64"), form


def finish_failure(context: FunctionContext) -> None:
    """Write the shared blocks that raise and that return failure, where something jumps to them."""
    writer = context.writer
    if context.raised:
        writer.block(RAISE)
        message = writer.phi("i32", context.raised)
        values = "null"
        if context.message_values:
            values = VALUES
            writer.slots.append(f"  {VALUES} = alloca [{context.message_values} x i64], align 8")
        writer.effect(f"call void @{RAISE_FUNCTION}(i32 {message}, ptr {values}, ptr {TEXTS}, ptr {MESSAGES})")
    if context.raised or context.failed:
        writer.block(FAIL)
        writer.ret("i32 -1")
