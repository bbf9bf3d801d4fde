"""Whether two threads of one block can reach the same element.

Two accesses by different threads meet where the difference of their indices is zero. An atom that is the same for all
threads of a block cancels. What is left has bounds, and conditions around the accesses say more: if no solution lies
within them, or if every solution asks for one and the same thread, the accesses are no hazard.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from gristmill.arith.interval import Interval
from gristmill.ir.expr import Var
from gristmill.passes.element_forms import Atom, Form
from gristmill.passes.index_facts import Fact


@dataclass(frozen=True, slots=True)
class Side:
    """One of two accesses as far as the comparison asks.

    ``stale`` variables may have other values than those that the other access sees; ``axes`` are the ranges of the axes
    of the block where the access stands, ``facts`` what conditions around it say of sums.
    """

    stale: frozenset[Var]
    axes: Mapping[Var, Interval]
    facts: tuple[Fact, ...] = ()


def threads_apart(
    equations: Iterable[tuple[Form, Form]], a: Side, b: Side, axes: Mapping[int, Var], exempt: frozenset[Var]
) -> bool:
    """Whether two different threads can not both satisfy the equations (index of a = index of b).

    ``axes`` are the numbers of the axes' variables; threads that differ in ``exempt`` axes alone count as one.
    """
    zero: set[int] = set()
    for number, var in axes.items():
        ranges = a.axes[var], b.axes[var]
        if var in exempt or (ranges[0].is_point and ranges[0] == ranges[1]):
            zero.add(number)
    equations = list(equations)
    if (a.facts or b.facts) and any(_excluded_by_facts(first, second, a, b) for first, second in equations):
        return True
    cases = _remainder_cases(equations, a, b, axes)
    if cases is not None:
        return all(threads_apart(case, a, b, axes, exempt) for case in cases)
    waiting = [_Difference.of(first, second, a, b, axes) for first, second in equations]
    seen: set[int] = set()
    while True:
        for difference in waiting:
            if difference.is_never_zero():
                return True
            zero |= difference.forced(zero)
        if all(number in zero for number in axes):
            return True
        more = []
        for difference in list(waiting):
            for atom, other in difference.divided:
                assert atom.division is not None
                number, divisor, _ = atom.division
                if number in seen or atom.inner is None or other.inner is None:
                    continue
                parts = {
                    entry.division[2]: entry.number
                    for found in waiting
                    for entry, _ in found.divided
                    if entry.division is not None and entry.division[:2] == (number, divisor)
                }
                if len(parts) == 2 and all(part in zero for part in parts.values()):
                    seen.add(number)
                    more.append(_Difference.of(atom.inner, other.inner, a, b, axes))
        if not more:
            return False
        waiting += more


def _remainder_cases(
    equations: list[tuple[Form, Form]], a: Side, b: Side, axes: Mapping[int, Var]
) -> list[list[tuple[Form, Form]]] | None:
    """The equations once for each value that the difference of two remainders in one of them may have; None without any.

    Where ``k`` is one value in the block, ``k % 2`` and ``(k + 1) % 2`` differ by 1 or by -1: the two halves of a
    buffer that is filled and read by turns.
    """
    for place, (first, second) in enumerate(equations):
        for number, (atom, coefficient) in first.terms.items():
            for other_number, (other, other_coefficient) in second.terms.items():
                if number in second.terms or other_number in first.terms or coefficient != other_coefficient:
                    continue
                apart = _remainders_apart(atom, other, a, b, axes)
                if apart is not None:
                    less, rest = _without(first, number), _without(second, other_number)
                    moved = [Form(less.constant + coefficient * by, less.terms, less.spread) for by in apart]
                    return [[*equations[:place], (form, rest), *equations[place + 1 :]] for form in moved]
    return None


def _remainders_apart(first: Atom, second: Atom, a: Side, b: Side, axes: Mapping[int, Var]) -> list[int] | None:
    """What ``x % c - y % c`` may be, if that is what the atoms are and x and y differ by a constant."""
    if first.division is None or second.division is None or first.inner is None or second.inner is None:
        return None
    (_, divisor, is_remainder), (_, other_divisor, other_is_remainder) = first.division, second.division
    if not (is_remainder and other_is_remainder and divisor == other_divisor):
        return None
    difference = _Difference.of(first.inner, second.inner, a, b, axes)
    if difference.deltas or difference.loose or not difference.rest.is_point:
        return None
    by = difference.rest.low % divisor
    return [by, by - divisor] if by else [0]


def _without(form: Form, number: int) -> Form:
    return Form(form.constant, {key: term for key, term in form.terms.items() if key != number}, form.spread)


def are_two_constants(first: Form, second: Form) -> bool:
    """Whether two sums are constants, and not the same."""
    if first.terms or second.terms:
        return False
    low, high = first.constant + first.spread.low, first.constant + first.spread.high
    return high < second.constant + second.spread.low or low > second.constant + second.spread.high


_Sum = dict[tuple[int, int], tuple[int, Interval]]
"""Coefficient and range of atoms, by whose value it is (0: of both; 1, 2: of one side) and number."""


def _excluded_by_facts(first: Form, second: Form, a: Side, b: Side) -> bool:
    """Whether conditions around the accesses keep the two sums from being equal, as ``t < n`` does ``t`` and ``t + n``."""
    stale = a.stale | b.stale

    def add(total: _Sum, form: Form, side: int, factor: int) -> None:
        for number, (atom, coefficient) in form.terms.items():
            key = (0 if atom.uniform and not atom.variables & stale else side, number)
            known, interval = total.get(key, (0, atom.interval))
            total[key] = known + coefficient * factor, interval.meet(atom.interval) or interval

    difference: _Sum = {}
    add(difference, first, 1, 1)
    add(difference, second, 2, -1)
    rest = Interval.point(first.constant - second.constant).plus(first.spread).minus(second.spread)
    facts: list[tuple[_Sum, Interval]] = []
    for side, found in ((1, a.facts), (2, b.facts)):
        for fact in found:
            terms: _Sum = {}
            add(terms, fact.form, side, 1)
            facts.append((terms, fact.interval))
    return _excludes_zero(difference, rest, facts, 2)


def _excludes_zero(total: _Sum, rest: Interval, facts: list[tuple[_Sum, Interval]], depth: int) -> bool:
    """Whether the sum is never zero, given up to ``depth`` facts, multiples of which take out atoms."""
    low, high = rest
    for coefficient, interval in total.values():
        part = interval.scaled(coefficient)
        low, high = low + part.low, high + part.high
    if low > 0 or high < 0:
        return True
    for place, (terms, span) in enumerate(facts if depth else ()):
        factors = {
            total[key][0] // coefficient
            for key, (coefficient, _) in terms.items()
            if coefficient and key in total and total[key][0] % coefficient == 0
        }
        for factor in factors - {0}:
            less = dict(total)
            for key, (coefficient, interval) in terms.items():
                known, own = less.get(key, (0, interval))
                less[key] = known - factor * coefficient, own
            if _excludes_zero(less, rest.plus(span.scaled(factor)), facts[place + 1 :], depth - 1):
                return True
    return False


def _with_points(form: Form, other: Form, side: Side, axes: Mapping[int, Var]) -> Form:
    """``other`` as a sum over the axes of ``form`` too, where only one thread along an axis comes to it (``t == 0``)."""
    added = Form(other.constant, dict(other.terms), other.spread)
    for number, (atom, coefficient) in form.terms.items():
        var = axes.get(number)
        if var is not None and number not in other.terms and side.axes[var].is_point:
            point = side.axes[var]
            added.terms[number] = (Atom(number, point, False, atom.variables, True), coefficient)
            added.constant -= coefficient * point.low
    return added


@dataclass(slots=True)
class _Difference:
    """``sum(coefficient * delta) + rest``, where each delta is the difference of one atom between two threads."""

    deltas: dict[int, tuple[int, Interval]]
    loose: list[tuple[int, Interval]]
    """Coefficients and values of atoms that do not pair."""
    rest: Interval
    divided: list[tuple[Atom, Atom]]

    @classmethod
    def of(cls, first: Form, second: Form, a: Side, b: Side, axes: Mapping[int, Var]) -> _Difference:
        first, second = _with_points(second, first, a, axes), _with_points(first, second, b, axes)
        constant = first.constant - second.constant
        rest = Interval(constant, constant).plus(first.spread).minus(second.spread)
        deltas: dict[int, tuple[int, Interval]] = {}
        loose: list[tuple[int, Interval]] = []
        divided = []
        stale = a.stale | b.stale
        for number, (atom, coefficient) in first.terms.items():
            other, second_coefficient = second.terms.get(number, (atom, 0))
            same = atom.uniform and not atom.variables & stale
            if same:
                # One value in both: where it stands in both it is what both ranges allow.
                interval = atom.interval.meet(other.interval) or atom.interval
                if coefficient != second_coefficient:
                    loose.append((coefficient - second_coefficient, interval))
            elif coefficient == second_coefficient:
                deltas[number] = (coefficient, atom.interval.minus(other.interval))
                if atom.division is not None:
                    divided.append((atom, other))
            else:
                loose.append((coefficient, atom.interval))
                if second_coefficient:
                    loose.append((-second_coefficient, other.interval))
        for number, (atom, coefficient) in second.terms.items():
            if number not in first.terms:
                loose.append((-coefficient, atom.interval))
        return cls(deltas, loose, rest, divided)

    def is_never_zero(self) -> bool:
        low, high = self.rest
        terms = [*self.deltas.values(), *self.loose]
        for coefficient, interval in terms:
            part = interval.scaled(coefficient)
            low, high = low + part.low, high + part.high
        if low > 0 or high < 0:
            return True
        step = math.gcd(*(coefficient for coefficient, _ in terms))
        # The sum of the terms is a multiple of the step; the rest must be one too.
        return step > 1 and -(-self.rest.low // step) > self.rest.high // step

    def forced(self, zero: set[int]) -> set[int]:
        """The atoms whose difference is zero in every solution."""
        terms: list[_Part] = [(abs(c), _most(span), number) for number, (c, span) in self.deltas.items()]
        terms = [part for part in terms if part[2] not in zero]
        terms += [(abs(c), _most(span), None) for c, span in self.loose]
        terms.sort(key=lambda part: part[0])
        return {number for number in _zeros(terms, _most(self.rest)) if number is not None}


_Part = tuple[int, int, int | None]
"""A coefficient, the greatest magnitude of what it is multiplied with, and the atom's number if it is a difference."""


def _most(span: Interval) -> int:
    return max(abs(span.low), abs(span.high))


def _zeros(terms: list[_Part], slack: int) -> Iterator[int | None]:
    """What must be zero for the terms, coefficients ascending, and up to ``slack`` to sum to zero.

    Where the small terms stay under a number that divides all the great ones, both parts are zero on their own.
    """
    below = slack
    for cut in range(len(terms)):
        great = terms[cut:]
        if below < math.gcd(*(coefficient for coefficient, _, _ in great)) and (below or cut or len(great) == 1):
            if len(great) == 1:
                yield great[0][2]
            else:
                yield from _zeros(great, 0)
            yield from _zeros(terms[:cut], slack)
            return
        below += terms[cut][0] * terms[cut][1]
