"""fmod, exactly, in whole numbers.

With a = A 2**i and b = B 2**j, fmod is (A 2**(i - j) mod B) 2**j. The difference of exponents may be 276, so the power
is multiplied in steps of up to 40 bits, each followed by a remainder: seven steps, most of them by 2**0.
"""

from __future__ import annotations

from gristmill.ir.build import const, equal, greater, less
from gristmill.ir.dtype import FLOAT32, UINT64, DType
from gristmill.ir.expr import Cast, Max, Min, Mod, Select, Var
from gristmill.ir.module import Function
from gristmill.mathlib.body import Body
from gristmill.mathlib.exponential import scale

_STEP = 40
"""A remainder has 24 bits, so that many more fit into 64."""
_STEPS = 7


def _parts(body: Body, name: str, magnitude: Var) -> tuple[Var, Var]:
    """The whole significand (uint64) and the exponent field, of numbers below the least normal one 1."""
    bits = body.let(f"{name}_bits", body.signed_bits(magnitude))
    field = body.let(f"{name}_field", bits >> 23)
    fraction = bits & 0x7FFFFF
    whole = Select(equal(field, 0), fraction, fraction | 0x800000)
    exponent = body.let(f"{name}_exponent", Max(field, const(1, body.signed)))
    return body.let(f"{name}_whole", Cast(UINT64.with_lanes(body.dtype.lanes), whole)), exponent


def fmod(dtype: DType) -> Function | None:
    if dtype.element != FLOAT32:
        return None
    body = Body("fmod", dtype, 2)
    x, y = body.params
    a = body.let("a", body.magnitude(x))
    b = body.let("b", body.magnitude(y))
    a_whole, a_exponent = _parts(body, "a", a)
    b_whole, b_exponent = _parts(body, "b", b)
    zero = const(0, body.signed)
    left = body.let("left_0", Max(a_exponent - b_exponent, zero))
    rest = body.let("rest_0", Mod(a_whole, b_whole))
    for step in range(1, _STEPS + 1):
        count = body.let(f"count_{step}", Min(left, const(_STEP, body.signed)))
        rest = body.let(f"rest_{step}", Mod(rest << Cast(rest.dtype, count), b_whole))
        left = body.let(f"left_{step}", left - count)
    # The remainder is below 2**24, so exact as a float, and so is its product with the power of two.
    found = scale(body, Cast(body.dtype, Cast(body.signed, rest)), body.let("power", b_exponent - 150))
    # fmod(a, b) = a where a < b, of any exponents; NaN for an infinite a, a zero b, a NaN.
    found = body.let("found", body.select(less(a, b), a, found))
    is_defined = less(a, float("inf")) & greater(b, 0.0)
    return body.result(body.select(is_defined, body.with_sign(found, body.sign_bit(x)), float("nan")))
