"""The sum of products of bytes, for machines without an instruction for it."""

from __future__ import annotations

from gristmill.ir.build import const
from gristmill.ir.dtype import DType
from gristmill.ir.expr import Add, BitAnd, Expr, Mul, ShiftLeft, ShiftRight, Var
from gristmill.ir.module import Function
from gristmill.mathlib.body import Body


def dot4(dtype: DType) -> Function:
    """``z`` and the four products of the bytes of ``x`` with those of ``y``, in int32 or uint32, lanes and all."""
    body = Body("dot4", dtype, 3)
    x, y, z = body.params
    total: Expr = z
    for place in range(4):
        total = body.let(f"sum{place}", Add(total, Mul(_byte(x, place), _byte(y, place))))
    return body.result(total)


def _byte(word: Var, place: int) -> Expr:
    """One byte, the lowest first; with its sign in int32."""
    dtype = word.dtype
    if not dtype.is_signed:
        return BitAnd(ShiftRight(word, const(8 * place, dtype)), const(255, dtype))
    return ShiftRight(ShiftLeft(word, const(24 - 8 * place, dtype)), const(24, dtype))
