"""pow: 2 to the power y log2(abs(x)), the logarithm and the product as unevaluated sums of two floats.

One float does not do: in float32 y log2(x) may be 128, and its error is multiplied by as much. Sums and products of pairs are
Dekker's (1971): a product is exact as a sum of two floats if its factors are cut into halves. With
s = (m - 1) / (m + 1), log2(m) = 2 / ln 2 (s + s**3 / 3 + s**5 t(s**2)), a polynomial t (coefficients:
benchmarks/mathlib_coefficients.py).
"""

from __future__ import annotations

from dataclasses import dataclass

from gristmill.ir.build import const, equal, greater, greater_equal, less, not_equal
from gristmill.ir.dtype import FLOAT32, FLOAT64, DType
from gristmill.ir.expr import BitAnd, Div, Expr, Max, Min, Not, Select, Var
from gristmill.ir.module import Function
from gristmill.mathlib.body import Body
from gristmill.mathlib.exponential import LN_2, exp_of_reduced, scale
from gristmill.mathlib.logarithm import split


@dataclass(frozen=True, slots=True)
class _Format:
    """What depends on the float format."""

    t: tuple[float, ...]
    """atanh(s) = s + s**3 / 3 + s**5 t(s**2) on |s| <= 0.1717."""
    third: tuple[float, float]
    """1 / 3 as a sum of two floats."""
    two_over_ln_2: tuple[float, float]
    """2 / ln 2 as a sum of two floats."""
    top_half: int
    """The bits of a float that leave half of the significand: 12 of 24, 26 of 53."""
    exponent_limit: float
    """Beyond this power of two, and its reciprocal, results are infinite and zero."""
    y_limit: float
    """From here on every base but 1 gives 0 or infinity: the least log2 other than 0, times this, is beyond that."""


_FORMATS = {
    FLOAT32: _Format(
        t=(0.20000076293945312, 0.14273540675640106, 0.11709986627101898),  # within 2**-36.7
        third=(0.3333333432674408, -9.934107758624577e-09),
        two_over_ln_2=(2.885390043258667, 3.851926067000022e-08),
        top_half=0xFFFFF000,
        exponent_limit=160.0,
        y_limit=2.0**40,
    ),
    FLOAT64: _Format(
        t=(  # within 2**-66.2
            0.20000000000001136,
            0.1428571428504547,
            0.11111111260790048,
            0.09090892106363758,
            0.07693382422493562,
            0.06628317036627118,
            0.0659905448692811,
        ),
        third=(0.3333333333333333, 1.850371707708594e-17),
        two_over_ln_2=(2.8853900817779268, 4.0710547481862066e-17),
        top_half=0xFFFFFFFFF8000000,
        exponent_limit=1200.0,
        y_limit=2.0**80,
    ),
}


def _format(body: Body) -> _Format:
    return _FORMATS[body.dtype.element]


def _sum(body: Body, name: str, a: Expr, b: Expr) -> tuple[Var, Var]:
    """a + b exactly, for variables with abs(a) >= abs(b) or a = 0 (Dekker's fast two-sum)."""
    total = body.let(f"{name}_high", a + b)
    return total, body.let(f"{name}_low", b - (total - a))


def _halves(body: Body, name: str, a: Expr) -> tuple[Var, Var]:
    """``a`` as a sum of two numbers with half of its bits."""
    top = body.let(f"{name}_top", body.float_of(BitAnd(body.bits(a), const(_format(body).top_half, body.unsigned))))
    return top, body.let(f"{name}_bottom", a - top)


def _product(body: Body, name: str, a: Expr, b: Expr) -> tuple[Var, Var]:
    """a * b exactly (unless it underflows), for variables or constants."""
    a_top, a_bottom = _halves(body, f"{name}_a", a)
    b_top, b_bottom = _halves(body, f"{name}_b", b)
    found = body.let(name, a * b)
    error = ((a_top * b_top - found) + a_top * b_bottom + a_bottom * b_top) + a_bottom * b_bottom
    return found, body.let(f"{name}_error", error)


