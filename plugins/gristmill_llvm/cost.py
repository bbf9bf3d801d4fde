"""A rough estimate of how long a function runs, to decide whether a call releases Python's interpreter lock.

Releasing costs tens of microseconds when another thread is busy, so short kernels keep the lock; a long one that keeps
it stops every other thread. The estimate counts nodes: a loop multiplies its body by its number of iterations, or by
:data:`UNKNOWN_TRIPS` where that is not constant, a call adds its callee. From :data:`RELEASE_NODES` on (about a third
of a millisecond) the lock is released: two nested loops over sizes, or three, are over it, a plain elementwise loop is
not. Recursion counts as long. ``FunctionFacts.release_gil`` decides where it is set.
"""

from __future__ import annotations

from collections.abc import Iterator

from gristmill.ir.build import constant_value
from gristmill.ir.expr import CallExtern, CallFunction, CallPacked
from gristmill.ir.functor import children, walk
from gristmill.ir.module import Function, Module
from gristmill.ir.node import Node
from gristmill.ir.stmt import For, Launch, While

UNKNOWN_TRIPS = 1024
RELEASE_NODES = 1_000_000
_MOST = 10**12


def releases_gil(function: Function, module: Module) -> bool:
    """Whether a call of the public function should release the interpreter lock."""
    by_name = {found.name: found for found in module.functions}
    wishes = _wishes(function, by_name)
    if wishes:
        return wishes[0]
    if _launches(function, by_name):
        # Handing work to a device is quick, and devices written in Python take the lock at once.
        return False
    return _function_cost(function, by_name) >= RELEASE_NODES


def _launches(function: Function, by_name: dict[str, Function]) -> bool:
    """Whether the function, or one that it calls, launches a kernel."""
    begun, waiting = {function.name}, [function]
    while waiting:
        for node in walk(waiting.pop().body):
            if isinstance(node, Launch):
                return True
            if isinstance(node, CallFunction) and node.function not in begun:
                begun.add(node.function)
                waiting.append(by_name[node.function])
    return False


def _wishes(function: Function, by_name: dict[str, Function]) -> list[bool]:
    """What the packed function states, or else the function that it calls."""
    if function.facts.release_gil is not None:
        return [function.facts.release_gil]
    found = []
    stack: list[Node] = [function.body]
    while stack:
        node = stack.pop()
        if isinstance(node, CallPacked):
            # The callee may be Python code, which takes the lock again by itself; between calls it may as well be held.
            return [False]
        if isinstance(node, CallFunction):
            wish = by_name[node.function].facts.release_gil
            if wish is not None:
                found.append(wish)
        stack.extend(children(node))
    return found


def _function_cost(function: Function, by_name: dict[str, Function]) -> int:
    """The cost of a call of the function; callees first, with an explicit stack, since a chain of calls may be long."""
    costs: dict[str, int] = {}
    begun = {function.name}
    stack = [(function.name, _callees(function))]
    while stack:
        name, callees = stack[-1]
        called = next((called for called in callees if called not in begun), None)
        if called is not None:
            begun.add(called)
            stack.append((called, _callees(by_name[called])))
            continue
        costs[name] = _cost(by_name[name].body, costs)
        stack.pop()
    return costs[function.name]


def _callees(function: Function) -> Iterator[str]:
    return (node.function for node in walk(function.body) if isinstance(node, CallFunction))


def _cost(root: Node, costs: dict[str, int]) -> int:
    """The cost of code; a callee without known costs is one that is begun and not done: a call back, a recursion."""
    total = 0
    stack: list[tuple[Node, int]] = [(root, 1)]
    while stack:
        node, times = stack.pop()
        total = min(total + times, _MOST)
        if isinstance(node, CallFunction):
            total = min(total + times * costs.get(node.function, RELEASE_NODES), _MOST)
        elif isinstance(node, CallExtern):
            total = min(total + times * UNKNOWN_TRIPS, _MOST)
        inner = times
        if isinstance(node, While):
            inner = times * UNKNOWN_TRIPS
        elif isinstance(node, For):
            trips = constant_value(node.extent)
            inner = times * (UNKNOWN_TRIPS if trips is None else max(int(trips), 0))
        stack.extend((child, min(inner, _MOST)) for child in children(node))
    return total
