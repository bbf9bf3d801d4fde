"""Linear forms: ``2*i + 3*j - 5`` as a table of terms, in the arithmetic modulo 2**bits that integers have.

Since integers wrap, sums may be reordered and constants multiplied out freely: the value is the same modulo 2**bits.
Only where the *ideal* value (in unbounded integers) provably fits the type may a form be compared or divided as if
it were unbounded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from gristmill.arith.bounds import Bounds
from gristmill.arith.interval import Interval
from gristmill.arith.numbering import Numbering
from gristmill.ir.build import const
from gristmill.ir.dtype import DType
from gristmill.ir.expr import Add, Expr, FloorDiv, FloorMod, IntImm, Mul, Negate, Sub, Var
from gristmill.ir.span import Span


@dataclass(slots=True)
class LinearForm:
    """``constant + sum(coefficient * atom)`` over a scalar or vector integer type.

    Terms are kept by the number of their atom, in order of first occurrence. Coefficients and the constant are the
    representatives nearest to zero modulo 2**bits, so ``x - 1`` of an unsigned type has the constant -1.
    """

    dtype: DType
    terms: dict[int, tuple[Expr, int]] = field(default_factory=dict)
    constant: int = 0

    def nearest(self, value: int) -> int:
        """The representative of ``value`` modulo 2**bits that is nearest to zero."""
        bits = self.dtype.bits
        value &= (1 << bits) - 1
        return value - (1 << bits) if value >> (bits - 1) else value

    def add_constant(self, value: int) -> None:
        self.constant = self.nearest(self.constant + value)

    def add_term(self, number: int, atom: Expr, coefficient: int) -> None:
        known = self.terms.get(number)
        total = self.nearest(coefficient + (known[1] if known else 0))
        if total:
            self.terms[number] = (known[0] if known else atom, total)
        elif known:
            del self.terms[number]

    def add(self, other: LinearForm, factor: int = 1) -> None:
        """Add ``factor`` times another form of the same type."""
        self.add_constant(other.constant * factor)
        for number, (atom, coefficient) in other.terms.items():
            self.add_term(number, atom, coefficient * factor)

    def difference(self, other: LinearForm) -> LinearForm:
        """This form less another in unbounded integers: coefficients are not reduced, so do not build it."""
        terms = dict(self.terms)
        for number, (atom, coefficient) in other.terms.items():
            total = (terms[number][1] if number in terms else 0) - coefficient
            if total:
                terms[number] = (atom, total)
            else:
                del terms[number]
        return LinearForm(self.dtype, terms, self.constant - other.constant)

    @property
    def is_constant(self) -> bool:
        return not self.terms

    def ideal(self, bounds: Bounds) -> Interval:
        """The bounds of the form in unbounded integers."""
        low = high = self.constant
        for atom, coefficient in self.terms.values():
            part = bounds.of(atom).scaled(coefficient)
            low += part.low
            high += part.high
        return Interval(low, high)

    def fits(self, bounds: Bounds) -> bool:
        """Whether the value is the ideal one: it never leaves the type."""
        return self.ideal(bounds).fits(self.dtype)

    def split(self, divisor: int) -> tuple[LinearForm, LinearForm]:
        """The form as ``divisor * first + second``, with everything in ``first`` that the divisor divides."""
        multiple, rest = LinearForm(self.dtype), LinearForm(self.dtype)
        for number, (atom, coefficient) in self.terms.items():
            if coefficient % divisor == 0:
                multiple.terms[number] = (atom, coefficient // divisor)
            else:
                rest.terms[number] = (atom, coefficient)
        rest.constant = self.constant % divisor
        multiple.constant = (self.constant - rest.constant) // divisor
        return multiple, rest

    def build(self, span: Span | None = None) -> Expr:
        """The expression of the form: added terms, then subtracted ones, then the constant."""
        ordered = [term for term in self.terms.values() if term[1] > 0]
        ordered += [term for term in self.terms.values() if term[1] < 0]
        total: Expr | None = None
        constant = self.constant
        if ordered and ordered[0][1] < 0 and constant > 0:
            total, constant = const(constant, self.dtype, span), 0
        for atom, coefficient in ordered:
            part = self._scaled(atom, abs(coefficient), span)
            if total is None:
                total = part if coefficient > 0 else Negate(part, span)
            else:
                total = Add(total, part, span) if coefficient > 0 else Sub(total, part, span)
        if total is None:
            return const(constant, self.dtype, span)
        if constant > 0:
            total = Add(total, const(constant, self.dtype), span)
        elif constant < 0:
            total = Sub(total, const(-constant, self.dtype), span)
        return total

    def _scaled(self, atom: Expr, factor: int, span: Span | None) -> Expr:
        return atom if factor == 1 else Mul(atom, const(factor, self.dtype), span)


def rejoin_divisions(form: LinearForm, numbers: Numbering, collect: Callable[[Expr], LinearForm]) -> LinearForm:
    """``k*c*(x // c) + k*(x % c)`` becomes ``k*x``, for constants c other than 0; exact modulo 2**bits."""
    for number, (atom, coefficient) in list(form.terms.items()):
        if not isinstance(atom, FloorMod) or not isinstance(atom.b, IntImm) or atom.b.value == 0:
            continue
        for other_number, (other, other_coefficient) in list(form.terms.items()):
            if (
                isinstance(other, FloorDiv)
                and numbers.same(other.a, atom.a)
                and numbers.same(other.b, atom.b)
                and other_coefficient == form.nearest(coefficient * atom.b.value)
            ):
                joined = LinearForm(form.dtype, constant=form.constant)
                for kept, (expr, factor) in form.terms.items():
                    if kept == number:
                        joined.add(collect(atom.a), coefficient)
                    elif kept != other_number:
                        joined.add_term(kept, expr, factor)
                return rejoin_divisions(joined, numbers, collect)
    return form


@dataclass(slots=True)
class SymbolicRanges:
    """Ranges of variables whose ends are linear forms of other variables, as ``0 <= i <= n - 1``; and of quotients by
    constants: ``n - 3 <= n // 4 * 4 <= n``."""

    form: Callable[[Expr], LinearForm]
    """The linear form of an expression."""
    ends: dict[Var, tuple[LinearForm | None, LinearForm | None]] = field(default_factory=dict)

    def set(self, var: Var, low: LinearForm | None, high: LinearForm | None) -> None:
        self.ends[var] = (low, high)

    def upper_bound(self, form: LinearForm, bounds: Bounds, depth: int = 4) -> int:
        """A number that the form, in unbounded integers, never exceeds."""
        best = form.ideal(bounds).high
        for atom, coefficient in form.terms.values() if depth else ():
            end, factor = self._end(atom, coefficient, bounds)
            if end is not None:
                best = min(best, self.upper_bound(_replaced(form, atom, end, factor), bounds, depth - 1))
        return best

    def _end(self, atom: Expr, coefficient: int, bounds: Bounds) -> tuple[LinearForm | None, int]:
        """A form and a factor whose product ``coefficient * atom`` never exceeds, in unbounded integers."""
        if isinstance(atom, Var):
            low, high = self.ends.get(atom, (None, None))
            end = high if coefficient > 0 else low
            # The end must be ideal itself, and free of wrapping when it is put in the variable's place.
            return (end if end is not None and end.fits(bounds) else None), coefficient
        if not isinstance(atom, FloorDiv) or not isinstance(atom.b, IntImm):
            return None, 0
        divisor = atom.b.value
        if divisor < 2 or coefficient % divisor:
            return None, 0
        whole = self.form(atom.a)
        if not whole.fits(bounds):
            return None, 0
        rest = 0 if coefficient > 0 else divisor - 1
        return LinearForm(whole.dtype, whole.terms, whole.constant - rest), coefficient // divisor


def _replaced(form: LinearForm, atom: Expr, end: LinearForm, coefficient: int) -> LinearForm:
    """The form with the end in the atom's place, in unbounded integers."""
    terms: dict[int, tuple[Expr, int]] = {}
    for number, (expr, factor) in form.terms.items():
        if expr is not atom:
            terms[number] = (expr, factor)
    for number, (expr, factor) in end.terms.items():
        known = terms.get(number)
        total = factor * coefficient + (known[1] if known else 0)
        if total:
            terms[number] = (expr, total)
        else:
            terms.pop(number, None)
    return LinearForm(form.dtype, terms, form.constant + end.constant * coefficient)
