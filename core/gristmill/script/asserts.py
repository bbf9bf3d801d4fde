"""``assert``: a condition, the kind of error, and a message of texts and values."""

from __future__ import annotations

import ast
import builtins

from gristmill.errors import suggestion
from gristmill.ir.expr import Expr
from gristmill.ir.stmt import Assert
from gristmill.script.context import Context
from gristmill.script.expressions import lower
from gristmill.script.operands import as_bool, as_operand, condition, is_number, plain_number
from gristmill.script.values import describe

_DEFAULT_KIND = "AssertionError"


def assertion(context: Context, node: ast.Assert) -> None:
    """Read an assert; one that constants decide is checked here, if it stands outside of loops and branches."""
    test = condition(context, node.test, "the condition of an assert")
    kind, message = _message(context, node)
    if test is True:
        return
    if test is False and not context.is_conditional and not isinstance(node.test, ast.Constant):
        text = "".join(part if isinstance(part, str) else "..." for part in message)
        raise context.mistake(
            "GM0321",
            node.test,
            f"this assert fails for the constants of the module: {text}",
            label="false",
            hint="mend the constants, or the params of the module in kernels.toml",
        )
    context.emit(Assert(as_bool(context, node.test, test), kind, message, context.span(node)))


def _message(context: Context, node: ast.Assert) -> tuple[str, tuple[str | Expr, ...]]:
    if node.msg is None:
        return _DEFAULT_KIND, (f"assertion failed: {context.segment(node.test)}",)
    if isinstance(node.msg, ast.Tuple) and len(node.msg.elts) == 2 and isinstance(node.msg.elts[0], ast.Constant):
        kind = _kind(context, node.msg.elts[0])
        parts = node.msg.elts[1]
        listed = list(parts.elts) if isinstance(parts, (ast.List, ast.Tuple)) else [parts]
        return kind, tuple(part for one in listed for part in _parts(context, one))
    return _DEFAULT_KIND, tuple(_parts(context, node.msg))


def _kind(context: Context, node: ast.Constant) -> str:
    name = node.value
    found = getattr(builtins, name, None) if isinstance(name, str) else None
    if isinstance(found, type) and issubclass(found, Exception):
        return str(name)
    known = [one for one, value in vars(builtins).items() if isinstance(value, type) and issubclass(value, Exception)]
    raise context.mistake(
        "GM0323",
        node,
        f"{name!r} is not one of Python's exceptions",
        label="not known",
        hint=suggestion(str(name), known, 'write "ValueError", "RuntimeError" or the like', form='"{}"'),
    )


def _parts(context: Context, node: ast.expr) -> list[str | Expr]:
    if isinstance(node, ast.JoinedStr):
        return [part for one in node.values for part in _parts(context, one)]
    if isinstance(node, ast.FormattedValue):
        if node.format_spec is not None or node.conversion != -1:
            raise _no_message(context, node.value, "a value in a message has no format of its own")
        node = node.value
    value = lower(context, node)
    if isinstance(value, str):
        return [value]
    if is_number(value):
        return [str(value)]
    found = as_operand(context, node, value)
    if not isinstance(found, Expr) or found.dtype.is_float or found.dtype.lanes != 1 or found.dtype.is_handle:
        constant = plain_number(found)
        if constant is not None:
            return [str(constant)]
        raise _no_message(context, node, f"{describe(value)} cannot be part of a message")
    return [found]


def _no_message(context: Context, node: ast.expr, message: str) -> Exception:
    return context.mistake(
        "GM0322",
        node,
        message,
        label="not a text, an integer or a bool",
        hint='messages are texts, integers and bools: f"n is {n}"',
    )
