"""Which code runs on the host and which on a device: by place in a function, and by who calls it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from gristmill.ir.expr import CallFunction, Expr
from gristmill.ir.functor import children
from gristmill.ir.module import CallingConvention, Function
from gristmill.ir.node import Node
from gristmill.ir.stmt import DeviceRegion, For, LoopKind
from gristmill.ir.target import Target

HOST = Target("host")
"""The target of host functions; which processor that is the manifest says for each host."""

_HOST_KINDS = frozenset({"host", "cpu", "llvm", "c"})


def is_host(target: Target) -> bool:
    """Whether code for the target is run by the thread that calls it."""
    return target.kind in _HOST_KINDS


def is_thread_loop(node: Node) -> bool:
    return isinstance(node, For) and node.kind is LoopKind.THREAD


def begins_device_code(node: Node) -> bool:
    """Whether the statement, in code of the host, begins a launch."""
    return isinstance(node, DeviceRegion) or is_thread_loop(node)


def walk_with_side(node: Node) -> Iterator[tuple[Node, bool]]:
    """The node and all under it, each with whether it is code of a device, in evaluation order."""
    stack = [(node, False)]
    while stack:
        current, on_device = stack.pop()
        yield current, on_device
        inside = on_device or begins_device_code(current)
        stack.extend((child, inside) for child in reversed(list(children(current))))


def walk_host_code(node: Node) -> Iterator[Node]:
    """The node and all under it that is code of the host; of what begins a launch nothing."""
    stack = [node]
    while stack:
        current = stack.pop()
        if begins_device_code(current):
            continue
        yield current
        stack.extend(reversed(list(children(current))))


@dataclass(slots=True)
class Calls:
    """The calls in a function by the side that they stand on: the called function, and the first call of it."""

    host: dict[str, CallFunction] = field(default_factory=dict)
    device: dict[str, CallFunction] = field(default_factory=dict)

    @classmethod
    def of(cls, function: Function) -> Calls:
        found = cls()
        kernel = function.facts.convention is CallingConvention.DEVICE_KERNEL
        for node, on_device in walk_with_side(function.body):
            if isinstance(node, CallFunction):
                (found.device if on_device or kernel else found.host).setdefault(node.function, node)
        return found

    @property
    def all(self) -> dict[str, CallFunction]:
        return {**self.device, **self.host}


def has_calls(expr: Expr) -> bool:
    stack: list[Node] = [expr]
    while stack:
        node = stack.pop()
        if isinstance(node, CallFunction):
            return True
        stack.extend(children(node))
    return False
