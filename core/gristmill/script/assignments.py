"""Assignments: bindings, local scalars, stores to buffers, declarations."""

from __future__ import annotations

import ast

from gristmill.ir.dtype import DType
from gristmill.ir.expr import Expr, FloatImm, IntImm, Load, Var
from gristmill.ir.memory import Buffer
from gristmill.ir.stmt import Bind, Store
from gristmill.script.annotations import scalar_annotation
from gristmill.script.calls.buffers import bind_pointer
from gristmill.script.context import Context
from gristmill.script.expressions import lower
from gristmill.script.local_scalars import assign_local, check_carried, fit_local, make_local
from gristmill.script.memory import target_indices
from gristmill.script.names import target_names
from gristmill.script.operands import as_operand, fit, is_number, operand, typed
from gristmill.script.operators import binary
from gristmill.script.problems import Mistake
from gristmill.script.types import converts_losslessly
from gristmill.script.values import (
    Allocated,
    BufferShape,
    Launch,
    Local,
    Number,
    Opening,
    Symbolic,
    ThreadVariable,
    Value,
    describe,
)

_NAMED = (Buffer, Allocated, BufferShape, ThreadVariable, DType, str, tuple)
"""Values that a name simply stands for."""


def assign(ctx: Context, node: ast.Assign) -> Launch | None:
    """``target = value``, also with several targets and with tuples."""
    first = node.targets[0]
    ctx.target = ",".join(name.id for name in target_names(node))
    try:
        value = _value_for(ctx, node.value, first)
    finally:
        ctx.target = ""
    if isinstance(value, Launch):
        if len(node.targets) != 1 or not isinstance(first, ast.Name):
            raise _bad_target(ctx, first)
        return value
    for target in node.targets:
        assign_value(ctx, target, value, node.value)
    return None


def _value_for(ctx: Context, node: ast.expr, target: ast.expr) -> Value:
    if isinstance(node, (ast.Tuple, ast.List)) and isinstance(target, (ast.Tuple, ast.List)):
        # Names for `n, m = T.int64(), T.int64()` and the like; all values are read before any is assigned.
        found = []
        for position, item in enumerate(node.elts):
            inner = target.elts[position] if position < len(target.elts) else None
            ctx.target = inner.id if isinstance(inner, ast.Name) else ""
            found.append(_kept(ctx, item, lower(ctx, item)))
        return tuple(found)
    return lower(ctx, node)


def _kept(ctx: Context, node: ast.expr, value: Value) -> Value:
    """A value of a tuple assignment, evaluated now: the assignments before it may change what it reads."""
    if isinstance(value, Expr) and not isinstance(value, (Var, IntImm, FloatImm)) and not value.dtype.is_void:
        var = Var(ctx.target or "value", value.dtype, span=ctx.span(node))
        ctx.emit(Bind(var, value, ctx.span(node)))
        return var
    return value


def assign_value(ctx: Context, target: ast.expr, value: Value, at: ast.expr) -> None:
    """Give a target a value that has been read already."""
    if isinstance(target, ast.Name):
        _assign_name(ctx, target, value, at, None)
    elif isinstance(target, (ast.Tuple, ast.List)):
        _unpack(ctx, target, value, at)
    elif isinstance(target, ast.Subscript):
        _store(ctx, target, as_operand(ctx, at, value), at, target)
    else:
        raise _bad_target(ctx, target)


def _bad_target(ctx: Context, target: ast.expr) -> Mistake:
    return ctx.mistake(
        "GM0257",
        target,
        f"nothing can be assigned to `{ctx.segment(target)}`",
        label="not a name or an element",
        hint="assign to a name, or to an element of a buffer: `A[i] = ...`",
    )


