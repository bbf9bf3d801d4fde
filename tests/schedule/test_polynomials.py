"""Polynomials of indices: products multiply out, wrapping arithmetic is left alone, bounds follow from ranges."""

from __future__ import annotations

from gristmill.arith.interval import Interval
from gristmill.arith.simplify import Simplifier
from gristmill.ir.build import cast, const
from gristmill.ir.dtype import INT32, INT64, UINT32
from gristmill.ir.expr import Expr, FloorDiv, Negate, Var
from gristmill.schedule.polynomials import Polynomial, Polynomials

N, M = Var("n", INT64), Var("m", INT64)


def of(expr: Expr, **ranges: tuple[int, int]) -> tuple[Polynomials, Polynomial]:
    names = {"n": N, "m": M}
    found = Polynomials(Simplifier({names[name]: Interval(*ends) for name, ends in ranges.items()}))
    return found, found.of(expr)


def test_products_of_sums_multiply_out() -> None:
    polynomials, found = of((N + 1) * (M - 2))
    assert found == polynomials.of(N * M - N * 2 + M - 2)
    assert (found - found).as_constant == 0
    assert polynomials.of(Negate(N) + N + 5).as_constant == 5


def test_what_is_no_sum_is_an_atom() -> None:
    polynomials, found = of(FloorDiv(N, const(3, INT64)) * 2)
    (monomial,) = found.terms
    assert found.terms[monomial] == 2
    assert isinstance(polynomials.expressions[monomial[0]], FloorDiv)


def test_narrow_arithmetic_counts_where_it_does_not_wrap() -> None:
    i = Var("i", INT32)
    polynomials = Polynomials(Simplifier({i: Interval(0, 9)}))
    assert polynomials.of(cast(i * 2 + 1, INT64)) == polynomials.of(cast(i, INT64) * 2 + 1)
    j = Var("j", INT32)
    assert polynomials.of(cast(j * 2, INT64)) != polynomials.of(cast(j, INT64) * 2)


def test_casts_that_change_values_are_atoms() -> None:
    i = Var("i", INT64)
    polynomials = Polynomials(Simplifier())
    for narrow in (INT32, UINT32):
        assert polynomials.of(cast(cast(i, narrow), INT64)) != polynomials.of(i)
    u = Var("u", UINT32)
    assert polynomials.of(cast(u, INT64) - u_wide(u)).as_constant == 0


def u_wide(u: Var) -> Expr:
    return cast(u, INT64)


def test_bounds() -> None:
    polynomials, found = of(N * 2 - M + 3, n=(0, 10), m=(1, 4))
    assert (polynomials.least(found), polynomials.greatest(found)) == (-1, 22)
    polynomials, found = of(N * M, n=(2, 10), m=(3, 4))
    assert (polynomials.least(found), polynomials.greatest(found)) == (6, 40)


def test_no_bound_is_made_up_where_none_is_known() -> None:
    polynomials, found = of(N * 2 - M, n=(0, 10))
    assert (polynomials.least(found), polynomials.greatest(found)) == (None, None)
    polynomials, found = of(N * M, n=(-2, 10), m=(3, 4))
    assert polynomials.least(found) is None
