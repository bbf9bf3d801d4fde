"""Whether every read of a local scalar comes after an assignment, on every path that leads to it.

The paths are those of the IR, where branches that constants decide are gone already. A loop of a constant number of
iterations, one at least, runs; others may not. A path that ends (``return``, ``break``, ``continue``) leads no further.
"""

from __future__ import annotations

from collections.abc import Iterable

from gristmill.errors import Note
from gristmill.ir.dtype import BOOL, INT64, DType
from gristmill.ir.expr import AddressOf, BufferRef, IntImm, Load
from gristmill.ir.functor import children, walk
from gristmill.ir.memory import Buffer
from gristmill.ir.node import Node
from gristmill.ir.stmt import (
    Allocate,
    AxisKind,
    Block,
    Break,
    Continue,
    For,
    If,
    Return,
    Seq,
    Stmt,
    Store,
    While,
)
from gristmill.script.context import Context
from gristmill.script.values import Local

Assigned = frozenset[Buffer] | None
"""The local scalars that have a value; None where no path leads to."""


def check_assigned(context: Context, body: Stmt) -> None:
    """Report a mistake (GM0244) for each local scalar of a function that some path reads before it assigns it."""
    if context.scalars:
        _Paths(context).after(body, frozenset())


def _both(one: Assigned, other: Assigned) -> Assigned:
    """What has a value where two paths meet."""
    if one is None or other is None:
        return one if other is None else other
    return one & other


class _Paths:
    def __init__(self, context: Context) -> None:
        self.context = context
        self.breaks: list[Assigned] = []
        """For each loop around, what has a value where a ``break`` leaves it."""
        self.continues: list[Assigned] = []
        self.reported: set[Buffer] = set()

    def after(self, node: Stmt, before: Assigned) -> Assigned:
        """What has a value after a statement."""
        if before is None:
            return None
        match node:
            case Seq(body=body):
                for one in body:
                    before = self.after(one, before)
                return before
            case Allocate(buffer=buffer):
                self.read(children(buffer), before)
                return before - {buffer}
            case Store(buffer=buffer):
                self.read(children(node), before)
                return before | {buffer} if buffer in self.context.scalars else before
            case If(condition=condition, then=then, otherwise=otherwise):
                self.read([condition], before)
                return _both(self.after(then, before), before if otherwise is None else self.after(otherwise, before))
            case For(minimum=minimum, extent=extent, body=body):
                self.read([minimum, extent], before)
                once, left = self.iteration(body, before)
                return _both(once, left) if isinstance(extent, IntImm) and extent.value >= 1 else before
            case While(condition=condition, body=body):
                self.read([condition], before)
                _, left = self.iteration(body, before)
                return left if isinstance(condition, IntImm) and condition.value else before
            case Break():
                self.breaks[-1] = _both(self.breaks[-1], before)
                return None
            case Continue():
                self.continues[-1] = _both(self.continues[-1], before)
                return None
            case Return(value=value):
                self.read([] if value is None else [value], before)
                return None
            case Block():
                return self.block(node, before)
        found: Assigned = before
        for child in children(node):
            if isinstance(child, Stmt):
                found = self.after(child, found)
            else:
                found = self.given(child, found)
        return found

    def iteration(self, body: Stmt, before: Assigned) -> tuple[Assigned, Assigned]:
        """What has a value after one iteration of a loop, and after a ``break`` out of it."""
        self.breaks.append(None)
        self.continues.append(None)
        end = self.after(body, before)
        return _both(end, self.continues.pop()), self.breaks.pop()

    def block(self, node: Block, before: frozenset[Buffer]) -> Assigned:
        self.read([axis.value for axis in node.axes], before)
        if node.predicate is not None:
            self.read([node.predicate], before)
        inside: Assigned = before
        if node.init is not None:
            begun = self.after(node.init, before)
            # With a reduce axis the init part runs in some iterations only.
            if all(axis.kind is not AxisKind.REDUCE for axis in node.axes):
                inside = begun
        inside = self.after(node.body, inside)
        return inside if node.predicate is None else _both(inside, before)

    def given(self, node: Node, before: Assigned) -> Assigned:
        """Read an expression. A scalar whose address is passed on may get a value there."""
        if before is None:
            return None
        passed = {part.buffer for part in walk(node) if isinstance(part, AddressOf | BufferRef)}
        self.read([node], before)
        return before | (passed & self.context.scalars.keys())

    def read(self, nodes: Iterable[Node], assigned: frozenset[Buffer]) -> None:
        for node in nodes:
            for part in walk(node):
                if isinstance(part, Load) and part.buffer not in assigned:
                    local = self.context.scalars.get(part.buffer)
                    if local is not None and part.buffer not in self.reported:
                        self.reported.add(part.buffer)
                        self.report(local, part)

    def report(self, local: Local, read: Load) -> None:
        context, name = self.context, local.name
        notes = [] if local.first is None else [Note("not every path comes by this assignment", local.first)]
        inlined = () if read.span is None else read.span.notes()
        mistake = context.mistake(
            "GM0244",
            None if read.span is None else read.span.place,
            f"`{name}` is read here, and some path to this place assigns nothing to it",
            label="may have no value",
            hint=f"give it a value before the branch or loop: `{name} = {_start(read.buffer.dtype)}`",
            notes=(*notes, *inlined),
        )
        context.problems.add(mistake)
        context.failed = True


def _start(dtype: DType) -> str:
    """A first value of a type, as a user would write it."""
    if dtype == BOOL:
        return "False"
    return "0" if dtype == INT64 else f"T.{dtype}(0)"
