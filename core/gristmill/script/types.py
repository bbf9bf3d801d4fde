"""Which types go together: promotion of operands, literals taking the other side's type, lossless conversion.

The rules, all of them (docs/language.md explains them to users):

* Two integers of one signedness meet in the wider type; an unsigned one meets a wider signed one in the signed type.
* An integer and a float meet in the float's type; two floats in the one that holds the other.
* A bool meets a number in the number's type.
* A scalar meets a vector in the vector's lanes.
* A number without a type (a literal, a folded constant) takes the other side's type, if it fits there.
* Everything else is refused, and wants a cast.
"""

from __future__ import annotations

import math

from gristmill.ir.build import cast, const, round_to
from gristmill.ir.dtype import BOOL, FLOAT32, INT32, INT64, DType
from gristmill.ir.expr import Expr
from gristmill.ir.span import Span
from gristmill.script.values import Number

_PRECISION = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}
_EXPONENT = {"float16": 5, "bfloat16": 8, "float32": 8, "float64": 11}


def meeting_type(a: DType, b: DType) -> DType | None:
    """The type in which two element types meet, or None where a cast is wanted."""
    if a == b:
        return a
    if a.is_bool and (b.is_integer or b.is_float):
        return b
    if b.is_bool and (a.is_integer or a.is_float):
        return a
    if a.is_integer and b.is_integer:
        if a.is_signed == b.is_signed:
            return a if a.bits > b.bits else b
        signed, unsigned = (a, b) if a.is_signed else (b, a)
        return signed if signed.bits > unsigned.bits else None
    if a.is_float and b.is_integer:
        return a
    if a.is_integer and b.is_float:
        return b
    if a.is_float and b.is_float:
        if converts_losslessly(a, b):
            return b
        if converts_losslessly(b, a):
            return a
    return None


def converts_losslessly(source: DType, to: DType) -> bool:
    """Whether every value of one element type exists in the other."""
    if source == to:
        return True
    if source.is_bool:
        return to.is_integer or to.is_float
    if source.is_integer and to.is_integer:
        if source.is_signed == to.is_signed:
            return to.bits >= source.bits
        return to.is_signed and to.bits > source.bits
    if source.is_integer and to.is_float:
        return source.bits - source.is_signed <= _PRECISION[str(to)]
    if source.is_float and to.is_float:
        return _PRECISION[str(source)] <= _PRECISION[str(to)] and _EXPONENT[str(source)] <= _EXPONENT[str(to)]
    return False


def misfit(value: Number, dtype: DType) -> str:
    """Why a number without a type does not fit an element type; an empty string if it does."""
    if dtype.is_bool:
        return "" if isinstance(value, bool) else "only True and False are bools"
    if dtype.is_integer:
        if isinstance(value, float):
            return "it is not a whole number" if value != value or math.isinf(value) or value % 1 else "it is a float"
        if not dtype.minimum <= value <= dtype.maximum:
            return f"{dtype} holds {dtype.minimum} to {dtype.maximum}"
        return ""
    if dtype.is_float:
        try:
            as_float = float(value)
        except OverflowError:
            return f"it is too large for {dtype}"
        if math.isinf(round_to(as_float, dtype)) and not math.isinf(as_float):
            return f"it is too large for {dtype}"
        return ""
    return f"a {dtype} takes no number"


def literal(value: Number, dtype: DType, span: Span | None) -> Expr:
    """The constant of the type; the number fits."""
    return const(value, dtype, span)


def default_type(value: Number, index: DType) -> DType:
    """The type of a number that nothing else gives one: bool, the index type (int64 where it does not fit), float32."""
    if isinstance(value, bool):
        return BOOL
    if isinstance(value, float):
        return FLOAT32
    if index == INT32 and not INT32.minimum <= value <= INT32.maximum:
        return INT64
    return index


def convert(value: Expr, dtype: DType) -> Expr:
    """The value in the type (scalars to vectors by broadcast), with the value's own span on the conversion."""
    return cast(value, dtype, value.span)
