"""Atomic operations on elements of buffers, by our names and by TVM's ``tir.atomic_add``.

An atomic operation is a statement, or all that is assigned: so it is clear when it happens, among all else that the
statement reads.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence

from gristmill.ir.build import call as build_call
from gristmill.ir.build import const
from gristmill.ir.expr import AddressOf, Expr, IntImm, Load, Negate, Var
from gristmill.ir.op import ATOMICS, ATOMICS_OF_FLOATS
from gristmill.ir.stmt import Bind, Evaluate
from gristmill.ir.verify_atomics import ATOMIC_SCOPES, ATOMIC_TYPES
from gristmill.script.calls.arguments import bind
from gristmill.script.context import Context
from gristmill.script.operands import fit, operand
from gristmill.script.values import Value, describe

_OPERANDS: Mapping[str, tuple[str, ...]] = {
    "atomic_load": (),
    "atomic_compare_exchange": ("expected", "value"),
}
"""What operations other than those of one ``value`` take besides the element."""
NAMES = frozenset(op.name for op in ATOMICS)


def _operation(name: str, negated: bool = False) -> Callable[[Context, ast.Call], Value]:
    """``T.atomic_add(counts[i], 1)``."""

    def handler(context: Context, call: ast.Call) -> Value:
        operands = _OPERANDS.get(name, ("value",))
        args = bind(context, call, ("element", *operands))
        return _performed(context, call, name, args["element"], [args[one] for one in operands], negated)

    return handler


def intrinsic(context: Context, call: ast.Call, name: str, nodes: Sequence[ast.expr]) -> Value:
    """``T.call_intrin("int32", "tir.atomic_add", T.address_of(counts[i]), 1)``; ``nodes`` are the operands."""
    wanted = len(_OPERANDS.get(name, ("value",))) + 1
    if len(nodes) != wanted:
        raise context.mistake(
            "GM0291",
            call,
            f"the operation `{name}` takes {wanted} operands, and {len(nodes)} are given",
            label=f"{len(nodes)} operands",
            hint="give the address of an element, then the values",
        )
    return _performed(context, call, name, nodes[0], nodes[1:], False)


def _performed(
    context: Context, call: ast.Call, name: str, at: ast.expr, nodes: Sequence[ast.expr], negated: bool
) -> Value:
    title = context.segment(call.func)
    if context.whole is not call or context.callee is None:
        raise context.mistake(
            "GM0345",
            call,
            f"`{title}` stands within a larger expression, where its place among other accesses would be hard to see",
            label="not here",
            hint=f"give its result a name first: `old = {context.segment(call)}`",
        )
    element = _element(context, at, name, title)
    buffer = element.buffer
    values: list[Expr] = []
    for node in nodes:
        value = fit(context, node, operand(context, node), buffer.dtype, f"`{buffer.name}`", "")
        values.append(_negative(value) if negated else value)
    span = context.span(call)
    found = build_call(name, element, *values, span=span)
    if context.is_dropped or found.dtype.is_void:
        context.emit(Evaluate(found, span))
        return None
    var = Var(context.target if context.target.isidentifier() else "old", found.dtype, span=span)
    context.emit(Bind(var, found, span))
    return var


def _negative(value: Expr) -> Expr:
    if isinstance(value, IntImm):
        return const(value.dtype.wrap(-value.value), value.dtype, value.span)
    return Negate(value, value.span)


def _element(context: Context, node: ast.expr, name: str, title: str) -> AddressOf:
    from gristmill.script.expressions import lower

    found = lower(context, node)
    if isinstance(found, Load) and not found.dtype.is_vector:
        found = AddressOf(found.buffer, found.indices, context.span(node))
    if not isinstance(found, AddressOf):
        raise context.mistake(
            "GM0346",
            node,
            f"`{title}` works on an element of a buffer, and this is {describe(found)}",
            label="not an element",
            hint="write the element: `A[i]`",
        )
    buffer = found.buffer
    if buffer.scope not in ATOMIC_SCOPES:
        raise context.mistake(
            "GM0346",
            node,
            f"`{title}` works on memory that threads share, and `{buffer.name}` belongs to one thread",
            label=f"{buffer.scope.value} memory",
            hint='use plain assignments, or a buffer of scope "shared" or "global"',
        )
    floats = name in ATOMICS_OF_FLOATS
    if buffer.dtype not in ATOMIC_TYPES or (buffer.dtype.is_float and not floats):
        wanted = [str(dtype) for dtype in ATOMIC_TYPES if floats or not dtype.is_float]
        raise context.mistake(
            "GM0346",
            node,
            f"`{title}` works on {', '.join(wanted[:-1])} and {wanted[-1]}, and `{buffer.name}` holds {buffer.dtype}",
            label=str(buffer.dtype),
            hint=f"keep it in a buffer of {'float32' if buffer.dtype.is_float and floats else 'int32'}",
        )
    return found


TABLE: Mapping[str, Callable[..., Value]] = {
    **{name: _operation(name) for name in NAMES},
    "atomic_sub": _operation("atomic_add", negated=True),
}
