"""Sums of products of bytes, for machines without an instruction for it."""

from __future__ import annotations

from gristmill.ir.build import const
from gristmill.ir.dtype import DType
from gristmill.ir.expr import Add, BitAnd, BitXor, Expr, Mul, ShiftLeft, ShiftRight, Sub, Var
from gristmill.ir.module import Function
from gristmill.mathlib.body import Body


def dot4(dtype: DType) -> Function:
    """``z`` and the four products of the bytes of ``x`` with those of ``y``, in int32 or uint32, lanes and all.

    The bytes are signed in int32, and unsigned in uint32.
    """
    return _dot("dot4", dtype, dtype.is_signed, dtype.is_signed)


def dot4_mixed(dtype: DType) -> Function:
    """The same with signed bytes of ``x`` and unsigned ones of ``y``, in either type."""
    return _dot("dot4_mixed", dtype, True, False)


def _dot(name: str, dtype: DType, x_is_signed: bool, y_is_signed: bool) -> Function:
    body = Body(name, dtype, 3)
    x, y, z = body.params
    total: Expr = z
    for place in range(4):
        total = body.let(f"sum{place}", Add(total, Mul(_byte(x, place, x_is_signed), _byte(y, place, y_is_signed))))
    return body.result(total)


def _byte(word: Var, place: int, is_signed: bool) -> Expr:
    """One byte, the lowest first."""
    dtype = word.dtype
    if is_signed and dtype.is_signed:
        return ShiftRight(ShiftLeft(word, const(24 - 8 * place, dtype)), const(24, dtype))
    byte = BitAnd(ShiftRight(word, const(8 * place, dtype)), const(255, dtype))
    # The highest bit counts -128 where it counted 128.
    return Sub(BitXor(byte, const(128, dtype)), const(128, dtype)) if is_signed else byte
