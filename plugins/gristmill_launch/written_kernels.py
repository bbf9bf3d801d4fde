"""Kernels that their author wrote as such: what they state of their launch is compared with what they do.

A launch has an extent for each loop over threads, and shared memory for each dynamic allocation. A function with
``calling_conv`` 2 states in ``kernel_launch_params`` which those are, and nothing else can say how great they are.
"""

from __future__ import annotations

from gristmill.errors import Diagnostic, UserError
from gristmill.ir.functor import walk
from gristmill.ir.memory import Buffer, Scope
from gristmill.ir.module import CallingConvention, Function, Module
from gristmill.ir.node import Node
from gristmill.ir.span import Span, place_of
from gristmill.ir.stmt import Allocate, Block, For, ThreadAxis

_HINT = "leave calling_conv and kernel_launch_params out: launches find their parameters in the loops"


def is_kernel(function: Function) -> bool:
    """Whether a function is a kernel by its convention."""
    return function.facts.convention is CallingConvention.DEVICE_KERNEL


def check_written_kernels(module: Module) -> None:
    """Raise UserError (GM0669) for a kernel whose stated launch parameters are not those of its loops and memory."""
    for function in module.functions:
        if is_kernel(function) and not function.facts.declaration:
            _check(function)


def _check(function: Function) -> None:
    launch = function.facts.launch
    stated = launch.axes if launch is not None else ()
    loops: dict[ThreadAxis, Span | None] = {}
    dynamic: Span | None = None
    has_dynamic = False
    for node in walk(function.body):
        if isinstance(node, For) and node.thread is not None:
            loops.setdefault(node.thread, node.span)
        for buffer in _allocated(node):
            if buffer.scope is Scope.SHARED_DYNAMIC:
                has_dynamic, dynamic = True, buffer.span
    for number, axis in enumerate(stated):
        if axis in stated[:number]:
            raise _wrong(function, f"states the launch parameter {axis.value} twice", function.span)
        if axis not in loops:
            raise _wrong(function, f"states the launch parameter {axis.value}, and has no loop over it", function.span)
    for axis, span in loops.items():
        if axis not in stated:
            raise _wrong(function, f"has a loop over {axis.value}, and does not state that launch parameter", span)
    states_dynamic = launch is not None and launch.dynamic_shared
    if states_dynamic and not has_dynamic:
        what = "states a size of dynamic shared memory as a launch parameter, and allocates none in `shared.dyn`"
        raise _wrong(function, what, function.span)
    if has_dynamic and not states_dynamic:
        what = "allocates memory in `shared.dyn`, and does not state its size as a launch parameter"
        raise _wrong(function, what, dynamic or function.span)


def _allocated(node: Node) -> tuple[Buffer, ...]:
    if isinstance(node, Allocate):
        return (node.buffer,)
    return node.allocations if isinstance(node, Block) else ()


def _wrong(function: Function, what: str, span: Span | None) -> UserError:
    message = f"the kernel `{function.name}` {what}"
    return UserError(Diagnostic("GM0669", message, place_of(span), label="does not fit its launch", hint=_HINT))
