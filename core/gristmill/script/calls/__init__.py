"""The functions of the language, by name: tables of handlers, one file a family.

A handler gets the :class:`~gristmill.script.context.Context` and the call, and gives the value of the call; None for
what is a statement only.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from types import MappingProxyType

from gristmill.errors import close_match
from gristmill.ir.dtype import HANDLE, SCALARS, VOID, parse_dtype
from gristmill.script.calls import (
    arithmetic,
    atomics,
    blocks,
    buffers,
    conversions,
    declarations,
    dot_products,
    functions,
    intrinsics,
    mathematics,
    matrices,
    threads,
    vectors,
    warps,
)
from gristmill.script.calls.functions import call_function
from gristmill.script.context import Context
from gristmill.script.habits import FUNCTIONS
from gristmill.script.problems import Mistake
from gristmill.script.values import Intrinsic, LetType, Method, Namespace, Value

Handlers = Mapping[str, Callable[..., Value]]


def _intrinsics(prefix: str, *tables: Handlers) -> dict[str, Value]:
    found: dict[str, Value] = {}
    for table in tables:
        for name, handler in table.items():
            assert name not in found, f"{prefix}{name} is defined twice"
            found[name] = Intrinsic(f"{prefix}{name}", handler)
    return found


_VECTORS = [f"{element}x{lanes}" for element in map(str, SCALARS) for lanes in (2, 3, 4, 8, 16, 32, 64)]

_T: dict[str, Value] = {
    **_intrinsics(
        "T.",
        arithmetic.TABLE,
        atomics.TABLE,
        blocks.TABLE,
        buffers.TABLE,
        conversions.TABLE,
        declarations.TABLE,
        dot_products.TABLE,
        functions.TABLE,
        intrinsics.TABLE,
        mathematics.TABLE,
        matrices.TABLE,
        threads.TABLE,
        vectors.TABLE,
        warps.TABLE,
    ),
    **{str(dtype): dtype for dtype in (*SCALARS, HANDLE, VOID)},
    **{name: parse_dtype(name) for name in _VECTORS},
    "boolean": parse_dtype("bool"),
    "axis": Namespace("T.axis"),
    "let": Intrinsic("T.let", declarations.let),
    "Let": LetType(None),
}

NAMESPACES: Mapping[str, Mapping[str, Value]] = MappingProxyType(
    {
        "T": _T,
        "T.axis": _intrinsics("T.axis.", blocks.AXIS),
        "T.prim_func": {},
        "I": _intrinsics("I.", declarations.MODULE_TABLE),
        "tvm.target": {"Target": Intrinsic("T.target", declarations.TABLE["target"])},
    }
)
BUILTINS: Mapping[str, Value] = MappingProxyType(_intrinsics("", arithmetic.PYTHON, conversions.PYTHON, threads.PYTHON))
MATH: Mapping[str, Value] = MappingProxyType(_intrinsics("math.", mathematics.MATH))


def unknown_member(context: Context, node: ast.Attribute, path: str, name: str) -> Mistake:
    """The mistake of a name that ``T`` (or a part of it) does not have."""
    if path == "T" and name in mathematics.LATER:
        return context.mistake(
            "GM0294",
            node,
            f"`T.{name}` is not part of the language",
            label="not here",
            hint=f"write {mathematics.LATER[name]}",
        )
    known = list(NAMESPACES.get(path, {}))
    meant = close_match(name, known)
    hint = (
        f"did you mean `{context.segment(node.value)}.{meant}`?"
        if meant
        else f"`gristmill explain language` lists what `{path}` has"
    )
    if path == "T" and name in FUNCTIONS:
        hint = FUNCTIONS[name]
    return context.mistake(
        "GM0290",
        node,
        f"`{context.segment(node.value)}` has no `{name}`",
        label="not known",
        hint=hint,
    )


def call_method(context: Context, call: ast.Call, method: Method) -> Value:
    """``A.vload(...)``, ``x.astype(...)`` and the like."""
    if method.name == "astype":
        return conversions.astype(context, call, method)
    return buffers.METHODS[method.name](context, call, method)


__all__ = ["BUILTINS", "MATH", "NAMESPACES", "call_function", "call_method", "unknown_member"]
