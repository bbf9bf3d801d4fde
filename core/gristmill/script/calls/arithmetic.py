"""Arithmetic as functions: the operators by name, divisions, extremes, choices, logic."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

from gristmill.ir.build import call as build_call
from gristmill.ir.expr import BinaryExpr, Div, Expr, Max, Min, Mod, Select
from gristmill.script.calls.arguments import bind
from gristmill.script.context import Context
from gristmill.script.operands import as_bool, condition, meet, operand
from gristmill.script.operators import binary, compare, fold, splat, unary, wrong_types
from gristmill.script.values import Number, Value


def _operator(kind: type[ast.operator]) -> Callable[[Context, ast.Call], Value]:
    def handler(context: Context, call: ast.Call) -> Value:
        args = bind(context, call, ("a", "b"))
        a, b = args["a"], args["b"]
        return binary(context, call, kind, operand(context, a), operand(context, b), a, b)

    return handler


def _comparison(kind: type[ast.cmpop]) -> Callable[[Context, ast.Call], Value]:
    def handler(context: Context, call: ast.Call) -> Value:
        args = bind(context, call, ("a", "b"))
        a, b = args["a"], args["b"]
        return compare(context, call, kind, operand(context, a), operand(context, b), a, b)

    return handler


def _truncating(kind: type[BinaryExpr]) -> Callable[[Context, ast.Call], Value]:
    """Division towards zero, and its remainder: integers only (``T.Div`` takes floats too)."""

    def handler(context: Context, call: ast.Call) -> Value:
        args = bind(context, call, ("a", "b"))
        a, b = operand(context, args["a"]), operand(context, args["b"])
        if type(a) is int and type(b) is int:
            whole = fold(context, call, ast.FloorDiv, abs(a), abs(b)) * (1 if (a < 0) == (b < 0) else -1)
            return whole if kind is Div else a - b * whole
        left, right = meet(context, call, a, b, args["a"], args["b"])
        if not left.dtype.is_integer:
            name = context.segment(call.func)
            hint = "divide floats by `/`, or use `T.fmod`; convert other values to an integer first"
            raise wrong_types(context, call, name, left.dtype, hint)
        return kind(left, right, context.span(call))  # type: ignore[call-arg]

    return handler


def _classic_division(context: Context, call: ast.Call) -> Value:
    """``T.Div``: the IR node itself, integers towards zero."""
    args = bind(context, call, ("a", "b"))
    left, right = meet(context, call, operand(context, args["a"]), operand(context, args["b"]), args["a"], args["b"])
    if not (left.dtype.is_integer or left.dtype.is_float):
        raise wrong_types(context, call, "T.Div", left.dtype, "convert to a number first: `T.int32(x)`")
    return Div(left, right, context.span(call))


def _ceiling_division(context: Context, call: ast.Call) -> Value:
    """``T.ceildiv(a, b)``: ``-(-a // b)`` as ``(a + b - 1) // b``."""
    args = bind(context, call, ("a", "b"))
    a, b = operand(context, args["a"]), operand(context, args["b"])
    more = binary(context, call, ast.Sub, b, 1, args["b"], call)
    total = binary(context, call, ast.Add, a, more, args["a"], args["b"])
    return binary(context, call, ast.FloorDiv, total, b, call, args["b"])


def extreme(kind: type[BinaryExpr]) -> Callable[[Context, ast.Call], Value]:
    """``min``, ``max`` of two operands or more."""

    def handler(context: Context, call: ast.Call) -> Value:
        bind(context, call, ("a", "b"), rest="more")
        found_at: ast.expr = call.args[0] if call.args else call
        args = list(call.args)
        if len(args) < 2:
            named = bind(context, call, ("a", "b"))
            args = [named["a"], named["b"]]
        found: Expr | Number = operand(context, args[0])
        for at in args[1:]:
            value = operand(context, at)
            if not isinstance(found, Expr) and not isinstance(value, Expr):
                found = (min if kind is Min else max)(found, value)
                continue
            a, b = meet(context, call, found, value, found_at, at)
            if not (a.dtype.is_integer or a.dtype.is_float):
                raise wrong_types(context, call, context.segment(call.func), a.dtype, "use `and` and `or` for bools")
            found = kind(a, b, context.span(call))  # type: ignore[call-arg]
            found_at = call
        return found

    return handler


def _if_then_else(context: Context, call: ast.Call) -> Value:
    """``T.if_then_else(condition, a, b)``: only one of the two is evaluated."""
    args = bind(context, call, ("condition", "a", "b"), ("span",))
    from gristmill.script.expressions import choose

    test = condition(context, args["condition"])
    if isinstance(test, bool):
        return operand(context, args["a"] if test else args["b"])
    with context.only_sometimes("a part of a choice"):
        a, b = operand(context, args["a"]), operand(context, args["b"])
    return choose(context, call, test, a, b, args["a"], args["b"])


def _select(context: Context, call: ast.Call) -> Value:
    """``T.Select(condition, a, b)``: both are evaluated; a vector condition chooses lane by lane."""
    args = bind(context, call, ("condition", "a", "b"))
    test = operand(context, args["condition"])
    if not isinstance(test, Expr) or test.dtype.lanes == 1:
        test = as_bool(context, args["condition"], condition(context, args["condition"]))
    if not test.dtype.is_bool:
        raise context.mistake(
            "GM0264",
            args["condition"],
            f"a condition must be a bool, and this is {test.dtype}",
            label="not a bool",
            hint=f"write `{context.operand_text(args['condition'])} != 0`",
        )
    a, b = meet(context, call, operand(context, args["a"]), operand(context, args["b"]), args["a"], args["b"])
    if test.dtype.lanes > 1 and a.dtype.lanes not in (1, test.dtype.lanes):
        raise context.mistake(
            "GM0266",
            call,
            f"a condition of {test.dtype.lanes} lanes cannot choose between values of {a.dtype.lanes}",
            label="different lanes",
            hint="take equally many lanes of all three",
        )
    return Select(
        test,
        splat(a, max(test.dtype.lanes, a.dtype.lanes)),
        splat(b, max(test.dtype.lanes, b.dtype.lanes)),
        context.span(call),
    )


def _logic(op: type[ast.boolop]) -> Callable[[Context, ast.Call], Value]:
    """``T.And``, ``T.Or``, ``T.all``, ``T.any``."""

    def handler(context: Context, call: ast.Call) -> Value:
        bind(context, call, (), rest="conditions")
        from gristmill.script.expressions import lower

        if not call.args:
            return op is ast.And
        node = call.args[0] if len(call.args) == 1 else ast.copy_location(ast.BoolOp(op(), list(call.args)), call)
        return lower(context, node)

    return handler


def _unary(op: type[ast.unaryop]) -> Callable[[Context, ast.Call], Value]:
    def handler(context: Context, call: ast.Call) -> Value:
        args = bind(context, call, ("a",))
        node = ast.copy_location(ast.UnaryOp(op(), args["a"]), call)
        return unary(context, node, operand(context, args["a"]))

    return handler


def _power(context: Context, call: ast.Call) -> Value:
    args = bind(context, call, ("base", "exponent"), ("modulus",))
    if "modulus" in args:
        raise context.mistake(
            "GM0292",
            args["modulus"],
            "the power has no modulus in a kernel",
            label="one too many",
            hint="write `x ** y % m`",
        )
    from gristmill.script.expressions import lower

    return lower(context, ast.copy_location(ast.BinOp(args["base"], ast.Pow(), args["exponent"]), call))


def absolute(context: Context, call: ast.Call) -> Value:
    """The magnitude of an integer or a float."""
    args = bind(context, call, ("x",), ("span",))
    value = operand(context, args["x"])
    if not isinstance(value, Expr):
        return abs(value)
    if value.dtype.is_unsigned:
        return value
    if not (value.dtype.is_integer or value.dtype.is_float):
        raise wrong_types(
            context, call, context.segment(call.func), value.dtype, "convert to a number first: `T.int32(x)`"
        )
    return build_call("abs", value, span=context.span(call))


def python_round(context: Context, call: ast.Call) -> Value:
    """``round(x)``: a float of the same type, halves to even; of a constant an integer."""
    args = bind(context, call, ("x",))
    value = operand(context, args["x"])
    if not isinstance(value, Expr):
        return round(value)
    if value.dtype.is_integer:
        return value
    if not value.dtype.is_float:
        raise wrong_types(context, call, "round", value.dtype, "convert to a number first: `T.float32(x)`")
    return build_call("round", value, span=context.span(call))


def python_len(context: Context, call: ast.Call) -> Value:
    """``len`` of a tuple of constants, of a shape, or of the first dimension of a buffer."""
    from gristmill.ir.memory import Buffer
    from gristmill.script.expressions import lower
    from gristmill.script.values import BufferShape, describe

    args = bind(context, call, ("x",))
    value = lower(context, args["x"])
    if isinstance(value, (tuple, str)):
        return len(value)
    if isinstance(value, BufferShape):
        return value.buffer.rank
    if isinstance(value, Buffer) and value.rank:
        return value.shape[0]
    raise context.mistake(
        "GM0267",
        args["x"],
        f"{describe(value)} has no length",
        label="no length",
        hint="len() takes a constant tuple or a buffer (its first dimension)",
    )


def python_sum(context: Context, call: ast.Call) -> Value:
    """``sum`` of a tuple of values."""
    from gristmill.script.expressions import lower
    from gristmill.script.operands import as_operand

    args = bind(context, call, ("x",))
    values = lower(context, args["x"])
    if not isinstance(values, tuple):
        raise context.mistake(
            "GM0267", args["x"], "sum() takes a tuple of values", label="not a tuple", hint="add in a loop",
        )  # fmt: skip
    total: Expr | Number = 0
    for value in values:
        total = binary(context, call, ast.Add, total, as_operand(context, args["x"], value), call, args["x"])
    return total


def _likely(context: Context, call: ast.Call) -> Value:
    """A hint that the condition usually holds."""
    args = bind(context, call, ("condition",))
    value = condition(context, args["condition"])
    return value if isinstance(value, bool) else build_call("likely", value, span=context.span(call))


_BINARY: Mapping[str, type[ast.operator]] = {
    "Add": ast.Add,
    "Sub": ast.Sub,
    "Mul": ast.Mult,
    "FloorDiv": ast.FloorDiv,
    "FloorMod": ast.Mod,
    "floordiv": ast.FloorDiv,
    "floormod": ast.Mod,
    "indexdiv": ast.FloorDiv,
    "indexmod": ast.Mod,
    "shift_left": ast.LShift,
    "shift_right": ast.RShift,
    "bitwise_and": ast.BitAnd,
    "bitwise_or": ast.BitOr,
    "bitwise_xor": ast.BitXor,
}
_COMPARISONS: Mapping[str, type[ast.cmpop]] = {
    "EQ": ast.Eq,
    "NE": ast.NotEq,
    "LT": ast.Lt,
    "LE": ast.LtE,
    "GT": ast.Gt,
    "GE": ast.GtE,
}

TABLE: Mapping[str, Callable[..., Value]] = {
    **{name: _operator(kind) for name, kind in _BINARY.items()},
    **{name: _comparison(kind) for name, kind in _COMPARISONS.items()},
    "Div": _classic_division,
    "Mod": _truncating(Mod),
    "truncdiv": _truncating(Div),
    "truncmod": _truncating(Mod),
    "ceildiv": _ceiling_division,
    "min": extreme(Min),
    "max": extreme(Max),
    "Min": extreme(Min),
    "Max": extreme(Max),
    "if_then_else": _if_then_else,
    "Select": _select,
    "And": _logic(ast.And),
    "Or": _logic(ast.Or),
    "all": _logic(ast.And),
    "any": _logic(ast.Or),
    "Not": _unary(ast.Not),
    "bitwise_not": _unary(ast.Invert),
    "pow": _power,
    "power": _power,
    "abs": absolute,
    "fabs": absolute,
    "likely": _likely,
}
PYTHON: Mapping[str, Callable[..., Value]] = {
    "min": extreme(Min),
    "max": extreme(Max),
    "abs": absolute,
    "pow": _power,
    "round": python_round,
    "len": python_len,
    "sum": python_sum,
}
