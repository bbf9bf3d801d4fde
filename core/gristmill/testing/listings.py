"""Listings of lowered kernels: for each public function its host code, its kernels as a code generator gets them, and
a header that says how they are launched and how often the threads of a block wait for each other.

A listing is a module in text form, which the executor runs as it stands.
"""

from __future__ import annotations

from collections.abc import Iterable

from gristmill.build.generation import Settings, lower
from gristmill.ir.expr import CallFunction
from gristmill.ir.functor import walk
from gristmill.ir.module import Function, Module
from gristmill.ir.printer import print_module, print_node
from gristmill.ir.stmt import Barrier, Launch
from gristmill.ir.target import Target
from gristmill.ir.verify import check
from gristmill.passes.manager import RunOptions
from gristmill.passes.part_by_target import part_by_target
from gristmill.passes.pipeline import phase_names
from gristmill.plugin.registry import Registry

_LAST_COMMON_PHASE = "split"


def lowered_for_device(module: Module, target: Target, registry: Registry) -> Module:
    """The module with its kernels as the target's code generator gets them, and host code as it is once parted from them.

    Host code has no packed interface yet, so public functions are called by their own names and parameters. Raises
    UserError as a build does.
    """
    kind = registry.target_kind(target.kind)
    settings = Settings("listing", run_options=RunOptions(verify=True))
    names = phase_names()
    common = names[: names.index(_LAST_COMMON_PHASE) + 1]
    parts = part_by_target(lower(module, kind, target, registry, settings, phases=common))
    device = lower(parts.device, kind, target, registry, settings, phases=names[names.index("host") + 1 :])
    host = [function for function in parts.host.functions if not function.facts.declaration]
    own = {function.name for function in host}
    merged = device.with_functions([*host, *(one for one in device.functions if one.name not in own)])
    check(merged, after="the passes")
    return merged


def listing_of(lowered: Module, name: str) -> str:
    """The listing of one public function of a module that :func:`lowered_for_device` has made."""
    module = _reached(lowered, name)
    launches = [node for node in walk(module) if isinstance(node, Launch)]
    barriers = {function.name: _barriers(module, function) for function in module.functions}
    kernels = [function for function in module.functions if function.name in {launch.kernel for launch in launches}]
    total = sum(barriers[kernel.name] for kernel in kernels)
    lines = [f"; {name}: {_counted(len(kernels), 'kernel')}, {_counted(total, 'barrier')}"]
    for launch in launches:
        text = print_node(launch).removeprefix("launch @")
        head, _, parameters = text.partition("(")
        lines.append(f";   {head}{parameters[parameters.index(') ') + 1 :]}: {_counted(barriers[head], 'barrier')}")
    return "\n".join((*lines, print_module(module)))


def _reached(module: Module, name: str) -> Module:
    """The function and all that it calls or launches, in the order of the module."""
    by_name = {function.name: function for function in module.functions}
    found, waiting = {name}, [name]
    while waiting:
        for node in walk(by_name[waiting.pop()].body):
            reached = (
                node.function if isinstance(node, CallFunction) else node.kernel if isinstance(node, Launch) else name
            )
            if reached not in found:
                found.add(reached)
                waiting.append(reached)
    return module.with_functions(function for function in module.functions if function.name in found)


def _barriers(module: Module, kernel: Function) -> int:
    """How many barriers stand in a kernel and in what it calls."""
    functions: Iterable[Function] = _reached(module, kernel.name).functions
    return sum(isinstance(node, Barrier) for function in functions for node in walk(function.body))


def _counted(number: int, what: str) -> str:
    return f"{number or 'no'} {what}{'' if number == 1 else 's'}"
