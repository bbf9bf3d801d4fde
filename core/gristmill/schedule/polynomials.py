"""Indices as polynomials: ``y * w + x`` as a sum of products of atoms, in which symbolic strides multiply out.

An atom is anything that is no sum or product of integers: a size, the number of a loop's iteration, an element of
memory. Arithmetic of int64 is taken as that of unbounded integers, since an index that wraps is outside of every
buffer; narrower arithmetic is taken so only where it provably does not wrap.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gristmill.arith.interval import Interval
from gristmill.arith.simplify import Simplifier
from gristmill.ir.dtype import INT64
from gristmill.ir.expr import Add, Cast, Expr, IntImm, Mul, Negate, Sub, Var

Monomial = tuple[int, ...]
"""The numbers of the atoms of a product, ascending; one that occurs twice is there twice."""

_TERMS_AT_MOST = 64


@dataclass(frozen=True)
class Polynomial:
    """A sum of products with integer coefficients, none of them zero; the empty product stands for the constant."""

    terms: Mapping[Monomial, int] = field(default_factory=dict)

    @classmethod
    def constant(cls, value: int) -> Polynomial:
        return cls({(): value} if value else {})

    @classmethod
    def atom(cls, number: int) -> Polynomial:
        return cls({(number,): 1})

    def __add__(self, other: Polynomial) -> Polynomial:
        return self._plus(other, 1)

    def __sub__(self, other: Polynomial) -> Polynomial:
        return self._plus(other, -1)

    def _plus(self, other: Polynomial, factor: int) -> Polynomial:
        terms = dict(self.terms)
        for monomial, coefficient in other.terms.items():
            total = terms.get(monomial, 0) + coefficient * factor
            if total:
                terms[monomial] = total
            else:
                del terms[monomial]
        return Polynomial(terms)

    def __mul__(self, other: Polynomial) -> Polynomial:
        terms: dict[Monomial, int] = {}
        for one, a in self.terms.items():
            for two, b in other.terms.items():
                monomial = tuple(sorted((*one, *two)))
                terms[monomial] = terms.get(monomial, 0) + a * b
        return Polynomial({monomial: total for monomial, total in terms.items() if total})

    @property
    def as_constant(self) -> int | None:
        """The number that this is, if it is one."""
        if not self.terms:
            return 0
        return self.terms.get(()) if len(self.terms) == 1 else None

    def atoms(self) -> set[int]:
        return {number for monomial in self.terms for number in monomial}


class Polynomials:
    """Makes polynomials of expressions. ``values`` says what variables stand for; ``ranges`` what atoms may be."""

    def __init__(self, simplifier: Simplifier) -> None:
        self.simplifier = simplifier
        self.values: dict[Var, Polynomial] = {}
        self.expressions: dict[int, Expr] = {}
        """The expression of each atom that is one."""
        self.ranges: dict[int, Interval] = {}
        """What is known of atoms that stand for no expression."""
        self._fresh = -1

    def fresh(self, interval: Interval) -> int:
        """A new atom that stands for no expression, with what it may be."""
        number = self._fresh
        self._fresh -= 1
        self.ranges[number] = interval
        return number

    def of(self, expr: Expr) -> Polynomial:
        """The polynomial of a scalar integer expression."""
        if isinstance(expr, IntImm):
            return Polynomial.constant(expr.value)
        if isinstance(expr, Var) and expr in self.values:
            return self.values[expr]
        if isinstance(expr, (Add, Sub, Mul, Negate)) and expr.dtype.is_integer and not expr.dtype.is_vector:
            found = self._arithmetic(expr)
            if len(found.terms) <= _TERMS_AT_MOST and (expr.dtype == INT64 or self._fits(found, expr)):
                return found
        elif isinstance(expr, Cast) and self._widens(expr):
            return self.of(expr.value)
        return self._atom(expr)

    def _arithmetic(self, expr: Expr) -> Polynomial:
        if isinstance(expr, Negate):
            return Polynomial() - self.of(expr.a)
        assert isinstance(expr, (Add, Sub, Mul))
        a, b = self.of(expr.a), self.of(expr.b)
        return a + b if isinstance(expr, Add) else a - b if isinstance(expr, Sub) else a * b

    def _widens(self, expr: Cast) -> bool:
        """Whether the cast leaves the value as it is, whatever it is."""
        inner, outer = expr.value.dtype, expr.type
        if not inner.is_integer or not outer.is_integer or inner.is_vector:
            return False
        if inner.is_signed == outer.is_signed:
            return outer.bits >= inner.bits
        return outer.is_signed and outer.bits > inner.bits

    def _fits(self, found: Polynomial, expr: Expr) -> bool:
        low, high = self.least(found), self.greatest(found)
        return low is not None and high is not None and Interval(low, high).fits(expr.dtype)

    def _atom(self, expr: Expr) -> Polynomial:
        simple = self.simplifier.simplify(expr)
        if isinstance(simple, IntImm):
            return Polynomial.constant(simple.value)
        number = self.simplifier.numbers.of(simple)
        self.expressions.setdefault(number, simple)
        return Polynomial.atom(number)

    # Bounds -----------------------------------------------------------------------------------------------------------

    def range_of(self, number: int) -> Interval:
        """What an atom may be."""
        if number in self.ranges:
            return self.ranges[number]
        return self.simplifier.bounds.of(self.expressions[number])

    def least(self, poly: Polynomial) -> int | None:
        """A number that the polynomial is never less than; None if none is known."""
        total = 0
        for monomial, coefficient in poly.terms.items():
            low = high = 1
            for number in monomial:
                found = self.range_of(number)
                if len(monomial) > 1 and found.low < 0:
                    return None
                low, high = low * found.low, high * found.high
            if coefficient < 0 and high >= INT64.maximum:
                return None
            if coefficient > 0 and low <= INT64.minimum:
                return None
            total += coefficient * (low if coefficient > 0 else high)
        return total

    def greatest(self, poly: Polynomial) -> int | None:
        """A number that the polynomial never exceeds; None if none is known."""
        found = self.least(Polynomial() - poly)
        return None if found is None else -found
