"""Values as operands: typed expressions, conditions, indices, constants, and the conversions that happen unasked."""

from __future__ import annotations

import ast
from typing import TypeGuard

from gristmill.errors import Note, Place
from gristmill.ir.build import false, true
from gristmill.ir.dtype import INT64, DType
from gristmill.ir.expr import Expr, FloatImm, IntImm
from gristmill.ir.memory import Buffer, Region
from gristmill.script.context import Context
from gristmill.script.problems import Mistake
from gristmill.script.source import Positioned
from gristmill.script.types import convert, converts_losslessly, default_type, literal, meeting_type, misfit
from gristmill.script.values import Allocated, Foreign, Number, Value, describe


def is_number(value: Value) -> TypeGuard[Number]:
    return isinstance(value, (int, float))


def operand(context: Context, node: ast.expr) -> Expr | Number:
    """A scalar or vector value, typed or not yet. Raises Mistake for buffers, texts, functions and the like."""
    from gristmill.script.expressions import lower

    return as_operand(context, node, lower(context, node))


def as_operand(context: Context, node: Positioned, value: Value) -> Expr | Number:
    """The value as an operand: see :func:`operand`."""
    if is_number(value):
        return value
    if isinstance(value, Foreign):
        from gristmill.script.lookup import explain_foreign

        raise explain_foreign(context, node, value)  # type: ignore[arg-type]
    if isinstance(value, Expr):
        if value.dtype.is_void:
            raise context.mistake(
                "GM0301",
                node,
                f"`{context.segment(node)}` has no result",
                label="no value",
                hint="give the function a result type (`-> T.float32`) and return a value from it",
            )
        return value
    hint = "an expression of numbers is expected here"
    if isinstance(value, (Buffer, Allocated)):
        buffer = value if isinstance(value, Buffer) else value.buffer
        places = ", ".join("ijklmn"[axis % 6] for axis in range(buffer.rank))
        hint = f"read an element of it: `{buffer.name}[{places or '()'}]`"
    elif isinstance(value, Region):
        hint = "a slice is a value only if its length is constant: `A[i:i + 4]`, in the last dimension"
    elif isinstance(value, DType):
        hint = f"to convert, call it: `T.{value}(x)`"
    raise context.mistake("GM0267", node, f"{describe(value)} is not a number", label="not a number", hint=hint)


def typed(context: Context, node: Positioned, value: Expr | Number, dtype: DType | None = None) -> Expr:
    """The operand with a type: its own, else ``dtype``, else the default of the language."""
    if isinstance(value, Expr):
        return value
    return number(context, node, value, dtype if dtype is not None else default_type(value, context.index_type))


def number(context: Context, node: Positioned, value: Number, dtype: DType) -> Expr:
    """A number as a constant of the type. Raises Mistake if it does not fit."""
    element = dtype.element
    if isinstance(value, bool) and (element.is_integer or element.is_float):
        value = int(value)
    why = misfit(value, element)
    if why:
        raise context.mistake(
            "GM0260",
            node,
            f"{describe(value)} does not fit the type {element}: {why}",
            label=f"not a value of {element}",
            hint=_fitting_hint(context, node, value, element),
        )
    return literal(value, dtype, context.span(node) if not isinstance(node, Place) else None)


def _fitting_hint(context: Context, node: Positioned, value: Number, element: DType) -> str:
    text = context.operand_text(node) if not isinstance(node, Place) else str(value)
    if element.is_bool:
        return f"compare it: `{text} != 0`, or convert the bool to a number: `T.int32(...)`"
    if isinstance(value, float) and element.is_integer and value == value and abs(value) < 2**63:
        whole = f"the whole number {int(value)}" if value == int(value) else "a whole number"
        return f"write {whole}, or convert what it meets to a float: `T.float32(...)`"
    if isinstance(value, int) and element.is_integer:
        return f"convert the other side to a type that holds {value}, or write `T.{element}({element.wrap(value)})`"
    return "use a value that the type holds, or convert the other side to a wider type"


