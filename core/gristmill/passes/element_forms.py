"""Where accesses of threads go, as sums, and whether two threads of one block can reach the same element.

An index is ``constant + sum(coefficient * atom)``. Two accesses by different threads meet where the difference of their
indices is zero. An atom that is the same for all threads of a block cancels. What is left has bounds: if no solution
lies within them, or if every solution asks for one and the same thread, the accesses are no hazard.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from gristmill.arith.bounds import Bounds
from gristmill.arith.interval import Interval
from gristmill.arith.numbering import Numbering
from gristmill.ir.dtype import DType
from gristmill.ir.expr import Add, Cast, Expr, FloorDiv, FloorMod, IntImm, Mul, Negate, Ramp, Sub, Var

FAR = 1 << 62
"""More threads, or elements, than there are."""

_NO_SPREAD = Interval(0, 0)


@dataclass(frozen=True, slots=True)
class Atom:
    """A part of a sum: what it may be where the access stands, whether it is one value in the whole block of threads,
    the variables in it, whether its value is known from indices alone, and how it splits another sum (division)."""

    number: int
    interval: Interval
    uniform: bool
    variables: frozenset[Var]
    known: bool
    division: tuple[int, int, bool] | None = None
    """For ``x // c`` and ``x % c``: the number of x, c, and whether it is the remainder."""
    inner: Form | None = None
    """For those, the sum that x is."""
    var: Var | None = None
    """The variable that it is, if it is one."""


@dataclass(slots=True)
class Form:
    """A sum of atoms; ``spread`` is added freely (lanes of a vector, bytes of an element)."""

    constant: int = 0
    terms: dict[int, tuple[Atom, int]] = field(default_factory=dict)
    spread: Interval = _NO_SPREAD
    limits: Interval | None = None
    """What conditions around the access say of the whole sum, where they speak of it."""

    def add(self, atom: Atom, coefficient: int) -> None:
        total = coefficient + (self.terms[atom.number][1] if atom.number in self.terms else 0)
        if total:
            self.terms[atom.number] = (atom, total)
        else:
            self.terms.pop(atom.number, None)

    @property
    def is_known(self) -> bool:
        """Whether everything in it is known from indices: no element of memory decides where the access goes."""
        return all(atom.known or atom.uniform for atom, _ in self.terms.values())


