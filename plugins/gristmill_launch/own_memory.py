"""Memory that a device region uses and that is declared around it: shared, warp and local memory belongs to the launch.

A launch has instances of its own of such memory, so its declaration moves into the region. A local scalar is a copy
that holds at first what the host gave it: the host reads it before the launch and passes the value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from gristmill.errors import Diagnostic, UserError
from gristmill.ir.build import sequence
from gristmill.ir.expr import AddressOf, BufferRef, Expr, Load, Var
from gristmill.ir.functor import USES_BUFFER, Mutator, substitute, walk
from gristmill.ir.memory import Buffer, Scope
from gristmill.ir.module import Function
from gristmill.ir.node import Node
from gristmill.ir.span import place_of
from gristmill.ir.stmt import Allocate, Bind, DeviceRegion, For, Seq, Stmt, Store, View
from gristmill_launch.sides import is_thread_loop, walk_host_code


@dataclass(frozen=True, slots=True)
class HostMemory:
    """What the host code of a function declares outside of global memory, in order, and what it stores to."""

    declared: Mapping[Buffer, Allocate | View]
    written: Mapping[Var, Node]
    """Data variables with the first host code that stores through them, or hands them on."""

    @classmethod
    def of(cls, function: Function) -> HostMemory:
        declared: dict[Buffer, Allocate | View] = {}
        written: dict[Var, Node] = {}
        for node in walk_host_code(function.body):
            if isinstance(node, (Allocate, View)) and node.buffer.scope is not Scope.GLOBAL:
                declared[node.buffer] = node
            elif isinstance(node, (Store, AddressOf, BufferRef)) and node.buffer.scope is not Scope.GLOBAL:
                written.setdefault(node.buffer.data, node)
        return cls(declared, written)


@dataclass(slots=True)
class OwnedRegion:
    """A region whose own memory is declared in it, and what the host evaluates before its launch."""

    body: Stmt
    before: list[Stmt] = field(default_factory=list)


def with_own_memory(region: DeviceRegion, memory: HostMemory) -> OwnedRegion:
    """The region with declarations of its own for what it uses of the launch's memory.

    Raises UserError (GM0656) for memory of more than one element, or of a scope that threads share, that the host
    stores to: its values do not reach the launch.
    """
    needed = _needed(region, memory)
    if not needed:
        return OwnedRegion(region.body)
    found = OwnedRegion(region.body)
    declarations: list[Stmt] = []
    buffers: dict[Buffer, Buffer] = {}
    variables: dict[Var, Expr] = {}
    values: dict[Buffer, Var] = {}
    given: dict[Buffer, Var] = {}
    for buffer in needed:
        statement = memory.declared[buffer]
        is_given = isinstance(statement, Allocate) and buffer.data in memory.written
        if is_given and not (buffer.scope is Scope.LOCAL and buffer.rank == 0):
            raise _not_passed(buffer, memory.written[buffer.data], region)
        if is_given:
            given[buffer] = value = Var(buffer.name, buffer.dtype, None, buffer.span)
            found.before.append(Bind(value, Load(buffer, (), statement.span), statement.span))
            if _is_only_loaded(buffer, region):
                values[buffer] = value
                continue
        own = _renewed(buffer, variables)
        buffers[buffer] = own
        if isinstance(statement, Allocate):
            declarations.append(Allocate(own, statement.span))
        else:
            source = None if statement.source is None else substitute(statement.source, variables, buffers)
            declarations.append(View(own, source, statement.span))
        if is_given:
            declarations.append(Store(own, (), value, statement.span))
    body = _Owning(variables, buffers, values).visit(_with_given_extents(region.body, given))
    found.body = sequence(*declarations, body, span=region.body.span)
    return found


def _needed(region: DeviceRegion, memory: HostMemory) -> list[Buffer]:
    """What the region uses of the host's declarations, with what those are views of, in order of declaration."""
    used = set(_used([region.body]))
    for buffer, statement in reversed(list(memory.declared.items())):
        if buffer in used or buffer.data in used:
            used |= {buffer, buffer.data}
            if isinstance(statement, View):
                used.update(_used([statement]))
    return [buffer for buffer in memory.declared if buffer in used]


