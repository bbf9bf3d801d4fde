"""rsqrt, and sqrt for machines without one, in float32 and float64.

A first value of 1 / sqrt(x) comes from halving the exponent (in the bits, as Walsh and Kahan showed); Newton's
iteration y += y (1 - x y**2) / 2 doubles its digits each time. Nothing is divided.
"""

from __future__ import annotations

from gristmill.ir.build import const, equal, less
from gristmill.ir.dtype import FLOAT32, FLOAT64, DType
from gristmill.ir.expr import BitOr, Expr, Var
from gristmill.ir.module import Function
from gristmill.mathlib.body import Body

# The least largest relative error of the first value over [1, 4): Lomont 2003, "Fast inverse square root".
_FIRST = {FLOAT32: 0x5F375A86, FLOAT64: 0x5FE6EB50C7B537A9}
_STEPS = {FLOAT32: 3, FLOAT64: 4}


def _reciprocal_root(body: Body, x: Expr) -> Var:
    """1 / sqrt(x) of a positive normal number; ``x`` is a variable."""
    element = body.dtype.element
    y = body.let("first", body.float_of(const(_FIRST[element], body.signed) - (body.signed_bits(x) >> 1)))
    half = body.let("half", x * 0.5)
    for step in range(_STEPS[element]):
        y = body.let(f"step_{step}", y + y * (0.5 - half * y * y))
    return y


def _normal(body: Body, x: Var) -> tuple[Var, Expr]:
    """A number below the least normal one, multiplied by an even power of two; and whether it was."""
    is_small = less(x, body.least_normal)
    power = 2.0 ** (body.fraction_bits + body.fraction_bits % 2)
    return body.let("normal", body.select(is_small, x * power, x)), is_small


def rsqrt(dtype: DType) -> Function | None:
    if dtype.element not in _FIRST:
        return None
    body = Body("rsqrt", dtype)
    x = body.params[0]
    normal, is_small = _normal(body, x)
    y = _reciprocal_root(body, normal)
    scale = 2.0 ** ((body.fraction_bits + body.fraction_bits % 2) // 2)
    found = body.select(is_small, y * scale, y)
    infinity = body.constant(float("inf"))
    zero = body.float_of(BitOr(body.bits(infinity), body.sign_bit(x)))
    found = body.select(equal(x, 0.0), zero, body.select(equal(x, float("inf")), 0.0, found))
    return body.result(body.select(less(x, 0.0), float("nan"), body.select(equal(x, x), found, x)))


def sqrt(dtype: DType) -> Function | None:
    """x / sqrt(x), with one more step of Newton's on the root itself."""
    if dtype.element not in _FIRST:
        return None
    body = Body("sqrt", dtype)
    x = body.params[0]
    normal, is_small = _normal(body, x)
    y = _reciprocal_root(body, normal)
    root = body.let("root", normal * y)
    better = body.let("better", root + y * 0.5 * (normal - root * root))
    scale = 2.0 ** -((body.fraction_bits + body.fraction_bits % 2) // 2)
    found = body.select(is_small, better * scale, better)
    # Zeros of both signs, infinity and NaN are their own roots.
    is_itself = equal(x, 0.0) | equal(x, float("inf"))
    return body.result(body.select(less(x, 0.0), float("nan"), body.select(is_itself, x, found)))