def _unpack(ctx: Context, target: ast.Tuple | ast.List, value: Value, at: ast.expr) -> None:
    if isinstance(value, BufferShape):
        value = value.buffer.shape
    if not isinstance(value, tuple) and len(target.elts) == 1:
        value = (value,)
    if not isinstance(value, tuple):
        raise ctx.mistake(
            "GM0258",
            at,
            f"{describe(value)} cannot be taken apart into {len(target.elts)} names",
            label="one value",
            hint="assign to one name",
        )
    if any(isinstance(item, ast.Starred) for item in target.elts) or len(value) != len(target.elts):
        raise ctx.mistake(
            "GM0258",
            target,
            f"{len(value)} values are given for {len(target.elts)} names",
            label=f"{len(target.elts)} names",
            hint="write one name for each value",
        )
    places = at.elts if isinstance(at, (ast.Tuple, ast.List)) and len(at.elts) == len(value) else [at] * len(value)
    for inner, item, place in zip(target.elts, value, places, strict=True):
        assign_value(ctx, inner, item, place)


def annotated(ctx: Context, node: ast.AnnAssign) -> Launch | None:
    """``v: T.int32 = value``: the type is stated; ``v: T.let[T.int32] = value``: and the name never changes."""
    if not isinstance(node.target, ast.Name):
        raise _bad_target(ctx, node.target)
    dtype, is_let = scalar_annotation(ctx, node.annotation)
    name = node.target.id
    if node.value is None:
        local = ctx.local_of(name)
        if local is None or dtype is None:
            raise ctx.mistake(
                "GM0226", node, f"`{name}` gets a type and no value", label="no value",
                hint=f"write `{name}: {ctx.segment(node.annotation)} = 0`",
            )  # fmt: skip
        make_local(ctx, local, dtype, node.target)
        return None
    if is_let and id(node.target) not in ctx.plan.bindings:
        stated = ctx.segment(node.annotation.slice) if isinstance(node.annotation, ast.Subscript) else "T.int32"
        raise ctx.mistake(
            "GM0247",
            node.target,
            f"`{name}` is bound by T.let and assigned again",
            label="assigned more than once",
            hint=f"write `{name}: {stated}` for a name that changes",
        )
    ctx.target = name
    try:
        value = lower(ctx, node.value)
    finally:
        ctx.target = ""
    if isinstance(value, Launch):
        return value
    _assign_name(ctx, node.target, value, node.value, dtype)
    return None


def _assign_name(ctx: Context, target: ast.Name, value: Value, at: ast.expr, dtype: DType | None) -> None:
    name = target.id
    existing = ctx.find(name) if ctx.has(name) else None
    if isinstance(existing, Local):
        assign_local(ctx, existing, target, value, at, dtype)
        return
    if id(target) not in ctx.plan.bindings and ctx.has(name):
        raise _fixed(ctx, target, name, existing)
    _bind_name(ctx, target, value, at, dtype)


def _fixed(ctx: Context, target: ast.Name, name: str, existing: Value) -> Mistake:
    what = "the variable of a loop" if existing in ctx.loops else describe(existing)
    if isinstance(existing, Var) and existing not in ctx.loops:
        what = "a parameter or a size"
    return ctx.mistake(
        "GM0247",
        target,
        f"`{name}` is {what}, which cannot be assigned to",
        label="cannot change",
        hint=f"use another name: `{name}_now = {name}`",
    )


