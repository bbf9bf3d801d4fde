"""Put the body of small private functions in the place of their calls.

Before::

    function @square(x: float32) -> float32 { return x * x }
    ...
    y = @square(a[i])

After::

    x = a[i]
    y = x * x

A call is inlined where it is a whole statement, or the value that a statement binds, stores or returns: there its
arguments can get names. The function must be straight to its end: no ``return`` but as its last statement. Functions
that call themselves, directly or through others, stay calls; so do those with buffer parameters.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeVar

from gristmill.ir.build import const, sequence
from gristmill.ir.effects import is_collective
from gristmill.ir.expr import CallFunction, Expr, Var
from gristmill.ir.functor import Mutator, walk
from gristmill.ir.memory import Buffer
from gristmill.ir.module import CallingConvention, Function, Module
from gristmill.ir.node import Node
from gristmill.ir.span import Span
from gristmill.ir.stmt import Bind, Evaluate, For, LoopKind, Return, Seq, Stmt, Store
from gristmill.passes.manager import Pass, is_interface
from gristmill.passes.renewal import Renewal

N = TypeVar("N", bound=Node)


@dataclass(frozen=True)
class InlineFunctions(Pass):
    """Put the body of small private functions in the place of their calls."""

    nodes: int = 80
    """The most nodes that a function to inline may have."""

    def run(self, module: Module) -> Module:
        candidates = {function.name: function for function in module.functions if is_straight(function, self.nodes)}
        if not candidates:
            return module
        inlining = _Inlining(candidates)
        return module.with_functions(inlining.function(function) for function in module.functions)


def is_straight(function: Function, nodes: int) -> bool:
    """Whether a function is small, private, plain, calls nothing, and returns at its end only."""
    if function.is_public or function.facts.convention is not CallingConvention.PLAIN or function.sizes:
        return False
    if any(isinstance(param, Buffer) or param.dtype.is_handle for param in function.params):
        return False
    last = function.body.body[-1] if isinstance(function.body, Seq) and function.body.body else function.body
    for count, node in enumerate(walk(function.body), 1):
        if count > nodes or isinstance(node, CallFunction) or (isinstance(node, Return) and node is not last):
            return False
        if isinstance(node, For) and node.kind is not LoopKind.SERIAL:
            return False
        if is_collective(node):
            # The call may stand in a vectorized loop, where an exchange may not.
            return False
    return True


class _Inlining(Mutator):
    def __init__(self, candidates: dict[str, Function]) -> None:
        super().__init__()
        self.all = candidates
        self.candidates = candidates

    def function(self, function: Function) -> Function:
        """The function with calls in it inlined. Fast math belongs to the code that asks for it, so it must agree."""
        self.candidates = {
            name: found for name, found in self.all.items() if found.facts.fast_math == function.facts.fast_math
        }
        if is_interface(function) or not any(
            isinstance(node, CallFunction) and node.function in self.candidates for node in walk(function.body)
        ):
            return function
        return function.with_body(self.visit(function.body))

    def visit_Expr(self, node: Expr) -> Any:
        return node

    def visit_Evaluate(self, node: Evaluate) -> Any:
        return self.inlined(node, node.value, None)

    def visit_Bind(self, node: Bind) -> Any:
        return self.inlined(node, node.value, lambda value: replace(node, value=value))

    def visit_Store(self, node: Store) -> Any:
        if any(isinstance(part, CallFunction) for index in node.indices for part in walk(index)):
            return node
        return self.inlined(node, node.value, lambda value: replace(node, value=value))

    def visit_Return(self, node: Return) -> Any:
        return self.inlined(node, node.value, lambda value: replace(node, value=value))

    def inlined(self, node: Stmt, call: Expr | None, finish: Any) -> Stmt:
        """The statement with the call that is its value done in place; itself if that cannot be."""
        if not isinstance(call, CallFunction) or call.function not in self.candidates:
            return node
        function = self.candidates[call.function]
        names = [Var(param.name, param.type) for param in function.params if isinstance(param, Var)]
        binds = [Bind(name, arg, call.span) for name, arg in zip(names, call.args, strict=True)]
        params = [param for param in function.params if isinstance(param, Var)]
        body = InlinedBody(function.body, dict(zip(params, names, strict=True)), call.span).visit(function.body)
        *before, last = body.body if isinstance(body, Seq) and body.body else (body,)
        value: Expr | None = None
        if isinstance(last, Return):
            value = last.value
        else:
            before.append(last)
            if not function.returns.is_void:
                value = const(0, function.returns)
        final = finish(value) if finish is not None else None if value is None else Evaluate(value, node.span)
        return sequence(*binds, *before, final, span=node.span)


class InlinedBody(Renewal):
    """A copy of a body whose places say through which call they came here."""

    def __init__(self, body: Stmt, variables: dict[Var, Any], at: Span | None) -> None:
        super().__init__(body, variables)
        self.at = at

    def generic(self, node: N) -> N:
        found = super().generic(node)
        if self.at is None or found.span is None:
            return found
        return replace(found, span=_through(found.span, self.at))  # type: ignore[type-var]


def _through(span: Span, at: Span) -> Span:
    """The place, reached through one more call."""
    outer = at if span.inlined_at is None else _through(span.inlined_at, at)
    return Span(span.place, outer)
