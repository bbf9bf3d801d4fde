"""log and log2.

x = 2**k * m with m in [sqrt(1/2), sqrt(2)); with f = m - 1, exact, log(m) = f - f**2 / 2 + f**3 q(f), a polynomial q
(coefficients: benchmarks/mathlib_coefficients.py). k ln 2 is added in two parts, the first exact.
"""

from __future__ import annotations

from gristmill.ir.build import equal, less
from gristmill.ir.dtype import FLOAT32, DType
from gristmill.ir.expr import Cast, Expr, Var
from gristmill.ir.module import Function
from gristmill.mathlib.body import Body
from gristmill.mathlib.exponential import LN_2_HIGH_FLOAT32, LN_2_LOW_FLOAT32, LOG2_E

# log(1 + f) = f - f**2 / 2 + f**3 q(f) on [sqrt(1/2) - 1, sqrt(2) - 1]: within 2**-30.3 of it.
_Q_FLOAT32 = (
    0.3333331346511841,
    -0.25000008940696716,
    0.2000211924314499,
    -0.1666799634695053,
    0.1421954482793808,
    -0.12405578047037125,
    0.11888205260038376,
    -0.11675745248794556,
    0.06746659427881241,
)
_SQRT_HALF_BITS_FLOAT32 = 0x3F3504F3
"""The bits of the float32 nearest to sqrt(1/2)."""


def split(body: Body, x: Expr) -> tuple[Var, Var]:
    """k (a float) and m of a positive finite number; ``x`` is a variable."""
    is_small = less(x, body.least_normal)
    normal = body.let("normal", body.select(is_small, x * body.whole_from, x))
    # Counted from the bits of sqrt(1/2), the exponent field changes where m passes the ends of its range.
    moved = body.let("moved", body.signed_bits(normal) - _SQRT_HALF_BITS_FLOAT32)
    low_bits = (1 << body.fraction_bits) - 1
    m = body.let("m", body.float_of((moved & low_bits) + _SQRT_HALF_BITS_FLOAT32))
    exponent = Cast(body.dtype, moved >> body.fraction_bits)
    return body.let("k", exponent - body.select(is_small, float(body.fraction_bits), 0.0)), m


def _special(body: Body, x: Expr, found: Expr) -> Expr:
    """The values of a logarithm where the formula does not hold."""
    found = body.select(equal(x, 0.0), float("-inf"), found)
    found = body.select(equal(x, float("inf")), x, found)
    # False for a NaN as well.
    return body.select(less(x, 0.0), float("nan"), body.select(equal(x, x), found, x))


def log(dtype: DType) -> Function | None:
    if dtype.element != FLOAT32:
        return None
    body = Body("log", dtype)
    x = body.params[0]
    k, m = split(body, x)
    f = body.let("f", m - 1.0)
    square = body.let("square", f * f)
    rest = body.let("rest", square * 0.5 - square * f * body.polynomial(f, _Q_FLOAT32))
    found = k * LN_2_HIGH_FLOAT32 - ((rest - k * LN_2_LOW_FLOAT32) - f)
    return body.result(_special(body, x, found))


def log2(dtype: DType) -> Function | None:
    if dtype.element != FLOAT32:
        return None
    body = Body("log2", dtype)
    x = body.params[0]
    k, m = split(body, x)
    f = body.let("f", m - 1.0)
    square = body.let("square", f * f)
    rest = square * 0.5 - square * f * body.polynomial(f, _Q_FLOAT32)
    return body.result(_special(body, x, k + (f - rest) * LOG2_E))
