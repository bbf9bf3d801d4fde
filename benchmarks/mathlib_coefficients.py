"""Computes the polynomial coefficients of gristmill.mathlib: minimax fits in 60 digits with mpmath.

Run it (``python benchmarks/mathlib_coefficients.py``) to see every table that the library uses, with the largest
error of each polynomial over its interval. Coefficients are printed lowest power first, rounded to the type used.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

import mpmath
from mpmath import mpf

mpmath.mp.dps = 60

Function = Callable[[mpf], mpf]


def minimax(target: Function, weight: Function, degree: int, low: mpf, high: mpf) -> tuple[list[mpf], mpf]:
    """The polynomial of the degree with (nearly) the least largest ``weight * |polynomial - target|``; and that error.

    Lawson's algorithm: least squares whose weights grow where the error is large. Unlike the Remez exchange it does
    not mind weights that vanish within the interval.
    """
    count = 40 * (degree + 1)
    points = [(low + high) / 2 - (high - low) / 2 * mpmath.cos(mpmath.pi * k / (count - 1)) for k in range(count)]
    targets = [target(x) for x in points]
    weights = [weight(x) for x in points]
    powers = [[x**power for power in range(2 * degree + 1)] for x in points]
    emphasis = [mpf(1) / count] * count
    best: list[mpf] = []
    least = mpmath.inf
    for _ in range(60):
        factors = [share * weight * weight for share, weight in zip(emphasis, weights, strict=True)]
        moments = [
            mpmath.fsum(f * row[power] for f, row in zip(factors, powers, strict=True))
            for power in range(2 * degree + 1)
        ]
        matrix = mpmath.matrix([[moments[row + column] for column in range(degree + 1)] for row in range(degree + 1)])
        right = mpmath.matrix(
            [
                mpmath.fsum(f * row[power] * y for f, row, y in zip(factors, powers, targets, strict=True))
                for power in range(degree + 1)
            ]
        )
        found = list(mpmath.lu_solve(matrix, right))
        errors = [
            weight * abs(mpmath.polyval(found[::-1], x) - y)
            for weight, x, y in zip(weights, points, targets, strict=True)
        ]
        if max(errors) < least:
            best, least = found, max(errors)
        total = mpmath.fsum(share * error for share, error in zip(emphasis, errors, strict=True))
        emphasis = [share * error / total for share, error in zip(emphasis, errors, strict=True)]
    return best, least


def as_float32(value: mpf) -> float:
    return float(struct.unpack("<f", struct.pack("<f", float(value)))[0])


def show(
    name: str, target: Function, weight: Function, degree: int, limits: tuple[mpf, mpf], single: bool = False
) -> None:
    """Fit and print; an error that is weighted by the power of x before the polynomial over the value is relative."""
    coefficients, largest = minimax(target, weight, degree, *limits)
    where = ", ".join(mpmath.nstr(limit, 8) for limit in limits)
    print(f"{name}, degree {degree} on [{where}]: within 2**{float(mpmath.log(largest, 2)):.1f}")
    for coefficient in coefficients:
        print(f"    {as_float32(coefficient) if single else float(coefficient)!r},")


def series(function: Function, start: Function, power: int, first: Function) -> Function:
    """(function(r) - start(r)) / r**power as a function of z = r**2, ``first`` where that would be 0 / 0."""

    def found(z: mpf) -> mpf:
        if z < mpf(10) ** -14:
            return first(z)
        r = mpmath.sqrt(z)
        return (function(r) - start(r)) / r**power

    return found


def relative(function: Function, power: int) -> Function:
    """The weight of an error of :func:`series` in the value of the function."""
    return lambda z: mpmath.sqrt(z) ** power / function(mpmath.sqrt(z)) if z > 0 else mpf(0)


def parts(name: str, value: mpf) -> None:
    """A constant as sums of two floats."""
    high, high_single = float(value), as_float32(value)
    print(f"{name}: float32 {high_single!r} + {as_float32(value - mpf(high_single))!r}", end="")
    print(f", float64 {high!r} + {float(value - mpf(high))!r}")


def main() -> None:
    one = mpf(1)
    half_ln_2 = mpmath.log(2) / 2 + mpf("0.0005")

    def exp_q(r: mpf) -> mpf:
        return (mpmath.expm1(r) - r) / r**2 if abs(r) > mpf(10) ** -25 else one / 2

    for degree, single in ((4, True), (10, False)):
        show("exp: q(r)", exp_q, lambda r: r**2 / mpmath.exp(r), degree, (-half_ln_2, half_ln_2), single)

    def log_q(f: mpf) -> mpf:
        return (mpmath.log1p(f) - f + f * f / 2) / f**3 if abs(f) > mpf(10) ** -15 else one / 3

    def log_weight(f: mpf) -> mpf:
        return abs(f**3 / mpmath.log1p(f)) if abs(f) > mpf(10) ** -15 else f * f

    show("log: q(f)", log_q, log_weight, 8, (mpmath.sqrt(one / 2) - 1, mpmath.sqrt(2) - 1), True)

    s_limits = (mpf(0), mpf("0.1717") ** 2)
    atanh = series(mpmath.atanh, lambda r: r, 3, lambda z: one / 3 + z / 5)
    show("log: t(s**2)", atanh, relative(mpmath.atanh, 3), 7, s_limits)
    atanh = series(mpmath.atanh, lambda r: r + r**3 / 3, 5, lambda z: one / 5 + z / 7 + z * z / 9)
    for degree, single in ((2, True), (6, False)):
        show("pow: t(s**2)", atanh, relative(mpmath.atanh, 5), degree, s_limits, single)

    tanh = series(mpmath.tanh, lambda r: r, 3, lambda z: -one / 3 + 2 * z / 15)
    for degree, single in ((5, True), (11, False)):
        show("tanh: t(x**2)", tanh, relative(mpmath.tanh, 3), degree, (mpf(0), mpf("0.626") ** 2), single)

    turn = (mpf(0), (mpmath.pi / 4 + mpf("0.0001")) ** 2)
    sine = series(mpmath.sin, lambda r: r, 3, lambda z: -one / 6 + z / 120)
    cosine = series(mpmath.cos, lambda r: 1 - r * r / 2, 4, lambda z: one / 24 - z / 720)
    for sine_degree, cosine_degree, single in ((3, 2, True), (5, 5, False)):
        show("sin: s(r**2)", sine, relative(mpmath.sin, 3), sine_degree, turn, single)
        show("cos: c(r**2)", cosine, relative(mpmath.cos, 4), cosine_degree, turn, single)

    parts("1 / 3", one / 3)
    parts("2 / ln 2", 2 / mpmath.log(2))
    for bits, single in ((16, True), (41, False)):
        high = mpmath.floor(mpmath.log(2) * mpf(2) ** bits) / mpf(2) ** bits
        low = mpmath.log(2) - high
        print(f"ln 2, {bits} places: {float(high)!r} + {as_float32(low) if single else float(low)!r}")
    with mpmath.workdps(500):
        words = [int(mpmath.floor(2 / mpmath.pi * mpf(2) ** (32 * k))) % 2**32 for k in range(1, 40)]
    print("2 / pi:", ", ".join(f"0x{word:08X}" for word in words))


if __name__ == "__main__":
    main()
