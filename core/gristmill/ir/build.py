"""Small constructors that passes and libraries build IR with: constants, comparisons, sequences, folded arithmetic.

They take Python numbers where the type is clear from the other side, and fold constants; they never cast on their own.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable
from typing import Any

from gristmill.ir.dtype import BOOL, VOID, DType
from gristmill.ir.expr import (
    AddressOf,
    And,
    Broadcast,
    Call,
    Cast,
    CompareExpr,
    Equal,
    Expr,
    FloatImm,
    Greater,
    GreaterEqual,
    IntImm,
    Less,
    LessEqual,
    NotEqual,
    Or,
    Select,
)
from gristmill.ir.op import OPS, Result
from gristmill.ir.span import Span
from gristmill.ir.stmt import Seq, Stmt

Number = int | float | bool


def round_to(value: float, dtype: DType) -> float:
    """``value`` rounded to nearest even in the scalar float type ``dtype``, to infinity when too large."""
    if dtype.bits == 64 or math.isnan(value) or math.isinf(value):
        return value
    if dtype.bits == 32:
        return _round_by_struct(value, "<f")
    if str(dtype) == "float16":
        return _round_by_struct(value, "<e")
    return _round_to_bfloat16(value)


def _round_by_struct(value: float, form: str) -> float:
    try:
        return float(struct.unpack(form, struct.pack(form, value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def _round_to_bfloat16(value: float) -> float:
    # bfloat16 has 8 bits of precision and the exponents of float32 (least denormal 2**-133). Rounding the double in
    # one step avoids the double rounding of a detour through float32.
    _, exponent = math.frexp(value)
    step = math.ldexp(1.0, max(exponent - 8, -133))
    scaled = value / step
    rounded = float(round(scaled)) * step
    return math.copysign(math.inf, value) if abs(rounded) > 3.3895313892515355e38 else math.copysign(rounded, value)


def const(value: Number, dtype: DType, span: Span | None = None) -> Expr:
    """A constant of the type: integers wrap, floats round to nearest even; for a vector type a broadcast."""
    element = dtype.element
    scalar: Expr
    if element.is_float:
        scalar = FloatImm(round_to(float(value), element), element, span)
    else:
        scalar = IntImm(element.wrap(int(value)), element, span)
    return scalar if dtype.lanes == 1 else Broadcast(scalar, dtype.lanes, span)


def true(span: Span | None = None) -> IntImm:
    return IntImm(1, BOOL, span)


def false(span: Span | None = None) -> IntImm:
    return IntImm(0, BOOL, span)


def constant_value(expr: Expr) -> Number | None:
    """The number of a constant (or of a broadcast of one), else None."""
    if isinstance(expr, Broadcast):
        expr = expr.value
    return expr.value if isinstance(expr, (IntImm, FloatImm)) else None


def is_constant(expr: Expr, value: Number) -> bool:
    found = constant_value(expr)
    return found is not None and found == value


def _expr(value: Expr | Number, like: Expr) -> Expr:
    return value if isinstance(value, Expr) else const(value, like.dtype)


def _compare(kind: type[Any], a: Expr | Number, b: Expr | Number) -> CompareExpr:
    if isinstance(a, Expr):
        return kind(a, _expr(b, a))  # type: ignore[no-any-return]
    if isinstance(b, Expr):
        return kind(_expr(a, b), b)  # type: ignore[no-any-return]
    raise TypeError("a comparison needs an expression on one side")


def equal(a: Expr | Number, b: Expr | Number) -> CompareExpr:
    return _compare(Equal, a, b)


def not_equal(a: Expr | Number, b: Expr | Number) -> CompareExpr:
    return _compare(NotEqual, a, b)


def less(a: Expr | Number, b: Expr | Number) -> CompareExpr:
    return _compare(Less, a, b)


def less_equal(a: Expr | Number, b: Expr | Number) -> CompareExpr:
    return _compare(LessEqual, a, b)


def greater(a: Expr | Number, b: Expr | Number) -> CompareExpr:
    return _compare(Greater, a, b)


def greater_equal(a: Expr | Number, b: Expr | Number) -> CompareExpr:
    return _compare(GreaterEqual, a, b)


def conjunction(conditions: Iterable[Expr]) -> Expr:
    """All of the conditions, tested in order; true for none."""
    found: Expr | None = None
    for condition in conditions:
        if is_constant(condition, 1):
            continue
        found = condition if found is None else And(found, condition)
    return true() if found is None else found


def disjunction(conditions: Iterable[Expr]) -> Expr:
    """Any of the conditions, tested in order; false for none."""
    found: Expr | None = None
    for condition in conditions:
        if is_constant(condition, 0):
            continue
        found = condition if found is None else Or(found, condition)
    return false() if found is None else found


def select(condition: Expr, a: Expr | Number, b: Expr | Number) -> Select:
    if isinstance(a, Expr):
        return Select(condition, a, _expr(b, a))
    if isinstance(b, Expr):
        return Select(condition, _expr(a, b), b)
    raise TypeError("a selection needs an expression on one side")


def cast(value: Expr, dtype: DType, span: Span | None = None) -> Expr:
    """The value in the type: itself if it has it already; a scalar given to a vector type is broadcast."""
    if value.dtype == dtype:
        return value
    if value.dtype.lanes == 1 and dtype.lanes > 1:
        return Broadcast(cast(value, dtype.element, span), dtype.lanes, span)
    return Cast(dtype, value, span)


def call(name: str, *args: Expr, dtype: DType | None = None, span: Span | None = None) -> Call:
    """A call of the operation ``name``; its result type follows from the operands, or is ``dtype``."""
    op = OPS[name]
    if dtype is None:
        if op.result is Result.STATED:
            raise TypeError(f"the operation {name} needs its result type stated")
        element = args[0]
        first = (
            element.buffer.dtype if op.result is Result.ELEMENT and isinstance(element, AddressOf) else element.dtype
        )
        dtype = (
            BOOL.with_lanes(first.lanes) if op.result is Result.BOOL else VOID if op.result is Result.VOID else first
        )
    return Call(op, args, dtype, span)


def sequence(*statements: Stmt | None, span: Span | None = None) -> Stmt:
    """Statements one after the other: nested sequences are flattened, None is dropped, one alone stays itself."""
    flat: list[Stmt] = []
    for statement in statements:
        if isinstance(statement, Seq):
            flat.extend(statement.body)
        elif statement is not None:
            flat.append(statement)
    return flat[0] if len(flat) == 1 else Seq(tuple(flat), span)
