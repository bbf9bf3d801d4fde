"""The operators of Python on operands: folded on numbers, typed nodes on everything else."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping

from gristmill.ir.build import call, const
from gristmill.ir.dtype import DType
from gristmill.ir.expr import (
    Add,
    And,
    BinaryExpr,
    BitAnd,
    BitNot,
    BitOr,
    BitXor,
    Broadcast,
    Cast,
    CompareExpr,
    Div,
    Equal,
    Expr,
    FloorDiv,
    FloorMod,
    Greater,
    GreaterEqual,
    Less,
    LessEqual,
    Mul,
    Negate,
    Not,
    NotEqual,
    Select,
    ShiftLeft,
    ShiftRight,
    Sub,
)
from gristmill.script.context import Context
from gristmill.script.operands import meet, typed
from gristmill.script.problems import Mistake
from gristmill.script.source import Positioned
from gristmill.script.types import convert, converts_losslessly
from gristmill.script.values import Number

CONSTANT_BITS_AT_MOST = 64

_FOLDED: Mapping[type[ast.operator], Callable[[Number, Number], Number]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.Pow: operator.pow,
}
SYMBOLS: Mapping[type[ast.AST], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.Pow: "**",
    ast.MatMult: "@",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Is: "is",
    ast.IsNot: "is not",
    ast.In: "in",
    ast.NotIn: "not in",
}
_ARITHMETIC: Mapping[type[ast.operator], type[BinaryExpr]] = {ast.Add: Add, ast.Sub: Sub, ast.Mult: Mul}
_INTEGER: Mapping[type[ast.operator], type[BinaryExpr]] = {ast.FloorDiv: FloorDiv, ast.Mod: FloorMod}
_BITWISE: Mapping[type[ast.operator], type[BinaryExpr]] = {ast.BitAnd: BitAnd, ast.BitOr: BitOr, ast.BitXor: BitXor}
_SHIFTS: Mapping[type[ast.operator], type[BinaryExpr]] = {ast.LShift: ShiftLeft, ast.RShift: ShiftRight}
_COMPARISONS: Mapping[type[ast.cmpop], type[CompareExpr]] = {
    ast.Eq: Equal,
    ast.NotEq: NotEqual,
    ast.Lt: Less,
    ast.LtE: LessEqual,
    ast.Gt: Greater,
    ast.GtE: GreaterEqual,
}
_FOLDED_COMPARISONS: Mapping[type[ast.cmpop], Callable[[Number, Number], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


def binary(
    context: Context,
    node: Positioned,
    kind: type[ast.operator],
    left: Expr | Number,
    right: Expr | Number,
    left_at: Positioned,
    right_at: Positioned,
) -> Expr | Number:
    """``left <operator> right``. Raises Mistake for types that the operator does not take."""
    if not isinstance(left, Expr) and not isinstance(right, Expr):
        return fold(context, node, kind, left, right)
    span = context.span(node)
    if kind in _SHIFTS:
        return _shift(context, node, _SHIFTS[kind], left, right, left_at, right_at)
    a, b = meet(context, node, left, right, left_at, right_at)
    dtype = a.dtype
    if kind in _BITWISE:
        if not (dtype.is_integer or dtype.is_bool):
            raise wrong_types(context, node, SYMBOLS[kind], dtype, "bits are of integers and bools", "T.reinterpret")
        return _BITWISE[kind](a, b, span)  # type: ignore[call-arg]
    if dtype.is_bool or dtype.is_handle:
        text = context.segment(left_at)
        raise wrong_types(
            context, node, SYMBOLS[kind], dtype, f"convert to a number first: `T.int32({text})`, or use and, or, not"
        )
    if kind in _ARITHMETIC:
        return _ARITHMETIC[kind](a, b, span)  # type: ignore[call-arg]
    if kind in _INTEGER:
        if dtype.is_float:
            x, y = context.operand_text(left_at), context.operand_text(right_at)
            hint = f"for floats write `T.floor({x} / {y})`"
            if kind is ast.Mod:
                hint = (
                    f"for floats write `{x} - T.floor({x} / {y}) * {y}`, with the sign of the divisor as in Python, or "
                    f"`T.fmod({context.segment(left_at)}, {context.segment(right_at)})`, with the sign of the dividend as in C"
                )
            raise wrong_types(context, node, SYMBOLS[kind], dtype, hint)
        return _INTEGER[kind](a, b, span)  # type: ignore[call-arg]
    if kind is ast.Div:
        return divide(context, node, a, b, left_at, right_at)
    if kind is ast.Pow:
        if dtype.is_float:
            return call("pow", a, b, span=span)
        raise context.mistake(
            "GM0270",
            node,
            "the power of an integer needs a small constant exponent",
            label=f"an exponent of type {dtype}" if isinstance(right, Expr) else "not a small exponent",
            hint="write x ** 2 or x ** 3, multiply in a loop, or use floats",
        )
    raise wrong_types(context, node, SYMBOLS.get(kind, "this operator"), dtype, "write the product as loops")


def divide(context: Context, node: Positioned, a: Expr, b: Expr, left_at: Positioned, right_at: Positioned) -> Expr:
    """``a / b`` of operands that meet: for integers only TVM's dialect has a meaning (towards zero)."""
    if a.dtype.is_integer and not context.is_tvmscript:
        x, y = context.operand_text(left_at), context.operand_text(right_at)
        inside_x, inside_y = context.segment(left_at), context.segment(right_at)
        raise context.mistake(
            "GM0263",
            node,
            "`/` of two integers is not defined: it could mean the quotient or the fraction",
            label=f"both are {a.dtype}",
            hint=f"write `{x} // {y}` to round down, `T.truncdiv({inside_x}, {inside_y})` to round to zero, "
            f"`T.float32({inside_x}) / {y}` for the fraction",
        )
    return Div(a, b, context.span(node))


