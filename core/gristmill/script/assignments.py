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


def assign(context: Context, node: ast.Assign) -> Launch | None:
    """``target = value``, also with several targets and with tuples."""
    first = node.targets[0]
    context.target = ",".join(name.id for name in target_names(node))
    try:
        value = _value_for(context, node.value, first)
    finally:
        context.target = ""
    if isinstance(value, Launch):
        if len(node.targets) != 1 or not isinstance(first, ast.Name):
            raise _bad_target(context, first)
        return value
    for target in node.targets:
        assign_value(context, target, value, node.value)
    return None


def _value_for(context: Context, node: ast.expr, target: ast.expr) -> Value:
    if isinstance(node, (ast.Tuple, ast.List)) and isinstance(target, (ast.Tuple, ast.List)):
        # Names for `n, m = T.int64(), T.int64()` and the like; all values are read before any is assigned.
        found = []
        for position, item in enumerate(node.elts):
            inner = target.elts[position] if position < len(target.elts) else None
            context.target = inner.id if isinstance(inner, ast.Name) else ""
            found.append(_kept(context, item, lower(context, item)))
        return tuple(found)
    context.whole, context.is_dropped = node, False
    return lower(context, node)


def _kept(context: Context, node: ast.expr, value: Value) -> Value:
    """A value of a tuple assignment, evaluated now: the assignments before it may change what it reads."""
    if isinstance(value, Expr) and not isinstance(value, (Var, IntImm, FloatImm)) and not value.dtype.is_void:
        var = Var(context.target or "value", value.dtype, span=context.span(node))
        context.emit(Bind(var, value, context.span(node)))
        return var
    return value


def assign_value(context: Context, target: ast.expr, value: Value, at: ast.expr) -> None:
    """Give a target a value that has been read already."""
    if isinstance(target, ast.Name):
        _assign_name(context, target, value, at, None)
    elif isinstance(target, (ast.Tuple, ast.List)):
        _unpack(context, target, value, at)
    elif isinstance(target, ast.Subscript):
        _store(context, target, as_operand(context, at, value), at, target)
    else:
        raise _bad_target(context, target)


def _bad_target(context: Context, target: ast.expr) -> Mistake:
    return context.mistake(
        "GM0257",
        target,
        f"nothing can be assigned to `{context.segment(target)}`",
        label="not a name or an element",
        hint="assign to a name, or to an element of a buffer: `A[i] = ...`",
    )


def _unpack(context: Context, target: ast.Tuple | ast.List, value: Value, at: ast.expr) -> None:
    if isinstance(value, BufferShape):
        value = value.buffer.shape
    if not isinstance(value, tuple) and len(target.elts) == 1:
        value = (value,)
    if not isinstance(value, tuple):
        raise context.mistake(
            "GM0258",
            at,
            f"{describe(value)} cannot be taken apart into {len(target.elts)} names",
            label="one value",
            hint="assign to one name",
        )
    if any(isinstance(item, ast.Starred) for item in target.elts) or len(value) != len(target.elts):
        raise context.mistake(
            "GM0258",
            target,
            f"{len(value)} values are given for {len(target.elts)} names",
            label=f"{len(target.elts)} names",
            hint="write one name for each value",
        )
    places = at.elts if isinstance(at, (ast.Tuple, ast.List)) and len(at.elts) == len(value) else [at] * len(value)
    for inner, item, place in zip(target.elts, value, places, strict=True):
        assign_value(context, inner, item, place)


def annotated(context: Context, node: ast.AnnAssign) -> Launch | None:
    """``v: T.int32 = value``: the type is stated; ``v: T.let[T.int32] = value``: and the name never changes."""
    if not isinstance(node.target, ast.Name):
        raise _bad_target(context, node.target)
    dtype, is_let = scalar_annotation(context, node.annotation)
    name = node.target.id
    if node.value is None:
        local = context.local_of(name)
        if local is None or dtype is None:
            raise context.mistake(
                "GM0226", node, f"`{name}` gets a type and no value", label="no value",
                hint=f"write `{name}: {context.segment(node.annotation)} = 0`",
            )  # fmt: skip
        make_local(context, local, dtype, node.target)
        return None
    if is_let and id(node.target) not in context.plan.bindings:
        stated = context.segment(node.annotation.slice) if isinstance(node.annotation, ast.Subscript) else "T.int32"
        raise context.mistake(
            "GM0247",
            node.target,
            f"`{name}` is bound by T.let and assigned again",
            label="assigned more than once",
            hint=f"write `{name}: {stated}` for a name that changes",
        )
    context.target = name
    context.whole, context.is_dropped = node.value, False
    try:
        value = lower(context, node.value)
    finally:
        context.target = ""
    if isinstance(value, Launch):
        return value
    _assign_name(context, node.target, value, node.value, dtype)
    return None


def _assign_name(context: Context, target: ast.Name, value: Value, at: ast.expr, dtype: DType | None) -> None:
    name = target.id
    existing = context.find(name) if context.has(name) else None
    if isinstance(existing, Local):
        assign_local(context, existing, target, value, at, dtype)
        return
    if id(target) not in context.plan.bindings and context.has(name):
        raise _fixed(context, target, name, existing)
    _bind_name(context, target, value, at, dtype)


