"""Vectorised loops without a vector form, run in lock step by scalar code: each statement for all lanes, then the next.

Every simple statement becomes a loop over the lanes; what a lane names is kept in memory, one element a lane. Where
lanes part, a mask says which of them run. A store evaluates its operands for all lanes before any lane writes.

This is for the loops that cannot be done better: right, and not fast.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from gristmill.ir.build import cast, conjunction, const, false, less, sequence, true
from gristmill.ir.dtype import BOOL, HANDLE, INT64, DType
from gristmill.ir.effects import is_atomic
from gristmill.ir.expr import Add, AddressOf, Expr, FloorDiv, FloorMod, IntImm, Load, Max, Not, Var
from gristmill.ir.functor import substitute, walk
from gristmill.ir.memory import Buffer, PointerType, Scope
from gristmill.ir.node import Node
from gristmill.ir.span import Span
from gristmill.ir.stmt import (
    Allocate,
    Assert,
    Bind,
    Break,
    Continue,
    Evaluate,
    For,
    If,
    LoopKind,
    Seq,
    Stmt,
    Store,
    View,
    While,
)
from gristmill.passes.layout import as_int64, times


def lock_step(loop: For, lanes: int) -> Stmt:
    """The loop as scalar code that runs its ``lanes`` iterations in lock step."""
    start = Var(loop.var.name, loop.var.type, span=loop.var.span)
    scalar = _LockStep(lanes, start, loop.var)
    scalar.open_flags("continued")
    scalar.statement(loop.body)
    return sequence(Bind(start, loop.minimum, loop.span), *scalar.head, *scalar.out, span=loop.span)


def lane_buffer(name: str, dtype: DType, shape: tuple[Expr, ...]) -> Buffer:
    """Memory of one thread."""
    return Buffer(name, dtype, shape, Var(f"{name}_data", HANDLE, PointerType(dtype, Scope.LOCAL)), scope=Scope.LOCAL)


class _LockStep:
    def __init__(self, lanes: int, start: Var, loop_var: Var) -> None:
        self.lanes = lanes
        self.start = start
        self.loop_var = loop_var
        self.head: list[Stmt] = []
        self.out: list[Stmt] = []
        self.kept: dict[Var, Buffer] = {}
        self.pointers: dict[Var, Expr] = {}
        self.own: dict[Buffer, tuple[Buffer, Expr, int]] = {}
        """For memory that each lane has its own of: that of all lanes, the size of a part, how many lanes share one."""
        self.views: dict[Buffer, View] = {}
        self.mask: Buffer | None = None
        self.flags: list[dict[str, Buffer]] = [{}]

    # Memory of lanes --------------------------------------------------------------------------------------------------

    def new(self, name: str, dtype: DType) -> Buffer:
        """Memory with one element a lane, declared before everything."""
        buffer = lane_buffer(name, dtype, (const(self.lanes, INT64),))
        self.head.append(Allocate(buffer))
        return buffer

    def open_flags(self, name: str) -> Buffer:
        """A flag a lane, true while the lane has not left."""
        flag = self.new(name, BOOL)
        self.flags[-1][name] = flag
        self.set_all(flag, True)
        return flag

    def set_all(self, flag: Buffer, value: bool) -> None:
        self.every_lane(lambda lane: Store(flag, (lane,), true() if value else false()))

    def every_lane(self, make: Callable[[Var], Stmt]) -> None:
        """A loop over all lanes, those that do not run too."""
        lane = Var("lane", INT64)
        self.out.append(self.loop(lane, make(lane)))

    def loop(self, lane: Var, body: Stmt, span: Span | None = None) -> For:
        return For(lane, const(0, INT64), const(self.lanes, INT64), LoopKind.SERIAL, body, span=span)

    # Loops over lanes -------------------------------------------------------------------------------------------------

    def active(self, lane: Var) -> Expr:
        """Whether a lane runs here."""
        masks = [] if self.mask is None else [self.mask]
        masks += [flag for level in self.flags for flag in level.values()]
        return conjunction(Load(mask, (lane,)) for mask in masks)

    def over_lanes(
        self, make: Callable[[Var], Iterable[Stmt]], span: Span | None, before: Callable[[Var], Stmt] | None = None
    ) -> None:
        """A loop over the lanes that run here, of what ``make`` writes for one; ``before`` runs for all lanes."""
        lane = Var("lane", INT64)
        body = self.with_own(lane, sequence(*make(lane)))
        guarded = If(self.active(lane), body, None, span)
        self.out.append(self.loop(lane, guarded if before is None else sequence(before(lane), guarded), span))

    def with_own(self, lane: Var, body: Stmt) -> Stmt:
        """Code for one lane: the names that it uses are read from the lane's memory, and its buffers declared."""
        for _ in self.pointers:
            body = substitute(body, self.pointers)
        declared = self.used_buffers(body)
        sources = [self.views[buffer].source for buffer in declared if buffer in self.views]
        binds, values = self.names_for(lane, [body, *declared, *(source for source in sources if source is not None)])
        declarations: list[Stmt] = []
        buffers: dict[Buffer, Buffer] = {}
        for buffer in declared:
            source: Expr | None
            if buffer in self.own:
                # The lane's part of the memory of all lanes.
                own, size, sharing = self.own[buffer]
                source = AddressOf(own, (times(_group(lane, sharing), size),))
            else:
                source = self.views[buffer].source
                source = None if source is None else substitute(source, values, buffers)
            if source is not None:
                values[buffer.data] = replace(buffer.data)
            data = values.get(buffer.data, buffer.data)
            assert isinstance(data, Var)
            fresh = replace(
                buffer,
                shape=tuple(substitute(part, values, buffers) for part in buffer.shape),
                strides=tuple(substitute(part, values, buffers) for part in buffer.strides),
                offset=None if buffer.offset is None else substitute(buffer.offset, values, buffers),
                data=data,
            )
            buffers[buffer] = fresh
            declarations.append(View(fresh, source))
        return sequence(*binds, *declarations, substitute(body, values, buffers))

    def names_for(self, lane: Var, nodes: Iterable[Node]) -> tuple[list[Stmt], dict[Var, Expr]]:
        """Names for what the lane has of the variables that the nodes mention, and those names by variable."""
        binds: list[Stmt] = []
        values: dict[Var, Expr] = {}
        for var in [part for node in nodes for part in walk(node) if isinstance(part, Var)]:
            if var in values:
                continue
            if var in self.kept:
                value: Expr = Load(self.kept[var], (lane,))
            elif var is self.loop_var:
                value = Add(self.start, cast(lane, var.type))
            else:
                continue
            name = Var(var.name, var.type)
            values[var] = name
            binds.append(Bind(name, value))
        return binds, values

    def used_buffers(self, body: Stmt) -> list[Buffer]:
        """The buffers of lanes, and views, that the code uses, sources of views before them."""
        found: dict[Buffer, None] = {}

        def use(buffer: Buffer) -> None:
            if buffer in self.own:
                found[buffer] = None
            elif buffer in self.views and buffer not in found:
                for other in self.own:
                    if other.data is buffer.data:
                        use(other)
                for other in self.views:
                    if other is not buffer and other.data is buffer.data and self.views[other].source is not None:
                        use(other)
                source = self.views[buffer].source
                for node in walk(source) if source is not None else ():
                    inner = getattr(node, "buffer", None)
                    if inner is not None:
                        use(inner)
                found[buffer] = None

        for node in walk(body):
            buffer = getattr(node, "buffer", None)
            if isinstance(buffer, Buffer):
                use(buffer)
        return list(found)

    def evaluated(self, name: str, value: Expr, span: Span | None) -> Buffer:
        """Memory with the value of an expression for each lane that runs here."""
        kept, old = self.new(name, value.dtype), Var(name, value.dtype)
        before, stored = ([Bind(old, value, span)], old) if is_atomic(value) else ([], value)
        self.over_lanes(lambda lane: [*before, Store(kept, (lane,), stored, span)], span)
        return kept

    # Statements -------------------------------------------------------------------------------------------------------

    def statement(self, node: Stmt) -> None:
        """Write a statement of the loop's body for all lanes that run here."""
        match node:
            case Seq():
                for part in node.body:
                    self.statement(part)
            case Bind() if node.var.type.is_handle:
                self.pointers[node.var] = node.value
            case Bind():
                self.kept[node.var] = self.evaluated(node.var.name, node.value, node.span)
            case Store():
                self.store(node)
            case Allocate():
                self.allocate(node)
            case View():
                self.views[node.buffer] = node
            case Evaluate() | Assert():
                self.over_lanes(lambda lane: [node], node.span)
            case If():
                self.branch(node)
            case For() if node.kind is LoopKind.VECTORIZED:
                self.lanes_of_lanes(node)
            case For():
                self.serial_loop(node)
            case While():
                self.while_loop(node)
            case Continue():
                self.leave("continued", node.span)
            case Break():
                self.leave("broken", node.span)
            case _:
                raise TypeError(f"a {type(node).__name__} in a vectorised loop")

    def leave(self, which: str, span: Span | None) -> None:
        self.over_lanes(lambda lane: [Store(self.flags[-1][which], (lane,), false(), span)], span)

    def store(self, node: Store) -> None:
        operands = (*node.indices, node.value)
        if not any(isinstance(part, Load) for operand in operands for part in walk(operand)):
            self.over_lanes(lambda lane: [node], node.span)
            return
        kept = [self.new(f"operand_{number}", operand.dtype) for number, operand in enumerate(operands)]
        self.over_lanes(
            lambda lane: [Store(to, (lane,), value, node.span) for to, value in zip(kept, operands, strict=True)],
            node.span,
        )

        def write(lane: Var) -> list[Stmt]:
            values: list[Expr] = [Load(buffer, (lane,)) for buffer in kept]
            return [Store(node.buffer, tuple(values[:-1]), values[-1], node.span)]

        self.over_lanes(write, node.span)

    def allocate(self, node: Allocate) -> None:
        """Memory for all lanes, of which each lane has a part."""
        size: Expr = const(1, INT64)
        for extent in node.buffer.shape:
            size = times(size, as_int64(extent))
        data = Var(node.buffer.data.name, node.buffer.data.type, node.buffer.data.pointer)
        shape = (times(size, const(self.lanes, INT64)),)
        own = replace(node.buffer, shape=shape, strides=(), offset=None, data=data)
        self.out.append(replace(node, buffer=own))
        self.own[node.buffer] = (own, size, 1)

    def branch(self, node: If) -> None:
        yes, no = self.new("then", BOOL), self.new("otherwise", BOOL)
        self.split(node.condition, yes, no, node.span)
        outside = self.mask
        self.mask = yes
        self.statement(node.then)
        if node.otherwise is not None:
            self.mask = no
            self.statement(node.otherwise)
        self.mask = outside

    def split(self, condition: Expr, yes: Buffer, no: Buffer | None, span: Span | None) -> None:
        """Masks of the lanes that run here: where the condition is true, and where not."""
        var = Var("condition", BOOL)

        def decide(lane: Var) -> Iterable[Stmt]:
            yield Bind(var, condition, span)
            yield Store(yes, (lane,), var)
            if no is not None:
                yield Store(no, (lane,), Not(var))

        def clear(lane: Var) -> Stmt:
            masks = [yes] if no is None else [yes, no]
            return sequence(*(Store(mask, (lane,), false()) for mask in masks))

        self.over_lanes(decide, span, clear)

    def nested(self, write: Callable[[], None]) -> Stmt:
        """The code that ``write`` writes, as one statement."""
        outside, self.out = self.out, []
        write()
        found, self.out = sequence(*self.out), outside
        return found

    def serial_loop(self, node: For) -> None:
        minimum = self.evaluated("minimum", node.minimum, node.span)
        extent = self.evaluated("extent", node.extent, node.span)
        dtype = node.var.dtype
        most = lane_buffer("most", dtype, ())
        self.out.append(Allocate(most))
        self.out.append(Store(most, (), const(0, dtype)))
        self.over_lanes(lambda lane: [Store(most, (), Max(Load(most, ()), Load(extent, (lane,))))], node.span)
        count = Var("count", dtype)
        outside = self.mask
        inside, value = self.new("inside", BOOL), self.new(node.var.name, dtype)

        def iteration() -> None:
            self.split_by(lambda lane: less(count, Load(extent, (lane,))), inside)
            self.mask = inside
            self.set_all(self.flags[-1]["continued"], True)
            self.over_lanes(lambda lane: [Store(value, (lane,), Add(Load(minimum, (lane,)), count))], node.span)
            self.kept[node.var] = value
            self.statement(node.body)
            self.mask = outside

        self.flags.append({})
        self.open_flags("broken")
        self.open_flags("continued")
        # The mask of an iteration asks all lanes, also those whose last iteration was cut short.
        body = self.nested(iteration)
        self.flags.pop()
        self.out.append(For(count, const(0, dtype), Load(most, ()), LoopKind.SERIAL, body, span=node.span))

    def lanes_of_lanes(self, node: For) -> None:
        """A vectorised loop in another: the iterations of both are lanes, those of the inner one side by side."""
        assert isinstance(node.extent, IntImm)
        inner = node.extent.value
        if inner <= 0:
            return
        minimum = self.evaluated("minimum", node.minimum, node.span)
        outer_mask = self.new("inside", BOOL)
        self.every_lane(lambda lane: Store(outer_mask, (lane,), self.active(lane)))
        mentioned = {part for part in walk(node.body) if isinstance(part, Var)}
        names = {var: kept for var, kept in self.kept.items() if var in mentioned}
        if self.loop_var in mentioned and self.loop_var not in names:
            names[self.loop_var] = self.evaluated(self.loop_var.name, self.loop_var, node.span)
        outside = self.lanes, self.kept, self.own, self.mask, self.flags
        self.lanes, self.flags = self.lanes * inner, [{}]
        self.own = {buffer: (own, size, sharing * inner) for buffer, (own, size, sharing) in self.own.items()}
        self.mask = self.new("inside", BOOL)
        mask = self.mask
        self.every_lane(lambda lane: Store(mask, (lane,), Load(outer_mask, (_group(lane, inner),))))
        self.kept = {var: self.new(var.name, var.type) for var in (*names, node.var)}

        def copies(lane: Var) -> Stmt:
            outer = _group(lane, inner)
            number = cast(FloorMod(lane, const(inner, INT64)), node.var.type)
            values: dict[Var, Expr] = {var: Load(kept, (outer,)) for var, kept in names.items()}
            values[node.var] = Add(Load(minimum, (outer,)), number)
            stores = (Store(self.kept[var], (lane,), value) for var, value in values.items())
            return If(Load(mask, (lane,)), sequence(*stores))

        self.every_lane(copies)
        self.open_flags("continued")
        self.statement(node.body)
        self.lanes, self.kept, self.own, self.mask, self.flags = outside

    def split_by(self, condition: Callable[[Var], Expr], mask: Buffer) -> None:
        """The mask of those lanes of the enclosing code, whose condition (of the lane's number) is true."""
        continued = self.flags[-1].pop("continued")
        self.every_lane(lambda lane: Store(mask, (lane,), conjunction((self.active(lane), condition(lane)))))
        self.flags[-1]["continued"] = continued

    def while_loop(self, node: While) -> None:
        outside = self.mask
        inside = self.new("inside", BOOL)
        more = lane_buffer("more", BOOL, ())
        self.flags.append({})
        self.open_flags("broken")
        self.open_flags("continued")
        self.split_by(lambda lane: true(), inside)
        self.out += [Allocate(more), Store(more, (), true())]
        again = Var("condition", BOOL)

        def iteration() -> None:
            self.out.append(Store(more, (), false()))
            self.set_all(self.flags[-1]["continued"], True)
            self.mask = inside
            self.over_lanes(
                lambda lane: [
                    Bind(again, node.condition, node.span),
                    Store(inside, (lane,), again),
                    If(again, Store(more, (), true())),
                ],
                node.span,
            )
            self.statement(node.body)
            self.mask = outside

        body = self.nested(iteration)
        self.flags.pop()
        self.out.append(While(Load(more, ()), body, node.span))


def _group(lane: Expr, size: int) -> Expr:
    """Which group of so many lanes side by side the lane is in."""
    return lane if size == 1 else FloorDiv(lane, const(size, INT64))
