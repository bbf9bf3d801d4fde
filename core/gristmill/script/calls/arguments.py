"""Arguments of calls to the language's own functions, matched with named parameters."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from gristmill.errors import suggestion
from gristmill.script.context import Context


def bind(
    context: Context, call: ast.Call, required: Sequence[str], optional: Sequence[str] = (), rest: str = ""
) -> dict[str, ast.expr]:
    """The argument of each parameter that was given.

    ``rest`` names further positional arguments; get them with :func:`remaining`. Raises Mistake for a missing, a
    surplus or an unknown argument.
    """
    known = [*required, *optional]
    # A place in the text that TVM's printer may write, by name; nobody means it by place.
    names = [name for name in known if name != "span"]
    title = context.segment(call.func)
    found: dict[str, ast.expr] = {}
    for position, value in enumerate(call.args):
        if isinstance(value, ast.Starred):
            raise context.mistake(
                "GM0255",
                value,
                "an unpacking cannot be used in a kernel",
                label="not part of the language",
                hint="write the arguments one by one",
            )
        if position < len(names):
            found[names[position]] = value
        elif not rest:
            raise context.mistake(
                "GM0292",
                value,
                f"`{title}` takes {_count(len(required), len(names))}, and {len(call.args)} are given",
                label="one too many",
                hint=f"its arguments are: {', '.join(names) or 'none'}",
            )
    for keyword in call.keywords:
        if keyword.arg is None or keyword.arg not in known:
            raise context.mistake(
                "GM0292",
                keyword,
                f"`{title}` has no argument `{keyword.arg or '**'}`",
                label="not known",
                hint=suggestion(keyword.arg or "", names, f"its arguments are: {', '.join(names) or 'none'}"),
            )
        if keyword.arg in found:
            raise context.mistake(
                "GM0292",
                keyword,
                f"the argument `{keyword.arg}` of `{title}` is given twice",
                label="given twice",
                hint="give it once, by place or by name",
            )
        found[keyword.arg] = keyword.value
    for name in required:
        if name not in found:
            raise context.mistake(
                "GM0291",
                call,
                f"`{title}` needs its argument `{name}`",
                label=f"`{name}` is missing",
                hint=f"its arguments are: {', '.join(names)}",
            )
    return found


def remaining(call: ast.Call, after: int) -> list[ast.expr]:
    """The positional arguments after the first ``after``."""
    return list(call.args[after:])


def _count(least: int, most: int) -> str:
    plural = "argument" if most == 1 else "arguments"
    return f"{most} {plural}" if least == most else f"{least} to {most} arguments"
