"""Raising Python errors from compiled code.

A message is a constant description: the kind of the exception, and parts that are texts or places of values. Where an
error is raised the values are stored in a slot of the function, and control goes to one shared block a function, which
hands description and values to a support function; that one makes texts of the values and calls
``TVMFFIErrorSetRaisedFromCStrParts``. So a check costs its condition and a jump that is not taken.
"""

from __future__ import annotations

from collections.abc import Sequence

from gristmill.ir.expr import Expr
from gristmill_llvm.context import FAIL, RAISE, FunctionContext
from gristmill_llvm.refusals import refused_construct
from gristmill_llvm.support import FORM_BOOL, FORM_SIGNED, FORM_TEXT, FORM_UNSIGNED, RAISE_ERROR
from gristmill_llvm.types import register_type
from gristmill_llvm.writer import UNLIKELY

MESSAGE_VALUES = "%message.values"
ENTRY = "{ ptr, i64 }"


def raise_if(context: FunctionContext, condition: str, kind: str, parts: Sequence[str | Expr]) -> None:
    """Leave the function with a Python error if the ``i1`` is true."""
    writer = context.writer
    bad, good = writer.new_label("wrong"), writer.new_label("right")
    writer.branch_if(condition, bad, good, UNLIKELY)
    writer.block(bad)
    raise_error(context, kind, parts)
    writer.block(good)


def raise_error(context: FunctionContext, kind: str, parts: Sequence[str | Expr]) -> None:
    """Leave the function with a Python error of that kind and with that message."""
    values = []
    forms: list[tuple[str, int]] = []
    for part in parts:
        if isinstance(part, str):
            forms.append((context.module.string(part), FORM_TEXT))
        else:
            operand, form = _message_value(context, part)
            values.append(operand)
            forms.append(("null", form))
    raise_described(context, kind, forms, values)


def raise_described(
    context: FunctionContext, kind: str, forms: Sequence[tuple[str, int]], values: Sequence[str]
) -> None:
    """Leave the function with an error whose parts are (text constant or null, form) and whose values are ``i64``."""
    writer = context.writer
    for place, value in enumerate(values):
        pointer = MESSAGE_VALUES
        if place:
            pointer = writer.value(f"getelementptr inbounds i64, ptr {MESSAGE_VALUES}, i64 {place}")
        writer.effect(f"store i64 {value}, ptr {pointer}, align 8")
    context.message_values = max(context.message_values, len(values))
    context.generation.message_parts = max(context.generation.message_parts, len(forms))
    context.clean_up()
    context.raised.append((_description(context, kind, forms), writer.label))
    writer.branch(RAISE)


def _message_value(context: FunctionContext, part: Expr) -> tuple[str, int]:
    """A value of a message as an ``i64``, and its form."""
    operand, dtype = context.evaluate(part), part.dtype
    if dtype.is_vector or not (dtype.is_integer or dtype.is_bool):
        remedy = "put integers and bools into the message"
        raise refused_construct(f"a value of type {dtype} in a message", context.profile.target, remedy, part.span)
    form = FORM_BOOL if dtype.is_bool else FORM_SIGNED if dtype.is_signed else FORM_UNSIGNED
    if dtype.bits == 64:
        return operand, form
    step = "sext" if dtype.is_signed else "zext"
    return context.writer.value(f"{step} {register_type(dtype)} {operand} to i64"), form


def _description(context: FunctionContext, kind: str, forms: Sequence[tuple[str, int]]) -> str:
    """The name of the constant that describes a message."""
    module = context.module
    entries = ", ".join(f"{ENTRY} {{ ptr {text}, i64 {form} }}" for text, form in forms)
    layout = f"{{ ptr, i64, [{len(forms)} x {ENTRY}] }}"
    body = f"private constant {layout} {{ ptr {module.string(kind)}, i64 {len(forms)}, [{len(forms)} x {ENTRY}] "
    return module.shared_global("message", f"{body}[{entries}] }}, align 8")


def finish_failure(context: FunctionContext) -> None:
    """Write the shared blocks that raise and that return failure, where something jumps to them."""
    writer = context.writer
    if context.raised:
        writer.block(RAISE)
        description = writer.phi("ptr", context.raised)
        values = "null"
        if context.message_values:
            values = MESSAGE_VALUES
            writer.slots.append(f"  {MESSAGE_VALUES} = alloca [{context.message_values} x i64], align 8")
        context.generation.support.add(RAISE_ERROR)
        writer.effect(f"call void @{RAISE_ERROR}(ptr {description}, ptr {values})")
    if context.raised or context.failed:
        writer.block(FAIL)
        writer.ret("i32 -1")
