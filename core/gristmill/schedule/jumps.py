"""Jumps that leave a statement: a ``break`` or ``continue`` of a loop around it."""

from __future__ import annotations

from gristmill.ir.expr import Expr
from gristmill.ir.functor import children
from gristmill.ir.node import Node
from gristmill.ir.stmt import Break, Continue, For, Stmt, While


def escaping_jumps(body: Stmt) -> list[Break | Continue]:
    """The jumps in a statement that go to a loop around it."""
    found: list[Break | Continue] = []
    stack: list[Node] = [body]
    while stack:
        node = stack.pop()
        if isinstance(node, (Break, Continue)):
            found.append(node)
        elif not isinstance(node, (For, While, Expr)):
            stack.extend(children(node))
    return found


def leaves(body: Stmt) -> bool:
    """Whether a ``break`` in the body leaves the loop around it."""
    return any(isinstance(node, Break) for node in escaping_jumps(body))
