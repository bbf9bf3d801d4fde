"""Part a module whose kernels have been split off: the functions of the host, and those of the device.

Before::

    function @scale(x: handle, n: int64, context: handle) { launch @scale_kernel(x, n) over ... }
    function @scale_kernel(x: handle, n: int64)
      convention kernel
    { ... call of @twice ... }
    function @twice(x: float32) -> float32 { ... }

After, on the host::

    function @scale(x: handle, n: int64, context: handle) { launch @scale_kernel(x, n) over ... }
    function @scale_kernel(x: handle, n: int64)
      convention kernel
      declaration
    { }

and on the device::

    function @scale_kernel(x: handle, n: int64)
      convention kernel
    { ... call of @twice ... }
    function @twice(x: float32) -> float32 { ... }

A declaration says on the host how the kernel is launched. A function that both sides call is in both modules. No pass
of a pipeline: one module goes in and two come out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gristmill.ir.expr import CallExtern, CallFunction
from gristmill.ir.functor import walk
from gristmill.ir.module import CallingConvention, Extern, Function, Module
from gristmill.ir.stmt import Seq


@dataclass(frozen=True, slots=True)
class Parts:
    """The two modules, each with its functions in the order of the whole."""

    host: Module
    device: Module


def part_by_target(module: Module) -> Parts:
    """The host's part, with a declaration of each kernel, and the device's."""
    kernels = [function for function in module.functions if _is_kernel(function)]
    others = [function for function in module.functions if not _is_kernel(function)]
    of_device = _reached(module, kernels)
    public = [function for function in others if function.is_public]
    # Without a public function every one of the host may be wanted.
    of_host = _reached(module, public or [function for function in others if function.name not in of_device])
    host = [
        _declaration(function) if _is_kernel(function) else function
        for function in module.functions
        if _is_kernel(function) or function.name in of_host
    ]
    device = [function for function in module.functions if function.name in of_device]
    return Parts(_with(module, host), _with(module, device))


def _is_kernel(function: Function) -> bool:
    return function.facts.convention is CallingConvention.DEVICE_KERNEL


def _declaration(kernel: Function) -> Function:
    return kernel.with_body(Seq((), kernel.span)).with_facts(declaration=True)


def _reached(module: Module, starts: Iterable[Function]) -> set[str]:
    """The names of functions that these lead to by calls, themselves among them; launches lead nowhere."""
    by_name = {function.name: function for function in module.functions}
    found = {function.name for function in starts}
    waiting = list(found)
    while waiting:
        for node in walk(by_name[waiting.pop()].body):
            if isinstance(node, CallFunction) and node.function not in found:
                found.add(node.function)
                waiting.append(node.function)
    return found


def _with(module: Module, functions: list[Function]) -> Module:
    used = {node.symbol for function in functions for node in walk(function.body) if isinstance(node, CallExtern)}
    externs: tuple[Extern, ...] = tuple(extern for extern in module.externs if extern.symbol in used)
    return Module(tuple(functions), externs, module.span)
