"""The context of host functions that launch: each takes it as its last parameter, and hands it to whom it calls.

Before::

    function @scale<n: int64>(x: float32[n], factor: float32) {
      launch @scale_kernel(x_data, factor, n) over threadIdx.x = n
    }

After::

    function @scale<n: int64>(x: float32[n], factor: float32, context: handle) {
      launch @scale_kernel(x_data, factor, n) over threadIdx.x = n context context
    }
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gristmill.codegen.context_table import CONTEXT_PARAMETER
from gristmill.codegen.packed_interface import signature_text
from gristmill.ir.dtype import HANDLE
from gristmill.ir.expr import CallFunction, Var
from gristmill.ir.functor import Mutator, walk
from gristmill.ir.module import CallingConvention, Function, Module
from gristmill.ir.stmt import Launch
from gristmill_launch.host_memory import launching_functions


def with_contexts(module: Module) -> tuple[Module, frozenset[str]]:
    """The module whose launching functions take and hand on the context, and the names of those that now take it.

    A module in which every launch has its context already comes back as it is.
    """
    if not any(
        isinstance(node, Launch) and node.context is None
        for function in module.functions
        for node in walk(function.body)
    ):
        return module, frozenset()
    plain = {function.name for function in module.functions if function.facts.convention is CallingConvention.PLAIN}
    launching = frozenset(name for name in launching_functions(module) if name in plain)
    if not launching:
        return module, launching
    return module.with_functions(_with_context(function, launching) for function in module.functions), launching


def _with_context(function: Function, launching: frozenset[str]) -> Function:
    if function.name not in launching:
        return function
    context = Var(CONTEXT_PARAMETER, HANDLE, None, function.span)
    body = _Handing(context, launching).visit(function.body)
    # What the author wrote has no context in it.
    facts = replace(function.facts, signature=signature_text(function) if function.is_public else "")
    return replace(function, params=(*function.params, context), body=body, facts=facts)


class _Handing(Mutator):
    def __init__(self, context: Var, launching: frozenset[str]) -> None:
        super().__init__()
        self.context = context
        self.launching = launching

    def visit_Launch(self, node: Launch) -> Any:
        node = self.generic(node)
        return replace(node, context=self.context) if node.context is None else node

    def visit_CallFunction(self, node: CallFunction) -> Any:
        node = self.generic(node)
        return replace(node, args=(*node.args, self.context)) if node.function in self.launching else node
