"""Copies of whole functions with names of their own for all that they define."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gristmill.ir.expr import CallFunction, Expr, Var
from gristmill.ir.functor import Mutator, walk
from gristmill.ir.memory import Buffer
from gristmill.ir.module import Function
from gristmill.ir.node import Node
from gristmill.ir.stmt import Stmt
from gristmill.passes.renewal import Renewal
from gristmill_launch.sides import begins_device_code


def renewed_function(function: Function, name: str) -> Function:
    """A copy of the function under another name that shares no variable or buffer with it."""
    variables: dict[Var, Expr] = {size: replace(size) for size in function.sizes}
    for param in function.params:
        var = param.data if isinstance(param, Buffer) else param
        variables[var] = replace(var)
    renewal = Renewal(function.body, variables)
    sizes = tuple(renewal.visit(size) for size in function.sizes)
    params = tuple(renewal.visit(param) for param in function.params)
    return replace(function, name=name, params=params, sizes=sizes, body=renewal.visit(function.body))


class _HostCalls(Mutator):
    def __init__(self, names: dict[str, str]) -> None:
        super().__init__()
        self.names = names

    def visit_Stmt(self, node: Stmt) -> Any:
        return node if begins_device_code(node) else self.generic(node)

    def visit_CallFunction(self, node: CallFunction) -> Any:
        node = self.generic(node)
        return replace(node, function=self.names[node.function]) if node.function in self.names else node


def with_host_calls(function: Function, names: dict[str, str]) -> Function:
    """The function with the calls in its host code going to other functions: ``names`` says to which."""
    if not names or not any(_calls_one(node, names) for node in walk(function.body)):
        return function
    return function.with_body(_HostCalls(names).visit(function.body))


def _calls_one(node: Node, names: dict[str, str]) -> bool:
    return isinstance(node, CallFunction) and node.function in names