def expression(context: Context, node: ast.expr, dtype: DType | None = None) -> Expr:
    """The typed value of an expression; ``dtype`` is for numbers without a type."""
    return typed(context, node, operand(context, node), dtype)


def meet(
    context: Context,
    node: Positioned,
    left: Expr | Number,
    right: Expr | Number,
    left_at: Positioned,
    right_at: Positioned,
) -> tuple[Expr, Expr]:
    """Both operands in the type where they meet. Raises Mistake where a cast is wanted."""
    if not isinstance(left, Expr) and not isinstance(right, Expr):
        dtype = default_type(left, context.index_type)
        other = default_type(right, context.index_type)
        both = meeting_type(dtype, other) or dtype
        return number(context, left_at, left, both), number(context, right_at, right, both)
    if not isinstance(left, Expr):
        assert isinstance(right, Expr)
        return number(context, left_at, left, right.dtype), right
    if not isinstance(right, Expr):
        return left, number(context, right_at, right, left.dtype)
    a, b = left.dtype, right.dtype
    if a == b:
        return left, right
    lanes = max(a.lanes, b.lanes)
    if a.lanes != b.lanes and min(a.lanes, b.lanes) != 1:
        raise context.mistake(
            "GM0266",
            node,
            f"{a} and {b} have different numbers of lanes",
            label=f"{a.lanes} and {b.lanes} lanes",
            hint="take equally many lanes of both, or broadcast a scalar: `T.broadcast(x, lanes)`",
        )
    element = meeting_type(a.element, b.element)
    if element is None:
        raise _do_not_meet(context, node, left, right, left_at, right_at)
    dtype = element.with_lanes(lanes)
    return convert(left, dtype), convert(right, dtype)


def _do_not_meet(
    context: Context, node: Positioned, left: Expr, right: Expr, left_at: Positioned, right_at: Positioned
) -> Mistake:
    a, b = left.dtype.element, right.dtype.element
    if a.is_handle or b.is_handle:
        return context.mistake(
            "GM0268",
            node,
            "pointers cannot be computed with",
            label="a pointer",
            hint="give a buffer over the pointer: `T.decl_buffer(shape, dtype, data=p)`, and index it",
        )
    x, y = context.segment(left_at), context.segment(right_at)
    if a.is_integer and b.is_integer and max(a.bits, b.bits) < 64:
        hint = f"convert both: `T.int64({x})` and `T.int64({y})`"
    elif b == INT64:
        hint = f"convert one side: `T.int64({x})`"
    else:
        hint = f"convert one side: `T.{a}({y})`"
    return context.mistake(
        "GM0261",
        node,
        f"{a} and {b} do not go together: neither holds the values of the other",
        label=f"{a} and {b}",
        hint=hint,
    )


def fit(context: Context, node: ast.expr, value: Expr | Number, dtype: DType, what: str, target: str) -> Expr:
    """The value in the type, if it converts without loss. ``what`` names the receiver, ``target`` its text for the hint."""
    if not isinstance(value, Expr):
        return number(context, node, value, dtype)
    source = value.dtype
    if source == dtype:
        return value
    if source.is_handle or dtype.is_handle:
        raise context.mistake(
            "GM0268",
            node,
            f"{describe(value)} does not go into {what} of type {dtype}",
            label=str(source),
            hint="pointers only go to parameters of type `T.handle`",
        )
    if source.lanes not in (1, dtype.lanes):
        raise context.mistake(
            "GM0266",
            node,
            f"a value with {source.lanes} lanes does not go into {what}, which has {dtype.lanes}",
            label=str(source),
            hint=f"write to as many elements as the value has lanes: `A[i:i + {source.lanes}] = ...`",
        )
    if not converts_losslessly(source.element, dtype.element):
        name = dtype.element if source.lanes == 1 else source.element and dtype.element.with_lanes(source.lanes)
        text = context.segment(node)
        cast = f"T.{name}({text})" if source.lanes == 1 else f'T.cast({text}, "{name}")'
        raise context.mistake(
            "GM0262",
            node,
            f"{what} has type {dtype}, which does not hold every {source}",
            label=str(source),
            hint=f"if the loss is meant, write `{target}{cast}`",
        )
    return convert(value, dtype)


