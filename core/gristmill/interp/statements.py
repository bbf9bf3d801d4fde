"""Python text for plain statements: effects and control."""

from __future__ import annotations

from gristmill.interp.analysis import leaves_early
from gristmill.interp.buffers import tuple_text
from gristmill.interp.definitions import DefinitionWriter, Mode
from gristmill.interp.expressions import Raw, Visit
from gristmill.interp.source import INDENTATION_AT_MOST, LOOPS_AT_MOST
from gristmill.interp.values import Value
from gristmill.ir import stmt as s


class MemoryScalarsNeeded(Exception):
    """A part of the function became a function of its own, so that local scalars cannot be Python variables."""


class StatementWriter(DefinitionWriter, over=()):
    """Writes statements."""

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

    def thread_loop(self, node: s.For, minimum: Value, extent: Value) -> Visit:
        """A loop over threads."""
        raise NotImplementedError

    def lock_step_loop(self, node: s.For, minimum: Value, extent: Value) -> Visit:
        raise NotImplementedError
