"""How the integers in a loop's body change from one iteration to the next, if iterations are to be lanes of vectors.

A value *climbs* if each lane has one more than the lane before, modulo the width of its type; it is *uniform* if all
lanes have the same. What an index does decides how a vector of lanes reaches memory: side by side, or one element.
"""

from __future__ import annotations

from gristmill.arith.simplify import Simplifier
from gristmill.ir.build import constant_value
from gristmill.ir.expr import Cast, Expr, Load, Var
from gristmill.ir.functor import substitute, walk
from gristmill.ir.memory import Buffer
from gristmill.ir.stmt import Allocate, Bind, For


class LaneSteps:
    """What the names in the body of one loop do from lane to lane.

    ``private`` are the buffers that the body allocates; ``varying`` the variables that differ between lanes;
    ``climbing`` those of them that climb, ``unwrapped`` those that climb without wrapping.
    """

    def __init__(self, loop: For, simplifier: Simplifier) -> None:
        self.simplifier = simplifier
        self.varying: set[Var] = {loop.var}
        self.climbing: set[Var] = {loop.var}
        self.unwrapped: set[Var] = {loop.var} if _stays_in_type(loop) else set()
        self.private: set[Buffer] = set()
        self.values: dict[Var, Expr] = {}
        for node in walk(loop.body):
            if isinstance(node, Allocate):
                self.private.add(node.buffer)
            elif isinstance(node, Bind):
                self._bind(node.var, node.value)

    def _bind(self, var: Var, value: Expr) -> None:
        if not self.varies(value):
            return
        step = self.step(value)
        if step == 0:
            return
        self.varying.add(var)
        if step == 1:
            self.climbing.add(var)
            self.values[var] = substitute(value, self.values)
            if self._is_unwrapped(value):
                self.unwrapped.add(var)

    def varies(self, expr: Expr) -> bool:
        """Whether some part of the expression differs between lanes."""
        return any(
            part in self.varying if type(part) is Var else type(part) is Load and part.buffer in self.private
            for part in walk(expr)
        )

    def step(self, expr: Expr) -> int | None:
        """By how much the scalar integer expression grows from lane to lane: 0, or 1; None if it is neither."""
        dtype = expr.dtype
        if not dtype.is_integer or dtype.is_vector:
            return None
        form = self.simplifier.form(expr)
        total = 0
        for atom, coefficient in form.terms.values():
            if atom in self.climbing or (isinstance(atom, Cast) and self._cast_climbs(atom)):
                total += coefficient
            elif self.varies(atom):
                return None
        total = form.nearest(total)
        return total if total in (0, 1) else None

    def index_step(self, index: Expr) -> int | None:
        """The step of an index of memory, in unbounded integers: what a valid index is to those of the other lanes.

        A signed index that wraps is negative, so it is no valid index; an unsigned one must be known not to wrap.
        """
        step = self.step(index)
        if step == 1 and index.dtype.is_unsigned and index.dtype.bits < 64 and not self._is_unwrapped(index):
            return None
        return step

    def _cast_climbs(self, cast: Cast) -> bool:
        """Whether the integer cast climbs: it cuts a climbing variable down, or widens one that does not wrap."""
        inner = cast.value.dtype
        cuts = inner.is_integer and cast.type.bits <= inner.bits
        return (cuts and cast.value in self.climbing) or self._is_unwrapped(cast)

    def _is_unwrapped(self, expr: Expr) -> bool:
        """Whether this is a climbing variable that does not wrap, widened perhaps."""
        while isinstance(expr, Cast):
            inner = expr.value.dtype
            if not (inner.is_integer and expr.type.is_integer) or expr.type.bits < inner.bits:
                return False
            if inner.is_signed != expr.type.is_signed and (inner.is_signed or expr.type.bits == inner.bits):
                return False
            expr = expr.value
        return expr in self.unwrapped

    def of_loop_variable(self, expr: Expr) -> Expr:
        """The expression in terms of the loop variable: names that climb are replaced by what they are."""
        return substitute(expr, self.values) if self.values else expr


def _stays_in_type(loop: For) -> bool:
    """Whether the loop variable surely never wraps round its type."""
    minimum, extent = constant_value(loop.minimum), constant_value(loop.extent)
    if minimum is None:
        return False
    return minimum <= 0 or (extent is not None and minimum + extent <= loop.var.dtype.maximum)