def condition(context: Context, node: ast.expr, what: str = "a condition") -> Expr | bool:
    """A scalar bool; a Python bool where it is known already."""
    value = operand(context, node)
    if isinstance(value, bool):
        return value
    if isinstance(value, Expr) and value.dtype.is_bool:
        if value.dtype.lanes != 1:
            raise context.mistake(
                "GM0266",
                node,
                f"{what} is one bool, not {value.dtype.lanes} of them",
                label=str(value.dtype),
                hint="choose lane by lane with `T.Select(condition, a, b)`",
            )
        return value
    zero = "0.0" if isinstance(value, float) or (isinstance(value, Expr) and value.dtype.is_float) else "0"
    raise context.mistake(
        "GM0264",
        node,
        f"{what} must be a bool, and this is {describe(value)}",
        label="not a bool",
        hint=f"write `{context.operand_text(node)} != {zero}`",
    )


def as_bool(context: Context, node: Positioned, value: Expr | bool) -> Expr:
    """A condition as IR."""
    if isinstance(value, Expr):
        return value
    return true(context.span(node)) if value else false(context.span(node))


def index(context: Context, node: ast.expr) -> Expr:
    """An index, extent or bound: an integer (vectors too), in the index type at least."""
    return as_index(context, node, operand(context, node))


def as_index(context: Context, node: ast.expr, value: Expr | Number) -> Expr:
    """The operand as an index: see :func:`index`."""
    if isinstance(value, (bool, float)) or (isinstance(value, Expr) and not value.dtype.is_integer):
        text = context.segment(node)
        raise context.mistake(
            "GM0281",
            node,
            f"an integer is expected here, and this is {describe(value)}",
            label="not an integer",
            hint=f"convert it: `T.int64({text})`",
        )
    found = typed(context, node, value)
    if not context.is_tvmscript and found.dtype.element != INT64:
        return convert(found, INT64.with_lanes(found.dtype.lanes))
    return found


def constant_int(context: Context, node: ast.expr, what: str, minimum: int | None = None) -> int:
    """An integer that must be known while the kernel is read."""
    value = operand(context, node)
    if isinstance(value, IntImm) and value.dtype.is_integer:
        value = value.value
    if isinstance(value, int) and not isinstance(value, bool) and (minimum is None or value >= minimum):
        return value
    bound = "" if minimum is None else f" of at least {minimum}"
    raise context.mistake(
        "GM0293",
        node,
        f"{what} must be a constant integer{bound}, and this is {describe(value)}",
        label="not such a constant",
        hint=f"write a number, or a constant of the module, for {what}",
    )


def constant_text(context: Context, node: ast.expr, what: str) -> str:
    """A text that must be known while the kernel is read."""
    from gristmill.script.expressions import lower

    value = lower(context, node)
    if isinstance(value, str):
        return value
    raise context.mistake(
        "GM0293",
        node,
        f"{what} must be a text, and this is {describe(value)}",
        label="not a text",
        hint=f'write it in quotes: `"..."` for {what}',
    )


def plain_number(value: Value) -> Number | None:
    """The number of a constant, typed or not."""
    if is_number(value):
        return value
    if isinstance(value, IntImm):
        return bool(value.value) if value.dtype.is_bool else value.value
    return value.value if isinstance(value, FloatImm) else None


def first_assigned(place: Place | None) -> tuple[Note, ...]:
    """A note that shows where a local scalar got its type."""
    return () if place is None else (Note("its type comes from this assignment", place),)