def _used(nodes: Iterable[Node]) -> Iterable[Node]:
    for root in nodes:
        for node in walk(root):
            if isinstance(node, USES_BUFFER):
                yield from (node.buffer, node.buffer.data)
            elif isinstance(node, View):
                yield node.buffer.data
            elif isinstance(node, Var):
                yield node


def _renewed(buffer: Buffer, variables: dict[Var, Expr]) -> Buffer:
    data = variables.setdefault(buffer.data, replace(buffer.data))
    assert isinstance(data, Var)
    return replace(substitute(buffer, variables), data=data)


def _is_only_loaded(buffer: Buffer, region: DeviceRegion) -> bool:
    for node in walk(region.body):
        if isinstance(node, USES_BUFFER) and node.buffer.data is buffer.data and not isinstance(node, Load):
            return False
        if node is buffer.data or (isinstance(node, View) and node.buffer.data is buffer.data):
            return False
    return True


def without_unused(body: Stmt) -> Stmt:
    """The host code without declarations of the launches' memory that it does not use itself."""
    used: set[Node] = set()
    views: list[View] = []
    for node in walk(body):
        if isinstance(node, USES_BUFFER):
            used |= {node.buffer, node.buffer.data}
        elif isinstance(node, View) and node.buffer.scope is not Scope.GLOBAL:
            views.append(node)
        elif isinstance(node, (View, Var)):
            used.add(node.buffer.data if isinstance(node, View) else node)
    for view in reversed(views):
        if view.buffer in used:
            used.add(view.buffer.data)
    return _Dropping(used).visit(body)  # type: ignore[no-any-return]


class _Dropping(Mutator):
    def __init__(self, used: set[Node]) -> None:
        super().__init__()
        self.used = used

    def visit_Expr(self, node: Expr) -> Any:
        return node

    def visit_Allocate(self, node: Allocate) -> Any:
        if node.buffer.scope is Scope.GLOBAL or node.buffer in self.used or node.buffer.data in self.used:
            return node
        return Seq(())

    def visit_View(self, node: View) -> Any:
        return node if node.buffer.scope is Scope.GLOBAL or node.buffer in self.used else Seq(())


def _with_given_extents(body: Stmt, given: Mapping[Buffer, Var]) -> Stmt:
    """The body whose loops over threads take what the host gave, not the thread's copy: extents are evaluated before."""
    return _Extents(given).visit(body) if given else body


class _Extents(Mutator):
    def __init__(self, given: Mapping[Buffer, Var]) -> None:
        super().__init__()
        self.loads = _Owning({}, {}, given)

    def visit_Expr(self, node: Expr) -> Any:
        return node

    def visit_For(self, node: For) -> Any:
        found = self.generic(node)
        if not is_thread_loop(node):
            return found
        extent = self.loads.visit(node.extent)
        return found if extent is node.extent else replace(found, extent=extent)


class _Owning(Mutator):
    """Puts the region's own memory, and values that the host has read, in the place of what the host declares."""

    def __init__(
        self, variables: Mapping[Var, Expr], buffers: Mapping[Buffer, Buffer], values: Mapping[Buffer, Var]
    ) -> None:
        super().__init__()
        self.variables = variables
        self.buffers.update(buffers)
        self.values = values

    def visit_Var(self, node: Var) -> Any:
        return self.variables.get(node, node)

    def visit_Load(self, node: Load) -> Any:
        return self.values[node.buffer] if node.buffer in self.values else self.generic(node)


def _not_passed(buffer: Buffer, writing: Node, region: DeviceRegion) -> UserError:
    what = f"{buffer.scope.value} memory"
    return UserError(
        Diagnostic(
            "GM0656",
            f"`{buffer.name}` is {what} that code of the host stores to, and a launch uses it; each launch has its own",
            place_of(writing.span) or place_of(region.span),
            label="stored by the host",
            hint="store to it inside of the launch, or use global memory, which lasts from one launch to the next",
        )
    )
