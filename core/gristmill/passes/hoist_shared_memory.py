"""Give each launch region its own shared memory, allocated at the region's start.

Before::

    allocate s: float32[64] in shared
    for b in thread(8, "blockIdx.x"):
        for t in thread(64, "threadIdx.x"):
            ... s[t] ...

After::

    for b in thread(8, "blockIdx.x"):
        allocate s: float32[64] in shared
        for t in thread(64, "threadIdx.x"):
            ... s[t] ...

Memory of the scopes ``shared``, ``shared.dyn``, ``warp`` and ``local`` lives no longer than a launch, wherever its
declaration stands: in host code around the loops over threads, or deep inside of them. A declaration that several
regions use becomes one of each. (A local scalar that host code stores to stays: launches are given its value.) A value
that one launch would have to leave in it for another is an error (GM0608), as is host code that uses it, and a size of
shared memory that is known only inside of the launch (GM0609).

Ensures: no declaration of these scopes that a region uses stands outside of it; shared memory is allocated first thing
in a region, once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from gristmill.errors import Diagnostic, Note, UserError
from gristmill.ir.build import sequence
from gristmill.ir.expr import AddressOf, BufferRef, Expr, Load, Var
from gristmill.ir.functor import Mutator, children, substitute, walk
from gristmill.ir.memory import Buffer, Scope
from gristmill.ir.module import Function, Module
from gristmill.ir.node import Node
from gristmill.ir.span import place_of
from gristmill.ir.stmt import Allocate, Bind, For, LoopKind, Seq, Stmt, Store, View, While
from gristmill.passes.launch_regions import has_regions, is_region, launch_regions
from gristmill.passes.manager import Pass
from gristmill.passes.renewal import defined_variables

SHARED_SCOPES = frozenset((Scope.SHARED, Scope.SHARED_DYNAMIC, Scope.WARP))


@dataclass(frozen=True)
class HoistSharedMemory(Pass):
    """Allocate shared memory at the start of the launch region that uses it."""

    def run(self, module: Module) -> Module:
        return module.with_functions(hoist_shared_memory(function) for function in module.functions)


def hoist_shared_memory(function: Function) -> Function:
    """The function with the memory of each launch in its region; the same object if it is there already.

    Raises UserError (GM0608, GM0609).
    """
    if not has_regions(function):
        return function
    outer = _Outer(function)
    outer.check()
    return function.with_body(_Hoisting(outer).visit(function.body))


class _Outer:
    """What stands outside of the regions: declarations of their memory, and uses of it."""

    def __init__(self, function: Function) -> None:
        self.passed = passed_scalars(function)
        self.definitions: list[Allocate | View] = []
        self.of_data: dict[Var, Allocate | View] = {}
        self.regions = launch_regions(function.body)
        self.repeated: set[For] = set()
        self.host_uses: dict[Var, Node] = {}
        self._visit(function.body, False)
        self.users = {
            region: {root for data in used_data(region) if (root := self.root(data)) is not None}
            for region in self.regions
        }

    def _visit(self, node: Node, repeated: bool) -> None:
        if isinstance(node, For) and is_region(node):
            if repeated:
                self.repeated.add(node)
            return
        if isinstance(node, (Allocate, View)) and node.buffer.data in self.passed:
            return
        if isinstance(node, (Allocate, View)) and node.buffer.scope is not Scope.GLOBAL:
            self.definitions.append(node)
            self.of_data.setdefault(node.buffer.data, node)
        elif isinstance(node, (Load, Store, AddressOf, BufferRef)) and node.buffer.data in self.of_data:
            self.host_uses.setdefault(node.buffer.data, node)
        for child in children(node):
            self._visit(child, repeated or isinstance(node, (For, While)))

    def root(self, data: Var) -> Allocate | None:
        """The declaration outside of the regions whose memory a pointer points into."""
        while (found := self.of_data.get(data)) is not None:
            if isinstance(found, Allocate):
                return found
            source = (
                next((part for part in walk(found.source) if isinstance(part, Var)), None) if found.source else None
            )
            taken = (
                next((part for part in walk(found.source) if isinstance(part, AddressOf)), None)
                if found.source
                else None
            )
            data = taken.buffer.data if taken is not None else source if source is not None else data
            if data is found.buffer.data:
                return None
        return None

    def check(self) -> None:
        for data, use in self.host_uses.items():
            found = self.root(data)
            if found is not None and found.buffer.scope in SHARED_SCOPES:
                raise UserError(
                    Diagnostic(
                        "GM0608",
                        f"host code uses `{found.buffer.name}`, which is {found.buffer.scope.value} memory "
                        "and lives only while a kernel runs",
                        place_of(getattr(use, "span", None)),
                        hint="use it inside of the loops over threads, or give it global memory",
                        notes=_declared(found),
                    )
                )
        for region, roots in self.users.items():
            for root in roots:
                others = [other for other in self.regions if other is not region and root in self.users[other]]
                on_host = any(self.root(data) is root for data in self.host_uses)
                if not others and not on_host and region not in self.repeated:
                    continue
                read = self.first_read(region, root)
                if read is not None:
                    raise _flows(root, read, others)

    def first_read(self, region: For, root: Allocate) -> Node | None:
        """A read of the memory that no write in the region can come before."""
        written: set[Node] = set()
        any_before = False
        reads: list[tuple[Node, frozenset[Node]]] = []
        for writes, node, data, loops in accesses_in_order(region):
            if self.root(data) is not root:
                continue
            if writes:
                any_before = True
                written |= loops
            elif not any_before:
                reads.append((node, loops))
        return next((node for node, loops in reads if not loops & written), None)


def passed_scalars(function: Function) -> set[Var]:
    """The data of local scalars that host code stores to: a launch is given their values, so they stay where they are."""
    declared: set[Var] = set()
    stored: set[Var] = set()
    work: list[Node] = [function.body]
    while work:
        node = work.pop()
        if isinstance(node, For) and is_region(node):
            continue
        if isinstance(node, Allocate) and node.buffer.scope is Scope.LOCAL and node.buffer.rank == 0:
            declared.add(node.buffer.data)
        elif isinstance(node, Store):
            stored.add(node.buffer.data)
        work.extend(children(node))
    return declared & stored


def accesses_in_order(
    node: Node, loops: frozenset[Node] = frozenset()
) -> Iterator[tuple[bool, Node, Var, frozenset[Node]]]:
    """Writes and reads under a node in the order of the program: whether it writes, where, the memory's pointer, and
    the loops around it that repeat. What a call is given counts as written."""
    inside = loops
    if isinstance(node, While) or (isinstance(node, For) and node.kind is not LoopKind.THREAD):
        inside = loops | {node}
    for child in children(node):
        yield from accesses_in_order(child, inside)
    if isinstance(node, Load):
        yield False, node, node.buffer.data, loops
    elif isinstance(node, (Store, AddressOf, BufferRef)):
        yield True, node, node.buffer.data, loops


def used_data(node: Node) -> set[Var]:
    """The pointers through which code reaches memory."""
    found: set[Var] = set()
    for part in walk(node):
        if isinstance(part, (Load, Store, AddressOf, BufferRef, View)):
            found.add(part.buffer.data)
        elif isinstance(part, Var) and part.dtype.is_handle:
            found.add(part)
    return found


def _declared(found: Allocate) -> tuple[Note, ...]:
    return (Note(f"`{found.buffer.name}` is declared here", place_of(found.span)),) if found.span is not None else ()


def _flows(root: Allocate, read: Node, others: list[For]) -> UserError:
    name, scope = root.buffer.name, root.buffer.scope.value
    where = "another launch" if others else "an earlier launch, or by the host"
    return UserError(
        Diagnostic(
            "GM0608",
            f"`{name}` is {scope} memory and is read here with nothing written to it in this launch; "
            f"what was written in {where} is gone",
            place_of(getattr(read, "span", None)),
            label="no value comes here",
            hint="keep what one launch leaves for another in global memory",
            notes=_declared(root),
        )
    )


class _Hoisting(Mutator):
    def __init__(self, outer: _Outer) -> None:
        super().__init__()
        self.outer = outer
        of_host = {self.outer.root(data) for data in outer.host_uses}
        self.kept = {found for found in of_host if found is not None}
        """Declarations that the host uses itself."""
        self.places: dict[Var, int] = {}
        for roots in outer.users.values():
            for root in roots:
                self.places[root.buffer.data] = self.places.get(root.buffer.data, 0) + 1

    def moves(self, node: Allocate | View) -> bool:
        """Whether a declaration of the host leaves its place."""
        root = self.outer.root(node.buffer.data)
        return root is not None and root not in self.kept and root.buffer.data in self.places

    def visit_Allocate(self, node: Allocate) -> Any:
        return Seq(()) if node in self.outer.definitions and self.moves(node) else node

    def visit_View(self, node: View) -> Any:
        return Seq(()) if node in self.outer.definitions and self.moves(node) else node

    def visit_For(self, node: For) -> Any:
        if not is_region(node):
            return self.generic(node)
        used = used_data(node)
        taken: list[Allocate | View] = []
        for definition in reversed(self.outer.definitions):
            data = definition.buffer.data
            if data in used:
                taken.insert(0, definition)
                if isinstance(definition, View) and definition.source is not None:
                    used |= used_data(definition.source)
        alone = all(
            self.moves(found) and self.places.get(_root_data(self.outer, found)) == 1 for found in taken
        )  # fmt: skip
        body = node.body
        if taken and not alone:
            copying = _Copying(sequence(*taken))
            taken = [copying.visit(found) for found in taken]
            body = copying.visit(body)
        body = _first_thing(sequence(*taken, body) if taken else body, node.var)
        return node if body is node.body else replace(node, body=body)


def _root_data(outer: _Outer, node: Allocate | View) -> Var:
    root = outer.root(node.buffer.data)
    return node.buffer.data if root is None else root.buffer.data


class _Copying(Mutator):
    """Gives the declarations, and only them, new names."""

    def __init__(self, declarations: Stmt) -> None:
        super().__init__()
        self.variables = {var: replace(var) for var in defined_variables(declarations)}
        self.declared = {node.buffer for node in walk(declarations) if isinstance(node, (Allocate, View))}

    def visit_Var(self, node: Var) -> Any:
        return self.variables.get(node, node)

    def visit_Buffer(self, node: Buffer) -> Any:
        if node in self.declared:
            found = replace(self.generic(node), data=self.visit(node.data))
            self.buffers[node] = found
            return found
        return super().visit_Buffer(node)


def _first_thing(body: Stmt, coordinate: Var) -> Stmt:
    """The body of a region, a loop over ``coordinate``, with its shared memory allocated before all else."""
    inner = [node for node in walk(body) if isinstance(node, Allocate) and node.buffer.scope in SHARED_SCOPES]
    bindings = {node.var: node.value for node in walk(body) if isinstance(node, Bind)}
    defined = defined_variables(body) | {coordinate}
    shapes = [tuple(_outside(size, bindings, defined, node) for size in node.buffer.shape) for node in inner]
    parts = body.body if isinstance(body, Seq) else (body,)
    if all(any(part is found for found in inner) for part in parts[: len(inner)]) and len(parts) >= len(inner):
        return body
    moving = _Moving()
    first: list[Stmt] = []
    for node, shape in zip(inner, shapes, strict=True):
        same = all(a is b for a, b in zip(shape, node.buffer.shape, strict=True))
        buffer = node.buffer if same else replace(node.buffer, shape=shape)
        if not same:
            moving.buffers[node.buffer] = buffer
        first.append(node if same else replace(node, buffer=buffer))
        moving.moved.add(node)
    return sequence(*first, moving.visit(body))


def _outside(size: Expr, bindings: dict[Var, Expr], defined: set[Var], node: Allocate) -> Expr:
    """A size in terms of what is known before the launch."""
    for _ in range(len(bindings) + 1):
        inner = {part: bindings[part] for part in walk(size) if isinstance(part, Var) and part in bindings}
        if not inner:
            break
        size = substitute(size, inner)
    unknown = next((part for part in walk(size) if isinstance(part, Load) or part in defined), None)
    if unknown is not None:
        what = unknown.buffer.name if isinstance(unknown, Load) else getattr(unknown, "name", "")
        raise UserError(
            Diagnostic(
                "GM0609",
                f"the size of `{node.buffer.name}` depends on `{what}`, which is known only inside of the launch",
                place_of(node.span or node.buffer.span),
                hint="the launch says how much shared memory there is: use sizes, scalars and constants",
                notes=() if node.span is None else node.span.notes(),
            )
        )
    return size


class _Moving(Mutator):
    def __init__(self) -> None:
        super().__init__()
        self.moved: set[Allocate] = set()

    def visit_Allocate(self, node: Allocate) -> Any:
        return Seq(()) if node in self.moved else self.generic(node)
