"""Sums of products of bytes: ``T.dp4a``, and TVM's ``__dp4a``."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence

from gristmill.ir.build import call as build_call
from gristmill.ir.build import const
from gristmill.ir.dtype import INT8, INT32, UINT8, UINT32, DType
from gristmill.ir.expr import Expr, Reinterpret
from gristmill.script.calls.arguments import bind
from gristmill.script.context import Context
from gristmill.script.operands import fit, operand, typed
from gristmill.script.values import Value

SYMBOL = "__dp4a"
"""What TVM's kernels call it, as if it were a C function."""

_WORDS: Mapping[DType, DType] = {
    INT8.with_lanes(4): INT32,
    UINT8.with_lanes(4): UINT32,
    INT32: INT32,
    UINT32: UINT32,
}


def _dp4a(context: Context, call: ast.Call) -> Value:
    """``T.dp4a(a, b, c)``: ``c`` (0 where it is left out) and the four products of bytes."""
    args = bind(context, call, ("a", "b"), ("c",))
    return dot_product(context, call, [args["a"], args["b"], *([args["c"]] if "c" in args else [])])


def dot_product(context: Context, call: ast.Call, nodes: Sequence[ast.expr]) -> Expr:
    """The operation on two values of four bytes, and perhaps a sum so far."""
    a, b = (_word(context, node) for node in nodes[:2])
    name, dtype = "dot4", a.dtype
    if a.dtype != b.dtype:
        # Signed bytes by unsigned ones, in either order.
        a, b = (a, b) if a.dtype == INT32 else (b, a)
        name, dtype = "dot4_mixed", INT32
        b = Reinterpret(INT32, b.value if isinstance(b, Reinterpret) else b, b.span)
    total: Expr = const(0, dtype, context.span(call))
    if len(nodes) > 2:
        total = fit(context, nodes[2], operand(context, nodes[2]), dtype, "the sum", "")
    return build_call(name, a, b, total, span=context.span(call))


def _word(context: Context, node: ast.expr) -> Expr:
    value = typed(context, node, operand(context, node))
    wanted = _WORDS.get(value.dtype)
    if wanted is None:
        raise context.mistake(
            "GM0347",
            node,
            f"four bytes are an int8x4, a uint8x4, an int32 or a uint32, and this is {value.dtype}",
            label=str(value.dtype),
            hint="load four neighbours: `A[i * 4 : i * 4 + 4]`",
        )
    return value if value.dtype == wanted else Reinterpret(wanted, value, context.span(node))


TABLE: Mapping[str, Callable[..., Value]] = {"dp4a": _dp4a}
