"""Python text for statements, but for loops in lock step (:mod:`gristmill.interp.lockstep`).

Three modes of code. ``serial``: nothing runs beside it, so no access is recorded. ``parallel``: inside of parallel
loops, or called from there. ``device``: run by every thread of a launch; code with barriers is then a generator.

A loop over threads in serial or parallel code begins a launch: its body becomes a part that every thread runs, and the
loop gives a thread its coordinate. What stands between loops over threads is thus run by each thread.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum

from gristmill.interp.analysis import has_barriers, launch_plan, leaves_early, used_memory
from gristmill.interp.buffers import BufferNames, tuple_text
from gristmill.interp.expressions import ExpressionWriter, Raw, Visit
from gristmill.interp.runtime_reports import AXES
from gristmill.interp.source import INDENTATION_AT_MOST, LOOPS_AT_MOST, Line, captures
from gristmill.interp.values import Value, integer, value
from gristmill.ir import stmt as s
from gristmill.ir.dtype import INT64
from gristmill.ir.expr import Expr, Var
from gristmill.ir.memory import Buffer, Scope
from gristmill.ir.node import Node

_SHARED_SCOPES = (Scope.SHARED, Scope.SHARED_DYNAMIC)


class Mode(Enum):
    """What may run at the same time as the code."""

    SERIAL = "serial"
    PARALLEL = "parallel"
    DEVICE = "device"


class MemoryScalarsNeeded(Exception):
    """A part of the function became a function of its own, so that local scalars cannot be Python variables."""


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


class StatementWriter(ExpressionWriter, over=()):
    """Writes statements."""

    context: Context
    scalars: frozenset[Buffer]
    with_barriers: frozenset[str]

    # Parts ------------------------------------------------------------------------------------------------------------

    def run_statement(self, node: s.Stmt) -> Visit:
        """A statement, in a part of its own where Python's limits on nesting come near."""
        if node.span is not None:
            self.span = node.span
        loops = isinstance(node, (s.For, s.While)) and self.writer.loops >= LOOPS_AT_MOST
        deep = self.writer.indent >= INDENTATION_AT_MOST and isinstance(node, (s.For, s.While, s.If, s.Block))
        if not loops and not deep:
            yield Raw(node)
            return
        if self.scalars:
            raise MemoryScalarsNeeded
        before = self.writer.names
        was = self.context.in_part
        self.context.in_part = True
        inside_loop = self.writer.loops > 0
        with self.writer.captured(1, in_part=True) as lines:
            yield Raw(node)
        self.context.in_part = was
        name = self.writer.fresh("t")
        self.writer.emit(f"{name} = {self.part(lines, before, 'None')}")
        # A part says how it ended: None for its end, else how its caller goes on.
        if inside_loop:
            self.writer.emit(f"if {name} is BREAK: break")
            self.writer.emit(f"if {name} is CONTINUE: continue")
        elif was:
            self.writer.emit(f"if {name} is BREAK or {name} is CONTINUE: return {name}")
        ends = name if was else "True" if self.context.ends_thread else f"{name}[0]"
        self.writer.emit(f"if {name} is not None: return {ends}")

    def visit_Seq(self, node: s.Seq) -> Visit:
        for part in node.body:
            yield from self.run_statement(part)

    def body(self, node: s.Stmt) -> Visit:
        """The statement under a head."""
        yield from self.run_statement(node)

    # Names and effects ------------------------------------------------------------------------------------------------

    def visit_Bind(self, node: s.Bind) -> Visit:
        found = yield node.value
        self.bind(node.var, found)

    def bind(self, var: Var, found: Value) -> None:
        name = self.writer.fresh("v")
        self.writer.emit(f"{name} = {found.text}")
        self.variables[var] = Value(name, var.dtype, 0, found.low, found.high)

    def visit_Evaluate(self, node: s.Evaluate) -> Visit:
        yield node.value

    def visit_Store(self, node: s.Store) -> Visit:
        indices = []
        for index in node.indices:
            indices.append(self.named((yield index)))
        stored = yield Raw(node.value)
        self.write(node, indices, stored)

    def write(self, node: s.Store, indices: list[Value], stored: Value) -> None:
        """The write of a store, after its operands."""
        site = self.site(node, node.buffer.name)
        if indices and indices[-1].dtype.lanes > 1:
            self.store_vector(node.buffer, indices, stored, site)
        else:
            self.store_scalar(node.buffer, indices, stored, site, self.is_repeated)

    @property
    def is_repeated(self) -> bool:
        """Whether several threads of a launch do what stands here, as one piece of work."""
        return any(axis not in self.context.opened for axis in self.context.axes)

    def visit_Assert(self, node: s.Assert) -> Visit:
        condition = yield node.condition
        site = self.site(node)
        with self.writer.block(f"if not {condition.text}:"):
            parts = []
            for part in node.message:
                if isinstance(part, str):
                    parts.append(self.constant(part))
                else:
                    found = self.settled((yield part))
                    parts.append(f"bool({found.text})" if found.dtype.is_bool else found.text)
            self.writer.emit(f"E.fail({site}, {self.constant(node.kind)}, {tuple_text(parts)}, {self.strand})")

    # Memory -----------------------------------------------------------------------------------------------------------

    def visit_Allocate(self, node: s.Allocate) -> Visit:
        yield from self.allocate(node.buffer, node)

    def allocate(self, buffer: Buffer, node: s.Stmt) -> Visit:
        """New memory for a buffer."""
        if buffer in self.scalars:
            name = self.writer.fresh("s")
            self.writer.emit(f"{name} = None")
            self.names_of[buffer] = BufferNames("", "", [], [], scalar=name)
            return
        sizes = yield from self.expressions(buffer.shape)
        site = self.site(node, buffer.name)
        pointer = self.writer.fresh("v")
        texts = tuple_text(size.text for size in sizes)
        device = self.context.mode is Mode.DEVICE
        # An offset or strides ask for more room than the product of the sizes.
        if buffer.strides or buffer.offset is not None:
            strides = yield from self.expressions(buffer.strides)
            offset = (yield buffer.offset) if buffer.offset is not None else integer(0, INT64)
            texts = f"(room({texts}, {tuple_text(stride.text for stride in strides)}, {offset.text}),)"
        if device and buffer.scope in (*_SHARED_SCOPES, Scope.WARP):
            self.instance(buffer, site, texts, pointer)
        else:
            self.writer.emit(f"{pointer} = E.allocate({site}, {texts}, DT_{buffer.dtype})")
            if buffer.scope is not Scope.GLOBAL:
                self.context.outside.append((buffer, node))
        self.variables[buffer.data] = Value(pointer, buffer.data.dtype)
        # Per-thread memory is seen by its thread alone; other memory made here is too, unless it is shared.
        yield from self.define(buffer, pointer, site, private=not (device and buffer.scope in _SHARED_SCOPES))

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
        self, buffer: Buffer, pointer: str, site: int, private: bool, strides: list[Value] | None = None
    ) -> Visit:
        """The names that stand for a buffer whose data pointer is known. ``strides``: where it states none."""
        sizes = yield from self.expressions(buffer.shape)
        names = BufferNames(self.writer.fresh("m"), self.writer.fresh("i"), sizes, [], lanes=buffer.dtype.lanes)
        shape = tuple_text(size.text for size in sizes)
        if buffer.strides or buffer.offset is not None or strides is not None:
            if buffer.strides:
                names.strides = yield from self.expressions(buffer.strides)
            else:
                names.strides = self.compact_strides(sizes) if strides is None else strides
            if buffer.offset is not None:
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
            names.read, names.write, names.repeat = (self.writer.fresh("r") for _ in range(3))
            self.writer.emit(
                f"{names.read}, {names.write}, {names.repeat} = E.tracking("
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

    # Control ----------------------------------------------------------------------------------------------------------

    def visit_If(self, node: s.If) -> Visit:
        condition = yield node.condition
        with self.writer.block(f"if {condition.text}:"):
            yield from self.body(node.then)
        if node.otherwise is not None:
            with self.writer.block("else:"):
                yield from self.body(node.otherwise)

    def visit_While(self, node: s.While) -> Visit:
        site = self.site(node)
        with self.writer.block("while True:", loop=True):
            condition = yield node.condition
            self.writer.emit(f"if not {condition.text}: break")
            self.writer.emit(f"E.count(1, {site})")
            yield from self.body(node.body)

    def visit_Break(self, node: s.Break) -> None:
        self.writer.emit("break" if self.writer.loops else "return BREAK")

    def visit_Continue(self, node: s.Continue) -> None:
        self.writer.emit("continue" if self.writer.loops else "return CONTINUE")

    def visit_Return(self, node: s.Return) -> Visit:
        text = "None"
        if node.value is not None:
            text = (yield node.value).text
        self.leave(text)

    def leave(self, text: str) -> None:
        """Return from the function, from wherever its code stands."""
        if self.context.in_part:
            self.writer.emit(f"return ({text},)")
        else:
            # The scheduler of threads tells a return from the end of the code.
            self.writer.emit("return True" if self.context.ends_thread else f"return {text}")

    def visit_For(self, node: s.For) -> Visit:
        minimum = self.named((yield node.minimum))
        extent = self.named((yield node.extent))
        if node.kind is s.LoopKind.THREAD:
            yield from self.thread_loop(node, minimum, extent)
        elif node.kind is s.LoopKind.PARALLEL:
            yield from self.parallel_loop(node, minimum, extent)
        elif node.kind is s.LoopKind.VECTORIZED:
            yield from self.lock_step_loop(node, minimum, extent)
        else:
            yield from self.serial_loop(node, minimum, extent)

    def loop_variable(self, node: s.For, minimum: Value, extent: Value) -> str:
        """A name for the loop variable, with its bounds."""
        name = self.writer.fresh("v")
        low, high = minimum.low, minimum.high + max(extent.high, 1) - 1
        dtype = node.var.dtype
        if high > dtype.maximum:  # it may wrap
            low, high = dtype.minimum, dtype.maximum
        self.variables[node.var] = Value(name, dtype, 0, low, high)
        return name

    def serial_loop(self, node: s.For, minimum: Value, extent: Value) -> Visit:
        site = self.site(node)
        name = self.loop_variable(node, minimum, extent)
        how = "loop_with_exits" if leaves_early(node.body) else "loop"
        head = f"for {name} in E.{how}({minimum.text}, {extent.text}, DT_{node.var.dtype}, {site}):"
        with self.writer.block(head, loop=True):
            yield from self.body(node.body)

    def parallel_loop(self, node: s.For, minimum: Value, extent: Value) -> Visit:
        site = self.site(node)
        name = self.loop_variable(node, minimum, extent)
        strand = self.writer.fresh("x")
        head = (
            f"for {name}, {strand} in E.iterations({minimum.text}, {extent.text}, DT_{node.var.dtype}, "
            f"{self.constant(node.var.name)}, {site}, {self.strand}):"
        )
        outer = self.strand
        mode = Mode.DEVICE if self.context.mode is Mode.DEVICE else Mode.PARALLEL
        with self.at_the_same_time(mode), self.writer.block(head, loop=True):
            self.strand = strand
            yield from self.body(node.body)
        self.strand = outer

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

    def lock_step_loop(self, node: s.For, minimum: Value, extent: Value) -> Visit:
        raise NotImplementedError

    # Blocks of computation --------------------------------------------------------------------------------------------

    def visit_Block(self, node: s.Block) -> Visit:
        """Axes, predicate, allocations, matches, init, body."""
        yield from self.bind_axes(node)
        if node.predicate is None:
            yield from self._block_body(node)
            return
        predicate = yield node.predicate
        with self.writer.block(f"if {predicate.text}:"):
            yield from self._block_body(node)

    def bind_axes(self, node: s.Block) -> Visit:
        """Evaluate the values of the axes, and name them."""
        values = yield from self.expressions(tuple(axis.value for axis in node.axes))
        for axis, found in zip(node.axes, values, strict=True):
            self.bind(axis.var, found)

    def _block_body(self, node: s.Block) -> Visit:
        starts = yield from self.open_block(node)
        if node.init is not None:
            with self.writer.block(f"if {starts}:"):
                yield from self.body(node.init)
        yield from self.body(node.body)

    def open_block(self, node: s.Block) -> Visit:
        """Check the axes, make the buffers; the text of whether ``init`` is to run."""
        starts = []
        for axis in node.axes:
            minimum, extent = yield from self.expressions((axis.domain.minimum, axis.domain.extent))
            bound = self.variables[axis.var]
            site = self.site(axis, axis.var.name)
            self.writer.emit(
                f"if not {minimum.text} <= {bound.text} < {minimum.text} + {extent.text}: "
                f"E.outside_domain({site}, {bound.text}, {minimum.text}, {extent.text}, {self.strand})"
            )
            if axis.kind is s.AxisKind.REDUCE:
                starts.append(f"{bound.text} == {minimum.text}")
        for buffer in node.allocations:
            yield from self.allocate(buffer, node)
        for match in node.matches:
            yield from self.match(match)
        return f"({' and '.join(starts)})" if starts else "True"

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
        start = self.numbered(outer, minima, outer.offset)
        pointer = self.writer.fresh("v")
        self.writer.emit(
            f"{pointer} = E.address({self.variables[region.buffer.data].text}, {start}, "
            f"DT_{region.buffer.dtype}, {site})"
        )
        skipped = len(extents) - len(buffer.shape)
        for have, states in zip(extents[skipped:], buffer.shape, strict=True):
            self.match_value(states, have)
        for have, states in zip(outer.strides[skipped:], buffer.strides, strict=False):
            self.match_value(states, have)
        if buffer.offset is not None:
            self.match_value(buffer.offset, integer(0, buffer.offset.dtype))
        self.variables[buffer.data] = Value(pointer, buffer.data.dtype)
        if self.context.mode is not Mode.DEVICE and buffer.scope is not Scope.GLOBAL:
            self.context.outside.append((buffer, node))
        yield from self.define(
            buffer, pointer, site, private=outer.private, strides=None if buffer.strides else outer.strides[skipped:]
        )

    def match_value(self, states: Expr, have: Value) -> None:
        """A variable that is not bound yet, in the shape of a matched buffer, is what the region has there."""
        if isinstance(states, Var) and states not in self.variables:
            self.bind(states, have)

    # Devices ----------------------------------------------------------------------------------------------------------

    def visit_Barrier(self, node: s.Barrier) -> None:
        self.writer.emit(f"yield {self.barrier_site(node)}")

    def barrier_site(self, node: s.Barrier) -> int:
        raise NotImplementedError

    def thread_loop(self, node: s.For, minimum: Value, extent: Value) -> Visit:
        if self.context.mode is not Mode.DEVICE:
            yield from self.launch_region(node)
            return
        assert node.thread is not None
        site = self.site(node, node.thread.value)
        axis = AXES.index(node.thread)
        self.writer.emit(f"check_extent({extent.text}, {axis}, {self.strand}, {site}, E)")
        name = self.writer.fresh("v")
        self.variables[node.var] = value(name, node.var.dtype)
        was = self.context.opened
        self.context.opened = (*was, node.thread)
        # A loop of one iteration, so that `continue` ends it.
        head = f"for {name} in E.values({minimum.text} + {self.context.coordinates[axis]}, 1, DT_{node.var.dtype}):"
        with self.writer.block(head, loop=True):
            yield from self.body(node.body)
        self.context.opened = was

    def launch_region(self, node: s.For) -> Visit:
        """A launch: evaluate its extents, make its body a part, run that by every thread."""
        plan = launch_plan(node)
        site = self.site(node)
        for loop in plan.unknown:
            self.writer.emit(f"unknown_extent({self.site(loop, loop.thread.value if loop.thread else '')}, E)")
        entries = []
        for axis, loops in plan.extents.items():
            first: Value | None = None
            for loop, extent in loops:
                found = self.named((yield extent))
                if first is None:
                    first = found
                    entries.append(f"AXES[{AXES.index(axis)}]: {found.text}")
                elif first.text != found.text:
                    other = self.site(loop, axis.value)
                    self.writer.emit(
                        f"if {found.text} != {first.text}: unequal_extents({found.text}, {first.text}, {other}, E)"
                    )
        outer, strand, names = self.context, self.strand, dict(self.names_of)
        variables = dict(self.variables)
        before = self.writer.names
        generator = has_barriers(node, self.with_barriers)
        coordinates = tuple(self.writer.fresh("k") for _ in AXES)
        self.context = Context(Mode.DEVICE, coordinates, axes=tuple(plan.extents), ends_thread=True)
        self.strand = "X"
        with self.writer.captured(1, in_part=True) as lines, self.at_the_same_time(Mode.DEVICE):
            self.writer.emit(f"{', '.join(coordinates)} = coordinates(X)")
            yield from self.instances(outer, node)
            yield Raw(node)
        self.context, self.strand, self.names_of, self.variables = outer, strand, names, variables
        taken = captures(lines, before)
        name = self.function_of(lines, taken, generator)
        self.writer.emit(
            f"launch(E, {name}, {tuple_text(taken)}, {{{', '.join(entries)}}}, {site}, {self.strand}, "
            f"{'BARRIERS' if generator else None})"
        )

    def instances(self, outer: Context, region: s.For) -> Visit:
        """Inside of a launch: the block's and the thread's own memory for what was allocated outside of it."""
        used = used_memory(region)
        for buffer, node in reversed(outer.outside):
            if buffer in used or buffer.data in used:
                # What a buffer is a view of is used as well.
                used |= {buffer, buffer.data} | used_memory(node)
        for buffer, node in outer.outside:
            if buffer not in used:
                continue
            site = self.site(node, buffer.name)
            if isinstance(node, s.MatchBuffer):
                yield from self.match(node)
                continue
            if not isinstance(node, s.View):
                sizes = yield from self.expressions(buffer.shape)
                pointer = self.writer.fresh("v")
                self.instance(buffer, site, tuple_text(size.text for size in sizes), pointer)
                self.variables[buffer.data] = Value(pointer, buffer.data.dtype)
            elif node.source is not None:
                self.variables[buffer.data] = self.named((yield node.source))
            pointer = self.variables[buffer.data].text
            yield from self.define(buffer, pointer, site, private=buffer.scope is Scope.LOCAL)

    def function_of(self, lines: list[Line], params: list[str], generator: bool = False) -> str:
        """Make a function of lines, which takes E, X and the parameters, and give its name."""
        raise NotImplementedError

    def visit_Launch(self, node: s.Launch) -> Visit:
        args = yield from self.expressions(node.args)
        extents = yield from self.expressions(node.extents)
        dynamic = "None"
        if node.dynamic_shared is not None:
            dynamic = self.named((yield node.dynamic_shared)).text
        site = self.site(node, node.kernel)
        self.writer.emit(
            self.launch_text(node, [arg.text for arg in args], [extent.text for extent in extents], dynamic, site),
            site,
        )

    def launch_text(self, node: s.Launch, args: list[str], extents: list[str], dynamic: str, site: int) -> str:
        raise NotImplementedError
