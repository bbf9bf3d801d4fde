"""Finding symbolic sizes from the shapes of arguments: ``x: (n + 1,)`` given 9 elements says ``n = 8``.

A function states patterns (expressions over its sizes); a call gives each pattern an actual value. Equations that are
linear in the unknown sizes are solved, whatever their order, by elimination over the integers; the others are left as
checks for when their sizes are known::

    a.shape[0]: n + 1 = 9        n := 9 - 1
    b.shape[0]: n     = 8        check  n == 8
    c.shape[0]: n * m = 24       check  n * m == 24, once another equation has given m

All arithmetic is int64, wrapping. Every equation that its solution does not make true by construction stays a check,
so a wrong guess (a division with a remainder, an overflow) is never taken for a solution.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from gristmill.ir.build import cast, const
from gristmill.ir.dtype import INT64
from gristmill.ir.expr import Add, Cast, Expr, FloorDiv, IntImm, Mul, Negate, ShiftLeft, Sub, Var
from gristmill.ir.functor import walk


@dataclass(frozen=True, slots=True)
class Equation:
    """``pattern == actual``: an expression over sizes, and a value that is known (int64)."""

    pattern: Expr
    actual: Expr


@dataclass(frozen=True, slots=True)
class Binding:
    """An unknown with its value in terms of what is known by then (int64), and the equation that gave it."""

    var: Var
    value: Expr
    equation: int
    direct: bool
    """Whether the pattern is the variable itself."""


@dataclass(frozen=True, slots=True)
class Solution:
    """``bindings`` in an order in which each may be evaluated; ``checks`` numbers the equations still to be tested, in
    order; ``unsolved`` are the unknowns that the equations do not give."""

    bindings: tuple[Binding, ...]
    checks: tuple[int, ...]
    unsolved: tuple[Var, ...]


@dataclass(slots=True)
class _Sum:
    """``sum(coefficient * unknown) + known + constant``."""

    coefficients: dict[Var, int] = field(default_factory=dict)
    known: Expr | None = None
    constant: int = 0

    def plus(self, other: _Sum, factor: int) -> _Sum:
        """This sum with ``factor`` times another added."""
        coefficients = dict(self.coefficients)
        for var, coefficient in other.coefficients.items():
            coefficients[var] = coefficients.get(var, 0) + factor * coefficient
        coefficients = {var: coefficient for var, coefficient in coefficients.items() if coefficient}
        known = _plus(self.known, _times(other.known, factor))
        return _Sum(coefficients, known, self.constant + factor * other.constant)

    def value(self) -> Expr:
        """The part that is known, as one expression."""
        if self.known is None:
            return const(self.constant, INT64)
        if self.constant == 0:
            return self.known
        if self.constant < 0:
            return Sub(self.known, const(-self.constant, INT64))
        return Add(self.known, const(self.constant, INT64))


@dataclass(slots=True)
class _Row:
    """``sum == 0``, and which equation it was made of first; ``whole``: it is that equation and nothing else."""

    sum: _Sum
    equation: int
    whole: bool = True


def solve_sizes(equations: Sequence[Equation], unknowns: Sequence[Var]) -> Solution:
    """Values for the unknowns from the equations, and what must still be checked. Variables not named are known."""
    open_ = dict.fromkeys(unknowns)
    rows = []
    for index, equation in enumerate(equations):
        found = _sum_of(equation.pattern, open_)
        if found is not None and found.coefficients:
            rows.append(_Row(found.plus(_Sum(known=cast(equation.actual, INT64)), -1), index))
    bindings: list[Binding] = []
    satisfied: set[int] = set()
    waiting: list[_Row] = []  # rows that gave an elimination its pivot: they say the last unknown of theirs
    while open_ and rows:
        row = next((row for row in rows if len(row.sum.coefficients) == 1), None)
        if row is None:
            waiting.append(rows.pop(0))
            rows = _without(rows, waiting[-1])
            continue
        ((var, coefficient),) = row.sum.coefficients.items()
        pattern = equations[row.equation].pattern
        # With a coefficient of 1 or -1 in int64 the solution makes its own equation true, wrapping or not.
        if row.whole and abs(coefficient) == 1 and _is_int64(pattern):
            satisfied.add(row.equation)
        bindings.append(Binding(var, _solved(row.sum, coefficient), row.equation, pattern is var))
        del open_[var]
        rows = _with_known([other for other in rows if other is not row], var)
        waiting = _with_known(waiting, var)
        rows += [other for other in waiting if len(other.sum.coefficients) == 1]
        waiting = [other for other in waiting if len(other.sum.coefficients) > 1]
    checks = tuple(index for index in range(len(equations)) if index not in satisfied)
    return Solution(tuple(bindings), checks, tuple(open_))


def _solved(found: _Sum, coefficient: int) -> Expr:
    """The unknown of ``coefficient * unknown + rest == 0``."""
    rest = _Sum({}, found.known, found.constant)
    if coefficient < 0:
        return _quotient(rest.value(), -coefficient)
    return _quotient(_Sum().plus(rest, -1).value(), coefficient)


def _quotient(value: Expr, divisor: int) -> Expr:
    return value if divisor == 1 else FloorDiv(value, const(divisor, INT64))


def _with_known(rows: list[_Row], var: Var) -> list[_Row]:
    """The rows once ``var`` is known, without those in which nothing unknown is left."""
    found = []
    for row in rows:
        coefficient = row.sum.coefficients.get(var, 0)
        rest = {other: value for other, value in row.sum.coefficients.items() if other is not var}
        if coefficient:
            known = _plus(row.sum.known, _times(cast(var, INT64), coefficient))
            row = _Row(_Sum(rest, known, row.sum.constant), row.equation, row.whole)
        if rest:
            found.append(row)
    return found


def _without(rows: list[_Row], pivot: _Row) -> list[_Row]:
    """The rows with the pivot's first unknown eliminated, without those in which nothing unknown is left."""
    var, coefficient = next(iter(pivot.sum.coefficients.items()))
    found = []
    for row in rows:
        own = row.sum.coefficients.get(var, 0)
        if own:
            row = _Row(_Sum().plus(row.sum, coefficient).plus(pivot.sum, -own), row.equation, False)
        if row.sum.coefficients:
            found.append(row)
    return found


