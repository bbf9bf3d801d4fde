"""Going over a function with what is known of its variables: loop extents, sizes, names, conditions of branches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from gristmill.arith.interval import Interval
from gristmill.arith.simplify import Simplifier
from gristmill.ir.build import constant_value
from gristmill.ir.expr import Add, And, Equal, Expr, FloorDiv, IntImm, Less, LessEqual, NotEqual, Var
from gristmill.ir.functor import Mutator
from gristmill.ir.memory import Buffer
from gristmill.ir.module import Function
from gristmill.ir.stmt import Bind, Block, For, If, Stmt, While


class RangeMutator(Mutator):
    """A mutator whose ``simplifier`` knows the ranges of the variables at the place it is at."""

    def __init__(self, function: Function) -> None:
        super().__init__()
        self.simplifier = Simplifier()
        self.depth = 0
        """How many branches and loops are around."""
        for param in function.params:
            if isinstance(param, Buffer):
                self.know_sizes(param)

    def know_sizes(self, buffer: Buffer) -> None:
        """A size is not negative."""
        for size in buffer.shape:
            if isinstance(size, Var):
                self.simplifier.bounds.set(size, Interval(0, size.dtype.maximum))

    def visit_Buffer(self, node: Buffer) -> Any:
        found = super().visit_Buffer(node)
        # In a branch that is not taken nothing is made, and its size may be any number.
        if self.depth == 0:
            self.know_sizes(found)
        return found

    def visit_Bind(self, node: Bind) -> Any:
        node = self.generic(node)
        if node.var.dtype.is_integer or node.var.dtype.is_bool:
            self.simplifier.bounds.set(node.var, self.simplifier.bounds.of(node.value))
        return node

    def visit_For(self, node: For) -> Any:
        minimum, extent = self.visit(node.minimum), self.visit(node.extent)
        self.know_loop(node.var, minimum, extent)
        self.depth += 1
        with self.simplifier.bounds.given(dict(self.of_running(extent))):
            body = self.visit(node.body)
        self.depth -= 1
        if minimum is node.minimum and extent is node.extent and body is node.body:
            return node
        return replace(node, minimum=minimum, extent=extent, body=body)

    def of_running(self, extent: Expr) -> Iterator[tuple[Var, Interval]]:
        """What is known where a loop of this extent runs: it is at least 1.

        So in ``(n + 1023) // 1024`` of a signed ``n`` that is not negative the sum has not wrapped, for it were negative.
        """
        match extent:
            case Var():
                yield extent, Interval(1, extent.dtype.maximum)
            case FloorDiv(a=Add(a=Var() as var, b=IntImm(value=added)), b=IntImm(value=divisor)):
                known = self.simplifier.bounds.of(var)
                if var.dtype.is_signed and added >= 0 and divisor > 0 and known.low >= 0:
                    yield var, Interval(max(known.low, divisor - added), min(known.high, var.dtype.maximum - added))

    def know_loop(self, var: Var, minimum: Expr, extent: Expr) -> None:
        """Inside a loop its variable is between the minimum and the last value."""
        simplifier = self.simplifier
        low, high = simplifier.bounds.of(minimum), simplifier.bounds.of(extent)
        last = low.high + high.high - 1
        if last > var.dtype.maximum or high.high < 1:
            # The variable may wrap; or the loop never runs.
            return
        simplifier.bounds.set(var, Interval(low.low, last))
        numbers = simplifier.numbers
        if any(numbers.has_load(part) or not numbers.is_pure(part) for part in (minimum, extent)):
            # Evaluated once, before: inside, memory may have changed.
            return
        first, end = simplifier.form(minimum), simplifier.form(extent)
        end.add(first)
        end.add_constant(-1)
        simplifier.symbolic.set(var, first, end)

    def visit_If(self, node: If) -> Any:
        condition = self.visit(node.condition)
        self.depth += 1
        with self.simplifier.bounds.given(dict(self.narrowed(condition, True))):
            then = self.visit(node.then)
        otherwise: Stmt | None = None
        if node.otherwise is not None:
            with self.simplifier.bounds.given(dict(self.narrowed(condition, False))):
                otherwise = self.visit(node.otherwise)
        self.depth -= 1
        if condition is node.condition and then is node.then and otherwise is node.otherwise:
            return node
        return replace(node, condition=condition, then=then, otherwise=otherwise)

    def narrowed(self, condition: Expr, holds: bool) -> Iterator[tuple[Var, Interval]]:
        """What a condition says of variables when it holds (or does not): comparisons of a variable with a bound."""
        if isinstance(condition, And) and holds:
            yield from self.narrowed(condition.a, True)
            yield from self.narrowed(condition.b, True)
            return
        if not isinstance(condition, (Less, LessEqual, Equal, NotEqual)) or not condition.a.dtype.is_integer:
            return
        if condition.a.dtype.lanes > 1:
            return
        a, b = condition.a, condition.b
        strict = 1 if isinstance(condition, Less) == holds else 0
        if isinstance(condition, (Equal, NotEqual)):
            if isinstance(condition, Equal) == holds:
                for side, other in ((a, b), (b, a)):
                    if isinstance(side, Var):
                        yield side, self.simplifier.bounds.of(other)
            elif isinstance(a, Var) and constant_value(b) == self.simplifier.bounds.of(a).low:
                yield a, Interval(self.simplifier.bounds.of(a).low + 1, a.dtype.maximum)
            return
        # a < b, a <= b; or, where they do not hold, b <= a, b < a.
        lesser, greater = (a, b) if holds else (b, a)
        if isinstance(lesser, Var):
            high = self.simplifier.bounds.of(greater).high - strict
            if high >= lesser.dtype.minimum:
                yield lesser, Interval(lesser.dtype.minimum, high)
        if isinstance(greater, Var):
            low = self.simplifier.bounds.of(lesser).low + strict
            if low <= greater.dtype.maximum:
                yield greater, Interval(low, greater.dtype.maximum)

    def visit_While(self, node: While) -> Any:
        self.depth += 1
        found = self.generic(node)
        self.depth -= 1
        return found

    def visit_Block(self, node: Block) -> Any:
        for axis in node.axes:
            self.know_loop(axis.var, axis.domain.minimum, axis.domain.extent)
        self.depth += 1
        found = self.generic(node)
        self.depth -= 1
        return found
