"""Vectorised loops: each statement for all iterations before the next.

A lane is an iteration, named by a tuple (of several numbers for vectorised loops within each other). Every simple
statement becomes a Python loop over the lanes that are active there; the names that it defines are kept a lane, and
read back by the statements that use them. A store evaluates its operands for all lanes, then writes lane after lane.
Where lanes part (at an ``if``, a loop of unequal length) the list of active lanes is split.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from gristmill.errors import InternalError
from gristmill.interp.definitions import Mode
from gristmill.interp.expressions import Raw, Visit
from gristmill.interp.launches import LaunchWriter
from gristmill.interp.runtime_reports import AXES
from gristmill.interp.source import Line, names_in
from gristmill.interp.values import Value, value
from gristmill.ir import stmt as s
from gristmill.ir.dtype import BOOL
from gristmill.ir.expr import Expr
from gristmill.ir.span import place_of

_TARGETS = re.compile(r"((?:_[a-z]\d+)(?:, _[a-z]\d+)*) = ")


@dataclass(slots=True)
class Lanes:
    """The lanes that run: ``active`` names their list, ``depth`` is the length of their tuples."""

    active: str
    depth: int
    lane: str
    kept: dict[str, tuple[str, int]] = field(default_factory=dict)
    """For each name kept a lane: the text of the tuple of names it is kept in, and the depth of its lanes."""
    continued: str = ""
    """The set of lanes that left the present iteration of the innermost loop."""
    broken: str = ""
    """The set of lanes that left the innermost loop."""


class LockStepWriter(LaunchWriter, over=()):
    """Writes vectorised loops."""

    lanes: Lanes | None = None

    def lock_step_loop(self, node: s.For, minimum: Value, extent: Value) -> Visit:
        site = self.site(node)
        active, lane = self.writer.fresh("a"), self.writer.fresh("l")
        self.writer.emit(
            f"{active} = [(n,) for n in E.loop({minimum.text}, {extent.text}, DT_{node.var.dtype}, {site})]"
        )
        self.lanes = Lanes(active, 1, lane)
        name = self.loop_variable(node, minimum, extent)
        self.keep_names([Line(0, f"{name} = {lane}[0]")])
        with self.set_of_lanes("continued"):
            yield from self.locked(node.body)
        self.lanes = None

    # Lanes ------------------------------------------------------------------------------------------------------------

    @property
    def now(self) -> Lanes:
        assert self.lanes is not None
        return self.lanes

    @contextmanager
    def activated(self, active: str) -> Iterator[None]:
        """Statements for other lanes than those active so far."""
        was, self.now.active = self.now.active, active
        yield
        self.now.active = was

    @contextmanager
    def set_of_lanes(self, which: str) -> Iterator[str]:
        """A new set of lanes that left (``continued`` or ``broken``)."""
        name = self.writer.fresh("g")
        self.writer.emit(f"{name} = set()")
        was = getattr(self.now, which)
        setattr(self.now, which, name)
        yield name
        setattr(self.now, which, was)

    def over_lanes(self, lines: list[Line], ends: list[str]) -> None:
        """A loop over the active lanes: what they need is read back, then the lines run, then the ends."""
        now = self.now
        used = names_in([*lines, *(Line(0, end) for end in ends)])
        with self.writer.block(f"for {now.lane} in {now.active}:", loop=True):
            groups = dict.fromkeys(now.kept[name] for name in used if name in now.kept)
            for group, depth in groups:
                names, store = group.split("|")
                key = now.lane if depth == now.depth else f"{now.lane}[:{depth}]"
                self.writer.emit(f"{names}, = {store}[{key}]")
            shift = self.writer.indent - (lines[0].indent if lines else 0)
            for line in lines:
                self.writer.lines.append(Line(line.indent + shift, line.text, line.site))
            for end in ends:
                self.writer.emit(end)

    def keep_names(self, lines: list[Line]) -> None:
        """Run lines for every lane, and keep the names that they define."""
        base = lines[0].indent if lines else 0
        targets = [
            name
            for line in lines
            if line.indent == base and (match := _TARGETS.match(line.text))
            for name in match[1].split(", ")
        ]
        names = list(dict.fromkeys(name for name in targets if not name.startswith("_l")))
        if not names:
            self.over_lanes(lines, [])
            return
        store = self.writer.fresh("q")
        self.writer.emit(f"{store} = {{}}")
        self.over_lanes(lines, [f"{store}[{self.now.lane}] = ({', '.join(names)},)"])
        for name in names:
            self.now.kept[name] = (f"{', '.join(names)}|{store}", self.now.depth)

    def refresh(self) -> str:
        """The active lanes without those that left."""
        now = self.now
        left = [found for found in (now.continued, now.broken) if found]
        if not left:
            return now.active
        name = self.writer.fresh("a")
        tests = " and ".join(f"n not in {found}" for found in left)
        self.writer.emit(f"{name} = [n for n in {now.active} if {tests}]")
        return name

    # Statements -------------------------------------------------------------------------------------------------------

    def locked(self, node: s.Stmt) -> Visit:
        """A statement in lock step."""
        if node.span is not None:
            self.span = node.span
        if isinstance(node, s.Seq):
            yield from self.locked_sequence(node)
        elif isinstance(node, s.If):
            yield from self.locked_if(node)
        elif isinstance(node, s.For):
            yield from self.locked_for(node)
        elif isinstance(node, s.While):
            yield from self.locked_while(node)
        elif isinstance(node, s.Block):
            yield from self.locked_block(node)
        elif isinstance(node, s.Store):
            yield from self.locked_store(node)
        elif isinstance(node, s.Break):
            self.writer.emit(f"{self.now.broken}.update({self.now.active})")
        elif isinstance(node, s.Continue):
            self.writer.emit(f"{self.now.continued}.update({self.now.active})")
        elif isinstance(node, s.Barrier):
            # The lanes belong to one thread, which waits once.
            with self.writer.block(f"if {self.now.active}:"):
                self.visit_Barrier(node)
        elif isinstance(node, s.DeviceRegion) and self.context.mode is not Mode.DEVICE:
            self.writer.emit(f"launch_in_lanes({self.site(node, 'a device region')}, E)")
        elif isinstance(node, s.DeviceRegion):
            yield from self.locked(node.body)
        elif isinstance(node, s.Return):
            raise InternalError(
                "a return in a vectorised loop passed the verifier", place=place_of(node.span or self.span)
            )
        else:
            with self.writer.captured(self.writer.indent) as lines:
                yield Raw(node)
            self.keep_names(lines)

    def locked_sequence(self, node: s.Seq) -> Visit:
        was = self.now.active
        for part in node.body:
            yield from self.locked(part)
            if not isinstance(part, (s.Bind, s.Store, s.Allocate, s.View, s.Evaluate)):
                self.now.active = self.refresh()
        self.now.active = was

    def locked_store(self, node: s.Store) -> Visit:
        indices = []
        with self.writer.captured(self.writer.indent) as lines:
            for index in node.indices:
                indices.append(self.named((yield index)))
            stored = self.named((yield node.value))
        operands = [*indices, stored]
        store = self.writer.fresh("q")
        self.writer.emit(f"{store} = {{}}")
        texts = "".join(f"{operand.text}, " for operand in operands)
        self.over_lanes(lines, [f"{store}[{self.now.lane}] = ({texts})"])
        names = [self.writer.fresh("t") for _ in operands]
        found = [
            Value(name, operand.dtype, 0, operand.low, operand.high)
            for name, operand in zip(names, operands, strict=True)
        ]
        with self.writer.captured(self.writer.indent) as lines:
            self.writer.emit(f"{', '.join(names)}, = {store}[{self.now.lane}]")
            self.write(node, found[:-1], found[-1])
        self.over_lanes(lines, [])

    def evaluated(self, nodes: list[Expr]) -> Visit:
        """The lines that evaluate expressions for one lane, and their values."""
        with self.writer.captured(self.writer.indent) as lines:
            found = yield from self.expressions(tuple(nodes))
        return lines, found

    def locked_if(self, node: s.If) -> Visit:
        lines, found = yield from self.evaluated([node.condition])
        yes, no = self.parted(lines, found[0].text)
        with self.activated(yes):
            yield from self.locked(node.then)
        if node.otherwise is not None:
            with self.activated(no):
                yield from self.locked(node.otherwise)

    def parted(self, lines: list[Line], condition: str) -> tuple[str, str]:
        """Two lists of lanes: where a condition is true, and where not."""
        yes, no = self.writer.fresh("a"), self.writer.fresh("a")
        self.writer.emit(f"{yes} = []; {no} = []")
        self.over_lanes(lines, [f"({yes} if {condition} else {no}).append({self.now.lane})"])
        return yes, no

    def locked_for(self, node: s.For) -> Visit:
        lines, (minimum, extent) = yield from self.evaluated([node.minimum, node.extent])
        bounds = self.writer.fresh("q")
        self.writer.emit(f"{bounds} = {{}}")
        self.over_lanes(lines, [f"{bounds}[{self.now.lane}] = ({minimum.text}, {extent.text})"])
        site = self.site(node)
        name = self.loop_variable(node, minimum, extent)
        dtype = node.var.dtype
        if node.kind is s.LoopKind.VECTORIZED:
            yield from self.lanes_of_lanes(node, bounds, name, site)
            return
        if node.kind is s.LoopKind.THREAD:
            yield from self.locked_thread_loop(node, bounds, name, site)
            return
        number, inside = self.writer.fresh("n"), self.writer.fresh("a")
        self.writer.emit(f"{number} = -1")
        with self.set_of_lanes("broken") as broken, self.writer.block("while True:", loop=True):
            self.writer.emit(f"{number} += 1")
            self.writer.emit(
                f"{inside} = [n for n in {self.now.active} if {number} < {bounds}[n][1] and n not in {broken}]"
            )
            self.writer.emit(f"if not {inside}: break")
            self.writer.emit(f"E.count(len({inside}), {site})")
            with self.activated(inside), self.set_of_lanes("continued"):
                self.keep_names([Line(0, f"{name} = DT_{dtype}.wrap({bounds}[{self.now.lane}][0] + {number})")])
                yield from self.locked(node.body)

    def locked_thread_loop(self, node: s.For, bounds: str, name: str, site: int) -> Visit:
        """A loop over threads of the running launch: each lane gets the thread's coordinate."""
        assert node.thread is not None
        axis = AXES.index(node.thread)
        if self.context.mode is not Mode.DEVICE:
            self.writer.emit(f"launch_in_lanes({self.site(node, node.thread.value)}, E)")
            return
        lane = self.now.lane
        check = f"check_extent({bounds}[{lane}][1], {axis}, {self.strand}, {site}, E)"
        wrap = f"DT_{node.var.dtype}.wrap({bounds}[{lane}][0] + {self.context.coordinates[axis]})"
        with self.set_of_lanes("continued"):
            self.keep_names([Line(0, check), Line(0, f"{name} = {wrap}")])
            yield from self.locked(node.body)

    def lanes_of_lanes(self, node: s.For, bounds: str, name: str, site: int) -> Visit:
        """A vectorised loop in another: the iterations of both are lanes."""
        was = self.now
        active, lane = self.writer.fresh("a"), self.writer.fresh("l")
        self.writer.emit(
            f"{active} = [(*n, k) for n in {was.active} for k in E.loop(*{bounds}[n], DT_{node.var.dtype}, {site})]"
        )
        self.lanes = Lanes(active, was.depth + 1, lane, dict(was.kept))
        self.keep_names([Line(0, f"{name} = {lane}[-1]")])
        with self.set_of_lanes("continued"):
            yield from self.locked(node.body)
        self.lanes = was

    def locked_while(self, node: s.While) -> Visit:
        site = self.site(node)
        inside = self.writer.fresh("a")
        self.writer.emit(f"{inside} = {self.now.active}")
        with self.set_of_lanes("broken") as broken, self.writer.block("while True:", loop=True):
            with self.activated(inside):
                lines, found = yield from self.evaluated([node.condition])
                yes, _ = self.parted(lines, found[0].text)
            self.writer.emit(f"{inside} = {yes}")
            self.writer.emit(f"if not {inside}: break")
            self.writer.emit(f"E.count(len({inside}), {site})")
            with self.activated(inside), self.set_of_lanes("continued"):
                yield from self.locked(node.body)
            self.writer.emit(f"{inside} = [n for n in {inside} if n not in {broken}]")

    def locked_block(self, node: s.Block) -> Visit:
        with self.writer.captured(self.writer.indent) as lines:
            yield from self.bind_axes(node)
        self.keep_names(lines)
        was = self.now.active
        if node.predicate is not None:
            lines, found = yield from self.evaluated([node.predicate])
            self.now.active = self.parted(lines, found[0].text)[0]
        with self.writer.captured(self.writer.indent) as lines:
            starts = yield from self.open_block(node)
            first = self.named(value(starts, BOOL, 1))
        self.keep_names(lines)
        if node.init is not None:
            yes, _ = self.parted([], first.text)
            with self.activated(yes):
                yield from self.locked(node.init)
        yield from self.locked(node.body)
        self.now.active = was