def wrong_types(context: Context, node: Positioned, symbol: str, dtype: DType, hint: str, instead: str = "") -> Mistake:
    """The mistake of an operator with operands of a type it does not take."""
    return context.mistake(
        "GM0265",
        node,
        f"`{symbol}` is not defined for {dtype}",
        label=f"operands of type {dtype}",
        hint=hint + (f"; `{instead}` gives the bits of a float" if instead else ""),
    )


def fold(context: Context, node: Positioned, kind: type[ast.operator], left: Number, right: Number) -> Number:
    """The result of an operator on two numbers, as Python computes it; sizes are bounded."""
    if kind is ast.Pow and isinstance(left, int) and isinstance(right, int) and abs(left) > 1:
        bits = left.bit_length() * abs(right)
        if bits > 2 * CONSTANT_BITS_AT_MOST:
            raise _constant_too_large(context, node)
    if kind is ast.LShift and isinstance(right, int) and right > CONSTANT_BITS_AT_MOST:
        raise _constant_too_large(context, node)
    if context.is_tvmscript and kind is ast.Div and type(left) is int and type(right) is int and right != 0:
        return abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
    function = _FOLDED.get(kind)
    try:
        if function is None:
            raise TypeError
        value = function(left, right)
    except ZeroDivisionError:
        raise context.mistake(
            "GM0219",
            node,
            f"`{context.segment(node)}` divides by zero",
            label="the divisor is 0",
            hint="constants are computed while the kernel is read; mend the constant",
        ) from None
    except (TypeError, ValueError, OverflowError) as error:
        raise context.mistake(
            "GM0219",
            node,
            f"`{context.segment(node)}` cannot be computed" + (f": {error}" if str(error) else ""),
            label="these constants do not go together",
            hint="constants are computed while the kernel is read; mend the constant",
        ) from None
    if isinstance(value, complex):
        raise context.mistake(
            "GM0219",
            node,
            f"`{context.segment(node)}` is not a real number",
            label="complex",
            hint="raise only positive numbers to a fraction",
        )
    if isinstance(value, int) and abs(value) >> CONSTANT_BITS_AT_MOST:
        raise _constant_too_large(context, node)
    return value


def _constant_too_large(context: Context, node: Positioned) -> Mistake:
    return context.mistake(
        "GM0219",
        node,
        f"the constant `{context.segment(node)}` needs more than {CONSTANT_BITS_AT_MOST} bits",
        label="too large",
        hint="no type of the language holds it",
    )