class FormReader:
    """Takes expressions apart. ``varying`` and ``loaded`` say of variables what :class:`Atom` must know."""

    def __init__(self, bounds: Bounds, varying: set[Var], loaded: set[Var]) -> None:
        self.bounds = bounds
        self.varying = varying
        self.loaded = loaded
        self.numbers = Numbering()

    def form(self, index: Expr, scale: int = 1) -> Form:
        """The sum of an index (of a vector index: with the lanes as spread), times ``scale``."""
        found = Form()
        if index.dtype.lanes > 1:
            if not isinstance(index, Ramp):
                lanes = self.bounds.of(index)
                found.constant, found.spread = lanes.low * scale, Interval(0, (lanes.high - lanes.low) * scale)
                return found
            steps = self.bounds.of(index.stride).scaled((index.lanes - 1) * scale)
            found.spread = Interval(min(0, steps.low), max(0, steps.high))
            index = index.base
        self.collect(index, scale, found, index.dtype)
        return found

    def collect(self, expr: Expr, factor: int, form: Form, ring: DType | None) -> None:
        """Add ``factor`` times the expression.

        ``ring`` is the type in which wrapping does no harm: that of the whole index, since an index within the shape
        is the only one there is; elsewhere bounds must prove that nothing wraps.
        """
        if isinstance(expr, IntImm):
            form.constant += expr.value * factor
            return
        if isinstance(expr, Cast) and expr.value.dtype.is_integer and expr.dtype.is_integer:
            if self.bounds.of(expr.value).fits(expr.dtype):
                top = ring is not None and not form.terms and form.constant == 0 and abs(factor) >= 1
                self.collect(expr.value, factor, form, expr.value.dtype if top and ring == expr.dtype else None)
                return
        elif isinstance(expr, (Add, Sub, Negate, Mul)):
            safe = (ring == expr.dtype and expr.dtype.bits >= 32) or not self.bounds.may_wrap(expr)
            if safe and self._collect_sum(expr, factor, form, ring):
                return
        form.add(self.atom(expr), factor)

    def _collect_sum(self, expr: Expr, factor: int, form: Form, ring: DType | None) -> bool:
        # The operands are in the same ring only if it is not that of a cast at the top any more.
        match expr:
            case Negate(a=a):
                self.collect(a, -factor, form, ring)
            case Mul(a=a, b=IntImm(value=value)) | Mul(a=IntImm(value=value), b=a):
                self.collect(a, factor * value, form, ring)
            case Add(a=a, b=b):
                self._operand(a, factor, form, ring)
                self._operand(b, factor, form, ring)
            case Sub(a=a, b=b):
                self._operand(a, factor, form, ring)
                self._operand(b, -factor, form, ring)
            case _:
                return False
        return True

    def _operand(self, expr: Expr, factor: int, form: Form, ring: DType | None) -> None:
        # Beside other operands a cast is not the whole index, so what is cast must not wrap.
        if isinstance(expr, Cast) and expr.value.dtype.is_integer and expr.dtype.is_integer:
            if self.bounds.of(expr.value).fits(expr.dtype):
                self.collect(expr.value, factor, form, None)
            else:
                form.add(self.atom(expr), factor)
            return
        self.collect(expr, factor, form, ring)

    def atom(self, expr: Expr) -> Atom:
        variables = frozenset(self._variables(expr))
        whole = expr.dtype.is_integer or expr.dtype.is_bool
        interval = self.bounds.of(expr) if whole else Interval(-(1 << 64), 1 << 64)
        division, inner = None, None
        if isinstance(expr, (FloorDiv, FloorMod)) and isinstance(expr.b, IntImm) and expr.b.value > 0:
            division = (self.numbers.of(expr.a), expr.b.value, isinstance(expr, FloorMod))
            inner = Form()
            self.collect(expr.a, 1, inner, None)
        pure = self.numbers.is_pure(expr)
        return Atom(
            self.numbers.of(expr),
            interval,
            pure and not variables & self.varying,
            variables,
            pure and not variables & self.loaded,
            division,
            inner,
            expr if isinstance(expr, Var) else None,
        )

    def _variables(self, expr: Expr) -> Iterator[Var]:
        from gristmill.ir.functor import walk

        for node in walk(expr):
            if isinstance(node, Var):
                yield node


@dataclass(frozen=True, slots=True)
class Side:
    """One of two accesses as far as the comparison asks: the stale variables, whose values may differ from those that
    the other access sees, and the range of each axis of the block where the access stands."""

    stale: frozenset[Var]
    axes: Mapping[Var, Interval]


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


def _range(form: Form) -> Interval:
    """The values of a sum."""
    found = Interval(form.constant, form.constant).plus(form.spread)
    for atom, coefficient in form.terms.values():
        found = found.plus(atom.interval.scaled(coefficient))
    return found if form.limits is None else found.meet(form.limits) or found


def _with_points(form: Form, other: Form, side: Side, axes: Mapping[int, Var]) -> Form:
    """``other`` as a sum over the axes of ``form`` too, where only one thread along an axis comes to it (``t == 0``)."""
    added = Form(other.constant, dict(other.terms), other.spread, other.limits)
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
    limits: tuple[Interval, Interval] | None
    """What the two sums may be, where conditions say so of one of them."""
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
        limits = None
        if first.limits is not None or second.limits is not None:
            limits = _range(first), _range(second)
        return cls(deltas, loose, rest, limits, divided)

    def is_never_zero(self) -> bool:
        if self.limits is not None and self.limits[0].meet(self.limits[1]) is None:
            return True
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