def _fixed(context: Context, target: ast.Name, name: str, existing: Value) -> Mistake:
    what = "the variable of a loop" if existing in context.loops else describe(existing)
    if isinstance(existing, Var) and existing not in context.loops:
        what = "a parameter or a size"
    return context.mistake(
        "GM0247",
        target,
        f"`{name}` is {what}, which cannot be assigned to",
        label="cannot change",
        hint=f"use another name: `{name}_now = {name}`",
    )


def _bind_name(context: Context, target: ast.Name, value: Value, at: ast.expr, dtype: DType | None) -> None:
    name = target.id
    if isinstance(value, Symbolic):
        raise context.mistake(
            "GM0249",
            at,
            f"the size `{name}` is declared after the parameters that could give it a value, or used by none",
            label="no value",
            hint=f"use it in the shape of a T.match_buffer at the top of the function, or write `{name} = T.int32(0)`",
        )
    if isinstance(value, Opening) or value is None:
        raise context.mistake(
            "GM0306",
            at,
            f"`{context.segment(at)}` is a statement, and gives no value",
            label="no value",
            hint="write it as a statement of its own",
        )
    if isinstance(value, _NAMED) and dtype is None:
        context.define(name, value)
        return
    if is_number(value) and dtype is None:
        # A named constant: it takes its type where it is used, as a literal does.
        context.define(name, value)
        return
    if isinstance(value, Expr) and value.dtype.is_handle:
        if isinstance(value, Var) and dtype is None:
            context.define(name, value)
        else:
            context.define(name, bind_pointer(context, name, value, at))
        return
    found: Expr | Number = as_operand(context, at, value)
    if dtype is not None:
        result = fit(context, at, found, dtype, f"`{name}`", f"{name} = ")
    else:
        result = typed(context, at, found)
    if isinstance(result, Var) and dtype is None:
        context.define(name, result)
        return
    var = Var(name, result.dtype, span=context.span(target))
    context.emit(Bind(var, result, context.span(at)))
    context.define(name, var)


def _store(context: Context, target: ast.Subscript, value: Expr | Number, at: ast.expr, shown: ast.expr) -> None:
    owner = lower(context, target.value)
    if isinstance(owner, Allocated):
        owner = owner.buffer
    if not isinstance(owner, Buffer):
        raise context.mistake(
            "GM0286",
            target.value,
            f"{describe(owner)} has no elements to assign to",
            label="not a buffer",
            hint="assign to elements of buffers: `A[i] = ...`",
        )
    places = target_indices(context, target, owner)
    lanes = places[-1].dtype.lanes if places else 1
    dtype = owner.dtype.with_lanes(owner.dtype.lanes * lanes)
    stored = fit(context, at, value, dtype, f"`{owner.name}`", f"{context.segment(shown)} = ")
    context.emit(Store(owner, places, stored, context.span(target)))


def augmented(context: Context, node: ast.AugAssign) -> None:
    """``target += value``."""
    target = node.target
    if isinstance(target, ast.Attribute):
        raise _bad_target(context, target)
    current = lower(context, _as_read(target))
    left = as_operand(context, target, current)
    right = operand(context, node.value)
    if isinstance(node.op, ast.Pow):
        written = ast.copy_location(ast.BinOp(_as_read(target), node.op, node.value), node)
        value = operand(context, written)
    else:
        value = binary(context, node, type(node.op), left, right, target, node.value)
    if isinstance(target, ast.Name):
        local = context.local_of(target.id)
        if local is None:
            raise _fixed(context, target, target.id, context.find(target.id))
        check_carried(context, local, target)
        assert local.buffer is not None
        context.emit(
            Store(local.buffer, (), fit_local(context, local, local.buffer, value, node.value), context.span(node))
        )
        return
    owner = current.buffer if isinstance(current, Load) else None
    if owner is None:
        raise _bad_target(context, target)
    places = target_indices(context, target, owner)
    dtype = owner.dtype.with_lanes(owner.dtype.lanes * (places[-1].dtype.lanes if places else 1))
    if isinstance(value, Expr) and value.dtype != dtype and not converts_losslessly(value.dtype.element, dtype.element):
        raise context.mistake(
            "GM0262",
            node.value,
            f"`{owner.name}` has type {dtype}, which does not hold every {value.dtype}",
            label=str(value.dtype),
            hint=f"if the loss is meant, write `T.{dtype.element}({context.segment(node.value)})`",
        )
    context.emit(
        Store(owner, places, fit(context, node.value, value, dtype, f"`{owner.name}`", ""), context.span(node))
    )


def _as_read(target: ast.expr) -> ast.expr:
    """The target of an assignment as an expression that is read."""
    if isinstance(target, ast.Name):
        return ast.copy_location(ast.Name(target.id, ast.Load()), target)
    if isinstance(target, ast.Subscript):
        return ast.copy_location(ast.Subscript(target.value, target.slice, ast.Load()), target)
    return target
