"""Which allocations of host code are memory of the device: those that reach a kernel."""

from __future__ import annotations

from gristmill.ir.expr import CallFunction, Var
from gristmill.ir.functor import walk
from gristmill.ir.memory import Scope
from gristmill.ir.module import Function
from gristmill.ir.pointers import origins, pointer_sources, pointers_in
from gristmill.ir.stmt import Allocate, Launch


def device_allocations(function: Function, launching: frozenset[str]) -> frozenset[Var]:
    """The ``data`` variables of the allocations that a host function must make on the device.

    They are the global ones that are passed, themselves or through views, to a launch or to one of the functions
    ``launching``, which launch kernels themselves or call such functions. All others are host memory. Launch lowering
    has refused what both the host's code and a kernel would use.
    """
    allocated: set[Var] = set()
    given: list[Var] = []
    for node in walk(function.body):
        if isinstance(node, Allocate):
            if node.buffer.scope is Scope.GLOBAL:
                allocated.add(node.buffer.data)
        elif isinstance(node, Launch) or (isinstance(node, CallFunction) and node.function in launching):
            given += [pointer for arg in node.args for pointer in pointers_in(arg)]
    return frozenset(allocated & origins(given, pointer_sources(function.body)))
