"""Refuse calls whose arrays have other sizes than the called function states, where both are constants.

Before::

    function @first_half(s: float32[32]) { ... }
    ...
    @first_half(buffer(s))                    ; s: float32[64]

After: error GM0613, with the place of the call and that of the parameter. Sizes that are known only when the program runs are
compared then. A call in a branch whose condition is a constant false is never made, and not asked about.

Ensures: nothing; a module without such calls comes back as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gristmill.arith.simplify import Simplifier
from gristmill.errors import Diagnostic, Note, UserError
from gristmill.ir.build import constant_value
from gristmill.ir.expr import BufferRef, CallFunction
from gristmill.ir.functor import Mutator
from gristmill.ir.memory import Buffer
from gristmill.ir.module import CallingConvention, Function, Module
from gristmill.ir.span import place_of
from gristmill.ir.stmt import If
from gristmill.passes.lower_buffer_arguments import BufferCalls
from gristmill.passes.manager import Pass


@dataclass(frozen=True)
class CheckCallSizes(Pass):
    """Refuse calls whose arrays have other constant sizes than the called function states."""

    def run(self, module: Module) -> Module:
        """The same module. Raises UserError (GM0613)."""
        takers = {
            function.name: function
            for function in module.functions
            if function.facts.convention is CallingConvention.PLAIN
            and any(isinstance(param, Buffer) for param in function.params)
        }
        if takers:
            calls = BufferCalls(takers, {function.name for function in module.functions})
            for function in module.functions:
                _Live(calls).visit(function.body)
        return module


class _Live(Mutator):
    """Goes over the code that may run."""

    def __init__(self, calls: BufferCalls) -> None:
        super().__init__()
        self.calls = calls
        self.simplifier = Simplifier()

    def visit_If(self, node: If) -> Any:
        known = constant_value(self.simplifier.simplify(node.condition))
        self.visit(node.condition)
        for part, taken in ((node.then, known != 0), (node.otherwise, known is None or known == 0)):
            if part is not None and taken:
                self.visit(part)
        return node

    def visit_CallFunction(self, node: CallFunction) -> Any:
        for arg in node.args:
            if not isinstance(arg, BufferRef):
                self.visit(arg)
        callee = self.calls.takers.get(node.function)
        if callee is not None:
            _check(node, callee, self.calls)
        return node


def _check(call: CallFunction, callee: Function, calls: BufferCalls) -> None:
    for fact in calls.solved(call, callee).open_checks:
        stated, given = constant_value(fact.pattern), constant_value(fact.actual)
        if stated is None or given is None or stated == given or fact.unless_at_most_one is not None:
            continue
        arg = next(arg for param, arg in zip(callee.params, call.args, strict=True) if param is fact.param)
        assert isinstance(arg, BufferRef)
        name, made = f"`{arg.buffer.name}`", arg.buffer.span
        notes = [Note(f"`{callee.name}` wants {stated:,} here", place_of(fact.param.span or callee.span))]
        if made is not None:
            notes.append(Note(f"{name} is here", place_of(made)))
        raise UserError(
            Diagnostic(
                "GM0613",
                f"the {fact.text} of `{callee.name}` is {stated:,}, and this call gives it {name} with {given:,}",
                place_of(call.span),
                label=f"{given:,} instead of {stated:,}",
                hint='give it an array of that size, or let the function take any: name the size, as `T.Buffer(("n",), ...)`',
                notes=tuple(notes),
            )
        )
