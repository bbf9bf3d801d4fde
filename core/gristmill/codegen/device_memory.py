"""Which allocations of host code are memory of the device: those that reach a kernel."""

from __future__ import annotations

from gristmill.ir.expr import CallFunction, Expr, Var
from gristmill.ir.functor import walk
from gristmill.ir.memory import Scope
from gristmill.ir.module import Function
from gristmill.ir.pointers import pointers_in
from gristmill.ir.stmt import Allocate, Bind, Launch, View


def device_allocations(function: Function, launching: frozenset[str]) -> frozenset[Var]:
    """The ``data`` variables of the allocations that a host function must make on the device.

    They are the global ones that are passed, themselves or through views, to a launch or to one of the functions
    ``launching``, which launch kernels themselves or call such functions. All others are host memory. Launch lowering
    has refused what both the host's code and a kernel would use.
    """
    allocated: set[Var] = set()
    sources: dict[Var, set[Var]] = {}
    given: list[Expr] = []
    for node in walk(function.body):
        if isinstance(node, Allocate):
            if node.buffer.scope is Scope.GLOBAL:
                allocated.add(node.buffer.data)
        elif isinstance(node, View):
            if node.source is not None:
                sources[node.buffer.data] = set(pointers_in(node.source))
        elif isinstance(node, Bind):
            if node.var.dtype.is_handle:
                sources[node.var] = set(pointers_in(node.value))
        elif isinstance(node, Launch) or (isinstance(node, CallFunction) and node.function in launching):
            given += node.args
    reached: set[Var] = set()
    waiting = [pointer for expression in given for pointer in pointers_in(expression)]
    while waiting:
        pointer = waiting.pop()
        if pointer not in reached:
            reached.add(pointer)
            waiting += sources.get(pointer, ())
    return frozenset(allocated & reached)
