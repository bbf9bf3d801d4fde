"""Python text for blocks of computation: axes, predicate, allocations, matches, init, body."""

from __future__ import annotations

from collections.abc import Mapping

from gristmill.interp.buffers import tuple_text
from gristmill.interp.definitions import Mode
from gristmill.interp.expressions import Visit
from gristmill.interp.runtime_reports import AXES
from gristmill.interp.statements import StatementWriter
from gristmill.ir import stmt as s


class BlockWriter(StatementWriter, over=()):
    """Writes blocks."""

    over_threads: Mapping[s.Block, tuple[s.ThreadAxis, ...]]

    def visit_Block(self, node: s.Block) -> Visit:
        """Axes, predicate, allocations, matches, init, body."""
        self.refuse_to_reduce_over_threads(node)
        yield from self.bind_axes(node)
        if node.predicate is None:
            yield from self._block_body(node)
            return
        predicate = yield node.predicate
        with self.writer.block(f"if {predicate.text}:"):
            yield from self._block_body(node)

    def refuse_to_reduce_over_threads(self, node: s.Block) -> None:
        """Report a block that several threads must compute together, which only its lowered form says how to do."""
        threads = self.over_threads.get(node)
        if threads and self.context.mode is Mode.DEVICE:
            axes = tuple_text(str(AXES.index(axis)) for axis in threads)
            self.writer.emit(f"check_alone({axes}, {self.strand}, {self.site(node, node.name)}, E)")

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