def _sum_of(expr: Expr, unknowns: dict[Var, None]) -> _Sum | None:
    """The expression as a sum that is linear in the unknowns; None if it is not."""
    if isinstance(expr, IntImm):
        return _Sum(constant=expr.value)
    if not any(part in unknowns for part in walk(expr) if isinstance(part, Var)):
        return _Sum(known=cast(expr, INT64))
    if isinstance(expr, Var):
        return _Sum({expr: 1})
    if isinstance(expr, Cast) and expr.value.dtype.is_integer:
        return _sum_of(expr.value, unknowns)
    if isinstance(expr, (Add, Sub)):
        left, right = _sum_of(expr.a, unknowns), _sum_of(expr.b, unknowns)
        if left is None or right is None:
            return None
        return left.plus(right, 1 if isinstance(expr, Add) else -1)
    if isinstance(expr, Negate):
        inner = _sum_of(expr.a, unknowns)
        return None if inner is None else _Sum().plus(inner, -1)
    factor: int | None = None
    scaled: Expr | None = None
    if isinstance(expr, Mul):
        if isinstance(expr.b, IntImm):
            scaled, factor = expr.a, expr.b.value
        elif isinstance(expr.a, IntImm):
            scaled, factor = expr.b, expr.a.value
    elif isinstance(expr, ShiftLeft) and isinstance(expr.b, IntImm) and 0 <= expr.b.value < 63:
        scaled, factor = expr.a, 1 << expr.b.value
    if factor is None or scaled is None:
        return None
    inner = _sum_of(scaled, unknowns)
    return None if inner is None else _Sum().plus(inner, factor)


def _is_int64(expr: Expr) -> bool:
    return all(part.dtype == INT64 for part in walk(expr) if isinstance(part, Expr))


def _plus(a: Expr | None, b: Expr | None) -> Expr | None:
    if a is None or b is None:
        return b if a is None else a
    return Sub(a, b.a) if isinstance(b, Negate) else Add(a, b)


def _times(expr: Expr | None, factor: int) -> Expr | None:
    if expr is None or factor == 0:
        return None
    if factor == 1:
        return expr
    if factor == -1:
        return expr.a if isinstance(expr, Negate) else Negate(expr)
    return Mul(expr, const(factor, INT64))
