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


def expand(ctx: Context, call: ast.Call, callee: Callee) -> Value:
    """Put a macro's statements in the place of a call. Names of the caller are not seen by it, nor its by the caller."""
    from gristmill.script.calls.functions import _match_arguments
    from gristmill.script.expressions import lower
    from gristmill.script.statements import lower_list

    if callee.name in ctx.macros or len(ctx.macros) >= _DEPTH_AT_MOST:
        raise ctx.mistake(
            "GM0305",
            call,
            f"the macro `{callee.name}` calls itself",
            label="without end",
            hint="macros are expanded in place; use a helper function for recursion",
            notes=(Note("the macro is here", callee.file.source.name_place(callee.node)),),
        )
    scope: dict[str, Value] = {}
    for node, arg in zip(_match_arguments(ctx, call, callee), callee.node.args.args, strict=True):
        value = lower(ctx, node)
        if isinstance(value, Expr) and not isinstance(value, (Var, IntImm, FloatImm)) and not value.dtype.is_handle:
            var = Var(arg.arg, value.dtype, span=ctx.span(node))
            ctx.emit(Bind(var, value, ctx.span(node)))
            value = var
        scope[arg.arg] = value
    inner_at = Span(ctx.source.place(call), ctx.inlined_at)
    saved = (ctx.file, ctx.scopes, ctx.plan, ctx.inlined_at, ctx.hidden)
    ctx.file, ctx.scopes, ctx.inlined_at, ctx.hidden = callee.file, [scope], inner_at, {}
    ctx.plan = plan_names(callee.node.body, scope)
    ctx.macros.append(callee.name)
    try:
        ctx.emit(lower_list(ctx, callee.node.body))
    finally:
        ctx.macros.pop()
        ctx.file, ctx.scopes, ctx.plan, ctx.inlined_at, ctx.hidden = saved
    return None
