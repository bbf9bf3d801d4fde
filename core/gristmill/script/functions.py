"""From the syntax of a function to an IR function."""

from __future__ import annotations

import ast
from dataclasses import replace

from gristmill.ir.dtype import VOID
from gristmill.ir.expr import Var
from gristmill.ir.module import Function
from gristmill.ir.readable import signature_text
from gristmill.script.context import Context
from gristmill.script.definite_assignment import check_assigned
from gristmill.script.names import plan_names
from gristmill.script.parallel_writes import check_parallel_writes
from gristmill.script.signature import read_signature
from gristmill.script.statements import lower_list
from gristmill.script.values import LONGEST_SYMBOL, Callee, is_symbol


def sign(context: Context, callee: Callee) -> None:
    """Read the signature of a function into ``callee``. Raises Mistake."""
    read_signature(context, callee)
    context.returns = callee.returns
    symbol = callee.name if callee.is_public else None
    callee.facts = replace(callee.facts, symbol=symbol)


def lower_function(context: Context, callee: Callee, name: str) -> Function:
    """The IR of a function whose signature is known. Mistakes of its statements are collected in ``context.problems``."""
    body = [one for one in callee.node.body if id(one) not in callee.consumed]
    context.plan = plan_names(body, [*context.scopes[0]])
    _refuse_unbound_sizes(context, callee)
    lowered = lower_list(context, body)
    returns = context.returns if context.returns is not None else VOID
    if returns != VOID and context.plan.completes and not context.failed:
        raise context.mistake(
            "GM0235",
            context.source.name_place(callee.node),
            f"`{callee.name}` has a result of type {returns}, and may end without returning one",
            label="no value on some path",
            hint="return a value on every path: add a `return` at the end",
        )
    if not context.failed:
        check_assigned(context, lowered)
        check_parallel_writes(context, lowered)
    callee.returns = returns
    facts = callee.facts
    if facts.symbol is not None:
        _check_symbol(context, callee, facts.symbol)
        signature = signature_text(facts.symbol, callee.params, returns)
        facts = replace(facts, signature=signature, summary=_summary(callee.node))
    return Function(name, callee.params, callee.sizes, returns, lowered, facts, context.span(callee.node))


def _summary(node: ast.FunctionDef) -> str:
    """The first line of the docstring, for people. What a terminal would not print is shown as an escape."""
    line = " ".join((ast.get_docstring(node) or "").partition("\n")[0].split())
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in line)


def _check_symbol(context: Context, callee: Callee, symbol: str) -> None:
    """An exported name must be one for C; inside a module any name of Python will do."""
    if not is_symbol(symbol):
        shown = symbol if len(symbol) <= LONGEST_SYMBOL else f"{symbol[:40]}..."
        is_long = len(symbol) > LONGEST_SYMBOL
        raise context.mistake(
            "GM0238",
            context.source.name_place(callee.node),
            f"the public function `{shown}` cannot be exported under that name",
            label=f"{len(symbol)} characters" if is_long else "not a name for C",
            hint=f"use at most {LONGEST_SYMBOL} of the letters a to z, digits and _; or write `@T.prim_func(private=True)`, or "
            '`T.func_attr({"global_symbol": "name"})`',
        )


def _refuse_unbound_sizes(context: Context, callee: Callee) -> None:
    """A symbolic size that no parameter's shape states has no value."""
    for name, node in context.declared_sizes.items():
        var = context.scopes[0].get(name)
        if isinstance(var, Var) and var not in callee.sizes:
            raise context.mistake(
                "GM0249",
                node,
                f"the size `{name}` is used in the shape of no parameter, so it has no value",
                label="no value",
                hint=f"use it in the shape of a parameter, or write `{name} = T.int32(0)` for a variable",
            )
