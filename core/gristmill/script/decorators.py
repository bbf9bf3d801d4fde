"""Decorators: what a function or class is to the module."""

from __future__ import annotations

import ast
from enum import Enum

from gristmill.errors import suggestion
from gristmill.script.context import Context
from gristmill.script.expressions import lower
from gristmill.script.habits import ALWAYS_IMPORTED
from gristmill.script.operands import condition
from gristmill.script.problems import Mistake
from gristmill.script.values import Intrinsic


class Role(Enum):
    """What a decorated definition is."""

    PUBLIC = "public"
    PRIVATE = "private"
    MACRO = "macro"
    MODULE = "module"
    PLAIN = "plain"


_OPTIONS = {"T.prim_func": ("private", "s_tir", "check_well_formed"), "T.macro": ("hygienic",),
            "I.ir_module": ("s_tir", "check_well_formed")}  # fmt: skip


def role_of(context: Context, node: ast.FunctionDef | ast.ClassDef) -> Role:
    """The role that the decorators give. A function without one is a helper, a class without one is Python's own."""
    is_class = isinstance(node, ast.ClassDef)
    if not node.decorator_list:
        return Role.PLAIN if is_class else Role.PRIVATE
    if len(node.decorator_list) > 1:
        raise _unknown(context, node, node.decorator_list[1], "a kernel has one decorator")
    decorator = node.decorator_list[0]
    function = decorator.func if isinstance(decorator, ast.Call) else decorator
    try:
        value = lower(context, function)
    except Mistake as problem:
        if is_class and problem.diagnostic.code in ("GM0251", "GM0253", "GM0245", "GM0255"):
            return Role.PLAIN
        if problem.diagnostic.code in ("GM0290", "GM0245"):
            raise _unknown(context, node, decorator, f"`{context.segment(function)}` is not known") from None
        raise
    path = value.path if isinstance(value, Intrinsic) else ""
    if path not in _OPTIONS or (path == "I.ir_module") != is_class:
        if is_class and path == "":
            return Role.PLAIN
        raise _unknown(
            context,
            node,
            decorator,
            f"`{context.segment(decorator)}` cannot mark a {'class' if is_class else 'function'}",
        )
    if is_class:
        return Role.MODULE
    if path == "T.macro":
        return Role.MACRO
    private = node.name.startswith("_")
    for keyword in decorator.keywords if isinstance(decorator, ast.Call) else ():
        if keyword.arg not in _OPTIONS[path]:
            raise context.mistake(
                "GM0292",
                keyword,
                f"`{path}` has no argument `{keyword.arg or '**'}`",
                label="not known",
                hint=suggestion(keyword.arg or "", _OPTIONS[path], f"its arguments are: {', '.join(_OPTIONS[path])}"),
            )
        if keyword.arg == "private":
            private = private or condition(context, keyword.value) is True
    return Role.PRIVATE if private else Role.PUBLIC


def _unknown(context: Context, node: ast.FunctionDef | ast.ClassDef, at: ast.expr, message: str) -> Mistake:
    right = "@I.ir_module" if isinstance(node, ast.ClassDef) else "@T.prim_func"
    hint = f"mark it with `{right}` alone, or leave it plain"
    owner = at.value if isinstance(at, ast.Attribute) else at
    if isinstance(owner, ast.Name) and owner.id in ALWAYS_IMPORTED and owner.id not in context.file.definitions:
        hint = f"write `{ALWAYS_IMPORTED[owner.id]}` at the top of the file"
    return context.mistake(
        "GM0221",
        at,
        message,
        label="not a decorator of kernels",
        hint=hint,
    )
