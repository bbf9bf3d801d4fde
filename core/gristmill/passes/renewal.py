"""Copies of code with new names: what repeats a statement must give each copy its own variables and buffers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gristmill.ir.expr import Expr, Var
from gristmill.ir.functor import Mutator, walk
from gristmill.ir.memory import Buffer
from gristmill.ir.stmt import Allocate, Bind, Block, For, Stmt, View


def renewed(body: Stmt, variables: Mapping[Var, Expr] | None = None) -> Stmt:
    """The statement with every name that it defines made anew, and with ``variables`` replaced."""
    return Renewal(body, variables or {}).visit(body)  # type: ignore[no-any-return]


def defined_variables(body: Stmt) -> set[Var]:
    """The variables that the statement defines, data of buffers included."""
    found: set[Var] = set()
    for node in walk(body):
        if isinstance(node, (Bind, For)):
            found.add(node.var)
        elif isinstance(node, Allocate) or (isinstance(node, View) and node.source is not None):
            found.add(node.buffer.data)
        elif isinstance(node, Block):
            found.update(axis.var for axis in node.axes)
            found.update(buffer.data for buffer in node.allocations)
            found.update(
                match.buffer.data for match in node.matches if match.buffer.data is not match.region.buffer.data
            )
    return found


class Renewal(Mutator):
    """The copying mutator behind :func:`renewed`."""

    def __init__(self, body: Stmt, variables: Mapping[Var, Expr]) -> None:
        super().__init__()
        self.variables: dict[Var, Expr] = dict(variables)
        for var in defined_variables(body):
            if var not in self.variables:
                self.variables[var] = replace(var)

    def visit_Var(self, node: Var) -> Any:
        return self.variables.get(node, node)

    def visit_Buffer(self, node: Buffer) -> Any:
        found = replace(self.generic(node), data=self.visit(node.data))
        self.buffers[node] = found
        return found
