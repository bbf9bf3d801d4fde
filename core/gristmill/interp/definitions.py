"""Python text for definitions: allocations, views, and the names that stand for buffers.

Three modes of code. ``serial``: nothing runs beside it, so no access is recorded. ``parallel``: inside of parallel
loops, or called from there. ``device``: run by every thread of a launch.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum

from gristmill.interp.buffers import BufferNames, tuple_text
from gristmill.interp.expressions import ExpressionWriter, Visit, tiles_of
from gristmill.interp.values import Value, integer, value
from gristmill.ir import stmt as s
from gristmill.ir.dtype import INT64
from gristmill.ir.expr import Expr, Var
from gristmill.ir.memory import MATRIX_SCOPES, Buffer, Scope
from gristmill.ir.node import Node

_SHARED_SCOPES = (Scope.SHARED, Scope.SHARED_DYNAMIC)


class Mode(Enum):
    """What may run at the same time as the code."""

    SERIAL = "serial"
    PARALLEL = "parallel"
    DEVICE = "device"


@dataclass(slots=True)
class Context:
    """Where code stands: what else changes from place to place is in the writer."""

    mode: Mode
    coordinates: tuple[str, ...] = ()
    opened: tuple[s.ThreadAxis, ...] = ()
    axes: tuple[s.ThreadAxis, ...] = ()
    """The axes of the launch, where they are known; empty for a function that a launch or a thread calls."""
    ends_thread: bool = False
    """Whether a return here ends a thread of a launch, rather than a function that was called."""
    in_part: bool = False
    outside: list[tuple[Buffer, Node]] = field(default_factory=list)
    """Buffers of shared and per-thread memory (and views of them) defined outside of launches, and what defines them."""


class DefinitionWriter(ExpressionWriter, over=()):
    """Writes definitions."""

    context: Context
    scalars: frozenset[Buffer]

    def bind(self, var: Var, found: Value) -> None:
        name = self.writer.fresh("v")
        self.writer.emit(f"{name} = {found.text}")
        self.variables[var] = Value(name, var.dtype, 0, found.low, found.high)

    def visit_Allocate(self, node: s.Allocate) -> Visit:
        yield from self.allocate(node.buffer, node)

    def allocate(self, buffer: Buffer, node: s.Stmt) -> Visit:
        """New memory for a buffer."""
        if buffer in self.scalars:
            name = self.writer.fresh("s")
            self.writer.emit(f"{name} = None")
            self.names_of[buffer] = BufferNames("", "", [], [], scalar=name)
            return
        if buffer.scope in MATRIX_SCOPES:
            self.tiles(buffer)
            if self.context.mode is not Mode.DEVICE:
                self.context.outside.append((buffer, node))
            return
        sizes = yield from self.expressions(buffer.shape)
        site = self.site(node, buffer.name)
        pointer = self.writer.fresh("v")
        texts = tuple_text(size.text for size in sizes)
        device = self.context.mode is Mode.DEVICE
        if device and buffer.scope in (*_SHARED_SCOPES, Scope.WARP):
            self.instance(buffer, site, texts, pointer)
        else:
            self.writer.emit(f"{pointer} = E.allocate({site}, {texts}, DT_{buffer.dtype})")
            if buffer.scope is not Scope.GLOBAL:
                self.context.outside.append((buffer, node))
        self.variables[buffer.data] = Value(pointer, buffer.data.dtype)
        # Per-thread memory is seen by its thread alone; other memory made here is too, unless it is shared.
        yield from self.define(buffer, pointer, site, private=not (device and buffer.scope in _SHARED_SCOPES))

    def tiles(self, buffer: Buffer) -> None:
        """The running thread's tiles of matrices."""
        room = self.writer.fresh("v")
        self.writer.emit(f"{room} = {self.constant(tiles_of(buffer))}.room()")
        self.variables[buffer.data] = Value(room, buffer.data.dtype)

    def instance(self, buffer: Buffer, site: int, sizes: str, pointer: str) -> None:
        """The instance of an allocation that the running block, warp or thread has."""
        key = self.allocation_number(buffer)
        if buffer.scope in _SHARED_SCOPES:
            which = "-1"
        elif buffer.scope is Scope.WARP:
            which = f"-2 - {self.strand}.thread // E.options.warp_size"
        else:
            which = f"{self.strand}.thread"
        dynamic = buffer.scope is Scope.SHARED_DYNAMIC
        self.writer.emit(
            f"{pointer} = E.shared(({key}, {which}), {site}, {sizes}, DT_{buffer.dtype}, {self.strand}, {dynamic})"
        )

    def allocation_number(self, buffer: Buffer) -> int:
        """A number that tells allocations of the program apart."""
        raise NotImplementedError

    def visit_View(self, node: s.View) -> Visit:
        buffer = node.buffer
        site = self.site(node, buffer.name)
        if node.source is not None:
            source = yield node.source
            name = self.writer.fresh("v")
            self.writer.emit(f"{name} = {source.text}")
            self.variables[buffer.data] = Value(name, buffer.data.dtype)
        pointer = self.variables[buffer.data].text
        private = any(
            names.private and other.data is buffer.data for other, names in self.names_of.items() if not names.scalar
        )
        if self.context.mode is not Mode.DEVICE and buffer.scope is not Scope.GLOBAL:
            self.context.outside.append((buffer, node))
        yield from self.define(buffer, pointer, site, private=private)

    def expressions(self, nodes: tuple[Expr, ...]) -> Visit:
        """Several expressions, each under a name or as a literal."""
        found = []
        for node in nodes:
            found.append(self.named((yield node)))
        return found

    def define(
        self,
        buffer: Buffer,
        pointer: str,
        site: int,
        private: bool,
        strides: list[Value] | None = None,
        offset: str = "",
    ) -> Visit:
        """The names that stand for a buffer whose data pointer is known.

        ``strides`` and ``offset``: where they are not those that the buffer states.
        """
        sizes = yield from self.expressions(buffer.shape)
        names = BufferNames(self.writer.fresh("m"), self.writer.fresh("i"), sizes, [], lanes=buffer.dtype.lanes)
        shape = tuple_text(size.text for size in sizes)
        if buffer.strides or buffer.offset is not None or strides is not None:
            if strides is not None:
                names.strides = strides
            elif buffer.strides:
                names.strides = yield from self.expressions(buffer.strides)
            else:
                names.strides = self.compact_strides(sizes)
            if offset:
                names.offset = offset
            elif buffer.offset is not None:
                names.offset = self.named((yield buffer.offset)).text
            names.origin = self.writer.fresh("o")
            steps = tuple_text(stride.text for stride in names.strides)
            self.writer.emit(
                f"{names.elements}, {names.shadow}, {names.origin} = E.strided_view("
                f"{pointer}, DT_{buffer.dtype}, {shape}, {steps}, {names.offset or 0}, {site})",
                site,
            )
        else:
            names.strides = self.compact_strides(sizes)
            self.writer.emit(
                f"{names.elements}, {names.shadow} = E.view({pointer}, DT_{buffer.dtype}, {shape}, {site})", site
            )
        names.private = private
        self.names_of[buffer] = names
        # Within device code per-thread memory needs no record; what was made in this very strand neither.
        names.tracked = not private and self.context.mode is not Mode.SERIAL and not self._one_thread_only(buffer)
        if names.tracked or self.may_be_shared_later(buffer):
            names.read, names.write, names.repeat, names.atomic = (self.writer.fresh("r") for _ in range(4))
            self.writer.emit(
                f"{names.read}, {names.write}, {names.repeat}, {names.atomic} = E.tracking("
                f"{pointer}, DT_{buffer.dtype}, {names.origin or None}, {names.elements})"
            )

    def _one_thread_only(self, buffer: Buffer) -> bool:
        return self.context.mode is Mode.DEVICE and buffer.scope is Scope.LOCAL

    def may_be_shared_later(self, buffer: Buffer) -> bool:
        """Whether the function has parallel loops or launches at all, in which the buffer may be used."""
        raise NotImplementedError

    def compact_strides(self, sizes: list[Value]) -> list[Value]:
        """The strides of a row-major buffer."""
        found: list[Value] = []
        for size in reversed(sizes[1:]):
            if not found:
                found.append(integer(1, INT64))
            last = found[-1]
            if last.is_constant and size.is_constant:
                found.append(integer(last.low * size.low, INT64))
            elif last.is_constant and last.low == 1:
                found.append(value(size.text, INT64))
            else:
                name = self.writer.fresh("d")
                self.writer.emit(f"{name} = {last.text} * {size.text}")
                found.append(value(name, INT64))
        if sizes and not found:
            found.append(integer(1, INT64))
        return list(reversed(found))

    def match(self, node: s.MatchBuffer) -> Visit:
        """A buffer that stands for a region: sizes and strides that are not known yet are taken from the region."""
        buffer, region = node.buffer, node.region
        outer = self.names_of[region.buffer]
        minima = yield from self.expressions(tuple(part.minimum for part in region.ranges))
        extents = yield from self.expressions(tuple(part.extent for part in region.ranges))
        site = self.site(node, buffer.name)
        for minimum, extent, size in zip(minima, extents, outer.sizes, strict=True):
            self.writer.emit(
                f"if {minimum.text} < 0 or {minimum.text} + {extent.text} > {size.text}: "
                f"E.region_outside({site}, {minimum.text}, {extent.text}, {size.text}, {self.strand})"
            )
        skipped = len(extents) - len(buffer.shape)
        for have, states in zip(extents[skipped:], buffer.shape, strict=True):
            self.match_value(states, have)
        strides = outer.strides[skipped:]
        for have, states in zip(strides, buffer.strides, strict=False):
            self.match_value(states, have)
        # A view of the same memory: the region begins at an offset from the data pointer.
        start = self.numbered(outer, minima, outer.offset)
        if buffer.offset is not None:
            self.match_value(buffer.offset, value(start, buffer.offset.dtype))
        self.variables[buffer.data] = self.variables[region.buffer.data]
        if self.context.mode is not Mode.DEVICE and buffer.scope is not Scope.GLOBAL:
            self.context.outside.append((buffer, node))
        yield from self.define(
            buffer, self.variables[buffer.data].text, site, private=outer.private, strides=strides, offset=start
        )

    def match_value(self, states: Expr, have: Value) -> None:
        """A variable that is not bound yet, in the shape of a matched buffer, is what the region has there."""
        if isinstance(states, Var) and states not in self.variables:
            self.bind(states, have)

    @contextmanager
    def at_the_same_time(self, mode: Mode) -> Iterator[None]:
        """Code whose instances may run at the same time: accesses to buffers from outside are recorded."""
        was, self.context.mode = self.context.mode, mode
        changed = []
        for buffer, names in self.names_of.items():
            if not names.tracked and names.read and not self._one_thread_only(buffer):
                names.tracked = True
                changed.append(names)
        yield
        for names in changed:
            names.tracked = False
        self.context.mode = was
