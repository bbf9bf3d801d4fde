"""Arguments of sin and cos modulo a quarter turn, exact however large they are.

Payne and Hanek's reduction (1983): abs(x) = m 2**e with a whole m, and of x * 2/pi only what is left modulo 4 matters,
so of the binary digits of 2/pi only those that begin at the weight 2 (in units of m) are multiplied. The product is a
fixed-point number, 2 bits of quadrant and the rest fraction, long enough for the float nearest to a multiple of pi/2
(whose distance is over 2**-33 in float32 and over 2**-62 in float64). All of it is whole-number arithmetic without
branches.
"""

from __future__ import annotations

from collections.abc import Sequence

from gristmill.ir.build import const, equal, less, not_equal
from gristmill.ir.dtype import FLOAT32, INT32, INT64, UINT64
from gristmill.ir.expr import Cast, Expr, Reinterpret, Select, Var
from gristmill.mathlib.body import Body

# The binary digits of 2/pi, 32 a word (OEIS A060294 in binary).
_TWO_OVER_PI = (
    *(0xA2F9836E, 0x4E441529, 0xFC2757D1, 0xF534DDC0, 0xDB629599, 0x3C439041, 0xFE5163AB, 0xDEBBC561, 0xB7246E3A),
    *(0x424DD2E0, 0x06492EEA, 0x09D1921C, 0xFE1DEB1C, 0xB129A73E, 0xE88235F5, 0x2EBB4484, 0xE99C7026, 0xB45F7E41),
    *(0x3991D639, 0x835339F4, 0x9C845F8B, 0xBDF9283B, 0x1FF897FF, 0xDE05980F, 0xEF2F118B, 0x5A0A6D1F, 0x6D367ECF),
    *(0x27CB09B7, 0x4F463F66, 0x9E5FEA2D, 0x7527BAC7, 0xEBE5F17B, 0x3D0739F7, 0x8A5292EA, 0x6BFB5FB1, 0x1F8D5D08),
    *(0x56033046, 0xFC7B6BAB, 0xF0CFBC20),
)
_PI_OVER_2 = 1.5707963267948966
_PI_OVER_4 = 0.7853981633974483


def quarter_turns(body: Body, magnitude: Var) -> tuple[Var, Var]:
    """The quadrant (of which two bits count) and r, |r| <= pi/4, of a finite number without sign."""
    by_format = _fixed_point_float32 if body.dtype.element == FLOAT32 else _fixed_point_float64
    quadrant, turns = by_format(body, magnitude)
    is_small = less(magnitude, _PI_OVER_4)
    r = body.let("r", body.select(is_small, magnitude, turns * _PI_OVER_2))
    return body.let("quadrant", Select(is_small, const(0, body.unsigned), Cast(body.unsigned, quadrant))), r


def _nearest_quadrant(body: Body, fixed: Var) -> tuple[Var, Var]:
    """Of a fixed-point number with 62 bits of fraction: the quadrant, and the signed rest."""
    quadrant = body.let("whole", fixed + (1 << 61) >> 62)
    rest = Reinterpret(INT64.with_lanes(body.dtype.lanes), fixed - (quadrant << 62))
    return quadrant, body.let("fraction", rest)


def _window_float32(body: Body, exponent: Expr) -> list[Var]:
    """96 digits of 2/pi in three words, the first with the weight 2 in units of m; for exponent fields from 126 up."""
    digits = (0, *_TWO_OVER_PI)
    position = body.let("position", exponent - 120)
    word = body.let("word", position >> 5)
    shift = body.let("shift", Cast(body.unsigned, position & 31))
    is_word = [body.let(f"is_word_{number}", equal(word, number)) for number in range(4)]

    def chosen(words: Sequence[int]) -> Expr:
        found = const(words[4], body.unsigned)
        for number in range(3, -1, -1):
            found = Select(is_word[number], const(words[number], body.unsigned), found)
        return found

    words = [body.let(f"digits_{number}", chosen(digits[number : number + 5])) for number in range(4)]
    # A shift by 32 gives 0, as it must where the window begins with a word.
    return [
        body.let(f"window_{number}", words[number] << shift | words[number + 1] >> (32 - shift)) for number in range(3)
    ]


