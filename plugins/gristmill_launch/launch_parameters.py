"""What a launch must know beforehand of the code that it starts: axes, extents, bytes of dynamic shared memory.

Loops over threads state their extents in terms of what stands around them. The host evaluates them before the launch,
so bindings of the code itself that they use are put in their place, transitively; what only the launch could know
(a loop's variable, a value in memory of the device) is refused.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NoReturn

from gristmill.errors import Diagnostic, Note, UserError
from gristmill.ir.build import cast, constant_value, equal
from gristmill.ir.dtype import INT64
from gristmill.ir.expr import AddressOf, BufferRef, CallExtern, CallPacked, Expr, Load, Sub, Var
from gristmill.ir.functor import children, substitute, walk
from gristmill.ir.memory import Buffer, Scope
from gristmill.ir.module import Function
from gristmill.ir.node import Node
from gristmill.ir.printer import print_node
from gristmill.ir.span import Span, place_of
from gristmill.ir.stmt import Allocate, Assert, Bind, Block, For, LoopKind, MatchBuffer, Stmt, ThreadAxis, View
from gristmill.passes.ranges import RangeMutator
from gristmill.passes.shared_layout import saturated_bytes

_INLINED_NODES = 200
"""A binding of more nodes is evaluated under its name, so that chains of bindings do not multiply."""


@dataclass(slots=True)
class LaunchPlan:
    """The axes in order of first appearance with their extents, and what to evaluate and check before the launch."""

    axes: list[ThreadAxis] = field(default_factory=list)
    extents: list[Expr] = field(default_factory=list)
    dynamic_shared: Expr | None = None
    before: list[Stmt] = field(default_factory=list)


def plan_launch(function: Function, region: Stmt) -> LaunchPlan:
    """The plan for a region of a function. Its expressions are over what is visible outside of the region.

    A size of dynamic shared memory that int64 does not hold is a very large one, and one with a negative dimension is
    negative: a launch refuses both.

    Raises UserError: GM0652 for extents of one axis that differ, GM0653 for what is known only within the launch,
    GM0654 for what lies in memory of the device, GM0657 for a second allocation of dynamic shared memory.
    """
    return _Planner(function, region).plan


class _Planner:
    def __init__(self, function: Function, region: Stmt) -> None:
        self.plan = LaunchPlan()
        self.bindings: dict[Var, Expr] = {}
        self.named: dict[Var, Bind] = {}
        self.inside: set[Node] = set()
        self.loops: dict[ThreadAxis, For] = {}
        self.dynamic: Buffer | None = None
        self.simplifier = RangeMutator(function).simplifier
        self.wanted = _wanted_bindings(region)
        for node in walk(region):
            self.meet(node)

    def meet(self, node: Node) -> None:
        if isinstance(node, Bind):
            self.bind(node)
        elif isinstance(node, For):
            self.inside.add(node.var)
            if node.kind is LoopKind.THREAD:
                self.loop(node)
        elif isinstance(node, Block):
            for axis in node.axes:
                self.bindings[axis.var] = substitute(axis.value, self.bindings)
            self.inside.update(node.allocations)
            for buffer in node.allocations:
                self.allocation(buffer, buffer.span or node.span)
        elif isinstance(node, (Allocate, View, MatchBuffer)):
            self.inside |= {node.buffer}
            if isinstance(node, Allocate):
                self.allocation(node.buffer, node.span)

    def bind(self, node: Bind) -> None:
        if node.var.type.is_handle:
            self.inside.add(node.var)
            return
        if node.var not in self.wanted:
            return
        value = substitute(node.value, self.bindings)
        if sum(1 for _ in walk(value)) <= _INLINED_NODES:
            self.bindings[node.var] = value
            return
        name = Var(node.var.name, node.var.type)
        self.named[name] = Bind(name, value, node.span)
        self.bindings[node.var] = name

    def known_before(self, expr: Expr, what: str, span: Span | None) -> Expr:
        """The expression in terms of what is known before the launch; what it needs evaluated is put into the plan."""
        found = substitute(expr, self.bindings)
        self.need(found, what, span)
        return self.simplifier.simplify(found)

    def need(self, expr: Expr, what: str, span: Span | None) -> None:
        stack: list[Node] = [expr]
        while stack:
            node = stack.pop()
            if isinstance(node, Var) and node in self.named:
                bind = self.named.pop(node)
                self.need(bind.value, what, span)
                self.plan.before.append(bind)
            elif node in self.inside or getattr(node, "buffer", None) in self.inside:
                self.refuse_inside(node, what, span)
            elif (
                (isinstance(node, (Load, AddressOf, BufferRef)) and node.buffer.scope is not Scope.LOCAL)
                or isinstance(node, (CallPacked, CallExtern))
                or (isinstance(node, Var) and node.type.is_handle)
            ):
                self.refuse_memory(node, what, span)
            stack.extend(children(node))

    def refuse_inside(self, node: Node, what: str, span: Span | None) -> NoReturn:
        name = node.name if isinstance(node, Var) else getattr(node, "buffer").name  # noqa: B009
        raise UserError(
            Diagnostic(
                "GM0653",
                f"{what} depends on `{name}`, which only the launch itself computes",
                place_of(span),
                label="must be known before the launch",
                hint="use sizes, scalar parameters and constants, and an `if` for threads that have nothing to do",
            )
        )

    def refuse_memory(self, node: Node, what: str, span: Span | None) -> NoReturn:
        raise UserError(
            Diagnostic(
                "GM0654",
                f"{what} reads `{print_node(node)}` in memory of the device, which the host can't read",
                place_of(span),
                label="evaluated by the host, before the launch",
                hint="pass the value as a scalar parameter, or launch for the greatest extent and put an `if` inside",
            )
        )

    def loop(self, node: For) -> None:
        axis = node.thread
        assert axis is not None
        extent = self.known_before(node.extent, f"the extent of the loop over `{axis.value}`", _span_of_extent(node))
        first = self.loops.get(axis)
        if first is None:
            self.loops[axis] = node
            self.plan.axes.append(axis)
            self.plan.extents.append(extent)
            return
        other = self.plan.extents[self.plan.axes.index(axis)]
        a, b = cast(other, INT64), cast(extent, INT64)
        difference = constant_value(self.simplifier.simplify(Sub(a, b)))
        if difference is None:
            message = (f"loops over {axis.value} in one launch have the extents ", other, " and ", extent)
            self.plan.before.append(Assert(equal(a, b), "ValueError", message, node.span))
        elif difference:
            self.refuse_unequal(axis, first, other, node, extent)

    def refuse_unequal(self, axis: ThreadAxis, first: For, other: Expr, node: For, extent: Expr) -> NoReturn:
        raise UserError(
            Diagnostic(
                "GM0652",
                f"loops over `{axis.value}` in one launch have the extents {_text(other)} and {_text(extent)}; "
                f"they must be equal",
                place_of(_span_of_extent(node)),
                label=f"extent {_text(extent)} here",
                hint="use one extent, and an `if` for threads that have nothing to do",
                notes=(Note(f"extent {_text(other)} here", place_of(_span_of_extent(first))),),
            )
        )

    def allocation(self, buffer: Buffer, span: Span | None) -> None:
        if buffer.scope is not Scope.SHARED_DYNAMIC:
            return
        if self.dynamic is not None:
            raise UserError(
                Diagnostic(
                    "GM0657",
                    f"`{buffer.name}` is a second allocation of dynamic shared memory beside `{self.dynamic.name}`",
                    place_of(span),
                    label="the second",
                    hint="make one allocation, and views of its parts",
                    notes=(Note(f"`{self.dynamic.name}` is here", place_of(self.dynamic.span)),),
                )
            )
        self.dynamic = buffer
        what = f"the size of `{buffer.name}`"
        shape = tuple(self.known_before(extent, what, span) for extent in buffer.shape)
        size = saturated_bytes(replace(buffer, shape=shape), self.simplifier)
        self.plan.dynamic_shared = self.known_before(size, what, span)


def _wanted_bindings(region: Stmt) -> set[Var]:
    """The variables that extents and sizes use, directly or through the bindings of the region."""
    bindings: dict[Var, Expr] = {}
    waiting: list[Node] = []
    for node in walk(region):
        if isinstance(node, Bind):
            bindings[node.var] = node.value
        elif isinstance(node, For) and node.kind is LoopKind.THREAD:
            waiting.append(node.extent)
        elif isinstance(node, Allocate) and node.buffer.scope is Scope.SHARED_DYNAMIC:
            waiting += node.buffer.shape
        elif isinstance(node, Block):
            # Its axes are names too, and its allocations may be of dynamic shared memory.
            waiting += [*(axis.value for axis in node.axes), *(size for one in node.allocations for size in one.shape)]
    found: set[Var] = set()
    while waiting:
        for node in walk(waiting.pop()):
            if isinstance(node, Var) and node not in found:
                found.add(node)
                if node in bindings:
                    waiting.append(bindings[node])
    return found


def _span_of_extent(loop: For) -> Span | None:
    # The span of a variable is where it is defined.
    return loop.span if isinstance(loop.extent, Var) else loop.extent.span or loop.span


def _text(extent: Expr) -> str:
    value = constant_value(extent)
    return str(value) if value is not None else f"`{print_node(extent)}`"
