"""Functions that threads call: they must not start launches themselves, so what is bound gets a copy that is not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Any

from gristmill.errors import Diagnostic, Note, UserError
from gristmill.ir.expr import AddressOf, BufferRef, CallFunction, Expr, Var
from gristmill.ir.functor import Mutator, children, walk
from gristmill.ir.memory import Scope
from gristmill.ir.module import Function, Module
from gristmill.ir.node import Node
from gristmill.ir.span import Span, place_of
from gristmill.ir.stmt import For, LoopKind


def with_copies_for_threads(
    module: Module, bound: Mapping[str, Function], host: AbstractSet[str]
) -> tuple[Module, dict[str, str]]:
    """The module with the bound functions; where threads call one of those, they call a copy that is as it was.

    ``host`` names the functions that are host code; those that call bound ones need copies for threads too. Beside the
    module, the names of the copies, each with that of the function.
    """
    functions = [bound.get(function.name, function) for function in module.functions]
    called = called_by_threads(functions) & host & _leading_to(module, set(bound))
    if not called:
        return module.with_functions(functions), {}
    taken = {function.name for function in functions}
    names: dict[str, str] = {}
    for name in sorted(called):
        new = f"{name}_thread"
        while new in taken:
            new += "_"
        taken.add(new)
        names[name] = new
    renaming = _Renaming(names)
    copies = []
    for function in module.functions:
        if function.name in names:
            copy = renaming.all_calls(function).with_facts(symbol=None)
            copies.append(replace(copy, name=names[function.name]))
    result = []
    for function in functions:
        if function.name in host:
            result.append(function.with_body(renaming.visit(function.body)))
        else:
            result.append(renaming.all_calls(function))
    return module.with_functions([*result, *copies]), {new: name for name, new in names.items()}


def _leading_to(module: Module, names: set[str]) -> set[str]:
    """These functions and those that call them, directly or through others."""
    calls = {
        function.name: {node.function for node in walk(function.body) if isinstance(node, CallFunction)}
        for function in module.functions
    }
    found = set(names)
    while more := {name for name, called in calls.items() if name not in found and called & found}:
        found |= more
    return found


def called_by_host(function: Function) -> list[str]:
    """The names of functions that host code of the function calls with arrays of the device."""
    return [call.function for call in _calls_of_host(function) if any(_is_of_device(arg) for arg in call.args)]


def _calls_of_host(function: Function) -> list[CallFunction]:
    found = []
    stack: list[Node] = [function.body]
    while stack:
        node = stack.pop()
        if isinstance(node, CallFunction):
            found.append(node)
        if not isinstance(node, For) or node.kind is not LoopKind.THREAD:
            stack.extend(children(node))
    return found


def _is_of_device(arg: Expr) -> bool:
    if isinstance(arg, (BufferRef, AddressOf)):
        return arg.buffer.scope is not Scope.LOCAL
    return isinstance(arg, Var) and arg.dtype.is_handle


def _takes_memory_of_host(call: CallFunction) -> bool:
    return any(isinstance(arg, (BufferRef, AddressOf)) and arg.buffer.scope is Scope.LOCAL for arg in call.args)


def called_by_threads(functions: Sequence[Function]) -> set[str]:
    """The names of functions that threads call, or the host with arrays of its own; directly or through others."""
    by_name = {function.name: function for function in functions}
    waiting = [call.function for call in _calls_of_threads(functions)]
    for function in functions:
        waiting += [call.function for call in _calls_of_host(function) if _takes_memory_of_host(call)]
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in seen and name in by_name:
            seen.add(name)
            waiting += [node.function for node in walk(by_name[name].body) if isinstance(node, CallFunction)]
    return seen


def _calls_of_threads(functions: Sequence[Function]) -> Iterator[CallFunction]:
    """The calls in loops over threads."""
    for function in functions:
        for loop in walk(function.body):
            if isinstance(loop, For) and loop.kind is LoopKind.THREAD:
                yield from (call for call in walk(loop) if isinstance(call, CallFunction))


class _Renaming(Mutator):
    """Renames calls in loops over threads."""

    def __init__(self, names: Mapping[str, str]) -> None:
        super().__init__()
        self.names = names
        self.in_threads = False

    def all_calls(self, function: Function) -> Function:
        """The function with all of its calls renamed."""
        self.in_threads = True
        found = function.with_body(self.visit(function.body))
        self.in_threads = False
        return found

    def visit_For(self, node: For) -> Any:
        outside = self.in_threads
        self.in_threads = outside or node.kind is LoopKind.THREAD
        found = self.generic(node)
        self.in_threads = outside
        return found

    def visit_CallFunction(self, node: CallFunction) -> Any:
        node = self.generic(node)
        name = self.names.get(node.function)
        if name is None or not (self.in_threads or _takes_memory_of_host(node)):
            return node
        return replace(node, function=name)


def refuse_recursion(module: Module, copies: Mapping[str, str]) -> None:
    """Raise UserError (GM0641) if threads call a function that calls itself, directly or through others.

    ``copies`` are the names of copies with those that the author gave.
    """
    threads = called_by_threads(module.functions)
    calls = {
        function.name: [node for node in walk(function.body) if isinstance(node, CallFunction)]
        for function in module.functions
        if function.name in threads
    }
    for name in calls:
        seen: set[str] = set()
        waiting = list(calls[name])
        while waiting:
            call = waiting.pop()
            if call.function == name:
                raise _recursion(module, copies.get(name, name), call.span or calls[name][0].span, name)
            if call.function not in seen:
                seen.add(call.function)
                waiting += calls.get(call.function, [])


def _recursion(module: Module, name: str, span: Span | None, called: str) -> UserError:
    hint = "write a loop, with an array of its own for what is still to do"
    first = next((call for call in _calls_of_threads(module.functions) if call.function == called), None)
    notes: tuple[Note, ...] = ()
    if first is not None and first.span is not None:
        notes = (Note("threads of a device call it here", place_of(first.span)),)
        if first.args and not any(isinstance(arg, (BufferRef, AddressOf)) or arg.dtype.is_handle for arg in first.args):
            hint += (
                f"; or, where the host knows the arguments, let it call the function: "
                f"bind the value to a name before the loop or the element that it is for, as `value = {name}(...)`"
            )
    return UserError(
        Diagnostic(
            "GM0641",
            f"`{name}` calls itself, and threads of a device have no recursion",
            place_of(span),
            label="calls itself here",
            hint=hint,
            notes=notes,
        )
    )