def _fixed_point_float32(body: Body, magnitude: Var) -> tuple[Var, Expr]:
    """The quadrant, and what is left of a quarter turn."""
    long = UINT64.with_lanes(body.dtype.lanes)
    bits = body.let("bits", body.bits(magnitude))
    exponent = body.let("exponent", Cast(body.signed, bits >> 23))
    m = body.let("m", Cast(long, bits & 0x7FFFFF | 0x800000))
    high, middle, low = (Cast(long, word) for word in _window_float32(body, exponent))
    product = body.let("product", (m * high << 32) + m * middle + (m * low >> 32))
    quadrant, fraction = _nearest_quadrant(body, product)

    def piece(value: Expr) -> Expr:
        return Cast(body.dtype, Cast(INT32.with_lanes(body.dtype.lanes), value))

    # Three pieces that are exact as float32, of 24, 22 and 18 bits. They have one sign: pieces of two signs would
    # cancel where little is left, and leave their rounding errors.
    size = body.let("size", Select(less(fraction, 0), -fraction, fraction))
    rest = piece(size >> 18 & 0x3FFFFF) * 2.0**-44 + piece(size & 0x3FFFF) * 2.0**-62
    return quadrant, _signed(body, fraction, piece(size >> 40) * 2.0**-22 + rest)


def _signed(body: Body, fraction: Var, size: Expr) -> Expr:
    size = body.let("turns", size)
    return Select(less(fraction, 0), -size, size)


def _window_float64(body: Body, exponent: Expr) -> list[Var]:
    """192 digits in six words; for exponent fields from 1022 up."""
    position = body.let("position", exponent - 1013)
    word = body.let("word", position >> 5)
    shift = body.let("shift", position & 31)
    words: list[Expr] = [const(digits, body.unsigned) for digits in (0, 0, *_TWO_OVER_PI)]
    # Bit by bit of the number of the word, the table is shifted; what can no longer be reached is dropped.
    for bit in (32, 16, 8, 4, 2, 1):
        is_set = body.let(f"word_has_{bit}", not_equal(word & bit, 0))
        words = [
            body.let(f"digits_{bit}_{number}", Select(is_set, words[number + bit], words[number]))
            if number + bit < len(words)
            else words[number]
            for number in range(min(len(words), bit + 6))
        ]
    return [
        body.let(f"window_{number}", (words[number] << 32 | words[number + 1]) << shift >> 32) for number in range(6)
    ]


def _fixed_point_float64(body: Body, magnitude: Var) -> tuple[Var, Expr]:
    """As for float32, in limbs of 32 bits."""
    bits = body.let("bits", body.bits(magnitude))
    exponent = body.let("exponent", bits >> 52)
    m_low = body.let("m_low", bits & 0xFFFFFFFF)
    m_high = body.let("m_high", (bits >> 32) & 0xFFFFF | 0x100000)
    window = _window_float64(body, exponent)[::-1]
    low = [body.let(f"low_product_{number}", m_low * word) for number, word in enumerate(window)]
    high = [body.let(f"high_product_{number}", m_high * word) for number, word in enumerate(window[:-1])]
    limbs: list[Expr] = []
    carry: Expr | None = None
    for number in range(6):
        terms = [low[number] & 0xFFFFFFFF]
        if number >= 1:
            terms += [low[number - 1] >> 32, high[number - 1] & 0xFFFFFFFF]
        if number >= 2:
            terms.append(high[number - 2] >> 32)
        if carry is not None:
            terms.append(carry)
        total = terms[0]
        for term in terms[1:]:
            total = total + term
        column = body.let(f"column_{number}", total)
        limbs.append(column & 0xFFFFFFFF)
        carry = column >> 32
    product = body.let("product", limbs[5] << 32 | limbs[4])
    quadrant, fraction = _nearest_quadrant(body, product)

    def piece(value: Expr, scale: float) -> Expr:
        return Cast(body.dtype, value) * scale

    # As for float32; inverting all bits is the negation but for one unit of 2**-126.
    inverted = body.let("inverted", fraction >> 63)
    size = body.let("size", fraction ^ inverted)
    low_bits = body.let("low_bits", Reinterpret(body.unsigned, inverted) & 0xFFFFFFFF)
    rest = piece(limbs[3] ^ low_bits, 2.0**-94) + piece(limbs[2] ^ low_bits, 2.0**-126)
    return quadrant, _signed(body, fraction, piece(size >> 31, 2.0**-31) + (piece(size & 0x7FFFFFFF, 2.0**-62) + rest))
