"""What code of a device cannot call: found, and refused at its place.

C functions and functions registered with TVM FFI are code of the host's processor. A kernel has only what its module
has; and of that, nothing that loops over threads that its launch has not.
"""

from __future__ import annotations

from collections.abc import Mapping

from gristmill.errors import Diagnostic, Note, UserError
from gristmill.ir.expr import CallExtern, CallFunction, CallPacked
from gristmill.ir.functor import walk
from gristmill.ir.module import Function, Module
from gristmill.ir.span import Span, place_of
from gristmill.ir.stmt import For, ThreadAxis
from gristmill_launch.sides import is_host
from gristmill_launch.written_kernels import is_kernel


def check_device_calls(module: Module) -> None:
    """Refuse calls in code of a device that cannot be.

    Raises UserError: GM0667 where a kernel, or a function that kernels call, calls out of the module; GM0670 where a
    function loops over threads along an axis that the launch of a kernel that calls it does not have.
    """
    for function in module.functions:
        if function.facts.target is None or is_host(function.facts.target):
            continue
        for node in walk(function.body):
            if isinstance(node, (CallExtern, CallPacked)):
                raise _calls_out(function, node)

    functions = {function.name: function for function in module.functions}
    for kernel in module.functions:
        if is_kernel(kernel) and kernel.facts.launch is not None:
            _check_axes(kernel, kernel.facts.launch.axes, functions)


def _check_axes(kernel: Function, axes: tuple[ThreadAxis, ...], functions: Mapping[str, Function]) -> None:
    """Compare the loops over threads of all functions that a kernel reaches with the axes of its launch."""
    reached: dict[str, Span | None] = {kernel.name: None}
    waiting = [kernel]
    while waiting:
        current = waiting.pop()
        for node in walk(current.body):
            if isinstance(node, For) and node.thread is not None and node.thread not in axes:
                raise _no_such_threads(kernel, axes, current, node, reached[current.name])
            if isinstance(node, CallFunction) and node.function in functions and node.function not in reached:
                reached[node.function] = node.span
                waiting.append(functions[node.function])


def _no_such_threads(
    kernel: Function, axes: tuple[ThreadAxis, ...], function: Function, loop: For, call: Span | None
) -> UserError:
    assert loop.thread is not None
    has = ", ".join(axis.value for axis in axes) or "one thread"
    return UserError(
        Diagnostic(
            "GM0670",
            f"`{function.name}` loops over {loop.thread.value}, and the launch that calls it has only {has}",
            place_of(loop.span) or place_of(function.span),
            label="threads that the launch has not",
            hint="put this loop into the function that launches, and pass its variable",
            notes=(Note("called from here", place_of(call)),) if call is not None else (),
        )
    )


def _calls_out(function: Function, call: CallExtern | CallPacked) -> UserError:
    callee = f"C function `{call.symbol}`" if isinstance(call, CallExtern) else f"registered function `{call.name}`"
    return UserError(
        Diagnostic(
            "GM0667",
            f"code of the device calls the {callee}, which the host has, in `{function.name}`",
            place_of(call.span) or place_of(function.span),
            label="a function of the host",
            hint="write it as a function of this module, with `@T.prim_func(private=True)`, or call it outside of the "
            "loops over threads",
        )
    )
