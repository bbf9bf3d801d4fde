"""The operations of the language that every device has: rounding, bit counting, tests of floats, partial arithmetic.

Everything else (exp, sin, ...) has been replaced by functions of mathlib before a generator sees it: the drivers' own
functions are within few units in the last place of nothing that all of them would agree on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gristmill.ir.dtype import DType
from gristmill_spirv import floats, integers
from gristmill_spirv.dot_products import OPERATIONS as DOT_PRODUCTS
from gristmill_spirv.enumerants import Op
from gristmill_spirv.function_writer import FunctionWriter
from gristmill_spirv.glsl450 import GLSL450
from gristmill_spirv.registers import constant, register_type, select

Emit = Callable[..., int]
"""Writes one lane: from the writer, the type of the operands, and one lane of each operand."""


def _rounding(instruction: GLSL450) -> Emit:
    def emit(writer: FunctionWriter, dtype: DType, a: int) -> int:
        # A whole number near a narrow float is one of its values, or rounds up to the next power of two or infinity.
        found = integers.extended(writer, register_type(writer.module, dtype), instruction, a)
        return floats.with_sign_of(writer, dtype, floats.rounded(writer, dtype, found), a)

    return emit


def _absolute(writer: FunctionWriter, dtype: DType, a: int) -> int:
    if dtype.is_float:
        return floats.absolute(writer, dtype, a)
    if not dtype.is_signed:
        return a
    negative = writer.value(Op.SLessThan, writer.module.type_bool(), a, constant(writer, dtype, 0))
    return select(writer, dtype, negative, integers.negate(writer, dtype, a), a)


def _square_root(writer: FunctionWriter, dtype: DType, a: int) -> int:
    found = integers.extended(writer, register_type(writer.module, dtype), GLSL450.Sqrt, a)
    return floats.rounded(writer, dtype, found)


def _same(writer: FunctionWriter, dtype: DType, a: int) -> int:
    return a


def _shift_left(writer: FunctionWriter, dtype: DType, a: int, b: int) -> int:
    return integers.wrap(writer, dtype, writer.value(Op.ShiftLeftLogical, register_type(writer.module, dtype), a, b))


def _shift_right(writer: FunctionWriter, dtype: DType, a: int, b: int) -> int:
    op = Op.ShiftRightArithmetic if dtype.is_signed else Op.ShiftRightLogical
    return writer.value(op, register_type(writer.module, dtype), a, b)


NATIVE: Mapping[str, Emit] = {
    "floor": _rounding(GLSL450.Floor),
    "ceil": _rounding(GLSL450.Ceil),
    "round": _rounding(GLSL450.RoundEven),
    "trunc": _rounding(GLSL450.Trunc),
    "sqrt": _square_root,
    "abs": _absolute,
    "copysign": floats.with_sign_of,
    "isnan": floats.is_nan,
    "isinf": floats.is_infinite,
    "isfinite": floats.is_finite,
    "popcount": integers.count_ones,
    "clz": integers.leading_zeros,
    "ctz": integers.trailing_zeros,
    "likely": _same,
    **DOT_PRODUCTS,
    "quotient": integers.quotient,
    "remainder": integers.remainder,
    "shift_left": _shift_left,
    "shift_right": _shift_right,
}
"""Operation name to the function that writes one lane of it."""
