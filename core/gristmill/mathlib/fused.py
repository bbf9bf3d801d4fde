"""fma: a * b + c rounded once, for machines without the instruction, in float32 and float64.

Rounding to odd (towards the neighbour with an odd last bit, unless exact) keeps what a second rounding to at least two
bits less needs to know. Where float64 is at hand, float32 is computed in it: the product is exact, the sum is rounded
to odd, and the conversion rounds once.

In its own type it is algorithm 5 (Fma) of Boldo and Melquiond, "Emulation of FMA and correctly rounded sums: proved
algorithms using rounding to odd" (IEEE Transactions on Computers 57, 2008): with a * b = uh + ul exactly (Dekker,
"A floating-point technique for extending the available precision", 1971), c + ul = th + tl and uh + th = vh + vl exactly
(Knuth's sum), vh + odd(tl + vl) is a * b + c rounded once.

That holds where nothing overflows or underflows. So it runs on the significands, between 1 and 2, with c scaled by the
difference of exponents. Where that difference is so large that one side only decides which way the other is rounded, it
is made smaller, which does not change the side. At the end the power of two is applied, exactly, and overflows as it
should. What comes out below the least normal number has been rounded on the way to a multiple of the least number of
all, by adding a number whose last bit is worth that much, again with rounding to odd.
"""

from __future__ import annotations

from gristmill.ir.build import const, equal, greater, less, not_equal
from gristmill.ir.dtype import FLOAT32, FLOAT64, INT32, INT64, DType
from gristmill.ir.expr import BitAnd, BitOr, Cast, Expr, Max, Not, Reinterpret, Select, Var
from gristmill.ir.module import Function
from gristmill.mathlib.body import Body
from gristmill.mathlib.exponential import scale


def fma(dtype: DType, float64: bool = True) -> Function | None:
    """``float64`` says whether the function of float32 may use float64, which is much faster where it is as fast."""
    if dtype.element == FLOAT32 and float64:
        return _in_float64(dtype)
    return _in_own_type(dtype) if dtype.element in (FLOAT32, FLOAT64) else None


def _sum(body: Body, name: str, a: Expr, b: Expr) -> tuple[Var, Var]:
    """The sum of two variables, and exactly what it lacks (Knuth); of infinities and NaNs a NaN lacks."""
    total = body.let(name, a + b)
    part = body.let(f"{name}_part", total - a)
    return total, body.let(f"{name}_lost", (a - (total - part)) + (b - part))


def _sum_to_odd(body: Body, name: str, a: Expr, b: Expr) -> Var:
    """The sum of two variables, rounded to odd."""
    total, lost = _sum(body, name, a, b)
    integer = (INT64 if total.dtype.bits == 64 else INT32).with_lanes(total.dtype.lanes)
    bits = body.let(f"{name}_bits", Reinterpret(integer, total))
    # An even last bit of what was rounded to nearest: of the two neighbours, the one on the side of the rest is odd.
    step = (bits ^ Reinterpret(integer, lost)) >> (integer.bits - 1) | 1
    # A NaN lacks nothing here.
    is_even = (less(lost, 0.0) | greater(lost, 0.0)) & equal(bits & 1, 0)
    return body.let(f"{name}_odd", Select(is_even, Reinterpret(total.dtype, bits + step), total))


def _in_float64(dtype: DType) -> Function:
    body = Body("fma", dtype, 3)
    x, y, z = (body.let(f"{param.name}_wide", body.cast(param, FLOAT64)) for param in body.params)
    return body.result(Cast(dtype, _sum_to_odd(body, "sum", body.let("product", x * y), z)))


