"""Making a failing program small: leave out statements, put constants and operands in place of expressions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from gristmill.ir import expr as e
from gristmill.ir import stmt as s
from gristmill.ir.build import const
from gristmill.ir.functor import Mutator, children, walk
from gristmill.ir.module import Module
from gristmill.ir.node import Node
from gristmill.ir.verify import verify
from gristmill.testing.programs.program import RandomProgram

ATTEMPTS_AT_MOST = 3_000


class _Replacing(Mutator):
    """Puts one node in the place of another."""

    def __init__(self, old: Node, new: Node) -> None:
        super().__init__()
        self.old = old
        self.new = new

    def visit(self, node: Node, /) -> Node:
        return self.new if node is self.old else super().visit(node)


def shrink(
    program: RandomProgram, fails: Callable[[RandomProgram], bool], attempts: int = ATTEMPTS_AT_MOST
) -> RandomProgram:
    """The smallest program found that is still verified and for which ``fails`` is still true.

    ``fails`` must refuse programs that the executor reports on. At most ``attempts`` calls of it are made.
    """
    if not fails(program):
        raise ValueError("the program to shrink does not fail")
    left = attempts
    while left > 0:
        smaller = None
        for module in _smaller(program.module, program.function):
            candidate = replace(program, module=module)
            if verify(module):
                continue
            left -= 1
            if fails(candidate):
                smaller = candidate
                break
            if left <= 0:
                break
        if smaller is None:
            return program
        program = smaller
    return program


def _smaller(module: Module, entry: str) -> Iterator[Module]:
    """Modules with one thing less, the largest things first."""
    called = {node.function for node in walk(module) if isinstance(node, e.CallFunction)} | {entry}
    kept = [function for function in module.functions if function.name in called]
    if len(kept) < len(module.functions):
        yield module.with_functions(kept)
    for function in module.functions:
        for old, new in (*_statements(function.body), *_expressions(function.body)):
            body = _Replacing(old, new).visit(function.body)
            smaller = function.with_body(body)  # type: ignore[arg-type]
            yield module.with_functions(smaller if other is function else other for other in module.functions)


def _statements(body: s.Stmt) -> Iterator[tuple[Node, Node]]:
    for node in walk(body):
        if isinstance(node, s.Stmt) and not (isinstance(node, s.Seq) and not node.body):
            yield node, s.Seq(())
            if isinstance(node, s.If):
                yield node, node.then
                if node.otherwise is not None:
                    yield node, node.otherwise
                    yield node, replace(node, otherwise=None)
            elif isinstance(node, s.For):
                if not (isinstance(node.extent, e.IntImm) and node.extent.value <= 1):
                    yield node, replace(node, extent=const(1, node.extent.dtype))
                if node.kind is not s.LoopKind.SERIAL:
                    yield node, replace(node, kind=s.LoopKind.SERIAL)
                yield node, s.Seq((s.Bind(node.var, node.minimum), node.body))
            elif isinstance(node, s.While):
                yield node, node.body
            elif isinstance(node, s.Block) and node.init is not None:
                yield node, replace(node, init=None)


def _expressions(body: s.Stmt) -> Iterator[tuple[Node, Node]]:
    for node in walk(body):
        # A variable is one object wherever it stands, also where it is defined: what it stands in is replaced instead.
        if not isinstance(node, e.Expr) or isinstance(node, (e.Var, e.IntImm, e.FloatImm, e.BufferRef, e.AddressOf)):
            continue
        dtype = node.dtype
        if dtype.is_handle or dtype.is_void:
            continue
        for child in children(node):
            if isinstance(child, e.Expr) and child.dtype == dtype:
                yield node, child
        if not (isinstance(node, e.Broadcast) and isinstance(node.value, (e.IntImm, e.FloatImm))):
            for value in (0, 1):
                yield node, const(value, dtype)
