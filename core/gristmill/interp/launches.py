"""Python text for launches and for what the threads of a launch run.

A device region, and a loop over threads in serial or parallel code, begins a launch: its body becomes a part that every
thread runs, and the loop gives a thread its coordinate. What stands between loops over threads is thus run by each
thread; where several threads store there, they do one and the same piece of work. Code with barriers is a generator.
"""

from __future__ import annotations

from gristmill.interp.analysis import launch_plan, may_wait, used_memory
from gristmill.interp.blocks import BlockWriter
from gristmill.interp.buffers import tuple_text
from gristmill.interp.definitions import Context, Mode
from gristmill.interp.exchanges import alone
from gristmill.interp.expressions import Raw, Visit
from gristmill.interp.runtime_reports import AXES
from gristmill.interp.source import Line, captures
from gristmill.interp.values import Value, value
from gristmill.ir import expr as e
from gristmill.ir import stmt as s
from gristmill.ir.effects import matrix_element
from gristmill.ir.memory import MATRIX_SCOPES, Scope


class LaunchWriter(BlockWriter, over=()):
    """Writes loops over threads, barriers and launches."""

    that_wait: frozenset[str]

    def visit_Barrier(self, node: s.Barrier) -> None:
        # Outside of launches one thread runs alone, and waits for nobody.
        if self.context.mode is Mode.DEVICE:
            self.writer.emit(f"yield {self.barrier_site(node)}")

    def exchange(self, node: e.Call, args: list[Value]) -> Value:
        site = self.site(node, node.op.name)
        if self.context.mode is not Mode.DEVICE:
            return self.named(value(alone(node.op.name, args[0].text), node.type, 1))
        operands = [f"{args[-1].low}", *(arg.text for arg in args[:-1])]
        name = self.writer.fresh("t")
        self.writer.emit(f"{name} = yield Exchange({site}, {self.constant(node.op.name)}, {', '.join(operands)})")
        return value(name, node.type)

    def together(self, node: e.Call, operands: list[str], width: int) -> Value:
        element = matrix_element(node)
        site = self.site(node, node.op.name if element is None else element.buffer.name)
        brought = f"Exchange({site}, {self.constant(node.op.name)}, {width}, {tuple_text(operands)})"
        # Outside of launches one thread is alone in its group.
        if self.context.mode is Mode.DEVICE:
            self.writer.emit(f"yield {brought}", site)
        else:
            self.writer.emit(f"matrix_alone(E, {brought}, {self.strand})", site)
        return Value("None", node.type)

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

    def visit_DeviceRegion(self, node: s.DeviceRegion) -> Visit:
        if self.context.mode is Mode.DEVICE:
            yield from self.body(node.body)
        else:
            yield from self.launch_region(node)

    def launch_region(self, node: s.For | s.DeviceRegion) -> Visit:
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
        generator = may_wait(node, self.that_wait)
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

    def instances(self, outer: Context, region: s.For | s.DeviceRegion) -> Visit:
        """Inside of a launch: the block's and the thread's own memory for what was allocated outside of it."""
        used = used_memory(region)
        for buffer, node in reversed(outer.outside):
            if buffer in used or buffer.data in used:
                # What a buffer is a view of is used as well.
                used |= {buffer, buffer.data} | used_memory(node)
        for buffer, node in outer.outside:
            if buffer not in used:
                continue
            if buffer.scope in MATRIX_SCOPES:
                self.tiles(buffer)
                continue
            site = self.site(node, buffer.name)
            if isinstance(node, s.MatchBuffer):
                yield from self.match(node)
                continue
            if not isinstance(node, s.View):
                sizes = yield from self.expressions(buffer.shape)
                pointer = self.writer.fresh("v")
                if buffer.scope is Scope.LOCAL and buffer.rank == 0:
                    key, given = self.allocation_number(buffer), self.variables[buffer.data].text
                    self.writer.emit(f"{pointer} = E.own_copy(({key}, X.thread), {site}, X, {given})")
                else:
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
