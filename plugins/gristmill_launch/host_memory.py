"""Host code that would read or write memory of a device, or hand it to code that would: found, and refused at its place.

Memory of the device is what public functions are given, what reaches a kernel, and views of either; through calls it
reaches the parameters of helpers. All other memory of host code is the host's own. A C function or a function registered
with TVM FFI cannot know that an address is a device's, and would take it for one of the host's.
"""

from __future__ import annotations

from gristmill.codegen.device_memory import device_allocations
from gristmill.errors import Diagnostic, UserError
from gristmill.ir.effects import atomic_element
from gristmill.ir.expr import CallExtern, CallFunction, CallPacked, Expr, Load, Var
from gristmill.ir.functor import walk
from gristmill.ir.memory import Buffer, Scope
from gristmill.ir.module import Function, Module
from gristmill.ir.pointers import pointers_in
from gristmill.ir.printer import print_node
from gristmill.ir.span import place_of
from gristmill.ir.stmt import Bind, Launch, Store, View
from gristmill_launch.sides import is_host


def launching_functions(module: Module) -> frozenset[str]:
    """The functions that launch kernels, themselves or through what they call."""
    calls: dict[str, set[str]] = {}
    found: set[str] = set()
    for function in module.functions:
        calls[function.name] = set()
        for node in walk(function.body):
            if isinstance(node, Launch):
                found.add(function.name)
            elif isinstance(node, CallFunction):
                calls[function.name].add(node.function)
    while more := {name for name, called in calls.items() if name not in found and called & found}:
        found |= more
    return frozenset(found)


def check_host_memory(module: Module) -> None:
    """Refuse host code that touches memory of the device.

    Raises UserError: GM0659 where it loads or stores elements, GM0666 where it hands such memory to a C function or to a
    registered one.
    """
    host = {
        function.name: function
        for function in module.functions
        if function.facts.target is not None and is_host(function.facts.target)
    }
    launching = launching_functions(module)
    known: dict[str, set[Var]] = {}
    for name, function in host.items():
        known[name] = set(device_allocations(function, launching))
        for param in function.params:
            if function.is_public and isinstance(param, Buffer) and param.scope is Scope.GLOBAL:
                known[name].add(param.data)
    changed = True
    while changed:
        changed = False
        for function in host.values():
            changed = _spread(function, known, host, launching) or changed
    for name, function in host.items():
        _check(function, known[name])


def _spread(
    function: Function, known: dict[str, set[Var]], host: dict[str, Function], launching: frozenset[str]
) -> bool:
    """Follow device memory through one function and into what it calls; whether anything new was found."""
    here = known[function.name]
    found = len(here)
    others = 0
    given = {param.data if isinstance(param, Buffer) else param for param in function.params}
    for node in walk(function.body):
        if isinstance(node, View) and node.source is not None and here.intersection(pointers_in(node.source)):
            here.add(node.buffer.data)
        elif isinstance(node, Bind) and node.var.type.is_handle and here.intersection(pointers_in(node.value)):
            here.add(node.var)
        elif isinstance(node, Launch) or (isinstance(node, CallFunction) and node.function in launching):
            here.update(var for arg in node.args for var in pointers_in(arg) if var in given)
        if isinstance(node, CallFunction) and node.function in host:
            there = known[node.function]
            before = len(there)
            for param, arg in zip(host[node.function].params, node.args, strict=True):
                if here.intersection(pointers_in(arg)):
                    there.add(param.data if isinstance(param, Buffer) else param)
            others += len(there) - before
    return len(here) > found or others > 0


def _check(function: Function, device: set[Var]) -> None:
    for node in walk(function.body):
        access = node if isinstance(node, (Load, Store)) else atomic_element(node)
        if access is not None and access.buffer.data in device and access.buffer.scope is Scope.GLOBAL:
            element = f"{access.buffer.name}[{', '.join(print_node(index) for index in access.indices)}]"
            does = "reads" if isinstance(node, Load) else "writes"
            raise UserError(
                Diagnostic(
                    "GM0659",
                    f"code of the host {does} `{element}` in `{function.name}`, which is memory of the device",
                    place_of(node.span) or place_of(function.span),
                    label="memory of the device",
                    hint="put this into a loop over threads; a value that the host decides by comes in as a scalar",
                )
            )
        if isinstance(node, (CallExtern, CallPacked)):
            for arg in node.args:
                if arg.dtype.is_handle and device.intersection(pointers_in(arg)):
                    raise _handed_out(function, node, arg)


def _handed_out(function: Function, call: CallExtern | CallPacked, arg: Expr) -> UserError:
    callee = f"C function `{call.symbol}`" if isinstance(call, CallExtern) else f"registered function `{call.name}`"
    name = next(pointers_in(arg)).name.removesuffix("_data")
    # The span of a variable is where it is defined.
    span = call.span if isinstance(arg, Var) else arg.span or call.span
    return UserError(
        Diagnostic(
            "GM0666",
            f"code of the host hands `{name}`, which is memory of the device, to the {callee} in `{function.name}`",
            place_of(span) or place_of(function.span),
            label="memory of the device",
            hint="do the work in a loop over threads, or call the function yourself before or after this one",
        )
    )
