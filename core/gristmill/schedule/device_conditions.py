"""Conditions that only the device knows, moved into the loops that they stand around.

Before::

    if a[0] > 0:
        for i in range(n):
            b[i] = 1.0

After::

    flag = a[0] > 0                     ; found out once, by one thread
    for i in range(n):
        if flag:
            b[i] = 1.0

The host cannot ask ``a[0] > 0``, so it could not start many threads for the loop under it. That is done only where
loops in the branches are for many threads, and where what decides how often they run is known to the host.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Any

from gristmill.ir.build import const, sequence
from gristmill.ir.dtype import BOOL
from gristmill.ir.effects import is_atomic
from gristmill.ir.expr import And, CallFunction, Expr, Load, Not, Var
from gristmill.ir.functor import Mutator, walk
from gristmill.ir.memory import Scope
from gristmill.ir.module import Function
from gristmill.ir.stmt import Allocate, Bind, Block, For, If, LoopKind, Return, Seq, Stmt, Store, View, While
from gristmill.schedule.jumps import escaping_jumps
from gristmill.schedule.nests import NestFinder
from gristmill.schedule.placement import is_only_of_host, touches_device


def with_conditions_inside(function: Function, finder: NestFinder, values: AbstractSet[Var]) -> Function:
    """The function with conditions of the device inside of its loops; the same object if there are none to move.

    ``values`` are names, and data of local memory, whose values only the device knows.
    """
    known = _Knowledge(values)
    if not any(isinstance(node, If) and known.is_of_device(node.condition) for node in walk(function.body)):
        return function
    return function.with_body(_Moving(finder, known).visit(function.body))


class _Knowledge:
    """What only the device knows."""

    def __init__(self, values: AbstractSet[Var]) -> None:
        self.values = values

    def is_of_device(self, expr: Expr) -> bool:
        """Whether the host cannot evaluate it."""
        return touches_device(expr) or any(
            part in self.values or (isinstance(part, Load) and part.buffer.data in self.values) for part in walk(expr)
        )

    def ends_are_of_device(self, loop: For) -> bool:
        """Whether only the device knows how often the loop runs."""
        return self.is_of_device(loop.minimum) or self.is_of_device(loop.extent)


class _Moving(Mutator):
    """Goes over what may be code of the host."""

    def __init__(self, finder: NestFinder, known: _Knowledge) -> None:
        super().__init__()
        self.finder = finder
        self.known = known

    def visit_For(self, node: For) -> Any:
        if node.kind in (LoopKind.THREAD, LoopKind.VECTORIZED) or self.known.ends_are_of_device(node):
            return node
        return node if self.finder.find(node) is not None else self.generic(node)

    def visit_While(self, node: While) -> Any:
        return node if self.known.is_of_device(node.condition) else self.generic(node)

    def visit_Block(self, node: Block) -> Any:
        return node if node.init is not None or node.predicate is not None or node.axes else self.generic(node)

    def visit_If(self, node: If) -> Any:
        if not self.known.is_of_device(node.condition):
            return self.generic(node)
        moved = _Branches(self.finder, self.known).moved(node, None)
        return node if moved is None else sequence(*moved)


class _Fixed(Exception):
    """The branches cannot be taken apart."""


class _Branches:
    """Takes the branches of one condition apart, so that each statement asks for itself."""

    def __init__(self, finder: NestFinder, known: _Knowledge) -> None:
        self.finder = finder
        self.known = known

    def moved(self, node: If, outer: Expr | None) -> list[Stmt] | None:
        """The statements that stand for a branch under ``outer``; None if that is not possible, or of no use."""
        if any(self.finder.hinders(part) for part in walk(node.condition)) or escaping_jumps(node):
            return None
        if any(isinstance(part, Return) or is_only_of_host(part) for part in walk(node)):
            return None
        flag = Var("flag", BOOL)
        # What stands under another condition must not be evaluated where that is false.
        value = node.condition if outer is None else And(outer, node.condition)
        found: list[Stmt] = [Bind(flag, value, node.span)]
        useful = False
        try:
            for branch, condition in ((node.then, flag), (node.otherwise, Not(flag))):
                if branch is not None:
                    asked: Expr = condition if outer is None or condition is flag else And(outer, condition)
                    for statement, helps in self._apart(branch, asked):
                        found.append(statement)
                        useful = useful or helps
        except _Fixed:
            return None
        return found if useful else None

    def _apart(self, branch: Stmt, flag: Expr) -> Iterator[tuple[Stmt, bool]]:
        """The statements of a branch, each under the flag, and whether that makes one for many threads."""
        for node in branch.body if isinstance(branch, Seq) else (branch,):
            if isinstance(node, (Bind, Allocate, View)):
                if isinstance(node, View) or any(
                    isinstance(part, (Load, CallFunction)) or is_atomic(part) for part in walk(node)
                ):
                    raise _Fixed
                yield node, False
                if isinstance(node, Allocate) and node.buffer.scope is Scope.LOCAL and not node.buffer.rank:
                    # Its first value is stored under the condition, and a loop that reduces combines it in any case.
                    yield Store(node.buffer, (), const(0, node.buffer.dtype), node.span), False
                continue
            if isinstance(node, For):
                inside = _inside(node, flag)
                if self._is_for_many(inside):
                    yield inside, True
                    continue
            elif isinstance(node, If):
                deeper = self.moved(node, flag)
                if deeper is not None:
                    yield from ((statement, True) for statement in deeper)
                    continue
            yield If(flag, node, None, node.span), False

    def _is_for_many(self, loop: For) -> bool:
        """Whether many threads, or the threads of a block, can share the loop."""
        if self.known.ends_are_of_device(loop):
            return False
        return self.finder.find(loop) is not None or self.finder.reductions.of(loop) is not None


def _inside(loop: For, flag: Expr) -> For:
    """The loop, and those directly in it, with a condition innermost."""
    body = loop.body
    *before, last = body.body if isinstance(body, Seq) and body.body else (body,)
    plain = all(isinstance(node, Bind) and not touches_device(node) for node in before)
    if plain and isinstance(last, For) and last.kind in (LoopKind.SERIAL, LoopKind.PARALLEL) and not _ends_load(last):
        return replace(loop, body=sequence(*before, _inside(last, flag), span=body.span))
    return replace(loop, body=If(flag, body, None, loop.span))


def _ends_load(loop: For) -> bool:
    return any(isinstance(part, Load) for end in (loop.minimum, loop.extent) for part in walk(end))
