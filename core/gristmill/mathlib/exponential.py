"""exp, exp2, sigmoid, tanh, in float32 and float64.

exp(x) = 2**n * exp(r) with n = round(x / ln 2) and r = x - n ln 2, |r| <= ln 2 / 2; ln 2 is subtracted in two parts, the
first with so few bits that n times it is exact (Cody and Waite 1980). exp(r) = 1 + r + r**2 q(r) with a polynomial q
(coefficients: benchmarks/mathlib_coefficients.py). The power of two is applied in two factors, so that results below
the least normal number are rounded once and results above the greatest become infinite.
"""

from __future__ import annotations

from dataclasses import dataclass

from gristmill.ir.build import greater_equal, less, not_equal
from gristmill.ir.dtype import FLOAT32, FLOAT64, DType
from gristmill.ir.expr import Div, Expr, Max, Min, Var
from gristmill.ir.module import Function
from gristmill.mathlib.body import Body

LOG2_E = 1.4426950408889634
LN_2 = 0.6931471805599453


@dataclass(frozen=True, slots=True)
class _Format:
    """What depends on the float format."""

    q: tuple[float, ...]
    """exp(r) = 1 + r + r**2 q(r) on |r| <= 0.34707."""
    t: tuple[float, ...]
    """tanh(x) = x + x**3 t(x**2) on |x| <= 0.626."""
    ln_2_high: float
    """The first bits of ln 2, so few that products with exponents are exact."""
    ln_2_low: float
    exp_range: tuple[float, float]
    """Beyond these exp is 0 and infinite; within, the exponent fits into two factors."""
    exp2_range: tuple[float, float]


FORMATS = {
    FLOAT32: _Format(
        # Within 2**-28.3.
        q=(
            0.4999999403953552,
            0.1666651964187622,
            0.041668396443128586,
            0.008368815295398235,
            0.0013814405538141727,
        ),
        # Within 2**-32.5.
        t=(
            -0.3333333134651184,
            0.1333320438861847,
            -0.053946517407894135,
            0.02169930562376976,
            -0.008173825219273567,
            0.0021395895164459944,
        ),
        ln_2_high=0.693145751953125,  # 15 bits
        ln_2_low=1.428606765330187e-06,
        exp_range=(-104.0, 89.0),
        exp2_range=(-151.0, 129.0),
    ),
    FLOAT64: _Format(
        # Within 2**-64.
        q=(
            0.5,
            0.16666666666666682,
            0.04166666666666609,
            0.008333333333316857,
            0.0013888888889118096,
            0.00019841269896832224,
            2.480158692357847e-05,
            2.755723440479861e-06,
            2.755758327127651e-07,
            2.5112199069133698e-08,
            2.082649209734182e-09,
        ),
        # Within 2**-61.2.
        t=(
            -0.33333333333333315,
            0.13333333333329625,
            -0.053968253965994105,
            0.021869488466944812,
            -0.008863234284571284,
            0.0035921137222093636,
            -0.0014557241499296453,
            0.0005894440753660261,
            -0.00023698991582298692,
            9.151948221542462e-05,
            -3.0147432984418482e-05,
            6.02472424573966e-06,
        ),
        ln_2_high=0.693147180559663,  # 41 bits
        ln_2_low=2.8235290563031577e-13,
        exp_range=(-746.0, 710.0),
        exp2_range=(-1076.0, 1025.0),
    ),
}
_TANH_SMALL = 0.625


def exp_of_reduced(body: Body, r: Expr) -> Expr:
    """exp(r) for |r| <= 0.347; ``r`` is a variable."""
    return body.let("exp_r", r * r * body.polynomial(r, FORMATS[body.dtype.element].q) + r + 1.0)


def scale(body: Body, value: Expr, exponent: Expr) -> Expr:
    """``value * 2**exponent`` for exponents from twice the least normal one to twice the greatest, rounded once."""
    half = body.let("half_exponent", exponent >> 1)
    return value * body.power_of_two(half) * body.power_of_two(exponent - half)


def _bounded(body: Body, x: Expr, limits: tuple[float, float]) -> Var:
    return body.let("bounded", Min(Max(x, body.constant(limits[0])), body.constant(limits[1])))


def _exp(body: Body, x: Expr) -> Expr:
    """exp(x), NaN for NaN; ``x`` is a variable."""
    form = FORMATS[body.dtype.element]
    bounded = _bounded(body, x, form.exp_range)
    n, exponent = body.nearest("n", bounded * LOG2_E)
    r = body.let("r", bounded - n * form.ln_2_high - n * form.ln_2_low)
    found = scale(body, exp_of_reduced(body, r), exponent)
    return body.select(not_equal(x, x), x, found)


def exp(dtype: DType) -> Function | None:
    if dtype.element not in FORMATS:
        return None
    body = Body("exp", dtype)
    return body.result(_exp(body, body.params[0]))


def exp2(dtype: DType) -> Function | None:
    if dtype.element not in FORMATS:
        return None
    body = Body("exp2", dtype)
    x = body.params[0]
    bounded = _bounded(body, x, FORMATS[dtype.element].exp2_range)
    n, exponent = body.nearest("n", bounded)
    r = body.let("r", (bounded - n) * LN_2)
    found = scale(body, exp_of_reduced(body, r), exponent)
    return body.result(body.select(not_equal(x, x), x, found))


def sigmoid(dtype: DType) -> Function | None:
    """With e = exp(-abs(x)), which cannot overflow: 1 / (1 + e), or e / (1 + e) for negative x."""
    if dtype.element not in FORMATS:
        return None
    body = Body("sigmoid", dtype)
    x = body.params[0]
    e = body.let("e", _exp(body, body.let("minus_magnitude", -body.magnitude(x))))
    return body.result(Div(body.select(less(x, 0.0), e, 1.0), e + 1.0))


def tanh(dtype: DType) -> Function | None:
    """Small arguments by a polynomial, which keeps their relative error; others by 1 - 2 / (exp(2 x) + 1)."""
    if dtype.element not in FORMATS:
        return None
    body = Body("tanh", dtype)
    x = body.params[0]
    a = body.let("a", body.magnitude(x))
    square = body.let("square", a * a)
    small = body.let("small", a + a * square * body.polynomial(square, FORMATS[dtype.element].t))
    e = body.let("e", _exp(body, body.let("twice", a + a)))
    large = body.let("large", 1.0 - Div(body.constant(2.0), e + 1.0))
    found = body.select(greater_equal(a, _TANH_SMALL), large, small)
    return body.result(body.with_sign(found, body.sign_bit(x)))
