"""Turn vectorised loops into vector code.

Before::

    for i in vectorized(4):
        b[j * 4 + i] = a[j * 4 + i] * 2.0

After::

    b[ramp(j * 4, 1, 4)] = a[ramp(j * 4, 1, 4)] * broadcast(2.0, 4)

A loop that has no vector form (lanes take different branches, call functions, ...) becomes a serial loop, if no
iteration can see what another one writes, else scalar code in lock step.

Ensures: no vectorised loop is left.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from gristmill.ir.build import sequence
from gristmill.ir.dtype import LANES_AT_MOST
from gristmill.ir.expr import IntImm
from gristmill.ir.functor import Mutator, walk
from gristmill.ir.module import Function, Module
from gristmill.ir.stmt import Bind, For, LoopKind, Seq, Stmt
from gristmill.passes.independence import iterations_are_independent
from gristmill.passes.lock_step import lock_step
from gristmill.passes.manager import Pass
from gristmill.passes.unroll_loops import leaves_or_cuts
from gristmill.passes.vector_lanes import NotVectorizable, vector_form


@dataclass(frozen=True)
class VectorizeLoops(Pass):
    """Turn vectorised loops into vector code, or into scalar code with the same results."""

    def run(self, module: Module) -> Module:
        return module.with_functions(vectorize_loops(function) for function in module.functions)


def vectorize_loops(function: Function) -> Function:
    """The function without vectorised loops; the same object if it has none."""
    if not any(isinstance(node, For) and node.kind is LoopKind.VECTORIZED for node in walk(function.body)):
        return function
    return function.with_body(_Vectorizing(function).visit(function.body))


class _Vectorizing(Mutator):
    def __init__(self, function: Function) -> None:
        super().__init__()
        self.function = function

    def visit_For(self, node: For) -> Any:
        if node.kind is not LoopKind.VECTORIZED:
            return self.generic(node)
        assert isinstance(node.extent, IntImm)
        lanes = node.extent.value
        if lanes > 1 and any(isinstance(part, For) and part.kind is LoopKind.VECTORIZED for part in walk(node.body)):
            # The lanes of both loops go together; only lock step does that.
            return lock_step(node, lanes)
        return vectorized(self.generic(node), lanes, self.function)


def vectorized(loop: For, lanes: int, function: Function) -> Stmt:
    """A vectorised loop of constant extent as other code."""
    if lanes <= 0:
        return Seq((), loop.span)
    if lanes == 1 and not leaves_or_cuts(loop.body):
        return sequence(Bind(loop.var, loop.minimum, loop.span), loop.body, span=loop.span)
    if 1 < lanes <= LANES_AT_MOST:
        try:
            return vector_form(loop, lanes)
        except NotVectorizable:
            pass
    if lanes == 1 or iterations_are_independent(loop, function):
        hints = replace(loop.hints, vectorize=True) if loop.hints.vectorize is None else loop.hints
        return replace(loop, kind=LoopKind.SERIAL, hints=hints)
    return lock_step(loop, lanes)
