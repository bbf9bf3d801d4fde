"""What is known of a module before code is written for it: barriers, thread axes, blocks that reduce over threads, and
which locals are plain variables."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from gristmill.ir.effects import is_collective
from gristmill.ir.expr import AddressOf, BufferRef, CallFunction, Expr, Load, Var
from gristmill.ir.functor import children, substitute, walk
from gristmill.ir.memory import Buffer, Region, Scope
from gristmill.ir.module import Function, Module
from gristmill.ir.node import Node
from gristmill.ir.stmt import (
    Allocate,
    AxisKind,
    Barrier,
    Bind,
    Block,
    Break,
    DeviceRegion,
    For,
    LoopKind,
    MatchBuffer,
    Return,
    Store,
    ThreadAxis,
    View,
    While,
)


def functions_that_wait(module: Module) -> frozenset[str]:
    """The functions in which a thread may wait for others, directly or through calls."""
    calls: dict[str, set[str]] = {}
    found = set()
    for function in module.functions:
        calls[function.name] = set()
        for node in walk(function.body):
            if isinstance(node, Barrier) or is_collective(node):
                found.add(function.name)
            elif isinstance(node, CallFunction):
                calls[function.name].add(node.function)
    changed = True
    while changed:
        more = {name for name, called in calls.items() if name not in found and called & found}
        found |= more
        changed = bool(more)
    return frozenset(found)


def may_wait(node: Node, waiting: frozenset[str]) -> bool:
    """Whether a barrier or an exchange between threads may be reached in the code."""
    return any(
        isinstance(part, Barrier)
        or is_collective(part)
        or (isinstance(part, CallFunction) and part.function in waiting)
        for part in walk(node)
    )


def leaves_early(body: Node) -> bool:
    """Whether a loop with this body may end before its last iteration."""
    stack = [(body, 0)]
    while stack:
        node, depth = stack.pop()
        if isinstance(node, Return) or (isinstance(node, Break) and depth == 0):
            return True
        inner = depth + isinstance(node, (For, While))
        if not isinstance(node, Expr):
            stack.extend((child, inner) for child in children(node))
    return False


@dataclass(slots=True)
class LaunchPlan:
    """The axes of a launch in order of first appearance, with the extents that the loops state.

    ``unknown`` are loops whose extent is known only inside of the launch.
    """

    extents: dict[ThreadAxis, list[tuple[For, Expr]]] = field(default_factory=dict)
    unknown: list[For] = field(default_factory=list)


def launch_plan(region: Node) -> LaunchPlan:
    """The loops over threads of a launch. Bindings inside of it that an extent uses are put in their place."""
    plan = LaunchPlan()
    bindings: dict[Var, Expr] = {}
    inside: set[Node] = set()
    for node in walk(region):
        if isinstance(node, Bind):
            bindings[node.var] = substitute(node.value, bindings)
        elif isinstance(node, For):
            inside.add(node.var)
        elif isinstance(node, (Allocate, View, MatchBuffer)):
            inside.add(node.buffer)
        elif isinstance(node, Block):
            inside.update(node.allocations)
            for axis in node.axes:
                bindings[axis.var] = substitute(axis.value, bindings)
        if isinstance(node, For) and node.kind is LoopKind.THREAD:
            assert node.thread is not None
            extent = substitute(node.extent, bindings)
            if any(part in inside or getattr(part, "buffer", None) in inside for part in walk(extent)):
                plan.unknown.append(node)
            else:
                plan.extents.setdefault(node.thread, []).append((node, extent))
    return plan


def reductions_over_threads(function: Function) -> dict[Block, tuple[ThreadAxis, ...]]:
    """The blocks with reduce axes bound to ``threadIdx``, each with the axes of the launch that those depend on."""
    used: dict[Var, frozenset[ThreadAxis]] = {}
    found: dict[Block, tuple[ThreadAxis, ...]] = {}

    def axes_in(expr: Expr) -> frozenset[ThreadAxis]:
        return frozenset().union(*(used[part] for part in walk(expr) if isinstance(part, Var) and part in used))

    for node in walk(function.body):
        if isinstance(node, For) and node.thread is not None:
            used[node.var] = frozenset((node.thread,))
        elif isinstance(node, Bind):
            used[node.var] = axes_in(node.value)
        elif isinstance(node, Block):
            reduced: frozenset[ThreadAxis] = frozenset()
            for axis in node.axes:
                used[axis.var] = axes_in(axis.value)
                if axis.kind is AxisKind.REDUCE:
                    reduced |= used[axis.var]
            threads = tuple(thread for thread in ThreadAxis if thread in reduced and not thread.is_block)
            if threads:
                found[node] = threads
    return found


def used_memory(region: Node) -> set[Node]:
    """The buffers and the data pointers that code uses."""
    found: set[Node] = set()
    for node in walk(region):
        if isinstance(node, (Load, Store, AddressOf, BufferRef, Region)):
            found |= {node.buffer, node.buffer.data}
        elif isinstance(node, View):
            found.add(node.buffer.data)
        elif isinstance(node, Var):
            found.add(node)
    return found


def plain_scalars(function: Function) -> frozenset[Buffer]:
    """The local buffers of rank 0 that a Python variable can stand for.

    Those are never viewed, passed or pointed to, and used only where they are allocated: not from iterations or
    threads that run at the same time, nor in lock step.
    """
    home: dict[Buffer, int] = {}
    refused: set[Buffer] = set()
    data_of: dict[Var, Buffer] = {}
    regions = 0
    in_lock_step: set[int] = set()
    stack: list[tuple[Node, int]] = [(function.body, 0)]
    while stack:
        node, region = stack.pop()
        if isinstance(node, For) and node.kind not in (LoopKind.SERIAL, LoopKind.UNROLLED):
            # A number of its own for each loop of this kind: scalars allocated inside live and die in it.
            regions += 1
            if node.kind is LoopKind.VECTORIZED:
                in_lock_step.add(regions)
            stack.extend(_children_of_loop(node, region, regions))
            continue
        if isinstance(node, DeviceRegion):
            regions += 1
            stack.append((node.body, regions))
            continue
        allocated: Iterable[Buffer] = ()
        if isinstance(node, Allocate):
            allocated = (node.buffer,)
        elif isinstance(node, Block):
            allocated = node.allocations
        for buffer in allocated:
            plain = buffer.rank == 0 and buffer.dtype.lanes == 1 and buffer.offset is None
            if plain and buffer.scope in (Scope.LOCAL, Scope.GLOBAL) and region not in in_lock_step:
                home[buffer] = region
                data_of[buffer.data] = buffer
        if isinstance(node, (Load, Store)):
            if home.get(node.buffer, region) != region:
                refused.add(node.buffer)
        elif isinstance(node, (AddressOf, BufferRef)):
            refused.add(node.buffer)
        elif isinstance(node, MatchBuffer):
            refused.add(node.region.buffer)
        elif isinstance(node, View):
            if node.buffer.data in data_of:
                refused.add(data_of[node.buffer.data])
        elif isinstance(node, Var) and node in data_of:
            refused.add(data_of[node])
        if not isinstance(node, Region):
            stack.extend((child, region) for child in reversed(list(children(node))))
    return frozenset(home) - refused


def _children_of_loop(node: For, outside: int, inside: int) -> list[tuple[Node, int]]:
    return [(node.body, inside), (node.extent, outside), (node.minimum, outside)]
