"""Where each statement of a function runs: on the host, by one thread of the device, or by many.

The host keeps what touches no memory of the device, and the loops and branches around device code whose conditions it
knows. A loop around device code becomes a nest for many threads where its iterations are independent; else the host
keeps it if it contains such nests, and one thread runs all of it if not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from gristmill.ir.effects import atomic_element
from gristmill.ir.expr import AddressOf, BufferRef, CallExtern, CallFunction, CallPacked, Expr, Load, Var
from gristmill.ir.functor import children, walk
from gristmill.ir.memory import Scope
from gristmill.ir.module import Function, Module
from gristmill.ir.node import Node
from gristmill.ir.stmt import (
    Block,
    DeviceRegion,
    Evaluate,
    For,
    If,
    Launch,
    LoopKind,
    Return,
    Seq,
    Stmt,
    Store,
    While,
)
from gristmill.schedule.jumps import escaping_jumps
from gristmill.schedule.nests import Nest, NestFinder


class Where(Enum):
    """Who runs a statement."""

    HOST = 0
    THREAD = 1
    """One thread of the device."""
    NEST = 2
    """Many threads of the device."""
    CONTROL = 3
    """The host, around parts that run elsewhere."""


@dataclass(frozen=True)
class Placed:
    """A statement with who runs it; ``parts`` are the statements directly in it, for control of the host."""

    where: Where
    node: Stmt
    parts: tuple[Placed, ...] = ()
    nest: Nest | None = None
    starts_kernels: bool = False
    """Whether this calls a function that gets kernels of its own."""

    @property
    def is_worthwhile(self) -> bool:
        """Whether something in it is for many threads, or for the host alone."""
        if self.where is Where.NEST or self.starts_kernels or self._is_bound:
            return True
        return any(part.is_worthwhile for part in self.parts)

    @property
    def _is_bound(self) -> bool:
        return self.where is Where.HOST and any(is_only_of_host(part) for part in walk(self.node))

    def threads(self) -> list[Stmt]:
        """The statements in it that one thread runs."""
        if self.where is Where.THREAD:
            return [self.node]
        return [node for part in self.parts for node in part.threads()]

    def regions(self) -> list[Stmt]:
        """The statements in it that run on the device and are not bound yet."""
        if self.where in (Where.THREAD, Where.NEST):
            return [self.node]
        return [node for part in self.parts for node in part.regions()]


def is_only_of_host(node: Node) -> bool:
    """Whether this must stand in code of the host: a loop over threads, a launch, a call out of the module."""
    if isinstance(node, For):
        return node.kind is LoopKind.THREAD
    return isinstance(node, (Launch, DeviceRegion, CallPacked, CallExtern))


def touches_device(node: Node) -> bool:
    """Whether evaluating or running this reads or writes memory of the device."""
    for part in walk(node):
        access = part if isinstance(part, (Load, Store)) else atomic_element(part)
        if access is not None:
            if access.buffer.scope is not Scope.LOCAL:
                return True
        elif isinstance(part, CallFunction) and any(_is_pointer_to_device(arg) for arg in part.args):
            return True
    return False


def _is_pointer_to_device(arg: Expr) -> bool:
    if isinstance(arg, (BufferRef, AddressOf)):
        return arg.buffer.scope is not Scope.LOCAL
    return isinstance(arg, Var) and arg.dtype.is_handle


class Placement:
    """Places the statements of one function."""

    def __init__(
        self, module: Module, function: Function, check_overlap: bool, gets_kernels: Callable[[str], bool]
    ) -> None:
        self.finder = NestFinder(module, function, check_overlap)
        self.only_of_host = functions_only_of_host(module)
        self.gets_kernels = gets_kernels

    def place(self, node: Stmt) -> Placed:
        """Where a statement, and what is in it, runs."""
        stays = any(
            is_only_of_host(part) or (isinstance(part, CallFunction) and part.function in self.only_of_host)
            for part in walk(node)
        )
        if not stays and not touches_device(node):
            return Placed(Where.HOST, node)
        if isinstance(node, Seq):
            return Placed(Where.CONTROL, node, tuple(self.place(part) for part in node.body))
        if isinstance(node, For) and (node.kind is LoopKind.THREAD or not stays):
            return self.loop(node)
        if isinstance(node, (For, While, If, Block)) and (stays or not _head_touches(node)):
            return self.control(node, stays)
        if stays or self.calls_kernels(node):
            return Placed(Where.HOST, node, starts_kernels=not stays)
        return Placed(Where.THREAD, node)

    def calls_kernels(self, node: Stmt) -> bool:
        """Whether this calls a function, for its effect on memory of the device, that is better host code itself."""
        call = node.value if isinstance(node, Evaluate) else None
        if not isinstance(call, CallFunction) or not call.type.is_void:
            return False
        for arg in call.args:
            if arg.dtype.is_handle and not _is_pointer_to_device(arg):
                return False
            if not arg.dtype.is_handle and touches_device(arg):
                return False
        return self.gets_kernels(call.function)

    def loop(self, node: For) -> Placed:
        """A loop over threads, or a loop in which nothing is only for the host."""
        if node.kind is LoopKind.THREAD:
            return Placed(Where.HOST, node)
        if _head_touches(node) or node.kind is LoopKind.VECTORIZED:
            return Placed(Where.THREAD, node)
        nest = self.finder.find(node)
        if nest is not None and not nest.is_short:
            return Placed(Where.NEST, node, nest=nest)
        # Of a few iterations, the nests within are worth more than blocks that share each iteration.
        found = self.control(node, False)
        return found if nest is None or found.is_worthwhile else Placed(Where.NEST, node, nest=nest)

    def control(self, node: For | While | If | Block, stays: bool) -> Placed:
        """A loop, a branch or a block of the host if it pays or must be, else all of it for one thread."""
        found = Placed(Where.CONTROL, node, tuple(self.place(part) for part in bodies(node)))
        if stays:
            return found
        threads = found.threads()
        if isinstance(node, (For, While)):
            # A jump of the device cannot leave or go on with a loop of the host.
            jumps = any(escaping_jumps(part) for part in threads)
            return found if found.is_worthwhile and not jumps else Placed(Where.THREAD, node)
        jumps = bool(escaping_jumps(node)) or any(isinstance(part, Return) for part in walk(node))
        return found if found.is_worthwhile or jumps else Placed(Where.THREAD, node)


def bodies(node: For | While | If | Block) -> list[Stmt]:
    """The statements that a loop, a branch or a block runs."""
    if isinstance(node, If):
        return [node.then] if node.otherwise is None else [node.then, node.otherwise]
    if isinstance(node, Block):
        return [node.body] if node.init is None else [node.init, node.body]
    return [node.body]


def _head_touches(node: For | While | If | Block) -> bool:
    """Whether what decides about running the bodies needs memory of the device."""
    inner = bodies(node)
    heads = [child for child in children(node) if child not in inner]
    return any(touches_device(child) for child in heads)


def functions_only_of_host(module: Module) -> frozenset[str]:
    """The functions that contain something only for the host, directly or through calls."""
    calls: dict[str, set[str]] = {}
    found = set()
    for function in module.functions:
        calls[function.name] = {node.function for node in walk(function.body) if isinstance(node, CallFunction)}
        if any(is_only_of_host(node) for node in walk(function.body)):
            found.add(function.name)
    while True:
        more = {name for name, called in calls.items() if name not in found and called & found}
        if not more:
            return frozenset(found)
        found |= more