def _shift(
    context: Context,
    node: Positioned,
    kind: type[BinaryExpr],
    left: Expr | Number,
    right: Expr | Number,
    left_at: Positioned,
    right_at: Positioned,
) -> Expr:
    """A shift has the type of its left side; the amount is brought into it without changing which amounts overflow."""
    span = context.span(node)
    symbol = "<<" if kind is ShiftLeft else ">>"
    a = typed(context, left_at, left, right.dtype if isinstance(right, Expr) and right.dtype.is_integer else None)
    amount = typed(context, right_at, right, a.dtype if a.dtype.is_integer else None)
    for side in (a, amount):
        if not side.dtype.is_integer:
            raise wrong_types(
                context, node, symbol, side.dtype, "shifts are of integers; `T.reinterpret` gives the bits"
            )
    lanes = max(a.dtype.lanes, amount.dtype.lanes)
    if min(a.dtype.lanes, amount.dtype.lanes) not in (1, lanes):
        raise context.mistake(
            "GM0266",
            node,
            f"{a.dtype} and {amount.dtype} have different numbers of lanes",
            label="different lanes",
            hint="take equally many lanes of both",
        )
    a = convert(a, a.dtype.with_lanes(lanes))
    amount = convert(amount, amount.dtype.with_lanes(lanes))
    if not converts_losslessly(amount.dtype.element, a.dtype.element):
        width = const(a.dtype.bits, amount.dtype, span)
        inside = And(GreaterEqual(amount, const(0, amount.dtype, span), span), Less(amount, width, span), span)
        amount = Cast(a.dtype, Select(inside, amount, width, span), span)
    else:
        amount = convert(amount, a.dtype)
    return kind(a, amount, span)  # type: ignore[call-arg]


def compare(
    context: Context,
    node: Positioned,
    kind: type[ast.cmpop],
    left: Expr | Number,
    right: Expr | Number,
    left_at: Positioned,
    right_at: Positioned,
) -> Expr | bool:
    """``left <comparison> right``."""
    if kind not in _COMPARISONS:
        raise context.mistake(
            "GM0269",
            node,
            f"`{SYMBOLS[kind]}` cannot be used in a kernel",
            label="not a comparison of numbers",
            hint="compare with ==, !=, <, <=, >, >=",
        )
    if not isinstance(left, Expr) and not isinstance(right, Expr):
        return _FOLDED_COMPARISONS[kind](left, right)
    a, b = meet(context, node, left, right, left_at, right_at)
    if a.dtype.is_handle:
        raise wrong_types(context, node, SYMBOLS[kind], a.dtype, "pointers cannot be compared")
    return _COMPARISONS[kind](a, b, context.span(node))  # type: ignore[call-arg]


def unary(context: Context, node: ast.UnaryOp, value: Expr | Number) -> Expr | Number:
    """``-x``, ``+x``, ``~x``, ``not x``."""
    span = context.span(node)
    kind = type(node.op)
    if kind is ast.Not:
        if isinstance(value, bool):
            return not value
        if isinstance(value, Expr) and value.dtype.is_bool:
            return Not(value, span)
        raise context.mistake(
            "GM0264",
            node.operand,
            "`not` takes a bool",
            label="not a bool",
            hint=f"write `{context.operand_text(node.operand)} == 0`",
        )
    if not isinstance(value, Expr):
        if kind is ast.Invert:
            if isinstance(value, float):
                raise context.mistake(
                    "GM0219", node, f"`{context.segment(node)}` cannot be computed", label="a float has no bits to flip",
                    hint="use an integer",
                )  # fmt: skip
            return not value if isinstance(value, bool) else ~value
        return -value if kind is ast.USub else +value
    dtype = value.dtype
    if kind is ast.Invert:
        if dtype.is_bool:
            return Not(value, span)
        if not dtype.is_integer:
            raise wrong_types(context, node, "~", dtype, "only integers and bools have bits to flip")
        return BitNot(value, span)
    if dtype.is_bool or dtype.is_handle:
        raise wrong_types(
            context, node, "-" if kind is ast.USub else "+", dtype, "convert to a number first: `T.int32(x)`"
        )
    return Negate(value, span) if kind is ast.USub else value


def splat(value: Expr, lanes: int) -> Expr:
    """A scalar in every lane; a vector as it is."""
    return value if value.dtype.lanes == lanes else Broadcast(value, lanes)
