"""Reading a launch region: where each access to memory that threads of a block share goes, and under which conditions.

Names bound to expressions are put in their place, coordinates of threads are one variable an axis, and a value read from
memory is a variable of its own, another one after each write to that memory. So two indices can be compared wherever they
stand.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from gristmill.arith.interval import Interval
from gristmill.ir.build import cast, const, constant_value
from gristmill.ir.dtype import INT64
from gristmill.ir.effects import atomic_element, is_atomic, is_collective, is_matrix, matrix_element, written_element
from gristmill.ir.expr import (
    Add,
    AddressOf,
    BufferRef,
    CallExtern,
    CallFunction,
    CallPacked,
    Expr,
    Load,
    Ramp,
    Var,
)
from gristmill.ir.functor import Mutator, children, walk
from gristmill.ir.memory import Buffer, Scope
from gristmill.ir.module import Function
from gristmill.ir.span import Span
from gristmill.ir.stmt import (
    Allocate,
    Barrier,
    Bind,
    Continue,
    Evaluate,
    For,
    If,
    LoopKind,
    Seq,
    Stmt,
    Store,
    ThreadAxis,
    View,
    While,
)
from gristmill.passes.divergence import Divergence
from gristmill.passes.element_forms import FAR, FormReader
from gristmill.passes.index_facts import Fact, facts_of
from gristmill.passes.layout import element_offset, plus, times
from gristmill.passes.ranges import RangeMutator
from gristmill.passes.region_tree import Access, Branch, Chain, Fence, Leaf, Loop
from gristmill.passes.shared_layout import bytes_of, element_bytes
from gristmill.passes.written_memory import written_memory


class RegionReader:
    """Builds the tree of one launch region."""

    def __init__(
        self, function: Function, region: Stmt, scopes: frozenset[Scope], steady: frozenset[str] = frozenset()
    ) -> None:
        self.scopes = scopes
        self.divergence = Divergence(function, region, steady)
        self.ranges = RangeMutator(function)
        self.bounds = self.ranges.simplifier.bounds
        self.values: dict[Var, Expr] = {}
        self.loaded: set[Var] = set()
        self.varying = set(self.divergence.varying)
        self.forms = FormReader(self.bounds, self.varying, self.loaded)
        self.axes: dict[ThreadAxis, Var] = {}
        self.block_axes: dict[int, Var] = {}
        """The axes of a block that have more than one thread, by the numbers of their variables."""
        self.opened: frozenset[Var] = frozenset()
        self.bases: dict[Var, tuple[Var, Expr | None]] = {}
        self.scope_of: dict[Var, Scope] = {}
        self.versions: dict[Var, int] = {}
        self.snapshots: dict[tuple[int, int], Var] = {}
        self.made: list[set[Var]] = [set()]
        self.facts: list[Fact] = []
        self.kept_facts: list[Fact] = []
        self.signatures: dict[object, int] = {}
        self.written = written_memory(region)
        self.skew: Span | bool | None = False
        self._find_axes(region)
        self.tree = self.chain(region)

    def _find_axes(self, region: Stmt) -> None:
        for node in walk(region):
            if not isinstance(node, For) or node.kind is not LoopKind.THREAD:
                continue
            assert node.thread is not None
            extent = constant_value(node.extent)
            high = int(extent) - 1 if extent is not None else min(FAR, node.var.dtype.maximum - 1)
            var = self.axes.get(node.thread)
            if var is None:
                var = self.axes[node.thread] = Var(node.thread.value, node.var.dtype)
                self.bounds.set(var, Interval(0, max(high, 0)))
                if not node.thread.is_block and high != 0:
                    self.varying.add(var)
                    self.block_axes[self.forms.numbers.of(var)] = var

    # Statements -------------------------------------------------------------------------------------------------------

    def chain(self, stmt: Stmt) -> Chain:
        found = Chain()
        into = found
        for part in stmt.body if isinstance(stmt, Seq) else (stmt,):
            was = self.skew
            into.items.append(self.item(part))
            if self.skew is not was and self.skew is not False:
                # Some threads do not come to what follows.
                rest = Branch(None, [], True, Chain(), None, self.skew if isinstance(self.skew, Span) else None)
                into.items.append(rest)
                into = rest.then
        return found

    def item(self, stmt: Stmt) -> Leaf | Fence | Branch | Loop:
        match stmt:
            case Barrier():
                return Fence(stmt.scope, stmt)
            case If():
                return self.branch(stmt)
            case For() | While():
                return self.loop(stmt)
            case _:
                return self.leaf(stmt)

    def leaf(self, stmt: Stmt) -> Leaf:
        accesses = [access for part in children(stmt) if isinstance(part, Expr) for access in self.reads(part, stmt)]
        match stmt:
            case Bind(var=var, value=value):
                if var.dtype.is_handle:
                    self.bases[var] = self.pointer(value)
                elif is_collective(value) or is_atomic(value):
                    # Each thread or group of them gets its own, whatever the operands are.
                    self.varying.add(var)
                    self.loaded.add(var)
                    self.made[-1].add(var)
                elif (var.dtype.is_integer or var.dtype.is_bool) and var.dtype.lanes == 1:
                    self.values[var] = self.resolved(value)
                else:
                    self.made[-1].add(var)
            case Allocate(buffer=buffer):
                self.scope_of[buffer.data] = buffer.scope
                self.versions[buffer.data] = self.versions.get(buffer.data, 0) + 1
            case View(buffer=buffer, source=source) if source is not None:
                self.bases[buffer.data] = self.pointer(source)
            case Store():
                found = self.access(stmt, True, stmt.span)
                accesses += [found] if found is not None else []
                self.changed(stmt.buffer.data)
        if isinstance(stmt, (Bind, Evaluate)) and (element := written_element(stmt.value)) is not None:
            self.changed(element.buffer.data)
        return Leaf(stmt, accesses)

    def changed(self, data: Var) -> None:
        root, _ = self.base(data)
        self.versions[root] = self.versions.get(root, 0) + 1

    def branch(self, stmt: If) -> Branch:
        accesses = self.reads(stmt.condition, stmt)
        condition = self.ranges.simplifier.simplify(self.resolved(stmt.condition))
        divergent = self.divergence.splits(stmt)
        with self.where(condition, True):
            then = self.chain(stmt.then)
        otherwise = None
        if stmt.otherwise is not None:
            with self.where(condition, False):
                otherwise = self.chain(stmt.otherwise)
        if self.divergence.leaves_unevenly(stmt, Continue):
            self.skew = stmt.span or True
        for part in (stmt.then, stmt.otherwise):
            self.forget_writes(part)
        return Branch(stmt, accesses, divergent, then, otherwise, stmt.span)

    @contextmanager
    def where(self, condition: Expr, holds: bool) -> Iterator[None]:
        """Code that is run only if the condition holds (or does not)."""
        count = len(self.facts)
        known = dict(self.ranges.narrowed(condition, holds))
        for fact, pinned in facts_of(condition, holds, self.forms):
            self.facts.append(fact)
            self.kept_facts.append(fact)
            known |= pinned
        with self.bounds.given(known):
            yield
        del self.facts[count:]

    def forget_writes(self, stmt: Stmt | None) -> None:
        """What the statement may have written has a new value from here on."""
        for node in walk(stmt) if stmt is not None else ():
            if isinstance(node, Store):
                self.changed(node.buffer.data)
            elif (element := written_element(node)) is not None:
                self.changed(element.buffer.data)
            elif isinstance(node, (CallFunction, CallExtern, CallPacked)):
                for data in list(self.versions):
                    self.versions[data] += 1

    def loop(self, stmt: For | While) -> Loop:
        accesses: list[Access] = []
        if isinstance(stmt, For):
            accesses = [*self.reads(stmt.minimum, stmt), *self.reads(stmt.extent, stmt)]
            minimum, extent = self.resolved(stmt.minimum), self.resolved(stmt.extent)
        count = constant_value(stmt.extent) if isinstance(stmt, For) else None
        repeats = isinstance(stmt, While) or (stmt.kind is not LoopKind.THREAD and count != 1)
        opened, skew = self.opened, self.skew
        if repeats:
            self.forget_writes(stmt.body)
            self.made.append(set())
        if isinstance(stmt, For):
            if stmt.kind is LoopKind.THREAD:
                assert stmt.thread is not None
                axis = self.axes[stmt.thread]
                coordinate = cast(axis, stmt.var.dtype)
                start = constant_value(minimum) == 0
                self.values[stmt.var] = coordinate if start else Add(minimum, coordinate)
                self.opened |= {axis}
            else:
                self.ranges.know_loop(stmt.var, minimum, extent)
                self.made[-1].add(stmt.var)
        test = self.reads(stmt.condition, stmt) if isinstance(stmt, While) else []
        self.skew = False
        body = self.chain(stmt.body)
        self.opened, self.skew = opened, skew
        stale: set[Var] = set()
        if repeats:
            stale = self.made.pop()
            self.made[-1] |= stale
            self.forget_writes(stmt.body)
        return Loop(
            stmt,
            accesses,
            test,
            repeats,
            self.divergence.is_uneven(stmt),
            count is not None and count > 0,
            body,
            frozenset(stale),
            stmt.span,
        )

    # Accesses ---------------------------------------------------------------------------------------------------------

    def reads(self, expr: Expr, stmt: Stmt) -> list[Access]:
        """What evaluating an expression reads, and what its calls may touch, in order."""
        found: list[Access] = []
        for node in walk(expr):
            if isinstance(node, Load):
                one = self.access(node, False, node.span or stmt.span)
                found += [one] if one is not None else []
            elif (element := atomic_element(node)) is not None:
                one = self.access(element, True, node.span or stmt.span, atomic=True)
                found += [one] if one is not None else []
            elif is_matrix(node) and (element := matrix_element(node)) is not None:
                one = self.access(element, written_element(node) is not None, node.span or stmt.span)
                found += [self.of_group(one)] if one is not None else []
            elif isinstance(node, (CallFunction, CallExtern, CallPacked)):
                for arg in node.args:
                    data = arg.buffer.data if isinstance(arg, (BufferRef, AddressOf)) else arg
                    if isinstance(data, Var) and data.dtype.is_handle:
                        found += self.anywhere(data, node.span or stmt.span)
                        self.changed(data)
        return found

    def base(self, data: Var) -> tuple[Var, Expr | None]:
        """The memory that a pointer points into, and how many bytes from its start; None for unknown."""
        return self.bases.get(data, (data, const(0, INT64)))

    def pointer(self, source: Expr) -> tuple[Var, Expr | None]:
        if isinstance(source, AddressOf):
            root, start = self.base(source.buffer.data)
            if start is None or any(index.dtype.lanes > 1 for index in source.indices):
                return root, None
            size = source.buffer.dtype.bits // 8 * source.buffer.dtype.lanes
            offset = self.resolved(element_offset(source.buffer, source.indices))
            return root, plus(start, times(offset, const(size, INT64)))
        if isinstance(source, Var):
            return self.base(source)
        data = next((node for node in walk(source) if isinstance(node, Var) and node.dtype.is_handle), None)
        return (self.base(data)[0], None) if data is not None else (Var("memory", source.dtype), None)

    def shared_scope(self, buffer_scope: Scope, root: Var) -> Scope | None:
        """The scope of memory that several threads see; None for memory of one thread."""
        if root in self.divergence.private:
            return None
        found = self.scope_of.get(root, buffer_scope)
        return found if found in self.scopes else None

    def anywhere(self, data: Var, span: Span | None) -> list[Access]:
        root, _ = self.base(data)
        pointed = data.pointer.scope if data.pointer is not None else Scope.GLOBAL
        scope = self.shared_scope(pointed, root)
        if scope is None:
            return []
        ranges = self.axis_ranges()
        return [
            self.numbered(Access(root, scope, writes, root.name, span, self.opened, ranges)) for writes in (False, True)
        ]

    def numbered(self, access: Access) -> Access:
        key = (
            *(access.root, access.scope, access.writes, access.atomic, access.of_group, access.buffer, access.opened),
            tuple(access.axes.items()),
            tuple(id(fact) for fact in access.facts),
            None if access.dimensions is None else tuple(form.key for form in access.dimensions),
            None if access.flat is None else access.flat.key,
        )
        return replace(access, signature=self.signatures.setdefault(key, len(self.signatures)))

    def axis_ranges(self) -> dict[Var, Interval]:
        return {var: self.bounds.of(var) for var in self.block_axes.values()}

    def access(
        self, node: Load | Store | AddressOf, writes: bool, span: Span | None, atomic: bool = False
    ) -> Access | None:
        buffer = node.buffer
        root, start = self.base(buffer.data)
        scope = self.shared_scope(buffer.scope, root)
        if scope is None or (self.written is not None and buffer.data not in self.written):
            return None
        indices = tuple(self.ranges.simplifier.simplify(self.resolved(index)) for index in node.indices)
        dimensions = tuple(self.forms.form(index) for index in indices)
        flat = None
        if start is not None:
            size = buffer.dtype.bits // 8 * buffer.dtype.lanes
            scalars = [index.base if isinstance(index, Ramp) else index for index in indices]
            if all(index.dtype.lanes == 1 for index in scalars):
                offset = self.ranges.simplifier.simplify(self.resolved(element_offset(buffer, scalars)))
                flat = self.forms.form(offset, size)
                self.forms.collect(start, 1, flat, INT64)
                spread = self._lanes(buffer, indices, size)
                flat.spread = Interval(spread.low, spread.high + size - 1)
        found = Access(
            root, scope, writes, buffer.name, span, self.opened, self.axis_ranges(), tuple(self.facts), buffer, dimensions, flat,
            _room(buffer, start), atomic,
        )  # fmt: skip
        return self.numbered(found)

    def of_group(self, access: Access) -> Access:
        """An access that begins there, made by threads of a group together: anywhere in what the buffer has."""
        return self.numbered(replace(access, dimensions=None, flat=None, of_group=True))

    def _lanes(self, buffer: Buffer, indices: tuple[Expr, ...], size: int) -> Interval:
        if not indices or not isinstance(indices[-1], Ramp):
            return Interval(0, 0)
        step = 1 if not buffer.strides else constant_value(buffer.strides[-1])
        if step is None:
            return Interval(-FAR, FAR)
        span = self.bounds.of(indices[-1].stride).scaled((indices[-1].lanes - 1) * int(step) * size)
        return Interval(min(0, span.low), max(0, span.high))

    def resolved(self, expr: Expr) -> Expr:
        """The expression with bindings put in their places, and each value read from memory as a variable."""
        return _Resolving(self).visit(expr)  # type: ignore[no-any-return]

    def snapshot(self, node: Load) -> Var:
        """The variable that stands for what a load gives here: another one after each write to that memory."""
        root, _ = self.base(node.buffer.data)
        key = (self.forms.numbers.of(node), self.versions.get(root, 0))
        found = self.snapshots.get(key)
        if found is None:
            found = self.snapshots[key] = Var(f"{node.buffer.name}_read", node.dtype)
            self.loaded.add(found)
            self.made[-1].add(found)
            private = root in self.divergence.private and root in self.divergence.varying
            variables = [part for index in node.indices for part in walk(index) if isinstance(part, Var)]
            if private or node.buffer.scope is Scope.WARP or any(part in self.varying for part in variables):
                self.varying.add(found)
        return found


def _room(buffer: Buffer, start: Expr | None) -> Interval | None:
    """Where a buffer lies in its memory, if that is constant; ``start`` is where its data points, in bytes."""
    offset = 0 if buffer.offset is None else constant_value(buffer.offset)
    first, size = None if start is None else constant_value(start), constant_value(bytes_of(buffer))
    if first is None or offset is None or size is None or buffer.strides:
        return None
    low = int(first) + int(offset) * element_bytes(buffer.dtype)
    return Interval(low, low + max(int(size), 1) - 1)


class _Resolving(Mutator):
    def __init__(self, reader: RegionReader) -> None:
        super().__init__()
        self.reader = reader

    def visit_Var(self, node: Var) -> Any:
        return self.reader.values.get(node, node)

    def visit_Load(self, node: Load) -> Any:
        indices = tuple(self.visit(index) for index in node.indices)
        return self.reader.snapshot(replace(node, indices=indices))
