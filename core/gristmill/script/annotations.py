"""Annotations of names: ``T.int32``, ``T.let[T.int32]``, types in quotes."""

from __future__ import annotations

import ast

from gristmill.ir.dtype import DType
from gristmill.script.calls.conversions import dtype_argument
from gristmill.script.context import Context
from gristmill.script.expressions import lower
from gristmill.script.problems import Mistake
from gristmill.script.values import Intrinsic, Symbolic, Value, describe

_PYTHON_TYPES = {"int": "T.int64", "float": "T.float32", "bool": "T.bool"}


def unquoted(context: Context, node: ast.expr) -> ast.expr:
    """An annotation in quotes as the expression it stands for."""
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
        return node
    try:
        found = ast.parse(node.value.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise not_a_type(context, node, node.value) from None
    if sum(1 for _ in ast.walk(found)) > 200:
        raise not_a_type(context, node, node.value)
    for part in ast.walk(found):
        ast.copy_location(part, node)
    return found


def not_a_type(context: Context, node: ast.expr, value: Value) -> Mistake:
    what = describe(value)
    hint = 'write `T.float32`, `T.int32` and the like for a number, `T.Buffer(("n",), "float32")` for a buffer'
    if isinstance(node, ast.Name) and node.id in _PYTHON_TYPES:
        what, hint = f"Python's `{node.id}`", f"say how wide it is: `{_PYTHON_TYPES[node.id]}`"
    return context.mistake("GM0226", node, f"{what} is not a type of the language", label="not a type", hint=hint)


def scalar_annotation(context: Context, node: ast.expr) -> tuple[DType | None, bool]:
    """The type of a scalar, and whether it is ``T.let``; without a type in brackets ``T.let`` infers it."""
    node = unquoted(context, node)
    if isinstance(node, ast.Subscript):
        owner = lower(context, node.value)
        if isinstance(owner, Intrinsic) and owner.path == "T.let":
            return dtype_argument(context, unquoted(context, node.slice)), True
    if isinstance(node, ast.Name) and node.id in _PYTHON_TYPES and not context.has(node.id):
        raise not_a_type(context, node, node.id)
    if isinstance(node, ast.Name) and context.find(node.id) is None and node.id not in context.file.definitions:
        # A dtype in quotes, as "float32".
        return dtype_argument(context, ast.copy_location(ast.Constant(node.id), node)), False
    value = lower(context, node)
    if isinstance(value, Intrinsic) and value.path == "T.let":
        return None, True
    if isinstance(value, Symbolic):
        return value.dtype, False
    if isinstance(value, str):
        return dtype_argument(context, node), False
    if not isinstance(value, DType) or value.is_void:
        raise not_a_type(context, node, value)
    return value, False
