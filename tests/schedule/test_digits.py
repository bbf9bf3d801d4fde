"""Digits: which atoms are quotients and remainders of one number, and when the number follows from them."""

from __future__ import annotations

from gristmill.arith.interval import Interval
from gristmill.arith.simplify import Simplifier
from gristmill.ir.build import const
from gristmill.ir.dtype import INT64
from gristmill.ir.expr import Expr, FloorDiv, FloorMod, Var
from gristmill.schedule.digits import Digits, quotient
from gristmill.schedule.polynomials import Polynomial, Polynomials

X, N, M = Var("x", INT64), Var("n", INT64), Var("m", INT64)


def follows(*exprs: Expr, positive: tuple[Var, ...] = (N, M), most: int | None = None) -> bool:
    """Whether x follows from these atoms."""
    polynomials = Polynomials(Simplifier({var: Interval(0, 1 << 40) for var in (N, M)}))
    found = Digits(polynomials, {number for var in positive for number in polynomials.of(var).atoms()})
    fixed = set()
    for expr in exprs:
        (atom,) = polynomials.of(expr).atoms()
        found.add(atom)
        fixed.add(atom)
    end = None if most is None else Polynomial.constant(most)
    return polynomials.of(X) in list(found.known_numbers(fixed, lambda number: end))


def over(a: Expr, b: Expr | int) -> Expr:
    return FloorDiv(a, b if isinstance(b, Expr) else const(b, INT64))


def modulo(a: Expr, b: Expr | int) -> Expr:
    return FloorMod(a, b if isinstance(b, Expr) else const(b, INT64))


def test_a_number_follows_from_quotient_and_remainder() -> None:
    assert follows(over(X, N), modulo(X, N))
    assert follows(over(X, 10), modulo(X, 10))
    assert not follows(over(X, N))
    assert not follows(modulo(X, N))
    assert not follows(over(X, N), modulo(X, M))
    assert not follows(over(X, 10), modulo(X, 5))
    # A divisor of 0 gives 0 both times.
    assert not follows(over(X, N), modulo(X, N), positive=(M,))


def test_digits_may_be_written_in_several_ways() -> None:
    low, first = modulo(X, M), over(X, N * M)
    assert follows(first, modulo(over(X, M), N), low)
    assert follows(over(over(X, M), N), modulo(over(X, M), N), low)
    assert follows(first, over(modulo(X, N * M), M), modulo(modulo(X, N * M), M))
    assert not follows(first, modulo(over(X, N), M), low)
    assert not follows(modulo(over(X, M), N), low)


def test_a_small_number_needs_no_first_digit() -> None:
    assert follows(modulo(over(X, 10), 10), modulo(X, 10), most=99)
    assert not follows(modulo(over(X, 10), 10), modulo(X, 10), most=100)


def test_quotients_of_polynomials() -> None:
    polynomials = Polynomials(Simplifier())

    def of(expr: Expr) -> Polynomial:
        return polynomials.of(expr)

    assert quotient(of(N * M * 6 + M * 2), of(M * 2)) == of(N * 3 + 1)
    assert quotient(of(N * M + 1), of(M)) is None
    assert quotient(of(N * 3), of(const(2, INT64))) is None
    assert quotient(of(N + 1), of(N + 1)) == Polynomial.constant(1)
