"""sin and cos, in float32 and float64, right for every argument however large.

The argument is reduced to a quadrant and r, |r| <= pi/4 (:mod:`gristmill.mathlib.reduction`). There
sin(r) = r + r**3 s(r**2) and cos(r) = 1 - r**2/2 + r**4 c(r**2), polynomials s and c (coefficients:
benchmarks/mathlib_coefficients.py).
"""

from __future__ import annotations

from gristmill.ir.build import equal, less
from gristmill.ir.dtype import FLOAT32, FLOAT64, DType
from gristmill.ir.expr import Select
from gristmill.ir.module import Function
from gristmill.mathlib.body import Body
from gristmill.mathlib.reduction import quarter_turns

_S = {
    # Within 2**-37.5 of sin(r).
    FLOAT32: (-0.1666666716337204, 0.008333329111337662, -0.00019839311426039785, 2.7181104087503627e-06),
    # Within 2**-57.9.
    FLOAT64: (
        -0.1666666666666663,
        0.008333333333322103,
        -0.00019841269829576596,
        2.755731361674221e-06,
        -2.5050747012873762e-08,
        1.5896185414641847e-10,
    ),
}
_C = {
    # Within 2**-33 of cos(r).
    FLOAT32: (0.04166664555668831, -0.0013887315290048718, 2.4433042199234478e-05),
    # Within 2**-63.9.
    FLOAT64: (
        0.041666666666666595,
        -0.0013888888888873034,
        2.4801587288837504e-05,
        -2.7557314175094424e-07,
        2.087570025746307e-09,
        -1.1358505587443423e-11,
    ),
}


def _sine_of(name: str, dtype: DType, turns: int) -> Function | None:
    """sin(abs(x) + turns * pi/2); an odd function for none, an even one for one."""
    if dtype.element not in _S:
        return None
    body = Body(name, dtype)
    x = body.params[0]
    magnitude = body.let("magnitude", body.magnitude(x))
    reduced, r = quarter_turns(body, magnitude)
    quadrant = body.let("turned", reduced + turns) if turns else reduced
    square = body.let("square", r * r)
    sine = body.let("sine", r + r * square * body.polynomial(square, _S[dtype.element]))
    cosine = body.let("cosine", 1.0 - square * 0.5 + square * square * body.polynomial(square, _C[dtype.element]))
    found = Select(equal(quadrant & 1, 0), sine, cosine)
    sign = (quadrant & 2) << (dtype.bits - 2)
    if not turns:
        sign = sign ^ body.sign_bit(x)
    result = body.let("result", body.flip_sign(found, sign))
    # NaN for infinities and NaNs.
    return body.result(body.select(less(magnitude, float("inf")), result, float("nan")))


def sin(dtype: DType) -> Function | None:
    return _sine_of("sin", dtype, 0)


def cos(dtype: DType) -> Function | None:
    return _sine_of("cos", dtype, 1)
