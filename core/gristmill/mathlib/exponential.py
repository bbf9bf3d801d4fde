"""exp, exp2, sigmoid, tanh.

exp(x) = 2**n * exp(r) with n = round(x / ln 2) and r = x - n ln 2, |r| <= ln 2 / 2; ln 2 is subtracted in two parts, the
first with so few bits that n times it is exact (Cody and Waite 1980). exp(r) = 1 + r + r**2 q(r) with a polynomial q
(coefficients: benchmarks/mathlib_coefficients.py). The power of two is applied in two factors, so that results below
the least normal number are rounded once and results above the greatest become infinite.
"""

from __future__ import annotations

from gristmill.ir.build import greater_equal, less, not_equal
from gristmill.ir.dtype import FLOAT32, DType
from gristmill.ir.expr import Div, Expr, Max, Min
from gristmill.ir.module import Function
from gristmill.mathlib.body import Body

LOG2_E = 1.4426950408889634
LN_2 = 0.6931471805599453

# exp(r) = 1 + r + r**2 q(r) on |r| <= 0.34707: within 2**-28.3 of exp(r).
_Q_FLOAT32 = (
    0.4999999403953552,
    0.1666651964187622,
    0.041668396443128586,
    0.008368815295398235,
    0.0013814405538141727,
)
# ln 2 in two parts; the first has 15 bits, so that up to 2**9 times it is exact in float32.
LN_2_HIGH_FLOAT32 = 0.693145751953125
LN_2_LOW_FLOAT32 = 1.428606765330187e-06


def exp_of_reduced(body: Body, r: Expr) -> Expr:
    """exp(r) for |r| <= 0.347; ``r`` is a variable."""
    return body.let("exp_r", r * r * body.polynomial(r, _Q_FLOAT32) + r + 1.0)


def scale(body: Body, value: Expr, exponent: Expr) -> Expr:
    """``value * 2**exponent`` for exponents from twice the least normal one to twice the greatest, rounded once."""
    half = body.let("half_exponent", exponent >> 1)
    return value * body.power_of_two(half) * body.power_of_two(exponent - half)


def _exp(body: Body, x: Expr) -> Expr:
    """exp(x), NaN for NaN; ``x`` is a variable."""
    # Beyond these exp is 0 and infinite; within, the exponent fits into two factors.
    bounded = body.let("bounded", Min(Max(x, body.constant(-104.0)), body.constant(89.0)))
    n, exponent = body.nearest("n", bounded * LOG2_E)
    r = body.let("r", bounded - n * LN_2_HIGH_FLOAT32 - n * LN_2_LOW_FLOAT32)
    found = scale(body, exp_of_reduced(body, r), exponent)
    return body.select(not_equal(x, x), x, found)


def exp(dtype: DType) -> Function | None:
    if dtype.element != FLOAT32:
        return None
    body = Body("exp", dtype)
    return body.result(_exp(body, body.params[0]))


def exp2(dtype: DType) -> Function | None:
    if dtype.element != FLOAT32:
        return None
    body = Body("exp2", dtype)
    x = body.params[0]
    bounded = body.let("bounded", Min(Max(x, body.constant(-151.0)), body.constant(129.0)))
    n, exponent = body.nearest("n", bounded)
    r = body.let("r", (bounded - n) * LN_2)
    found = scale(body, exp_of_reduced(body, r), exponent)
    return body.result(body.select(not_equal(x, x), x, found))


def sigmoid(dtype: DType) -> Function | None:
    """With e = exp(-abs(x)), which cannot overflow: 1 / (1 + e), or e / (1 + e) for negative x."""
    if dtype.element != FLOAT32:
        return None
    body = Body("sigmoid", dtype)
    x = body.params[0]
    e = body.let("e", _exp(body, body.let("minus_magnitude", -body.magnitude(x))))
    return body.result(Div(body.select(less(x, 0.0), e, 1.0), e + 1.0))


# tanh(x) = x + x**3 t(x**2) on |x| <= 0.626: within 2**-32.5 of tanh(x).
_T_FLOAT32 = (
    -0.3333333134651184,
    0.1333320438861847,
    -0.053946517407894135,
    0.02169930562376976,
    -0.008173825219273567,
    0.0021395895164459944,
)
_TANH_SMALL = 0.625


def tanh(dtype: DType) -> Function | None:
    """Small arguments by a polynomial, which keeps their relative error; others by 1 - 2 / (exp(2 x) + 1)."""
    if dtype.element != FLOAT32:
        return None
    body = Body("tanh", dtype)
    x = body.params[0]
    a = body.let("a", body.magnitude(x))
    square = body.let("square", a * a)
    small = body.let("small", a + a * square * body.polynomial(square, _T_FLOAT32))
    e = body.let("e", _exp(body, body.let("twice", a + a)))
    large = body.let("large", 1.0 - Div(body.constant(2.0), e + 1.0))
    found = body.select(greater_equal(a, _TANH_SMALL), large, small)
    return body.result(body.with_sign(found, body.sign_bit(x)))
