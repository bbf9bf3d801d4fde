"""Repeat the body of loops marked ``unrolled`` that are short.

Before::

    for i in unrolled(3):
        a[i] = i

After::

    a[0] = 0
    a[1] = 1
    a[2] = 2

Loops with more iterations than ``limit``, with so much inside that the copies would have more than ``nodes`` nodes, or
that are left or cut short by ``break`` or ``continue`` stay as they are; code generators unroll those if they can.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gristmill.ir.build import const, sequence
from gristmill.ir.expr import Add, Expr, IntImm
from gristmill.ir.functor import Mutator, walk
from gristmill.ir.module import Function, Module
from gristmill.ir.stmt import Bind, Break, Continue, For, If, LoopKind, Seq, Stmt
from gristmill.passes.manager import Pass
from gristmill.passes.renewal import renewed


@dataclass(frozen=True)
class UnrollLoops(Pass):
    """Repeat the body of short loops marked unrolled."""

    limit: int = 64
    """The most iterations of a loop to unroll."""
    nodes: int = 20_000
    """The most nodes that the copies of one body may have in all."""

    def run(self, module: Module) -> Module:
        return module.with_functions(self.unrolled(function) for function in module.functions)

    def unrolled(self, function: Function) -> Function:
        """The function with its loops unrolled; the same object if there is none to unroll."""
        if not any(isinstance(node, For) and node.kind is LoopKind.UNROLLED for node in walk(function.body)):
            return function
        return function.with_body(_Unrolling(self.limit, self.nodes).visit(function.body))


def leaves_or_cuts(body: Stmt) -> bool:
    """Whether the body has a ``break`` or ``continue`` of the loop it is the body of."""
    stack = [body]
    while stack:
        node = stack.pop()
        if isinstance(node, (Break, Continue)):
            return True
        if isinstance(node, Seq):
            stack.extend(node.body)
        elif isinstance(node, If):
            stack.append(node.then)
            if node.otherwise is not None:
                stack.append(node.otherwise)
    return False


class _Unrolling(Mutator):
    def __init__(self, limit: int, nodes: int) -> None:
        super().__init__()
        self.limit = limit
        self.nodes = nodes

    def visit_For(self, node: For) -> Any:
        node = self.generic(node)
        if node.kind is not LoopKind.UNROLLED or not isinstance(node.extent, IntImm):
            return node
        count = max(0, node.extent.value)
        if count > self.limit or leaves_or_cuts(node.body):
            return node
        if count > 1 and sum(1 for _ in walk(node.body)) * count > self.nodes:
            return node
        start: Expr = node.minimum
        copies: list[Stmt] = []
        for number in range(count):
            if isinstance(start, IntImm):
                value: Expr = const(start.value + number, node.var.dtype, node.span)
                copies.append(renewed(node.body, {node.var: value}))
                continue
            # The minimum is evaluated once, before.
            if number == 0:
                first = Bind(type(node.var)(node.var.name, node.var.type), start, node.span)
                copies.append(first)
            step = Add(first.var, const(number, node.var.dtype), node.span) if number else first.var
            name = Bind(type(node.var)(node.var.name, node.var.type), step, node.span)
            copies.append(sequence(name, renewed(node.body, {node.var: name.var})))
        return sequence(*copies, span=node.span)
