"""Remove what nothing uses: names, memory that is only written, statements that are never reached, helpers never called.

Before::

    y = x + 1
    if c:
        pass
    return x
    a[0] = 1

After::

    return x

Ensures: calls of functions, stores that someone may read, asserts and loops that may not end are kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from gristmill.ir.build import sequence
from gristmill.ir.effects import is_exchange
from gristmill.ir.expr import Call, CallExtern, CallFunction, CallPacked, Expr, Not, Var
from gristmill.ir.functor import Mutator, children, walk
from gristmill.ir.memory import Buffer
from gristmill.ir.module import Function, Module
from gristmill.ir.stmt import (
    Allocate,
    Bind,
    Block,
    Break,
    Continue,
    Evaluate,
    For,
    If,
    Launch,
    LoopKind,
    Return,
    Seq,
    Stmt,
    Store,
    View,
)
from gristmill.passes.manager import Pass, is_interface

_CALLS = (CallFunction, CallExtern, CallPacked)


@dataclass(frozen=True)
class RemoveDeadCode(Pass):
    """Remove what nothing uses or reaches."""

    def run(self, module: Module) -> Module:
        kept = reachable(module)
        return module.with_functions(
            function if is_interface(function) else remove_dead_code(function) for function in kept
        )


def reachable(module: Module, also: Iterable[str] = ()) -> list[Function]:
    """The functions that public functions, and some others, lead to, in order; all of them if none is public."""
    by_name = {function.name: function for function in module.functions}
    waiting = [function.name for function in module.public]
    if not waiting:
        return list(module.functions)
    waiting += also
    seen = set(waiting)
    while waiting:
        for node in walk(by_name[waiting.pop()].body):
            name = (
                node.function if isinstance(node, CallFunction) else node.kernel if isinstance(node, Launch) else None
            )
            if name is not None and name not in seen and name in by_name:
                seen.add(name)
                waiting.append(name)
    return [function for function in module.functions if function.name in seen]


def remove_dead_code(function: Function) -> Function:
    """The function without dead code; the same object if there is none."""
    while True:
        found = function.with_body(_Removing(function).visit(function.body))
        if found is function:
            return function
        function = found


def has_effect(expr: Expr) -> bool:
    """Whether evaluating the expression may change something. An exchange that no thread uses may go from all of them."""
    return any(
        isinstance(node, _CALLS) or (isinstance(node, Call) and not node.op.pure and not is_exchange(node))
        for node in walk(expr)
    )


class _Removing(Mutator):
    def __init__(self, function: Function) -> None:
        super().__init__()
        self.mentions: dict[Var, int] = {}
        self.used: set[Buffer] = set()
        self.read: set[Var] = set()
        self.allocated: set[Var] = set()
        for node in walk(function):
            if isinstance(node, Var):
                self.mentions[node] = self.mentions.get(node, 0) + 1
            elif isinstance(node, Allocate):
                self.allocated.add(node.buffer.data)
            elif isinstance(node, View):
                # Another view of memory may read it, and a view mentions its data outside of expressions.
                self.read.add(node.buffer.data)
            elif isinstance(node, Store):
                self.used.add(node.buffer)
            elif not isinstance(node, Block) and isinstance(buffer := getattr(node, "buffer", None), Buffer):
                self.read.add(buffer.data)
                self.used.add(buffer)

    def is_mentioned(self, var: Var) -> bool:
        """Whether anything but its definition mentions the name (a walk meets it where it is bound, too)."""
        return self.mentions.get(var, 0) > 1 or var in self.read

    def is_only_written(self, buffer: Buffer) -> bool:
        """Whether the buffer is new memory that nothing reads."""
        data = buffer.data
        return data in self.allocated and data not in self.read and data not in self.mentions

    def visit_Expr(self, node: Expr) -> Any:
        return node

    def visit_Bind(self, node: Bind) -> Any:
        if self.is_mentioned(node.var):
            return node
        # Of an exchange, which stands in bindings alone, the operands may have an effect.
        parts = children(node.value) if is_exchange(node.value) else (node.value,)
        return sequence(*(Evaluate(part, node.span) for part in parts if isinstance(part, Expr) and has_effect(part)))

    def visit_Allocate(self, node: Allocate) -> Any:
        return Seq(()) if self.is_only_written(node.buffer) and node.buffer not in self.used else node

    def visit_View(self, node: View) -> Any:
        if node.buffer in self.used or (node.source is not None and self.is_viewed(node.buffer)):
            return node
        return Seq(())

    def is_viewed(self, buffer: Buffer) -> bool:
        """Whether the pointer that a view defines is used by something else."""
        return buffer.data in self.mentions or any(
            other.data is buffer.data and other is not buffer for other in self.used
        )

    def visit_Store(self, node: Store) -> Any:
        if not self.is_only_written(node.buffer):
            return node
        kept = [Evaluate(part, node.span) for part in (*node.indices, node.value) if has_effect(part)]
        return sequence(*kept)

    def visit_Evaluate(self, node: Evaluate) -> Any:
        return node if has_effect(node.value) else Seq(())

    def visit_Seq(self, node: Seq) -> Any:
        """Cut what comes after a statement that leaves."""
        for place, part in enumerate(node.body[:-1]):
            if isinstance(part, (Return, Break, Continue)):
                return self.visit(sequence(*node.body[: place + 1], span=node.span))
        return super().visit_Seq(node)

    def visit_If(self, node: If) -> Any:
        node = super().visit_If(node)
        if _is_empty(node.then) and (node.otherwise is None or _is_empty(node.otherwise)):
            return Evaluate(node.condition, node.span) if has_effect(node.condition) else Seq(())
        if _is_empty(node.then) and node.otherwise is not None:
            return If(Not(node.condition, node.span), node.otherwise, None, node.span)
        return node

    def visit_For(self, node: For) -> Any:
        node = self.generic(node)
        if not _is_empty(node.body) or node.kind is LoopKind.THREAD:
            return node
        return sequence(*(Evaluate(part, node.span) for part in (node.minimum, node.extent) if has_effect(part)))


def _is_empty(body: Stmt) -> bool:
    return isinstance(body, Seq) and not body.body