def _parts(body: Body, x: Var) -> tuple[Var, Var]:
    """The significand, of magnitude from 1 to 2, and the exponent. Of zero, 1 and an exponent below all others."""
    digits = body.fraction_bits + 1
    is_small = less(body.magnitude(x), body.least_normal)
    normal = body.let(f"{x.name}_normal", body.select(is_small, x * 2.0**digits, x))
    bits = body.let(f"{x.name}_bits", body.bits(normal))
    field = Reinterpret(body.signed, BitAnd(bits, const(body.magnitude_mask, body.unsigned)) >> body.fraction_bits)
    below = Select(is_small, const(body.bias + digits, body.signed), const(body.bias, body.signed))
    exponent = body.let(f"{x.name}_exponent", field - below)
    kept = const(body.sign_mask | (1 << body.fraction_bits) - 1, body.unsigned)
    one = const(body.bias << body.fraction_bits, body.unsigned)
    return body.let(f"{x.name}_significand", body.float_of(BitOr(BitAnd(bits, kept), one))), exponent


def _product(body: Body, a: Var, b: Var) -> tuple[Var, Var]:
    """The product, and exactly what it lacks (Dekker); the factors are cut into halves as Veltkamp did."""

    def halves(x: Var) -> tuple[Var, Var]:
        spread = body.let(f"{x.name}_spread", x * (2.0 ** ((body.fraction_bits + 2) // 2) + 1.0))
        high = body.let(f"{x.name}_high", spread - (spread - x))
        return high, body.let(f"{x.name}_low", x - high)

    (a_high, a_low), (b_high, b_low) = halves(a), halves(b)
    product = body.let("product", a * b)
    lost = a_low * b_low - (((product - a_high * b_high) - a_low * b_high) - a_high * b_low)
    return product, body.let("product_lost", lost)


def _in_own_type(dtype: DType) -> Function:
    body = Body("fma", dtype, 3)
    x, y, z = body.params
    digits = body.fraction_bits + 1
    # The product of the significands is a multiple of 2**-(2 digits - 2) below 4. A c that is further apart decides
    # only which way the product is rounded, or has only its own rounding decided by the product.
    gap = 2 * digits + 14
    a, a_exponent = _parts(body, x)
    b, b_exponent = _parts(body, y)
    c, c_exponent = _parts(body, z)
    exponent = body.let("exponent", Max(a_exponent + b_exponent, c_exponent - gap))
    distance = Max(c_exponent - exponent, const(-gap, body.signed))
    addend = body.let("addend", body.select(equal(z, 0.0), 0.0, c * body.power_of_two(distance)))

    u_high, u_low = _product(body, a, b)
    t_high, t_low = _sum(body, "t", addend, u_low)
    v_high, v_low = _sum(body, "v", u_high, t_high)
    rest = _sum_to_odd(body, "rest", t_low, v_low)
    rounded, lost = _sum(body, "rounded", v_high, rest)

    # In units of 2**exponent: the least normal number (or a lesser one, still below all that can come out here).
    power = Max(1 - body.bias - exponent, const(-gap - 2 * digits, body.signed))
    least = body.let("least", body.power_of_two(power))
    is_small = less(body.magnitude(rounded), least)
    base = body.let("base", body.with_sign(least, body.sign_bit(rounded)))
    moved = body.let("moved", base + rounded)
    moved_lost = body.let("moved_lost", rounded - (moved - base))
    small = (moved + _sum_to_odd(body, "correction", moved_lost, lost)) - base
    found = body.let("found", scale(body, body.select(is_small, small, rounded), exponent))
    # A number that is rounded to zero keeps its sign; an exact zero is positive.
    found = body.let("signed", body.with_sign(body.magnitude(found), body.sign_bit(rounded)))

    infinity = float("inf")
    are_finite = body.let("are_finite", less(body.magnitude(x), infinity) & less(body.magnitude(y), infinity))
    is_finite = body.let("is_finite", less(body.magnitude(z), infinity))
    # Zeros, infinities and NaNs need no care, but where the product alone would become infinite before it meets c.
    special = Select(are_finite & Not(is_finite), z, x * y + z)
    is_usual = are_finite & is_finite & not_equal(x, 0.0) & not_equal(y, 0.0)
    return body.result(Select(is_usual, found, special))
