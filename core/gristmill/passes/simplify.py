"""Simplify expressions, and statements that constants decide.

Before::

    m = 4
    for i in range(m * 2):
        if i < 8:
            a[i + 3 - 3] = i * 1

After::

    for i in range(8):
        a[i] = i

Ensures: the same results; integer expressions in the canonical form of :mod:`gristmill.arith.simplify`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gristmill.ir.build import constant_value, sequence
from gristmill.ir.expr import Expr, FloatImm, IntImm, Var
from gristmill.ir.functor import substitute
from gristmill.ir.module import Function, Module
from gristmill.ir.stmt import Assert, Bind, For, If, LoopKind, Seq, While
from gristmill.passes.manager import Pass, is_interface
from gristmill.passes.ranges import RangeMutator
from gristmill.passes.unroll_loops import leaves_or_cuts


@dataclass(frozen=True)
class Simplify(Pass):
    """Simplify expressions, and statements that constants decide."""

    def run(self, module: Module) -> Module:
        # The packed interface is checks that hardly simplify, and by far the most code of a small module.
        return module.with_functions(
            function if is_interface(function) else simplify_function(function) for function in module.functions
        )


def simplify_function(function: Function) -> Function:
    """The function simplified; the same object if it is simple already."""
    return function.with_body(_Simplifying(function).visit(function.body))


class _Simplifying(RangeMutator):
    def __init__(self, function: Function) -> None:
        super().__init__(function)
        self.names: dict[Var, Expr] = {}

    def visit_Expr(self, node: Expr) -> Any:
        found = self.generic(node) if self.names or self.buffers else node
        return self.simplifier.simplify(found)

    def visit_Var(self, node: Var) -> Any:
        return self.names.get(node, node)

    def visit_IntImm(self, node: IntImm) -> Any:
        return node

    def visit_FloatImm(self, node: FloatImm) -> Any:
        return node

    def visit_Bind(self, node: Bind) -> Any:
        """A name for a constant or for another name is not needed."""
        value = self.visit(node.value)
        if not node.var.dtype.is_handle and isinstance(value, (IntImm, FloatImm, Var)):
            self.names[node.var] = value
            return Seq(())
        if value is not node.value:
            node = Bind(node.var, value, node.span)
        if node.var.dtype.is_integer or node.var.dtype.is_bool:
            self.simplifier.bounds.set(node.var, self.simplifier.bounds.of(value))
        return node

    def visit_For(self, node: For) -> Any:
        if node.thread is not None:
            # The loop stays, for it says how the kernel is launched; one thread has one number.
            only = self.visit(node.minimum)
            if isinstance(only, IntImm) and constant_value(self.visit(node.extent)) == 1:
                self.names[node.var] = only
        node = super().visit_For(node)
        count = constant_value(node.extent)
        if count is None:
            return node
        if count <= 0 and isinstance(node.minimum, (IntImm, Var)):
            return Seq(())
        if count == 1 and node.kind is not LoopKind.THREAD and not leaves_or_cuts(node.body):
            if isinstance(node.minimum, (IntImm, Var)):
                return substitute(node.body, {node.var: node.minimum})
            return sequence(Bind(node.var, node.minimum, node.span), node.body, span=node.span)
        return node

    def visit_If(self, node: If) -> Any:
        node = super().visit_If(node)
        condition = constant_value(node.condition)
        if condition is not None:
            return node.then if condition else node.otherwise or Seq(())
        if isinstance(node.otherwise, Seq) and not node.otherwise.body:
            return If(node.condition, node.then, None, node.span)
        return node

    def visit_While(self, node: While) -> Any:
        node = super().visit_While(node)
        return Seq(()) if constant_value(node.condition) == 0 else node

    def visit_Assert(self, node: Assert) -> Any:
        node = self.generic(node)
        return Seq(()) if constant_value(node.condition) == 1 else node