def _bind_name(ctx: Context, target: ast.Name, value: Value, at: ast.expr, dtype: DType | None) -> None:
    name = target.id
    if isinstance(value, Symbolic):
        raise ctx.mistake(
            "GM0249",
            at,
            f"the size `{name}` is declared after the parameters that could give it a value, or used by none",
            label="no value",
            hint=f"use it in the shape of a T.match_buffer at the top of the function, or write `{name} = T.int32(0)`",
        )
    if isinstance(value, Opening) or value is None:
        raise ctx.mistake(
            "GM0306",
            at,
            f"`{ctx.segment(at)}` is a statement, and gives no value",
            label="no value",
            hint="write it as a statement of its own",
        )
    if isinstance(value, _NAMED) and dtype is None:
        ctx.define(name, value)
        return
    if is_number(value) and dtype is None:
        # A named constant: it takes its type where it is used, as a literal does.
        ctx.define(name, value)
        return
    if isinstance(value, Expr) and value.dtype.is_handle:
        if isinstance(value, Var) and dtype is None:
            ctx.define(name, value)
        else:
            ctx.define(name, bind_pointer(ctx, name, value, at))
        return
    found: Expr | Number = as_operand(ctx, at, value)
    if dtype is not None:
        result = fit(ctx, at, found, dtype, f"`{name}`", f"{name} = ")
    else:
        result = typed(ctx, at, found)
    if isinstance(result, Var) and dtype is None:
        ctx.define(name, result)
        return
    var = Var(name, result.dtype, span=ctx.span(target))
    ctx.emit(Bind(var, result, ctx.span(at)))
    ctx.define(name, var)


def _store(ctx: Context, target: ast.Subscript, value: Expr | Number, at: ast.expr, shown: ast.expr) -> None:
    owner = lower(ctx, target.value)
    if isinstance(owner, Allocated):
        owner = owner.buffer
    if not isinstance(owner, Buffer):
        raise ctx.mistake(
            "GM0286",
            target.value,
            f"{describe(owner)} has no elements to assign to",
            label="not a buffer",
            hint="assign to elements of buffers: `A[i] = ...`",
        )
    places = target_indices(ctx, target, owner)
    lanes = places[-1].dtype.lanes if places else 1
    dtype = owner.dtype.with_lanes(owner.dtype.lanes * lanes)
    stored = fit(ctx, at, value, dtype, f"`{owner.name}`", f"{ctx.segment(shown)} = ")
    ctx.emit(Store(owner, places, stored, ctx.span(target)))


def augmented(ctx: Context, node: ast.AugAssign) -> None:
    """``target += value``."""
    target = node.target
    if isinstance(target, ast.Attribute):
        raise _bad_target(ctx, target)
    current = lower(ctx, _as_read(target))
    left = as_operand(ctx, target, current)
    right = operand(ctx, node.value)
    if isinstance(node.op, ast.Pow):
        written = ast.copy_location(ast.BinOp(_as_read(target), node.op, node.value), node)
        value = operand(ctx, written)
    else:
        value = binary(ctx, node, type(node.op), left, right, target, node.value)
    if isinstance(target, ast.Name):
        local = ctx.local_of(target.id)
        if local is None:
            raise _fixed(ctx, target, target.id, ctx.find(target.id))
        check_carried(ctx, local, target)
        assert local.buffer is not None
        ctx.emit(Store(local.buffer, (), fit_local(ctx, local, local.buffer, value, node.value), ctx.span(node)))
        return
    owner = current.buffer if isinstance(current, Load) else None
    if owner is None:
        raise _bad_target(ctx, target)
    places = target_indices(ctx, target, owner)
    dtype = owner.dtype.with_lanes(owner.dtype.lanes * (places[-1].dtype.lanes if places else 1))
    if isinstance(value, Expr) and value.dtype != dtype and not converts_losslessly(value.dtype.element, dtype.element):
        raise ctx.mistake(
            "GM0262",
            node.value,
            f"`{owner.name}` has type {dtype}, which does not hold every {value.dtype}",
            label=str(value.dtype),
            hint=f"if the loss is meant, write `T.{dtype.element}({ctx.segment(node.value)})`",
        )
    ctx.emit(Store(owner, places, fit(ctx, node.value, value, dtype, f"`{owner.name}`", ""), ctx.span(node)))


def _as_read(target: ast.expr) -> ast.expr:
    """The target of an assignment as an expression that is read."""
    if isinstance(target, ast.Name):
        return ast.copy_location(ast.Name(target.id, ast.Load()), target)
    if isinstance(target, ast.Subscript):
        return ast.copy_location(ast.Subscript(target.value, target.slice, ast.Load()), target)
    return target
