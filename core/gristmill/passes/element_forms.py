"""Where accesses of threads go, as sums: an index is ``constant + sum(coefficient * atom)``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from gristmill.arith.bounds import Bounds
from gristmill.arith.interval import Interval
from gristmill.arith.numbering import Numbering
from gristmill.ir.dtype import DType
from gristmill.ir.expr import Add, BitAnd, Cast, Expr, FloorDiv, FloorMod, IntImm, Mul, Negate, Ramp, Sub, Var
from gristmill.ir.functor import walk

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

    def add(self, atom: Atom, coefficient: int) -> None:
        total = coefficient + (self.terms[atom.number][1] if atom.number in self.terms else 0)
        if total:
            self.terms[atom.number] = (atom, total)
        else:
            self.terms.pop(atom.number, None)

    @property
    def key(self) -> tuple[object, ...]:
        """The same for sums that are the same under the same ranges."""
        terms = sorted((number, coefficient, atom.interval) for number, (atom, coefficient) in self.terms.items())
        return self.constant, self.spread, *terms

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
        divided = _divided(expr)
        if divided is not None:
            whole_sum, divisor, is_remainder = divided
            division = (self.numbers.of(whole_sum), divisor, is_remainder)
            inner = Form()
            self.collect(whole_sum, 1, inner, None)
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
        for node in walk(expr):
            if isinstance(node, Var):
                yield node


def _divided(expr: Expr) -> tuple[Expr, int, bool] | None:
    """What is divided by which constant, and whether the remainder is taken; ``x & 7`` is ``x % 8``."""
    match expr:
        case FloorDiv(a=a, b=IntImm(value=value)) if value > 0:
            return a, value, False
        case FloorMod(a=a, b=IntImm(value=value)) if value > 0:
            return a, value, True
        case BitAnd(a=a, b=IntImm(value=value)) if value > 0 and value & (value + 1) == 0:
            return a, value + 1, True
    return None
