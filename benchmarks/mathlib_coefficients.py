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


def show(name: str, target: Function, weight: Function, degree: int, low: mpf, high: mpf, double: bool = False) -> None:
    coefficients, largest = minimax(target, weight, degree, low, high)
    print(f"{name}: degree {degree} on [{mpmath.nstr(low, 8)}, {mpmath.nstr(high, 8)}], ", end="")
    print(f"largest weighted error 2**{float(mpmath.log(largest, 2)):.2f}")
    for coefficient in coefficients:
        print(f"    {float(coefficient) if double else as_float32(coefficient)!r},")
