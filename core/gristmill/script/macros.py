"""Macros (``@T.macro``): their statements are read again at every call, with the arguments for the parameters."""

from __future__ import annotations

import ast

from gristmill.errors import Note
from gristmill.ir.expr import Expr, FloatImm, IntImm, Var
from gristmill.ir.span import Span
from gristmill.ir.stmt import Bind
from gristmill.script.context import Context
from gristmill.script.names import plan_names
from gristmill.script.values import Callee, Value

_DEPTH_AT_MOST = 32


def expand(context: Context, call: ast.Call, callee: Callee) -> Value:
    """Put a macro's statements in the place of a call. Names of the caller are not seen by it, nor its by the caller."""
    from gristmill.script.calls.functions import _match_arguments
    from gristmill.script.expressions import lower
    from gristmill.script.statements import lower_list

    if callee.name in context.macros or len(context.macros) >= _DEPTH_AT_MOST:
        raise context.mistake(
            "GM0305",
            call,
            f"the macro `{callee.name}` calls itself",
            label="without end",
            hint="macros are expanded in place; use a helper function for recursion",
            notes=(Note("the macro is here", callee.file.source.name_place(callee.node)),),
        )
    scope: dict[str, Value] = {}
    for node, arg in zip(_match_arguments(context, call, callee), callee.node.args.args, strict=True):
        value = lower(context, node)
        if isinstance(value, Expr) and not isinstance(value, (Var, IntImm, FloatImm)) and not value.dtype.is_handle:
            var = Var(arg.arg, value.dtype, span=context.span(node))
            context.emit(Bind(var, value, context.span(node)))
            value = var
        scope[arg.arg] = value
    inner_at = Span(context.source.place(call), context.inlined_at)
    saved = (context.file, context.scopes, context.plan, context.inlined_at, context.hidden)
    context.file, context.scopes, context.inlined_at, context.hidden = callee.file, [scope], inner_at, {}
    context.plan = plan_names(callee.node.body, scope)
    context.macros.append(callee.name)
    try:
        context.emit(lower_list(context, callee.node.body))
    finally:
        context.macros.pop()
        context.file, context.scopes, context.plan, context.inlined_at, context.hidden = saved
    return None
