"""sin and cos, right for every float32 however large.

The reduction is Payne and Hanek's (1983): abs(x) = m 2**(e - 23) with a 24-bit whole m, and of x * 2/pi only what is
left modulo 4 matters, so of the bits of 2/pi only the 96 that begin at the weight 2 (in units of m) are multiplied.
The product modulo 2**64 is a fixed-point number: 2 bits of quadrant, 62 bits of fraction, which suffices for the float32
nearest to a multiple of pi/2 (its distance is over 2**-33). All of it is whole-number arithmetic without branches.

Within the quadrant, sin(r) = r + r**3 s(r**2) and cos(r) = 1 - r**2/2 + r**4 c(r**2), polynomials s and c
(coefficients: benchmarks/mathlib_coefficients.py).
"""

from __future__ import annotations

from collections.abc import Sequence

from gristmill.ir.build import const, equal, less
from gristmill.ir.dtype import FLOAT32, INT32, INT64, UINT64, DType
from gristmill.ir.expr import Cast, Expr, Reinterpret, Select, Var
from gristmill.ir.module import Function
from gristmill.mathlib.body import Body

# On |r| <= pi/4: within 2**-37.5 of sin(r), and 2**-33 of cos(r).
_S_FLOAT32 = (-0.1666666716337204, 0.008333329111337662, -0.00019839307060465217, 2.7180722099728882e-06)
_C_FLOAT32 = (0.04166664555668831, -0.0013887311797589064, 2.4432662030449137e-05)

# The binary digits of 2/pi (OEIS A060294 in binary), after 32 zeros for arguments near 1.
_TWO_OVER_PI = (0, 0xA2F9836E, 0x4E441529, 0xFC2757D1, 0xF534DDC0, 0xDB629599, 0x3C439041, 0xFE5163AB)
_PI_OVER_2 = 1.5707963267948966
_PI_OVER_4 = 0.7853981633974483


def _window(body: Body, exponent: Expr) -> list[Var]:
    """Three words of 2/pi, the first bit with the weight 2 in units of m; for exponent fields from 126 up."""
    position = body.let("position", exponent - 120)
    word = body.let("word", position >> 5)
    shift = body.let("shift", Cast(body.unsigned, position & 31))
    is_word = [body.let(f"is_word_{number}", equal(word, number)) for number in range(4)]

    def chosen(words: Sequence[int]) -> Expr:
        found = const(words[4], body.unsigned)
        for number in range(3, -1, -1):
            found = Select(is_word[number], const(words[number], body.unsigned), found)
        return found

    words = [body.let(f"digits_{number}", chosen(_TWO_OVER_PI[number : number + 5])) for number in range(4)]
    # A shift by 32 gives 0, as it must where the window begins with a word.
    return [
        body.let(f"window_{number}", words[number] << shift | words[number + 1] >> (32 - shift)) for number in range(3)
    ]


def _reduce(body: Body, magnitude: Var) -> tuple[Var, Var]:
    """The quadrant (of which two bits count) and r, |r| <= pi/4, of a finite ``magnitude``."""
    long = UINT64.with_lanes(body.dtype.lanes)
    bits = body.let("bits", body.bits(magnitude))
    exponent = body.let("exponent", Cast(body.signed, bits >> 23))
    m = body.let("m", Cast(long, bits & 0x7FFFFF | 0x800000))
    high, middle, low = (Cast(long, word) for word in _window(body, exponent))
    product = body.let("product", (m * high << 32) + m * middle + (m * low >> 32))
    quadrant = body.let("whole", product + (1 << 61) >> 62)
    fraction = body.let("fraction", product - (quadrant << 62))
    signed_fraction = Reinterpret(INT64.with_lanes(body.dtype.lanes), fraction)
    # Three pieces that are exact as float32: the top 24 bits with their sign, 22 bits, 18 bits.
    top = Cast(body.dtype, Cast(INT32.with_lanes(body.dtype.lanes), signed_fraction >> 40))
    middle_bits = Cast(body.dtype, Cast(body.signed, fraction >> 18 & 0x3FFFFF))
    low_bits = Cast(body.dtype, Cast(body.signed, fraction & 0x3FFFF))
    turns = top * 2.0**-22 + (middle_bits * 2.0**-44 + low_bits * 2.0**-62)
    is_small = less(magnitude, _PI_OVER_4)
    r = body.let("r", body.select(is_small, magnitude, turns * _PI_OVER_2))
    zero = const(0, body.unsigned)
    return body.let("quadrant", Select(is_small, zero, Cast(body.unsigned, quadrant))), r


def _sine_of(name: str, dtype: DType, quarter_turns: int) -> Function | None:
    """sin(abs(x) + quarter_turns * pi/2); an odd function for none, an even one for one."""
    if dtype.element != FLOAT32:
        return None
    body = Body(name, dtype)
    x = body.params[0]
    magnitude = body.let("magnitude", body.magnitude(x))
    reduced, r = _reduce(body, magnitude)
    quadrant = body.let("turned", reduced + quarter_turns) if quarter_turns else reduced
    square = body.let("square", r * r)
    sine = body.let("sine", r + r * square * body.polynomial(square, _S_FLOAT32))
    cosine = body.let("cosine", 1.0 - square * 0.5 + square * square * body.polynomial(square, _C_FLOAT32))
    found = Select(equal(quadrant & 1, 0), sine, cosine)
    sign = (quadrant & 2) << 30
    if not quarter_turns:
        sign = sign ^ body.sign_bit(x)
    result = body.let("result", body.flip_sign(found, sign))
    # NaN for infinities and NaNs.
    return body.result(body.select(less(magnitude, float("inf")), result, float("nan")))


def sin(dtype: DType) -> Function | None:
    return _sine_of("sin", dtype, 0)


def cos(dtype: DType) -> Function | None:
    return _sine_of("cos", dtype, 1)
