"""Calls in extents of loops over threads are made before the launch, by the host: here each gets a binding there."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gristmill.ir.build import sequence
from gristmill.ir.expr import AddressOf, BufferRef, Expr, Load, Var
from gristmill.ir.functor import Mutator, substitute, walk
from gristmill.ir.memory import Scope
from gristmill.ir.module import CallingConvention, Function
from gristmill.ir.node import Node
from gristmill.ir.stmt import Allocate, Bind, DeviceRegion, For, Stmt, View
from gristmill_launch.sides import has_calls, is_thread_loop


def with_extent_calls_before(function: Function) -> Function:
    """The function with a binding before each launch for every extent in it that calls a function."""
    if function.facts.convention is not CallingConvention.PLAIN or not _has_extent_calls(function):
        return function
    return function.with_body(_Finding().visit(function.body))


def _has_extent_calls(function: Function) -> bool:
    """Whether there may be any: a cheap look before the rewriting one."""
    bound = False
    loops = False
    for node in walk(function.body):
        if isinstance(node, Bind):
            bound = bound or has_calls(node.value)
        elif isinstance(node, For) and is_thread_loop(node):
            loops = True
            bound = bound or has_calls(node.extent)
    return bound and loops


class _Finding(Mutator):
    """Finds where launches begin."""

    def visit_Expr(self, node: Expr) -> Any:
        return node

    def visit_For(self, node: For) -> Any:
        return _rewritten(node) if is_thread_loop(node) else self.generic(node)

    def visit_DeviceRegion(self, node: DeviceRegion) -> Any:
        return _rewritten(node)


def _rewritten(region: For | DeviceRegion) -> Stmt:
    bindings: dict[Var, Expr] = {}
    inside: set[Node] = set()
    extents: dict[Stmt, Var] = {}
    before: list[Stmt] = []
    for node in walk(region):
        if isinstance(node, Bind):
            bindings[node.var] = node.value
        elif isinstance(node, (Allocate, View)):
            inside.add(node.buffer)
        elif isinstance(node, For):
            inside.add(node.var)
            if is_thread_loop(node):
                extent = _inlined(node.extent, bindings)
                if has_calls(extent) and _is_known_before(extent, inside):
                    extents[node] = Var(f"{node.var.name}_extent", extent.dtype, None, node.extent.span)
                    before.append(Bind(extents[node], extent, node.span))
    if not extents:
        return region
    return sequence(*before, _Putting(extents).visit(region), span=region.span)


def _inlined(extent: Expr, bindings: dict[Var, Expr]) -> Expr:
    """The extent with what it uses of the bindings put in place."""
    while used := {node: bindings[node] for node in walk(extent) if isinstance(node, Var) and node in bindings}:
        extent = substitute(extent, used)
        if sum(1 for _ in walk(extent)) > _NODES_AT_MOST:
            break
    return extent


_NODES_AT_MOST = 1_000
"""Beyond this an extent stays where it is."""


def _is_known_before(extent: Expr, inside: set[Node]) -> bool:
    """Whether the extent uses only what is known before the launch; what it does not stays for the launch's own checks."""
    for node in walk(extent):
        if node in inside or getattr(node, "buffer", None) in inside:
            return False
        if isinstance(node, (AddressOf, BufferRef, Load)) and node.buffer.scope is not Scope.LOCAL:
            return False
    return True


class _Putting(Mutator):
    def __init__(self, extents: dict[Stmt, Var]) -> None:
        super().__init__()
        self.extents = extents

    def visit_Expr(self, node: Expr) -> Any:
        return node

    def visit_For(self, node: For) -> Any:
        found = self.generic(node)
        return replace(found, extent=self.extents[node]) if node in self.extents else found
