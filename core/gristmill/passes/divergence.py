"""What is the same for all threads of a block: values, conditions, how often a loop runs.

A value is *uniform* if all threads of a block compute the same one where they come to it together. Code is *divergent*
if some threads of the block may not come to it, or come to it another number of times. A thread that has ended by
``return`` is waited for by no barrier, so the code after it is not divergent.
"""

from __future__ import annotations

from gristmill.ir.build import constant_value
from gristmill.ir.effects import is_collective
from gristmill.ir.expr import (
    AddressOf,
    BufferRef,
    Call,
    CallExtern,
    CallFunction,
    CallPacked,
    Expr,
    Load,
    Var,
)
from gristmill.ir.functor import children, walk
from gristmill.ir.memory import Scope
from gristmill.ir.module import Function, Module
from gristmill.ir.node import Node
from gristmill.ir.stmt import Allocate, Bind, Break, Continue, For, If, LoopKind, Stmt, Store, View, While
from gristmill.passes.ranges import RangeMutator

_CALLS = (CallFunction, CallExtern, CallPacked)


class Divergence:
    """What varies in a launch region, found by going over it until nothing more is found."""

    def __init__(self, function: Function, region: Stmt, steady: frozenset[str] = frozenset()) -> None:
        self.steady = steady
        self.private = private_memory(region)
        self.varying: set[Var] = set()
        """Variables, and data of private memory, that may differ from thread to thread."""
        self.decided = _Decided(function).conditions(region)
        self._skewed = False
        before = -1
        while before != len(self.varying):
            before = len(self.varying)
            self._skewed = False
            self._visit(region, False)

    def is_uniform(self, expr: Expr) -> bool:
        for node in walk(expr):
            if isinstance(node, Var):
                if node in self.varying:
                    return False
            elif isinstance(node, Load):
                if node.buffer.data in self.varying or node.buffer.scope is Scope.WARP:
                    return False
            elif isinstance(node, CallFunction) and node.function in self.steady:
                continue
            elif isinstance(node, _CALLS) or (isinstance(node, Call) and not node.op.pure):
                return False
        return True

    def splits(self, node: If) -> bool:
        """Whether some threads of a block may take one branch and some the other."""
        return node not in self.decided and not self.is_uniform(node.condition)

    def is_uneven(self, loop: For | While) -> bool:
        """Whether threads of a block may run the loop's body a different number of times, or not side by side."""
        if isinstance(loop, While):
            return not self.is_uniform(loop.condition) or self.leaves_unevenly(loop.body, Break)
        if loop.kind is LoopKind.THREAD:
            return False
        if loop.kind not in (LoopKind.SERIAL, LoopKind.UNROLLED):
            return True
        return (
            not (self.is_uniform(loop.minimum) and self.is_uniform(loop.extent))
            or self.leaves_unevenly(loop.body, Break)
        )  # fmt: skip

    def leaves_unevenly(self, body: Node, kind: type[Break] | type[Continue], divergent: bool = False) -> bool:
        """Whether only some threads may leave the loop with this body by a statement of the kind."""
        stack = [(body, divergent)]
        while stack:
            node, inside = stack.pop()
            if isinstance(node, kind) and inside:
                return True
            if isinstance(node, (For, While, Expr)):
                continue  # What stands in a loop leaves that loop.
            inside = inside or (isinstance(node, If) and self.splits(node))
            stack.extend((child, inside) for child in children(node))
        return False

    def _vary(self, var: Var) -> None:
        self.varying.add(var)

    def _visit(self, node: Stmt, divergent: bool) -> None:
        divergent = divergent or self._skewed
        for part in children(node):
            if isinstance(part, Expr):
                self._escapes(part)
        match node:
            case Store(buffer=buffer, indices=indices, value=value):
                steady = not divergent and all(self.is_uniform(part) for part in (*indices, value))
                if buffer.data in self.private and not steady:
                    self._vary(buffer.data)
            case Bind(var=var, value=value):
                if not self.is_uniform(value) or (isinstance(value, Var) and value in self.varying):
                    self._vary(var)
            case View(buffer=buffer, source=source) if source is not None:
                if not self.is_uniform(source) or any(part in self.private for part in walk(source)):
                    self._vary(buffer.data)
            case If():
                inside = divergent or self.splits(node)
                self._visit(node.then, inside)
                if node.otherwise is not None:
                    self._visit(node.otherwise, inside)
            case For() | While():
                self._visit_loop(node, divergent)
            case _:
                for part in children(node):
                    if isinstance(part, Stmt):
                        self._visit(part, divergent)
        if isinstance(node, If) and (
            self.leaves_unevenly(node, Continue, divergent) or self.leaves_unevenly(node, Break, divergent)
        ):
            self._skewed = True

    def _visit_loop(self, node: For | While, divergent: bool) -> None:
        if isinstance(node, For):
            if node.kind is LoopKind.THREAD:
                assert node.thread is not None
                if not node.thread.is_block and constant_value(node.extent) != 1:
                    self._vary(node.var)
            elif not (self.is_uniform(node.minimum) and self.is_uniform(node.extent)):
                self._vary(node.var)
        was = self._skewed
        self._visit(node.body, divergent or self.is_uneven(node))
        self._skewed = was

    def _escapes(self, expr: Expr) -> None:
        """Private memory whose address is handed out may be written there."""
        for node in walk(expr):
            if isinstance(node, (AddressOf, BufferRef)) and node.buffer.data in self.private:
                self._vary(node.buffer.data)


def steady_functions(module: Module) -> frozenset[str]:
    """The functions that give all threads one value for the same arguments: those that see scalars alone."""
    found = {
        function.name: {node.function for node in walk(function.body) if isinstance(node, CallFunction)}
        for function in module.functions
        if all(isinstance(param, Var) and not param.dtype.is_handle for param in function.params)
        and not any(_tells_threads_apart(node) for node in walk(function.body))
    }
    while True:
        steady = {name: called for name, called in found.items() if called <= found.keys()}
        if len(steady) == len(found):
            return frozenset(found)
        found = steady


def _tells_threads_apart(node: Node) -> bool:
    if isinstance(node, For):
        return node.kind is LoopKind.THREAD
    return isinstance(node, (CallExtern, CallPacked)) or is_collective(node)


def private_memory(region: Stmt) -> set[Var]:
    """Data of the memory that each thread of a launch has for itself."""
    return {
        node.buffer.data
        for node in walk(region)
        if isinstance(node, Allocate) and node.buffer.scope in (Scope.LOCAL, Scope.GLOBAL)
    }


class _Decided(RangeMutator):
    """Finds the branches whose condition is the same for all threads because bounds decide it."""

    def conditions(self, region: Stmt) -> set[If]:
        self.found: set[If] = set()
        self.open: set[If] = set()
        self.visit(region)
        return self.found - self.open

    def visit_If(self, node: If) -> If:
        decided = constant_value(self.simplifier.simplify(node.condition)) is not None
        (self.found if decided else self.open).add(node)
        found: If = super().visit_If(node)
        return found
