"""Quotients and remainders in indices, as digits of a number: ``i // (h*w)``, ``i // w % h`` and ``i % w`` are those of i.

A digit is ``x // step % modulus``, or ``x // step`` if it is the first one. A number follows from its digits: if
``x // (step*modulus)`` and ``x // step % modulus`` are known, so is ``x // step``, and ``x // 1`` is the number. All of
that holds for steps and moduli that are positive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from gristmill.ir.build import constant_value
from gristmill.ir.expr import BitAnd, CallFunction, Expr, FloorDiv, FloorMod, Load, ShiftRight
from gristmill.ir.functor import walk
from gristmill.schedule.polynomials import Monomial, Polynomial, Polynomials

Key = frozenset[tuple[Monomial, int]]
ONE = Polynomial.constant(1)


def key_of(poly: Polynomial) -> Key:
    """What is the same for equal polynomials."""
    return frozenset(poly.terms.items())


@dataclass(frozen=True)
class Digit:
    """``number // step % modulus``; without a modulus ``number // step``."""

    number: Polynomial
    step: Polynomial
    modulus: Polynomial | None


class Digits:
    """The digits among atoms. ``positive`` are the atoms that are known to be at least 1."""

    def __init__(self, polynomials: Polynomials, positive: AbstractSet[int]) -> None:
        self.polynomials = polynomials
        self.positive = positive
        self.found: dict[int, Digit] = {}
        """The digit that an atom is."""

    def add(self, atom: int) -> None:
        """Look whether an atom is a digit."""
        if atom not in self.found and (digit := self._of(atom)) is not None:
            self.found[atom] = digit

    def _of(self, atom: int) -> Digit | None:
        expr = self.polynomials.expressions.get(atom)
        parts = None if expr is None else _division(expr)
        if parts is None or any(isinstance(part, (Load, CallFunction)) for part in walk(parts[1])):
            return None
        is_quotient, dividend, divisor = parts
        by = divisor if isinstance(divisor, Polynomial) else self.polynomials.of(divisor)
        if not self.is_positive(by):
            return None
        number = self.polynomials.of(dividend)
        inner = self._whole(number)
        if is_quotient:
            return self._quotient(number, inner, by)
        if inner is None:
            return Digit(number, ONE, by)
        if inner.modulus is None:
            return Digit(inner.number, inner.step, by)
        return Digit(inner.number, inner.step, by) if quotient(inner.modulus, by) else Digit(number, ONE, by)

    def _quotient(self, number: Polynomial, inner: Digit | None, by: Polynomial) -> Digit:
        if inner is None:
            return Digit(number, by, None)
        if inner.modulus is None:
            return Digit(inner.number, inner.step * by, None)
        left = quotient(inner.modulus, by)
        return Digit(number, by, None) if left is None else Digit(inner.number, inner.step * by, left)

    def _whole(self, number: Polynomial) -> Digit | None:
        """The digit that a number is, if it is one and nothing else."""
        if len(number.terms) != 1:
            return None
        ((monomial, coefficient),) = number.terms.items()
        return self._of(monomial[0]) if len(monomial) == 1 and coefficient == 1 else None

    def is_positive(self, poly: Polynomial) -> bool:
        """Whether it is known to be at least 1."""
        if len(poly.terms) != 1:
            least = self.polynomials.least(poly)
            return least is not None and least > 0
        ((monomial, coefficient),) = poly.terms.items()
        return coefficient > 0 and all(
            atom in self.positive or self.polynomials.range_of(atom).low > 0 for atom in monomial
        )

    def greatest(self, digit: Digit, most: Callable[[Polynomial], Polynomial | None]) -> Polynomial | None:
        """What the digit does not exceed, and that it is not negative; None if that is not known. ``most`` gives what
        a number that is not negative does not exceed."""
        if digit.modulus is not None:
            return digit.modulus - ONE
        end = most(digit.number)
        whole = None if end is None else quotient(end + ONE, digit.step)
        return None if whole is None else whole - ONE

    def known_numbers(
        self, fixed: AbstractSet[int], most: Callable[[Polynomial], Polynomial | None]
    ) -> Iterable[Polynomial]:
        """The numbers that follow from the digits among the fixed atoms."""
        of_number: dict[Key, list[Digit]] = {}
        for atom, digit in self.found.items():
            if atom in fixed:
                of_number.setdefault(key_of(digit.number), []).append(digit)
        for digits in of_number.values():
            if self._suffice(digits, most(digits[0].number)):
                yield digits[0].number

    def _suffice(self, digits: list[Digit], most: Polynomial | None) -> bool:
        known = {key_of(digit.step) for digit in digits if digit.modulus is None}
        waiting = [(digit.step, digit.step * digit.modulus) for digit in digits if digit.modulus is not None]
        for _, next_step in waiting:
            # A number less than the step has the first digit 0.
            room = None if most is None else self.polynomials.least(next_step - ONE - most)
            if room is not None and room >= 0:
                known.add(key_of(next_step))
        while more := {key_of(step) for step, next_step in waiting if key_of(next_step) in known} - known:
            known |= more
        return key_of(ONE) in known


def quotient(poly: Polynomial, by: Polynomial) -> Polynomial | None:
    """The polynomial divided by another, if that leaves nothing over and is easily seen."""
    if poly == by:
        return ONE
    if len(by.terms) != 1:
        return None
    ((divisor, factor),) = by.terms.items()
    found: dict[Monomial, int] = {}
    for monomial, coefficient in poly.terms.items():
        rest = list(monomial)
        for atom in divisor:
            if atom not in rest:
                return None
            rest.remove(atom)
        if coefficient % factor:
            return None
        found[tuple(rest)] = coefficient // factor
    return Polynomial(found)


def _division(expr: Expr) -> tuple[bool, Expr, Expr | Polynomial] | None:
    """Whether it is a quotient or a remainder (rounded down), the dividend and the divisor."""
    if expr.dtype.is_vector or not expr.dtype.is_integer:
        return None
    if isinstance(expr, (FloorDiv, FloorMod)):
        return isinstance(expr, FloorDiv), expr.a, expr.b
    value = constant_value(expr.b) if isinstance(expr, (ShiftRight, BitAnd)) else None
    if not isinstance(value, int) or value < 0:
        return None
    if isinstance(expr, ShiftRight) and value < expr.dtype.bits:
        return True, expr.a, Polynomial.constant(1 << value)
    if isinstance(expr, BitAnd) and value & (value + 1) == 0 and value:
        return False, expr.a, Polynomial.constant(value + 1)
    return None


def sizes_in(shapes: Iterable[Expr], polynomials: Polynomials) -> set[int]:
    """The atoms of sizes that are positive where an element exists: those that are factors of a dimension."""
    found: set[int] = set()
    for size in shapes:
        found |= factors(polynomials.of(size), polynomials)
    return found


def factors(poly: Polynomial, polynomials: Polynomials) -> set[int]:
    """The atoms that are in each term, and not negative: where the polynomial is positive, they are."""
    common: set[int] | None = None
    for monomial in poly.terms:
        common = set(monomial) if common is None else common & set(monomial)
    return {atom for atom in common or set() if polynomials.range_of(atom).low >= 0}
