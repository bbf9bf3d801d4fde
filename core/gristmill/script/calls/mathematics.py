"""Mathematics: the operations of :mod:`gristmill.ir.op` by name, and Python's ``math`` on constants."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping

from gristmill.ir.build import call as build_call
from gristmill.ir.expr import Expr
from gristmill.ir.op import BITS, MATHEMATICS, OPS, Op, Operands
from gristmill.script.calls.arguments import bind
from gristmill.script.context import Context
from gristmill.script.operands import meet, operand, plain_number, typed
from gristmill.script.operators import wrong_types
from gristmill.script.values import Value

_PARAMETERS = ("x", "y", "z")


def _operation(op: Op) -> Callable[[Context, ast.Call], Value]:
    def handler(context: Context, call: ast.Call) -> Value:
        names = _PARAMETERS[: op.arity]
        args = bind(context, call, names, ("span",))
        return apply(context, call, op, [args[name] for name in names])

    return handler


def apply(context: Context, call: ast.Call, op: Op, nodes: list[ast.expr]) -> Expr:
    """An operation on operands that meet in one type. Raises Mistake for types it does not take."""
    values = [operand(context, node) for node in nodes]
    if op.operands is Operands.FLOAT:
        # Numbers without a type are floats here: T.sqrt(2).
        values = [value if isinstance(value, Expr) else float(value) for value in values]
    first = typed(context, nodes[0], values[0])
    for node, value in zip(nodes[1:], values[1:], strict=True):
        first, _ = meet(context, call, first, value, nodes[0], node)
    operands = [first]
    for node, value in zip(nodes[1:], values[1:], strict=True):
        operands.append(meet(context, call, first, value, nodes[0], node)[1])
    dtype = first.dtype
    if op.operands is Operands.FLOAT and not dtype.is_float:
        text = context.segment(nodes[0])
        raise wrong_types(
            context, call, context.segment(call.func), dtype, f"convert to a float first: `T.float32({text})`"
        )
    if op.operands is Operands.INTEGER and not dtype.is_integer:
        text = context.segment(nodes[0])
        hint = f'convert first: `T.int32({text})`, or `T.reinterpret("int32", {text})` for its bits'
        raise wrong_types(context, call, context.segment(call.func), dtype, hint)
    return build_call(op.name, *operands, span=context.span(call))


def _on_constants(name: str) -> Callable[[Context, ast.Call], Value]:
    """``math.sqrt(2)``: computed while the kernel is read."""

    def handler(context: Context, call: ast.Call) -> Value:
        bind(context, call, (), rest="values")
        numbers = []
        for node in call.args:
            value = plain_number(operand(context, node))
            if value is None:
                raise context.mistake(
                    "GM0293",
                    node,
                    f"`math.{name}` takes constants only",
                    label="not a constant",
                    hint=f"in a kernel write `T.{_KERNEL_NAMES.get(name, name)}(...)`",
                )
            numbers.append(value)
        try:
            found = getattr(math, name)(*numbers)
        except (ValueError, OverflowError, TypeError) as error:
            raise context.mistake(
                "GM0219",
                call,
                f"`{context.segment(call)}` cannot be computed: {error}",
                label="no such number",
                hint="constants are computed while the kernel is read; mend the constant",
            ) from None
        assert isinstance(found, (int, float))
        return found

    return handler


_KERNEL_NAMES = {"fabs": "abs"}
_SAFE = (
    "sqrt", "exp", "log", "log2", "log10", "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh",
    "floor", "ceil", "trunc", "fabs", "pow", "gcd", "hypot", "degrees", "radians",
)  # fmt: skip

MATH: Mapping[str, Callable[..., Value]] = {name: _on_constants(name) for name in _SAFE}
"""Functions of Python's ``math``, on constants. All of them are quick whatever their operands (64 bits) are."""

_ALIASES = {"nearbyint": "round", "rint": "round", "roundeven": "round"}

TABLE: Mapping[str, Callable[..., Value]] = {
    **{op.name: _operation(op) for op in (*MATHEMATICS, *BITS) if op.name not in ("pow", "abs")},
    **{alias: _operation(OPS[name]) for alias, name in _ALIASES.items()},
}

LATER: Mapping[str, str] = {
    "tan": "T.sin(x) / T.cos(x)",
    "sinh": "(T.exp(x) - T.exp(-x)) / 2",
    "cosh": "(T.exp(x) + T.exp(-x)) / 2",
    "exp10": "T.exp2(x * 3.3219280948873623)",
    "log10": "T.log2(x) * 0.30102999566398120",
    "log1p": "T.log(1 + x)",
    "expm1": "T.exp(x) - 1",
    "erf": "a polynomial of your own in a helper function",
    "asin": "a polynomial of your own in a helper function",
    "acos": "a polynomial of your own in a helper function",
    "atan": "a polynomial of your own in a helper function",
    "atan2": "a polynomial of your own in a helper function",
    "asinh": "T.log(x + T.sqrt(x * x + 1))",
    "acosh": "T.log(x + T.sqrt(x * x - 1))",
    "atanh": "T.log((1 + x) / (1 - x)) / 2",
    "hypot": "T.sqrt(x * x + y * y)",
    "ldexp": "x * T.exp2(n)",
}
"""Functions of TVM's script that are not here, and what to write for them."""