def _log2(body: Body, magnitude: Var) -> tuple[Var, Var]:
    """log2 of a positive finite number as a pair."""
    form = _format(body)
    k, m = split(body, magnitude)
    f = body.let("f", m - 1.0)
    d = body.let("d", m + 1.0)
    d_low = body.let("d_low", m - (d - 1.0))
    # The quotient and what division leaves of the numerator, so that the quotient need not be the nearest one.
    s = body.let("s", Div(f, d))
    back, back_error = _product(body, "back", s, d)
    s_low = body.let("s_low", Div((f - back) - back_error - s * d_low, d))
    # s**3 / 3 as a pair as well; what follows is small enough for one float.
    square, square_error = _product(body, "square", s, s)
    cube, cube_error = _product(body, "cube", square, s)
    cube_low = body.let("cube_low", cube_error + square_error * s + square * s_low * 3.0)
    third, third_error = _product(body, "third", cube, body.let("third_high", body.constant(form.third[0])))
    u, u_rest = _sum(body, "sum", s, third)
    small = third_error + cube * form.third[1] + cube_low * form.third[0]
    rest = body.let("rest", u_rest + (s_low + small + cube * square * body.polynomial(square, form.t)))
    u, u_low = _sum(body, "u", u, rest)
    high = body.let("constant", body.constant(form.two_over_ln_2[0]))
    p, p_error = _product(body, "p", high, u)
    p_low = body.let("p_low", p_error + (u * form.two_over_ln_2[1] + u_low * form.two_over_ln_2[0]))
    # k is 0 or at least as large as p.
    total, total_low = _sum(body, "total", k, p)
    return _sum(body, "log2", total, body.let("log2_rest", total_low + p_low))


def _magnitude(body: Body, magnitude: Var, y: Var) -> Expr:
    """abs(x) to the power y for finite positive abs(x)."""
    logarithm, logarithm_low = _log2(body, magnitude)
    form = _format(body)
    bounded = body.let("bounded", Min(Max(y, body.constant(-form.y_limit)), body.constant(form.y_limit)))
    t, t_error = _product(body, "t", logarithm, bounded)
    t_low = body.let("t_low", t_error + logarithm_low * bounded)
    high = body.let("t_bounded", Min(Max(t, body.constant(-form.exponent_limit)), body.constant(form.exponent_limit)))
    low = body.let("t_rest", body.select(equal(high, t), t_low, 0.0))
    n, exponent = body.nearest("n", high)
    r = body.let("r", ((high - n) + low) * LN_2)
    return scale(body, exp_of_reduced(body, r), exponent)


def _is_whole(body: Body, magnitude: Expr) -> Expr:
    """Whether a number without sign is whole, as infinity and all large ones are."""
    rounded = (magnitude + body.whole_from) - body.whole_from
    return greater_equal(magnitude, body.whole_from) | equal(rounded, magnitude)


def power(dtype: DType) -> Function | None:
    """With the special cases of IEEE 754-2019, 9.2.1."""
    if dtype.element not in _FORMATS:
        return None
    body = Body("pow", dtype, 2)
    x, y = body.params
    magnitude = body.let("magnitude", body.magnitude(x))
    y_magnitude = body.let("y_magnitude", body.magnitude(y))
    is_whole = body.let("is_whole", _is_whole(body, y_magnitude))
    half = body.let("half", y_magnitude * 0.5)
    is_odd = body.let("is_odd", is_whole & Not(_is_whole(body, half)))
    infinity = float("inf")
    found = _magnitude(body, magnitude, y)
    is_falling = body.let("is_falling", less(y, 0.0))
    found = body.select(equal(magnitude, 0.0), body.select(is_falling, infinity, 0.0), found)
    found = body.let("unsigned", body.select(equal(magnitude, infinity), body.select(is_falling, 0.0, infinity), found))
    sign = Select(is_odd, body.sign_bit(x), const(0, body.unsigned))
    signed = body.flip_sign(found, sign)
    is_undefined = less(x, 0.0) & greater(x, -infinity) & Not(is_whole)
    is_nan = is_undefined | not_equal(x, x) | not_equal(y, y)
    result = body.select(is_nan, float("nan"), signed)
    return body.result(body.select(equal(y, 0.0) | equal(x, 1.0), 1.0, result))
