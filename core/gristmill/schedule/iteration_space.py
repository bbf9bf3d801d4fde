"""The iterations of some loops as one range of numbers: how many there are, and what the loops' variables are in each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gristmill.arith.simplify import Simplifier
from gristmill.ir.build import cast, const, constant_value, greater
from gristmill.ir.dtype import INT64
from gristmill.ir.expr import Add, Expr, FloorDiv, FloorMod, Max, Min, Mul, Select, Var
from gristmill.ir.functor import walk
from gristmill.ir.stmt import Bind, For, Stmt

LARGEST = 1 << 62
"""Numbers of iterations do not wrap: where there would be more, there are so many, which no device launches."""


class IterationSpace:
    """The iterations of loops whose ends do not depend on each other; the last loop counts fastest.

    What must be evaluated before gets names, in ``before``. With ``shapes``, those of the arrays that there are, the
    number of iterations does not wrap: it is that of elements in memory, or is kept at ``LARGEST``.
    """

    def __init__(
        self, loops: Sequence[For], simplifier: Simplifier, shapes: Sequence[tuple[Expr, ...]] | None = None
    ) -> None:
        self.loops = loops
        self.simplifier = simplifier
        self.before: list[Stmt] = []
        self.minimums = [self.named(f"{loop.var.name}_first", cast(loop.minimum, INT64)) for loop in loops]
        extents = [self._extent_of(loop) for loop in loops]
        checked = shapes is not None and not _are_of_one_array(extents, shapes)
        if checked:
            extents = [
                Min(extent, const(LARGEST, INT64)) if self._most(extent) > LARGEST else extent for extent in extents
            ]
        self.extents = [
            self.named(f"{loop.var.name}_extent", extent) for loop, extent in zip(loops, extents, strict=True)
        ]
        total = self.extents[0]
        for extent in self.extents[1:]:
            if checked and self._most(total) * self._most(extent) > LARGEST:
                total = self.named("total", total)
                room = FloorDiv(const(LARGEST, INT64), Max(total, const(1, INT64)))
                total = Select(greater(extent, room), const(LARGEST, INT64), Mul(total, extent))
            else:
                total = Mul(total, extent)
        self.total = self.named("total", total)
        """The number of iterations, int64."""
        self.number = Var("number", INT64)
        """The variable that counts them from 0."""
        self.coordinates: list[Stmt] = []
        """Names for the loops' variables, given the number."""
        if len(loops) == 1 and loops[0].var.dtype == INT64 and constant_value(self.minimums[0]) == 0:
            self.number = loops[0].var
        else:
            self.coordinates = self._coordinates()

    def _most(self, extent: Expr) -> int:
        return int(self.simplifier.bounds.of(extent).high)

    @property
    def known(self) -> int | None:
        """How many iterations there are, if that is constant."""
        found = constant_value(self.total)
        return None if found is None else int(found)

    def _extent_of(self, loop: For) -> Expr:
        """How often the loop runs: not less than never."""
        extent = cast(loop.extent, INT64)
        if self.simplifier.bounds.of(extent).low >= 0:
            return extent
        return Max(extent, const(0, INT64))

    def named(self, name: str, value: Expr) -> Expr:
        """The value, evaluated once, before."""
        value = self.simplifier.simplify(value)
        if isinstance(value, Var) or constant_value(value) is not None:
            return value
        var = Var(name, value.dtype)
        self.simplifier.bounds.set(var, self.simplifier.bounds.of(value))
        self.before.append(Bind(var, value))
        return var

    def _coordinates(self) -> list[Stmt]:
        found: list[Stmt] = []
        rest: Expr = self.number
        for place in reversed(range(len(self.loops))):
            loop = self.loops[place]
            here = rest if place == 0 else FloorMod(rest, self.extents[place])
            value = self.simplifier.simplify(Add(self.minimums[place], here))
            found.append(Bind(loop.var, cast(value, loop.var.dtype), loop.span))
            rest = FloorDiv(rest, self.extents[place])
        return found[::-1]


def _are_of_one_array(extents: Sequence[Expr], shapes: Sequence[tuple[Expr, ...]]) -> bool:
    """Whether each extent depends on a size of its own, all of one array: its elements are as many, or more."""
    sizes = [{part for part in walk(extent) if isinstance(part, Var)} for extent in extents]
    used = [size for each in sizes for size in each]
    if any(len(each) > 1 for each in sizes) or len(set(used)) < len(used):
        return False
    return not used or any(set(used) <= set(shape) for shape in shapes)


def has_fewer_than(loops: Iterable[For], least: int) -> bool:
    """Whether loops are known to have fewer iterations together than ``least``."""
    total = 1
    for loop in loops:
        extent = constant_value(loop.extent)
        if extent is None:
            return False
        total *= max(int(extent), 0)
    return total < least
