"""The iterations of some loops as one range of numbers: how many there are, and what the loops' variables are in each."""

from __future__ import annotations

from collections.abc import Sequence

from gristmill.arith.simplify import Simplifier
from gristmill.ir.build import cast, const, constant_value
from gristmill.ir.dtype import INT64
from gristmill.ir.expr import Add, Expr, FloorDiv, FloorMod, Max, Mul, Var
from gristmill.ir.stmt import Bind, For, Stmt


class IterationSpace:
    """The iterations of loops whose ends do not depend on each other; the last loop counts fastest.

    What must be evaluated before gets names, in ``before``.
    """

    def __init__(self, loops: Sequence[For], simplifier: Simplifier) -> None:
        self.loops = loops
        self.simplifier = simplifier
        self.before: list[Stmt] = []
        self.minimums = [self.named(f"{loop.var.name}_first", cast(loop.minimum, INT64)) for loop in loops]
        self.extents = [self.named(f"{loop.var.name}_extent", self._extent_of(loop)) for loop in loops]
        total = self.extents[0]
        for extent in self.extents[1:]:
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
