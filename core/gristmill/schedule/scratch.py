"""Values of the host that device code writes: they move into memory of the device, and back into a thread where one suffices.

A local scalar or array, or a name, whose value comes to be on the device cannot be the host's. It becomes an
allocation of the device; where it turns out that a single region of one thread uses it, it is put into that region.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import Any

from gristmill.ir.build import sequence
from gristmill.ir.dtype import HANDLE
from gristmill.ir.effects import is_atomic
from gristmill.ir.expr import Load, Var
from gristmill.ir.functor import Mutator, substitute, walk
from gristmill.ir.memory import Buffer, PointerType, Scope
from gristmill.ir.module import Function
from gristmill.ir.stmt import Allocate, Bind, Block, For, LoopKind, Seq, Stmt, Store, View
from gristmill.schedule.memory_roots import memory_roots


@dataclass
class Moved:
    """A function whose ``values`` (data of local buffers, and names) are in memory of the device."""

    function: Function
    origins: dict[Buffer, Buffer] = field(default_factory=dict)
    """For each new allocation of the device the local one that it stands for."""


def moved_to_device(function: Function, values: AbstractSet[Var]) -> Moved:
    """The function with these values of the host in memory of the device."""
    if not values:
        return Moved(function)
    roots = memory_roots(function)
    data = {derived for derived, root in roots.items() if root in values} | set(values)
    moving = _Moving(function, data)
    body = moving.visit(function.body)
    return Moved(function.with_body(body), moving.origins)


class _Moving(Mutator):
    def __init__(self, function: Function, values: set[Var]) -> None:
        super().__init__()
        self.values = values
        self.data: dict[Var, Var] = {}
        self.names: dict[Var, Buffer] = {}
        self.origins: dict[Buffer, Buffer] = {}
        # Threads of loops that are bound already have instances of their own of local memory outside of them.
        self.bound: set[Var] = set()
        for node in walk(function.body):
            if isinstance(node, For) and node.kind is LoopKind.THREAD:
                self.bound |= {part.buffer.data for part in walk(node) if isinstance(part, (Load, Store))}

    def visit_Var(self, node: Var) -> Any:
        if node in self.names:
            return Load(self.names[node], ())
        if node in self.values and node.pointer is not None:
            if node not in self.data:
                pointer = PointerType(node.pointer.element, Scope.GLOBAL)
                self.data[node] = replace(node, pointer=pointer)
            return self.data[node]
        return node

    def visit_Buffer(self, node: Buffer) -> Any:
        if node.data not in self.values:
            return super().visit_Buffer(node)
        found = replace(self.generic(node), data=self.visit_Var(node.data), scope=Scope.GLOBAL)
        self.buffers[node] = found
        return found

    def visit_Allocate(self, node: Allocate) -> Any:
        found = self.generic(node)
        if found is node:
            return node
        if node.buffer.data in self.values:
            self.origins[found.buffer] = node.buffer
            if node.buffer.data in self.bound:
                return Seq((node, found))
        return found

    def visit_Block(self, node: Block) -> Any:
        found = self.generic(node)
        if any(buffer.data in self.values for buffer in node.allocations):
            kept = tuple(old for old in node.allocations if old.data in self.values and old.data in self.bound)
            found = replace(found, allocations=(*kept, *found.allocations))
        return found

    def visit_Bind(self, node: Bind) -> Any:
        if node.var not in self.values or node.var.dtype.is_handle:
            found = self.generic(node)
            var = self.visit(node.var)
            return found if var is node.var else replace(found, var=var)
        value = self.visit(node.value)
        var = node.var
        data = Var(f"{var.name}_data", HANDLE, PointerType(var.dtype, Scope.GLOBAL))
        buffer = Buffer(var.name, var.dtype, (), data, scope=Scope.GLOBAL)
        local = replace(buffer, data=replace(data, pointer=PointerType(var.dtype, Scope.LOCAL)), scope=Scope.LOCAL)
        self.names[var] = buffer
        self.origins[buffer] = local
        before: tuple[Stmt, ...] = ()
        if is_atomic(value):
            # An atomic operation is the whole value of a binding; nothing else uses the name any more.
            before, value = (Bind(var, value, node.span),), var
        return Seq((*before, Allocate(buffer, node.span), Store(buffer, (), value, node.span)))

    def visit_For(self, node: For) -> Any:
        if node.kind is not LoopKind.THREAD:
            return self.generic(node)
        # Local buffers in there are the threads' own; only names are the host's.
        keeping = _Names(self.names)
        return keeping.visit(node)


class _Names(Mutator):
    """Puts loads in the place of names."""

    def __init__(self, names: dict[Var, Buffer]) -> None:
        super().__init__()
        self.names = names

    def visit_Var(self, node: Var) -> Any:
        return Load(self.names[node], ()) if node in self.names else node


def put_into_threads(body: Stmt, origins: dict[Buffer, Buffer]) -> Stmt:
    """The code, with those of the allocations that one region of one thread alone uses inside of it, as local memory."""
    if not origins:
        return body
    uses: dict[Buffer, int] = {}
    viewed: set[Var] = set()
    _count(body, uses, viewed)
    return _PuttingIn(origins, uses, viewed).visit(body)  # type: ignore[no-any-return]


def _count(body: Stmt, uses: dict[Buffer, int], viewed: set[Var]) -> None:
    for node in walk(body):
        if isinstance(node, View):
            viewed.add(node.buffer.data)
        elif isinstance(node, Var) and node.dtype.is_handle:
            viewed.add(node)
        elif not isinstance(node, Allocate) and isinstance(buffer := getattr(node, "buffer", None), Buffer):
            uses[buffer] = uses.get(buffer, 0) + 1


class _PuttingIn(Mutator):
    def __init__(self, origins: dict[Buffer, Buffer], uses: dict[Buffer, int], viewed: set[Var]) -> None:
        super().__init__()
        self.origins = origins
        self.uses = uses
        self.viewed = viewed

    def visit_Seq(self, node: Seq) -> Any:
        found = super().visit_Seq(node)
        if not isinstance(found, Seq):
            return found
        statements = list(found.body)
        for place, statement in enumerate(statements):
            if isinstance(statement, For) and _is_one_thread(statement):
                statements[place] = self.with_own(statement, statements)
        return sequence(*(part for part in statements if part is not _GONE), span=found.span)

    def with_own(self, region: For, statements: list[Stmt]) -> For:
        inside: dict[Buffer, int] = {}
        _count(region, inside, set())
        own: dict[Buffer, Buffer] = {}
        for place, statement in enumerate(statements):
            if not isinstance(statement, Allocate) or statement.buffer not in self.origins:
                continue
            buffer = statement.buffer
            if buffer.data not in self.viewed and inside.get(buffer, 0) == self.uses.get(buffer, 0) > 0:
                own[buffer] = self.origins[buffer]
                statements[place] = _GONE
        if not own:
            return region
        body = substitute(region.body, {}, own)
        return replace(region, body=sequence(*(Allocate(buffer, buffer.span) for buffer in own.values()), body))


_GONE = Seq(())


def _is_one_thread(node: For) -> bool:
    extent = getattr(node.extent, "value", None)
    return node.kind is LoopKind.THREAD and extent == 1
