"""log and log2, in float32 and float64.

x = 2**k * m with m in [sqrt(1/2), sqrt(2)); with f = m - 1, exact, log(m) = f - f**2 / 2 + f**3 q(f), a polynomial q
in float32. In float64, with s = f / (2 + f), log(m) = 2 atanh(s) = f - (f**2 / 2 - s (f**2 / 2 + 2 s**2 t(s**2))), a
polynomial t. (Coefficients: benchmarks/mathlib_coefficients.py.) k ln 2 is added in two parts, the first exact.
"""

from __future__ import annotations

from gristmill.ir.build import equal, less
from gristmill.ir.dtype import FLOAT32, FLOAT64, DType
from gristmill.ir.expr import Cast, Div, Expr, Var
from gristmill.ir.module import Function
from gristmill.mathlib.body import Body
from gristmill.mathlib.exponential import FORMATS, LOG2_E

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
# atanh(s) = s + s**3 t(s**2) on |s| <= 0.1717: within 2**-66.7 of it.
_T_FLOAT64 = (
    0.3333333333333333,
    0.20000000000003146,
    0.1428571428453577,
    0.11111111324518803,
    0.09090887740281656,
    0.07693549531465935,
    0.06624963216579445,
    0.06626554382394159,
)
_SQRT_HALF_BITS = {FLOAT32: 0x3F3504F3, FLOAT64: 0x3FE6A09E667F3BCD}
"""The bits of the float nearest to sqrt(1/2)."""


def split(body: Body, x: Expr) -> tuple[Var, Var]:
    """k (a float) and m of a positive finite number; ``x`` is a variable."""
    is_small = less(x, body.least_normal)
    normal = body.let("normal", body.select(is_small, x * body.whole_from, x))
    start = _SQRT_HALF_BITS[body.dtype.element]
    # Counted from the bits of sqrt(1/2), the exponent field changes where m passes the ends of its range.
    moved = body.let("moved", body.signed_bits(normal) - start)
    low_bits = (1 << body.fraction_bits) - 1
    m = body.let("m", body.float_of((moved & low_bits) + start))
    exponent = Cast(body.dtype, moved >> body.fraction_bits)
    return body.let("k", exponent - body.select(is_small, float(body.fraction_bits), 0.0)), m


def _special(body: Body, x: Expr, found: Expr) -> Expr:
    """The values of a logarithm where the formula does not hold."""
    found = body.select(equal(x, 0.0), float("-inf"), found)
    found = body.select(equal(x, float("inf")), x, found)
    # False for a NaN as well.
    return body.select(less(x, 0.0), float("nan"), body.select(equal(x, x), found, x))


def _of_significand(body: Body, m: Var) -> tuple[Var, Var]:
    """f and rest, where log(m) = f - rest."""
    f = body.let("f", m - 1.0)
    square = body.let("square", f * f)
    if body.dtype.element == FLOAT32:
        return f, body.let("rest", square * 0.5 - square * f * body.polynomial(f, _Q_FLOAT32))
    s = body.let("s", Div(f, f + 2.0))
    z = body.let("z", s * s)
    half = body.let("half", square * 0.5)
    series = z * 2.0 * body.polynomial(z, _T_FLOAT64)
    return f, body.let("rest", half - s * (half + series))


def log(dtype: DType) -> Function | None:
    if dtype.element not in FORMATS:
        return None
    body = Body("log", dtype)
    x = body.params[0]
    k, m = split(body, x)
    f, rest = _of_significand(body, m)
    form = FORMATS[dtype.element]
    return body.result(_special(body, x, k * form.ln_2_high - ((rest - k * form.ln_2_low) - f)))


def log2(dtype: DType) -> Function | None:
    if dtype.element not in FORMATS:
        return None
    body = Body("log2", dtype)
    x = body.params[0]
    k, m = split(body, x)
    f, rest = _of_significand(body, m)
    return body.result(_special(body, x, k + (f - rest) * LOG2_E))
