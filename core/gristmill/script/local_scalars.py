"""Local scalars: names that are assigned more than once, as buffers of one element."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from gristmill.errors import Note
from gristmill.ir.dtype import HANDLE, DType
from gristmill.ir.expr import Expr, Var
from gristmill.ir.memory import Buffer, PointerType, Scope
from gristmill.ir.stmt import LoopKind, Store
from gristmill.script.context import Context
from gristmill.script.operands import as_operand, first_assigned, fit, number, typed
from gristmill.script.problems import Mistake
from gristmill.script.types import convert, converts_losslessly
from gristmill.script.values import Allocated, Local, Number, Opening, Symbolic, ThreadVariable, Value, describe


def declare_locals(context: Context, body: Sequence[ast.stmt], index: int) -> None:
    """Declare the local scalars whose declaration stands before a statement."""
    for name in context.plan.locals.get((id(body), index), ()):
        first = next(
            (node for statement in body[index:] for node in _targets(statement, name)),
            None,
        )
        assert first is not None
        local = Local(name, context.source.place(first), len(context.enclosing))
        context.define(name, local)
        context.statements.append(local)


def _targets(statement: ast.stmt, name: str) -> list[ast.Name]:
    return [
        node
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id == name
    ]


def make_local(context: Context, local: Local, dtype: DType, target: ast.Name) -> Buffer:
    span = context.span(target)
    data = Var(f"{local.name}_data", HANDLE, PointerType(dtype, Scope.LOCAL), span)
    local.buffer = Buffer(local.name, dtype, (), data, scope=Scope.LOCAL, span=span)
    local.first = context.source.place(target)
    context.scalars[local.buffer] = local
    return local.buffer


def assign_local(
    context: Context, local: Local, target: ast.Name, value: Value, at: ast.expr, dtype: DType | None
) -> None:
    name = local.name
    if isinstance(value, (Buffer, Allocated, ThreadVariable)) or (isinstance(value, Expr) and value.dtype.is_handle):
        where = (
            "in a loop or branch and used outside of it" if len(context.enclosing) > local.depth else "more than once"
        )
        raise context.mistake(
            "GM0250" if len(context.enclosing) > local.depth else "GM0249",
            target,
            f"`{name}` is {describe(value)}, and is assigned {where}",
            label="a buffer cannot change its name",
            hint="allocate it before, at the level where it is used, and give each buffer a name of its own",
        )
    if isinstance(value, (str, tuple, DType, Symbolic, Opening)) or value is None:
        raise context.mistake(
            "GM0249",
            target,
            f"`{name}` is {describe(value)} here, and is assigned more than once: only numbers can change",
            label="not a number",
            hint="give each value a name of its own",
        )
    check_carried(context, local, target)
    found = as_operand(context, at, value)
    if local.buffer is None:
        first = (
            fit(context, at, found, dtype, f"`{name}`", f"{name} = ")
            if dtype is not None
            else typed(context, at, found)
        )
        buffer = make_local(context, local, first.dtype, target)
        context.emit(Store(buffer, (), first, context.span(at)))
        return
    buffer = local.buffer
    if dtype is not None and dtype != buffer.dtype:
        raise context.mistake(
            "GM0271",
            target,
            f"`{name}` is stated as {dtype}, and it is {buffer.dtype} already",
            label=str(dtype),
            hint=f"give the {dtype} value a name of its own",
            notes=first_assigned(local.first),
        )
    context.emit(Store(buffer, (), fit_local(context, local, buffer, found, at), context.span(at)))


def fit_local(context: Context, local: Local, buffer: Buffer, found: Expr | Number, at: ast.expr) -> Expr:
    if not isinstance(found, Expr):
        try:
            return number(context, at, found, buffer.dtype)
        except Mistake as problem:
            if not isinstance(found, float) or not buffer.dtype.is_integer:
                raise
            raise _changes_type(context, local, buffer, f"{found}", at, "float32") from problem
    if found.dtype == buffer.dtype:
        return found
    if found.dtype.lanes not in (1, buffer.dtype.lanes) or found.dtype.is_handle:
        return fit(context, at, found, buffer.dtype, f"`{local.name}`", f"{local.name} = ")
    if not converts_losslessly(found.dtype.element, buffer.dtype.element):
        raise _changes_type(context, local, buffer, f"a value of type {found.dtype}", at, str(found.dtype))
    return convert(found, buffer.dtype)


def _changes_type(context: Context, local: Local, buffer: Buffer, what: str, at: ast.expr, dtype: str) -> Mistake:
    # What it holds from here on is not known: uses of it are no further mistakes.
    context.poisoned.add(local.name)
    first = local.first
    start = "..."
    if first is not None:
        line = context.source.lines[first.line - 1]
        start = line[first.end_column - 1 :].lstrip(" =").split("#")[0].strip() or "..."
    return context.mistake(
        "GM0271",
        at,
        f"`{local.name}` has type {buffer.dtype}, and {what} is assigned to it",
        label=dtype,
        hint=f"start it with the wider type: `{local.name} = T.{dtype}({start})`, "
        f"or convert here: `T.{buffer.dtype}({context.segment(at)})`",
        notes=first_assigned(local.first),
    )


def check_carried(context: Context, local: Local, target: ast.Name) -> None:
    """A local scalar of outside, assigned in iterations that may run at the same time, is a race."""
    for one in context.enclosing[local.depth :]:
        if one.kind in (LoopKind.PARALLEL, LoopKind.VECTORIZED):
            assert one.kind is not None
            raise context.mistake(
                "GM0252",
                target,
                f"`{local.name}` is carried from iteration to iteration of a {one.kind.value} loop",
                label="a race",
                hint="use a serial loop, or an element of a buffer for each iteration",
                notes=(Note("the loop is here", one.place), Note("it is declared outside of it", local.place)),
            )
