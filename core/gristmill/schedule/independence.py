"""Which loops of a nest may be run by many threads: those of which two iterations never touch an element that one writes.

For each memory that the nest writes, the loops are found whose iteration *follows from the element*: if two accesses
touch the same element, they belong to the same iteration of that loop. An index ``K*v + r`` says so if ``r`` spans less
than ``K``; once ``v`` is known, it counts as fixed for the other loops, so that ``y*w + x`` gives ``y`` first and then
``x``. Quotients and remainders are known in the same way, and give what they are digits of: ``[i // w, i % w]`` gives
``i``. A loop is independent if its iteration follows from the element in all written memory. Of blocks, the author's
word is taken: the values of spatial axes may run in any order.

Iterations may also meet in atomic operations, where nothing else reaches that memory and what is left in it does not
depend on the order: one operation on integers, whose old values nobody uses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gristmill.arith.interval import Interval
from gristmill.arith.simplify import Simplifier
from gristmill.ir.build import constant_value
from gristmill.ir.dtype import INT64
from gristmill.ir.effects import atomic_element, is_atomic, written_element
from gristmill.ir.expr import AddressOf, Call, CallFunction, Expr, IntImm, Load, Min, Ramp, Var
from gristmill.ir.functor import walk
from gristmill.ir.memory import Buffer
from gristmill.ir.op import ATOMICS_IN_ANY_ORDER
from gristmill.ir.stmt import Allocate, AxisKind, Bind, Block, Evaluate, For, Stmt, Store
from gristmill.passes.renewal import defined_variables
from gristmill.schedule.digits import Digits, factors, sizes_in
from gristmill.schedule.polynomials import Monomial, Polynomial, Polynomials


@dataclass
class _Accesses:
    """How one memory is reached in the nest: the indices of every load and store."""

    buffers: set[Buffer] = field(default_factory=set)
    indices: list[tuple[Polynomial, ...]] = field(default_factory=list)
    written: bool = False
    known: bool = True
    """Whether every index is a scalar integer."""
    plain: bool = False
    """Whether there are loads and stores."""
    atomics: set[str] = field(default_factory=set)
    """The atomic operations on it whose order makes no difference; the empty name for one whose order does."""

    @property
    def meet(self) -> bool:
        """Whether iterations may meet in this memory, whatever the indices are."""
        return not self.plain and len(self.atomics) == 1 and "" not in self.atomics


@dataclass(frozen=True)
class _Split:
    """An index as ``factor*v + fixed + constant + moving``; ``low`` and ``high`` are the ends of the last two."""

    factor: Polynomial
    fixed: Polynomial
    low: Polynomial
    high: Polynomial


class Independence:
    """What is known of the accesses of a nest of loops, ``loops`` from outside to inside, over ``body``."""

    def __init__(
        self,
        loops: Sequence[For],
        binds: Sequence[Bind],
        body: Stmt,
        roots: Mapping[Var, Var],
        params: Sequence[Var | Buffer],
    ) -> None:
        self.loops = loops
        self.roots = roots
        self.private = {node.buffer.data for node in walk(body) if isinstance(node, Allocate)}
        self.private |= {buffer.data for node in walk(body) if isinstance(node, Block) for buffer in node.allocations}
        self.polynomials = Polynomials(Simplifier())
        _know_sizes(self.polynomials, params)
        self.inside = defined_variables(body) | {loop.var for loop in loops} | {bind.var for bind in binds}
        self.written = {self.root(node.buffer) for node in walk(body) if isinstance(node, Store)}
        self.written |= {self.root(found.buffer) for node in walk(body) if (found := written_element(node)) is not None}
        self.atoms: dict[For, int] = {}
        self.last: dict[int, Polynomial] = {}
        """The number of the last iteration, for the atoms of loops."""
        self.memory: dict[Var, _Accesses] = {}
        self.axes: list[Polynomial] = []
        self.digits = Digits(self.polynomials, set())
        for loop in loops:
            self._enter(loop)
        self.positive = set[int]()
        """Sizes that are not 0 if there is an iteration."""
        for loop in loops:
            if loop in self.atoms:
                extent = self.last[self.atoms[loop]] + Polynomial.constant(1)
                self.positive |= factors(extent, self.polynomials)
        for bind in binds:
            self._name(bind.var, bind.value)
        self._gather(body)
        if isinstance(body, Block):
            # A block alone in its loops: its spatial axes are the author's word.
            self.axes = [
                self.polynomials.values.get(axis.var, Polynomial())
                for axis in body.axes
                if axis.kind is AxisKind.SPATIAL
            ]

    def root(self, buffer: Buffer) -> Var:
        return self.roots.get(buffer.data, buffer.data)

    def independent(self) -> list[For]:
        """The loops of the nest that may be run by many threads, in order."""
        atoms = [self.atoms[loop] for loop in self.loops if loop in self.atoms]
        found = set(atoms)
        for root, accesses in self.memory.items():
            if root in self.written and root not in self.private and not accesses.meet:
                if accesses.known and len(accesses.buffers) == 1:
                    (buffer,) = accesses.buffers
                    positive = self.positive | sizes_in(buffer.shape, self.polynomials)
                    found &= self._following(list(zip(*accesses.indices, strict=True)), positive)
                else:
                    found = set()
        found |= self._following([(axis,) for axis in self.axes], self.positive)
        return [loop for loop in self.loops if self.atoms.get(loop) in found]

    # What is in the nest ----------------------------------------------------------------------------------------------

    def _enter(self, loop: For) -> None:
        """Make the number of the loop's iteration an atom, and its variable a polynomial in it."""
        polynomials = self.polynomials
        minimum, extent = polynomials.of(loop.minimum), self._extent(loop.extent)
        greatest = polynomials.greatest(extent)
        most = loop.extent.dtype.maximum if greatest is None else max(greatest, 1)
        number = polynomials.fresh(Interval(0, min(most, INT64.maximum) - 1))
        value = minimum + Polynomial.atom(number)
        if not self._stays_in_type(loop, value):
            return
        self.atoms[loop] = number
        self.last[number] = extent - Polynomial.constant(1)
        polynomials.values[loop.var] = value
        low, high = polynomials.least(value), polynomials.greatest(value)
        low = loop.var.dtype.minimum if low is None else low
        high = loop.var.dtype.maximum if high is None else high
        if low <= high and Interval(low, high).fits(loop.var.dtype):
            polynomials.simplifier.bounds.set(loop.var, Interval(low, high))

    def _stays_in_type(self, loop: For, value: Polynomial) -> bool:
        minimum = constant_value(loop.minimum)
        if loop.var.dtype == INT64 or (minimum is not None and minimum <= 0):
            return True
        low, high = self.polynomials.least(value), self.polynomials.greatest(value)
        return low is not None and high is not None and Interval(low, high).fits(loop.var.dtype)

    def _extent(self, extent: Expr) -> Polynomial:
        """The extent, or a constant that it does not exceed: ``min(n, i + 32) - i`` is 32 at most."""
        polynomials = self.polynomials
        found = polynomials.of(extent)
        for monomial, coefficient in found.terms.items():
            atom = polynomials.expressions.get(monomial[0]) if len(monomial) == 1 else None
            if coefficient != 1 or not isinstance(atom, Min):
                continue
            for side in (atom.a, atom.b):
                other = found - Polynomial({monomial: 1}) + polynomials.of(side)
                if other.as_constant is not None:
                    return other
        return found

    def _name(self, var: Var, value: Expr) -> None:
        if var.dtype.is_integer and not var.dtype.is_vector and not any(_may_differ(part) for part in walk(value)):
            self.polynomials.values[var] = self.polynomials.of(value)

    def _gather(self, body: Stmt) -> None:
        for node in walk(body):
            if isinstance(node, (Bind, Evaluate)) and is_atomic(node.value):
                self._atomic(node)
            if isinstance(node, For):
                self._enter(node)
            elif isinstance(node, Bind):
                self._name(node.var, node.value)
            elif isinstance(node, Block):
                for axis in node.axes:
                    self._name(axis.var, axis.value)
            elif isinstance(node, (Load, Store)):
                self._access(node)

    def _atomic(self, node: Bind | Evaluate) -> None:
        element = atomic_element(node.value)
        assert isinstance(node.value, Call)
        assert element is not None
        name = node.value.op.name
        in_any_order = isinstance(node, Evaluate) and element.buffer.dtype.is_integer and name in ATOMICS_IN_ANY_ORDER
        self._access(element)
        self.memory[self.root(element.buffer)].atomics.add(name if in_any_order else "")

    def _access(self, node: Load | Store | AddressOf) -> None:
        accesses = self.memory.setdefault(self.root(node.buffer), _Accesses())
        accesses.plain = accesses.plain or not isinstance(node, AddressOf)
        accesses.buffers.add(node.buffer)
        accesses.written = accesses.written or not isinstance(node, Load)
        indices = tuple(self._index(index) for index in node.indices)
        if None in indices:
            accesses.known = False
        elif indices not in accesses.indices:
            accesses.indices.append(indices)  # type: ignore[arg-type]

    def _index(self, index: Expr) -> Polynomial | None:
        """The index as a polynomial; that of a vector of equal steps has an atom for the lanes. None for any other."""
        if not index.dtype.is_vector:
            return self.polynomials.of(index) if index.dtype.is_integer else None
        if not isinstance(index, Ramp) or not isinstance(index.stride, IntImm):
            return None
        lane = self.polynomials.fresh(Interval(0, index.lanes - 1))
        self.last[lane] = Polynomial.constant(index.lanes - 1)
        steps = Polynomial({(lane,): index.stride.value}) if index.stride.value else Polynomial()
        return self.polynomials.of(index.base) + steps

    # What follows from an element -------------------------------------------------------------------------------------

    def _following(self, dimensions: Sequence[Sequence[Polynomial]], positive: set[int]) -> set[int]:
        """The atoms of loops whose iteration follows from the values of these indices, one sequence a dimension.

        ``positive`` are the sizes that are not 0 where the memory has an element.
        """
        known = list(dimensions)
        self.digits = Digits(self.polynomials, positive)
        for indices in dimensions:
            for index in indices:
                for atom in index.atoms():
                    self.digits.add(atom)
        found: set[int] = set()
        while True:
            more = {
                number
                for number in (*self.atoms.values(), *self.digits.found)
                if number not in found and any(self._follows(number, indices, found) for indices in known)
            }
            if not more:
                return found & set(self.atoms.values())
            found |= more
            for whole in self.digits.known_numbers(found, self._most):
                known.append((whole,))
                for atom in whole.atoms():
                    self.digits.add(atom)

    def _most(self, number: Polynomial) -> Polynomial | None:
        """What a number does not exceed, and that it is not negative; None if that is not known."""
        least = self.polynomials.least(number)
        if least is None or least < 0:
            return None
        total = Polynomial()
        for monomial, coefficient in number.terms.items():
            moving = [atom for atom in monomial if self._moves(atom)]
            if not moving:
                total = total + Polynomial({monomial: coefficient})
                continue
            rest = tuple(atom for atom in monomial if atom != moving[0])
            end = self._reach(moving[0], rest) if len(moving) == 1 and coefficient > 0 else None
            if end is None:
                return None
            total = total + Polynomial({rest: coefficient}) * end
        return total

    def _follows(self, number: int, indices: Sequence[Polynomial], fixed: set[int]) -> bool:
        splits: list[_Split] = []
        for index in indices:
            split = self._split(index, number, fixed)
            if split is None or split.factor != (splits[0] if splits else split).factor:
                return False
            if split.fixed != (splits[0] if splits else split).fixed:
                return False
            if split not in splits:
                splits.append(split)
        return any(self._are_apart(splits, sign) for sign in (1, -1))

    def _are_apart(self, splits: Sequence[_Split], sign: int) -> bool:
        """Whether all that is added to ``factor*v`` spans less than the factor (with a sign: than minus the factor)."""
        one = Polynomial.constant(1)
        for a in splits:
            room = (a.factor if sign > 0 else Polynomial() - a.factor) - one
            for b in splits:
                least = self.polynomials.least(room - a.high + b.low)
                if least is None or least < 0:
                    return False
        return True

    def _split(self, index: Polynomial, number: int, fixed: set[int]) -> _Split | None:
        factor: dict[Monomial, int] = {}
        still: dict[Monomial, int] = {}
        low = high = Polynomial.constant(index.terms.get((), 0))
        for monomial, coefficient in index.terms.items():
            moving = [atom for atom in monomial if self._moves(atom) and atom not in fixed]
            if not moving:
                if monomial:
                    still[monomial] = coefficient
                continue
            if len(moving) != 1:
                return None
            rest = tuple(atom for atom in monomial if atom != moving[0])
            if moving[0] == number:
                if any(self._moves(atom) for atom in rest):
                    return None
                factor[rest] = coefficient
                continue
            end = self._reach(moving[0], rest)
            if end is None:
                return None
            span = Polynomial({rest: coefficient}) * end
            if coefficient > 0:
                high = high + span
            else:
                low = low + span
        return _Split(Polynomial(factor), Polynomial(still), low, high)

    def _reach(self, atom: int, factors: Monomial) -> Polynomial | None:
        """The greatest value of the atom of a loop, if it and the factors are the same all over the nest."""
        end = self.last.get(atom)
        if end is None and atom in self.digits.found:
            end = self.digits.greatest(self.digits.found[atom], self._most)
        if end is None or any(self._moves(part) for part in (*end.atoms(), *factors)):
            return None
        return end if all(self.polynomials.range_of(part).low >= 0 for part in factors) else None

    def _moves(self, atom: int) -> bool:
        """Whether the atom may differ from one place in the nest to another."""
        if atom in self.last:
            return True
        expr = self.polynomials.expressions.get(atom)
        if expr is None:
            return False
        return any(
            part in self.inside
            or isinstance(part, CallFunction)
            or (isinstance(part, Load) and self.root(part.buffer) in (self.written | self.private))
            for part in walk(expr)
        )


def _may_differ(part: object) -> bool:
    """Whether an expression with this part may give another value each time."""
    return isinstance(part, (Load, CallFunction)) or is_atomic(part)


def _know_sizes(polynomials: Polynomials, params: Sequence[Var | Buffer]) -> None:
    """Tell that sizes are not negative."""
    for param in params:
        if isinstance(param, Buffer):
            for size in param.shape:
                if isinstance(size, Var):
                    polynomials.simplifier.bounds.set(size, Interval(0, size.dtype.maximum))
