"""Launch regions of a function: its outermost loops over threads, each of which is one launch."""

from __future__ import annotations

from collections.abc import Callable

from gristmill.ir.functor import Mutator, children, walk
from gristmill.ir.module import Function
from gristmill.ir.stmt import For, LoopKind, Stmt


def is_region(node: object) -> bool:
    """Whether a statement is a loop over threads; the outermost one is a launch region."""
    return isinstance(node, For) and node.kind is LoopKind.THREAD


def has_regions(function: Function) -> bool:
    """Whether the function launches anything."""
    return any(is_region(node) for node in walk(function.body))


class _Regions(Mutator):
    def __init__(self, change: Callable[[Stmt], Stmt]) -> None:
        super().__init__()
        self.change = change

    def visit_For(self, node: For) -> Stmt:
        return self.change(node) if is_region(node) else self.generic(node)


def map_regions(function: Function, change: Callable[[Stmt], Stmt]) -> Function:
    """The function with each launch region changed; the same object if none is."""
    return function.with_body(_Regions(change).visit(function.body)) if has_regions(function) else function


def launch_regions(body: Stmt) -> list[For]:
    """The launch regions in a statement, in order."""
    found: list[For] = []
    stack: list[Stmt] = [body]
    while stack:
        node = stack.pop()
        if isinstance(node, For) and is_region(node):
            found.append(node)
            continue
        stack.extend(reversed([child for child in children(node) if isinstance(child, Stmt)]))
    return found
