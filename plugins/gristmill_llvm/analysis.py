"""What must be known of all functions before the first is written: who calls whom, who can fail, what to inline."""

from __future__ import annotations

from collections.abc import Mapping

from gristmill.ir.expr import CallExtern, CallFunction, CallPacked
from gristmill.ir.functor import walk
from gristmill.ir.module import CallingConvention, Function, Module
from gristmill.ir.stmt import Allocate, Assert, For, While
from gristmill_llvm.allocation import constant_bytes, fits_stack

INLINE_NODES = 600
"""Functions without loops up to this many nodes, those of their callees counted in, are always inlined: loops that
call them become vectors only then."""


def callees(module: Module) -> dict[str, tuple[str, ...]]:
    """Names of the functions that each function calls, in order of first call."""
    found: dict[str, tuple[str, ...]] = {}
    for function in module.functions:
        names = {node.function: None for node in walk(function.body) if isinstance(node, CallFunction)}
        found[function.name] = tuple(names)
    return found


def reachable(start: str, calls: Mapping[str, tuple[str, ...]]) -> set[str]:
    """The functions that a function calls, directly or through others; itself only if it is recursive."""
    found: set[str] = set()
    waiting = list(calls[start])
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting.extend(calls[name])
    return found


def recursive_functions(calls: Mapping[str, tuple[str, ...]]) -> frozenset[str]:
    """The functions that may call themselves."""
    return frozenset(name for name in calls if name in reachable(name, calls))


def failing_functions(
    module: Module, calls: Mapping[str, tuple[str, ...]], recursive: frozenset[str]
) -> frozenset[str]:
    """The functions that may leave with an error: by themselves, or because a callee does."""
    failing = {function.name for function in module.functions if _fails_itself(function, function.name in recursive)}
    grown = True
    while grown:
        more = {name for name, called in calls.items() if name not in failing and failing.intersection(called)}
        failing |= more
        grown = bool(more)
    return frozenset(failing)


def _fails_itself(function: Function, recursive: bool) -> bool:
    used = 0
    for node in walk(function.body):
        if isinstance(node, (Assert, CallPacked, CallExtern)):
            return True
        if isinstance(node, Allocate):
            # No memory may be left for what does not go onto the stack.
            if not fits_stack(node.buffer, used, recursive):
                return True
            used += constant_bytes(node.buffer) or 0
    return False


def always_inlined(module: Module, calls: Mapping[str, tuple[str, ...]], recursive: frozenset[str]) -> frozenset[str]:
    """Private functions that are small, have no loop and do not call themselves (see :data:`INLINE_NODES`)."""
    sizes: dict[str, int] = {}
    by_name = {function.name: function for function in module.functions}
    for start in calls:
        # Callees first, with an explicit stack: a chain of calls may be long.
        stack = [start]
        while stack:
            name = stack[-1]
            waiting = [called for called in calls[name] if called not in sizes and name not in recursive]
            if name not in sizes and waiting:
                stack.extend(waiting)
                continue
            stack.pop()
            if name not in sizes:
                sizes[name] = _inlined_size(by_name[name], sizes, name in recursive)
    return frozenset(
        name
        for name, size in sizes.items()
        if size <= INLINE_NODES
        and by_name[name].facts.symbol is None
        and by_name[name].facts.convention is CallingConvention.PLAIN
    )


def _inlined_size(function: Function, sizes: Mapping[str, int], recursive: bool) -> int:
    if recursive:
        return INLINE_NODES + 1
    total = 0
    for node in walk(function.body):
        if isinstance(node, (For, While)):
            return INLINE_NODES + 1
        total += 1
        if isinstance(node, CallFunction):
            total += sizes[node.function]
        if total > INLINE_NODES:
            break
    return total
