"""Run consecutive iterations of a loop over sums as lanes of vectors, where its iterations are independent.

Before::

    for j in range(n):
        total = 0.0
        for p in range(k):
            total = total + a[i, p] * b[p, j]
        c[i, j] = total

After (with vectors of 8 lanes, 32 lanes a step)::

    reach = n if disjoint(c, a) and disjoint(c, b) else 0
    for step in range(reach / 32):
        j = step * 32
        total = broadcast(0.0, 32)
        for p in range(k):
            total = total + broadcast(a[i, p], 32) * b[p, ramp(j, 1, 32)]
        c[i, ramp(j, 1, 32)] = total
    for step in range(reach % 32 / 8):
        ...                                     ; the same with 8 lanes
    for j in range(reach / 8 * 8, n):
        ...                                     ; as before

A sum of floats must keep its order, so each addition waits for the last one; lanes wait at the same time. Each lane
does what its iteration did, in that order: results are equal in every bit. Arrays of the caller may overlap, hence the
question before: where they do, the loop runs as it was written.

Loops of which it is not known that iterations are independent, or that this pays, stay
(:mod:`gristmill.passes.outer_lanes`).

Requires: no blocks; several dimensions still have an index each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from gristmill.ir.build import call, conjunction, const, constant_value, sequence
from gristmill.ir.dtype import BOOL, INT64
from gristmill.ir.expr import Add, Div, Expr, Mod, Mul, Ramp, Select, Sub, Var
from gristmill.ir.functor import Mutator, children, walk
from gristmill.ir.memory import Buffer
from gristmill.ir.module import Function, Module
from gristmill.ir.node import Node
from gristmill.ir.stmt import Bind, For, LoopHints, LoopKind, Stmt
from gristmill.passes.lane_steps import LaneSteps
from gristmill.passes.layout import as_int64, flat_size, times
from gristmill.passes.manager import Pass, is_interface
from gristmill.passes.outer_lanes import OuterLanes, is_reduction, outer_lanes
from gristmill.passes.own_scratch import with_own_scratch
from gristmill.passes.ranges import RangeMutator
from gristmill.passes.renewal import Renewal
from gristmill.passes.vector_lanes import NotVectorizable, VectorForm
from gristmill.plugin.protocols import PassContext

# Sums wait for their additions, so that more copies of a body gain nothing; they cost most of the time to generate code.
_NO_MORE = LoopHints(unroll=1, vectorize=False)


@dataclass(frozen=True)
class VectorizeOuterLoops(Pass):
    """Run consecutive iterations of a loop over sums as lanes of vectors, where its iterations are independent."""

    vector_bytes: int = 16
    """Width of the vectors of the target; 0 leaves all loops as they are."""

    @classmethod
    def values_for(cls, context: PassContext) -> Mapping[str, Any]:
        capabilities = context.capabilities
        return {"vector_bytes": 0 if capabilities.is_device else capabilities.vector_bytes}

    def run(self, module: Module) -> Module:
        return module.with_functions(self.vectorized(function) for function in module.functions)

    def vectorized(self, function: Function) -> Function:
        """The function with such loops in vectors; the same object if it has none."""
        if not self.vector_bytes or is_interface(function) or not _has_sums(function):
            return function
        return function.with_body(_OuterLoops(function, self.vector_bytes).visit(function.body))


def _has_sums(function: Function) -> bool:
    """Whether a loop in a loop waits for its last iteration in each; expressions of other loops are not gone through."""
    stack: list[tuple[Node, bool]] = [(function.body, False)]
    while stack:
        node, in_loop = stack.pop()
        if isinstance(node, For):
            if in_loop and is_reduction(node):
                return True
            in_loop = True
        stack.extend((child, in_loop) for child in children(node) if isinstance(child, Stmt))
    return False


class _OuterLoops(RangeMutator):
    def __init__(self, function: Function, vector_bytes: int) -> None:
        super().__init__(function)
        self.function = function
        self.vector_bytes = vector_bytes

    def visit_Expr(self, node: Expr) -> Any:
        return node

    def visit_For(self, node: For) -> Any:
        found = super().visit_For(node)
        # Of a nest, the innermost loop that can be done; those around it are then no candidates.
        if found is not node:
            return found
        if not any(is_reduction(inner) for inner in walk(node.body) if isinstance(inner, For)):
            return node
        own = with_own_scratch(node, self.function)
        lanes = outer_lanes(own, self.function, self.simplifier)
        return node if lanes is None else self.in_vectors(own, lanes) or node

    def widths(self, loop: For, lanes: OuterLanes) -> list[int]:
        """Numbers of iterations to do in one step, the greater first: some vectors, and one."""
        one = self.vector_bytes // lanes.widest
        # Additions take a few cycles each; several vectors fill them, as far as there are registers.
        several = 4 if lanes.scalars <= 2 else 2 if lanes.scalars <= 4 else 1
        extent = constant_value(loop.extent)
        found = []
        for width in (several * one, one) if several > 1 else (one,):
            if width > 1 and (extent is None or extent >= width):
                found.append(width)
                extent = None if extent is None else extent % width
        return found

    def in_vectors(self, loop: For, lanes: OuterLanes) -> Stmt | None:
        """The loop as loops over vectors, and one over the iterations that are left; None if it has no such form."""
        widths = self.widths(loop, lanes)
        if not widths:
            return None
        names: list[Stmt] = []
        extent = self.named("extent", loop.extent, names)
        minimum = self.named("first", loop.minimum, names)
        safe = conjunction(_are_disjoint(*pair) for pair in lanes.apart)
        reach = self.named("reach", Select(safe, extent, const(0, extent.dtype), loop.span), names)
        loops: list[Stmt] = []
        done, left = const(0, extent.dtype), reach
        try:
            for width in widths:
                size = const(width, extent.dtype)
                loops.append(self.vector_loop(loop, width, Add(minimum, done), Div(left, size)))
                done, left = Mul(Div(reach, size), size), Mod(left, size)
        except NotVectorizable:
            return None
        rest = self.simplifier.simplify(Sub(extent, done))
        if constant_value(rest) != 0:
            first = self.simplifier.simplify(Add(minimum, done))
            body = _WithoutMore().visit(loop.body)
            loops.append(replace(loop, minimum=first, extent=rest, body=body, hints=_NO_MORE))
        return sequence(*names, *loops, span=loop.span)

    def named(self, name: str, value: Expr, names: list[Stmt]) -> Expr:
        """The value, evaluated once."""
        value = self.simplifier.simplify(value)
        if isinstance(value, Var) or constant_value(value) is not None:
            return value
        var = Var(name, value.dtype)
        self.simplifier.bounds.set(var, self.simplifier.bounds.of(value))
        names.append(Bind(var, value))
        return var

    def vector_loop(self, loop: For, width: int, minimum: Expr, steps: Expr) -> Stmt:
        """A loop with so many steps, each of ``width`` iterations in lock step."""
        copy = self.renewed(loop)
        form = _LaneForm(copy, width, LaneSteps(copy, self.simplifier))
        body = form.visit(copy.body)
        step = Var("step", loop.var.dtype)
        first = Add(minimum, Mul(step, const(width, step.dtype)))
        lane = Bind(copy.var, self.simplifier.simplify(first), loop.span)
        steps = self.simplifier.simplify(steps)
        return For(
            step, const(0, step.dtype), steps, LoopKind.SERIAL, sequence(lane, body), hints=_NO_MORE, span=loop.span
        )

    def renewed(self, loop: For) -> For:
        """A copy of the loop with names of its own, of which as much is known."""
        renewal = Renewal(loop, {})
        copy: For = renewal.visit(loop)
        ranges = self.simplifier.bounds.ranges
        for old, new in renewal.variables.items():
            if old in ranges and isinstance(new, Var):
                self.simplifier.bounds.set(new, ranges[old])
        return copy


def _without_more(loop: For) -> For:
    """The loop, with the wish that nothing more is made of it if it is a sum."""
    if loop.hints != LoopHints() or not is_reduction(loop):
        return loop
    return replace(loop, hints=_NO_MORE)


class _WithoutMore(Mutator):
    def visit_Expr(self, node: Expr) -> Any:
        return node

    def visit_For(self, node: For) -> Any:
        return _without_more(self.generic(node))


def _are_disjoint(one: Buffer, other: Buffer) -> Expr:
    return call("disjoint", one.data, _bytes(one), other.data, _bytes(other), dtype=BOOL)


def _bytes(buffer: Buffer) -> Expr:
    return times(flat_size(buffer), const(buffer.dtype.bytes, INT64))


class _LaneForm(VectorForm):
    """The body for all lanes: indices that climb reach elements side by side, all others one element."""

    def __init__(self, loop: For, lanes: int, steps: LaneSteps) -> None:
        super().__init__(lanes)
        self.steps = steps
        self.values[loop.var] = self.climb(loop.var)

    def climb(self, first: Expr) -> Expr:
        """The values of all lanes, given that of the first."""
        return Ramp(first, const(1, first.dtype), self.lanes, first.span)

    def access(self, buffer: Buffer, indices: tuple[Expr, ...]) -> tuple[Buffer, tuple[Expr, ...]]:
        if buffer in self.private:
            return super().access(buffer, indices)
        if not indices or self.steps.index_step(indices[-1]) == 0:
            return buffer, indices
        return buffer, (*indices[:-1], self.climb(as_int64(indices[-1])))

    def visit_For(self, node: For) -> Stmt:
        return super().visit_For(_without_more(node))

    def visit_Bind(self, node: Bind) -> Stmt:
        if node.var in self.steps.climbing:
            self.values[node.var] = self.climb(node.var)
            return node
        return super().visit_Bind(node) if node.var in self.steps.varying else node
