"""The verifier's part for statements, blocks and buffers of one function. Rules: :mod:`gristmill.ir.verify`.

What is still to be done is a list, so depth does not matter. A scope ends by an entry of that list.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from gristmill.errors import Diagnostic
from gristmill.ir import expr as e
from gristmill.ir import stmt as s
from gristmill.ir.build import constant_value
from gristmill.ir.dtype import LANES_AT_MOST, SCALARS, VOID, DType
from gristmill.ir.effects import is_atomic, is_matrix
from gristmill.ir.functor import STATEMENTS, Functor, walk
from gristmill.ir.memory import Buffer, Range, Region, Scope
from gristmill.ir.module import CallingConvention, Function, Module
from gristmill.ir.node import Node
from gristmill.ir.op import MESSAGE_TEXTS
from gristmill.ir.target import Target
from gristmill.ir.verify_launches import LaunchVerifier
from gristmill.ir.verify_matrices import check_tiles, check_untouched
from gristmill.ir.verify_walk import Use, shown


@dataclass(frozen=True, slots=True)
class _Loop:
    """A loop around the statement in view; ``kind`` is None for a while loop. A device region counts as a thread loop."""

    kind: s.LoopKind | None
    thread: s.ThreadAxis | None = None
    extent: int | float | None = None
    is_region: bool = False


class StatementVerifier(LaunchVerifier):
    """Checks one function from its parameters on."""

    def __init__(self, module: Module, function: Function, diagnostics: list[Diagnostic]) -> None:
        super().__init__(module, function, diagnostics)
        self.ever: set[Node] = set()
        self.scopes: list[list[Node]] = []
        self.loops: list[_Loop] = []
        self.work: list[Callable[[], None]] = []

    def run(self) -> None:
        """Check parameters and body."""
        function = self.function
        self.open_scope()
        for size in function.sizes:
            self.define(size)
        for param in function.params:
            if isinstance(param, e.Var):
                self.define(param)
        for param in function.params:
            if isinstance(param, Buffer):
                self.define_buffer(param, defines_data=True)
                check_untouched(self, param, param)
        self.body(function.body)
        while self.work:
            self.work.pop()()

    @property
    def in_unordered_loop(self) -> bool:
        return any(loop.kind in (s.LoopKind.PARALLEL, s.LoopKind.VECTORIZED) for loop in self.loops)

    # Scopes

    def open_scope(self) -> None:
        self.scopes.append([])

    def close_scope(self) -> None:
        self.visible.difference_update(self.scopes.pop())

    def define(self, found: e.Var | Buffer) -> None:
        kind = "variable" if isinstance(found, e.Var) else "buffer"
        if found in self.ever:
            hint = "a pass that repeats code must give its names anew"
            self.report("GM0425", f"the {kind} `{found.name}` is defined twice", found, hint)
        self.ever.add(found)
        self.visible.add(found)
        self.scopes[-1].append(found)

    def define_buffer(self, buffer: Buffer, *, defines_data: bool | None) -> None:
        """A definition; ``defines_data`` None: unless the data is in scope already."""
        if not isinstance(buffer, Buffer):
            self.report("GM0446", f"a buffer is expected, not {type(buffer).__name__}")
            return
        outside = self.where
        self.where = buffer.span or outside
        name, data = buffer.name, buffer.data
        if buffer.dtype.element not in SCALARS:
            self.report("GM0426", f"the buffer `{name}` cannot have elements of type {buffer.dtype}", buffer)
        for what, sizes in (("the shape", buffer.shape), ("the strides", buffer.strides)):
            for size in sizes:
                self.index(size, f"{what} of `{name}`")
        if buffer.offset is not None:
            self.index(buffer.offset, f"the offset of `{name}`")
        if buffer.strides and len(buffer.strides) != buffer.rank:
            message = f"the buffer `{name}` has {buffer.rank} dimensions and {len(buffer.strides)} strides"
            self.report("GM0426", message, buffer)
        if buffer.alignment < 0 or buffer.alignment & (buffer.alignment - 1):
            self.report("GM0426", f"the alignment {buffer.alignment} of `{name}` is no power of two", buffer)
        if any(isinstance(size, e.IntImm) and size.value < 0 for size in buffer.shape):
            self.report("GM0426", f"the buffer `{name}` has a negative size", buffer)
        if not data.type.is_handle:
            self.report("GM0427", f"the data `{data.name}` of `{name}` is {data.type}, not a handle", buffer)
        elif data.pointer is not None and data.pointer.scope is not buffer.scope:
            scopes = f"{buffer.scope.value} memory, its data `{data.name}` in {data.pointer.scope.value} memory"
            self.report("GM0427", f"the buffer `{name}` is in {scopes}", buffer)
        if defines_data or (defines_data is None and data not in self.visible):
            self.define(data)
        elif data not in self.visible:
            self.report("GM0424", f"the data `{data.name}` of `{name}` is used where it is not defined", buffer)
        self.define(buffer)
        self.where = outside

    # Statements

    def later(self, *steps: Callable[[], None]) -> None:
        """Do these next, in this order."""
        self.work.extend(reversed(steps))

    def body(self, body: s.Stmt, loop: _Loop | None = None) -> None:
        """A nested statement, whose definitions end with it."""
        steps: list[Callable[[], None]] = [self.open_scope, partial(self.statement, body), self.close_scope]
        if loop is not None:
            was = self.in_thread_loop
            steps = [partial(self.enter, loop), *steps, partial(self.leave, was)]
        self.later(*steps)

    def enter(self, loop: _Loop) -> None:
        self.loops.append(loop)
        self.in_thread_loop = self.in_thread_loop or loop.kind is s.LoopKind.THREAD

    def leave(self, in_thread_loop: bool) -> None:
        self.loops.pop()
        self.in_thread_loop = in_thread_loop

    def statement(self, node: s.Stmt) -> None:
        if not isinstance(node, s.Stmt) or type(node) not in _Statements.table:
            self.report("GM0446", f"a statement is expected, not {type(node).__name__}")
            return
        outside = self.where
        self.where = node.span or outside

        def restore() -> None:
            self.where = outside

        self.work.append(restore)
        _Statements.table[type(node)](self, node)

    def bind(self, node: s.Bind) -> None:
        is_pointer = node.var.type.is_handle
        self.bound = node.value
        dtype = self.expression(node.value, Use.POINTER if is_pointer else Use.VALUE)
        if dtype.is_void:
            self.report("GM0414", f"`{node.var.name}` is bound to a call that gives no value", node)
        elif dtype != node.var.type:
            self.report("GM0410", f"`{node.var.name}` is {node.var.type} and is bound to {dtype}", node)
        self.define(node.var)

    def allocate(self, node: s.Allocate) -> None:
        self.define_buffer(node.buffer, defines_data=True)
        if isinstance(node.buffer, Buffer):
            self.check_allocation(node.buffer)

    def check_allocation(self, buffer: Buffer) -> None:
        check_tiles(self, buffer)
        is_shared = buffer.scope in (Scope.SHARED, Scope.WARP)
        if is_shared and any(not _is_constant(size) for size in buffer.shape):
            hint = "memory whose size the launch gives has the scope `shared.dyn`"
            self.report(
                "GM0426", f"the {buffer.scope.value} buffer `{buffer.name}` needs a constant size", buffer, hint
            )
        if buffer.strides or buffer.offset is not None:
            # Strides and an offset describe memory that exists; a new one is as large as its shape.
            if buffer.offset is not None and constant_value(buffer.offset) != 0:
                self.report("GM0426", f"the new buffer `{buffer.name}` cannot begin at an offset", buffer)
            if buffer.strides and not all(_is_size(stride) for stride in buffer.strides):
                self.report("GM0426", f"the new buffer `{buffer.name}` has a negative stride", buffer)

    def view(self, node: s.View) -> None:
        if node.source is not None:
            dtype = self.expression(node.source, Use.POINTER)
            if not dtype.is_handle:
                self.report("GM0427", f"the source of the view `{node.buffer.name}` is {dtype}, not a pointer", node)
        self.define_buffer(node.buffer, defines_data=node.source is not None)
        check_untouched(self, node, node.buffer)

    def store(self, node: s.Store) -> None:
        types = tuple(self.expression(index) for index in node.indices)
        dtype = self.expression(node.value)
        wanted = self.access(node, node.buffer, types)
        if dtype.is_void:
            self.report("GM0414", f"the stored {shown(node.value)} gives no value", node)
        elif dtype != wanted:
            self.report("GM0419", f"{dtype} is stored where `{node.buffer.name}` takes {wanted}", node, "cast it")

    def assertion(self, node: s.Assert) -> None:
        self.condition(node.condition, "the assertion")
        kind = getattr(builtins, node.kind, None)
        if not (isinstance(kind, type) and issubclass(kind, Exception)):
            self.report("GM0445", f"`{node.kind}` is not a built-in exception class", node)
        for part in node.message:
            if isinstance(part, str):
                continue
            dtype = self.expression(part, Use.MESSAGE)
            is_text = isinstance(part, e.Call) and part.op.name in MESSAGE_TEXTS
            if not (is_text or dtype.is_integer or dtype.is_bool) or dtype.is_vector:
                self.report("GM0445", f"a message shows texts, integers and bools, not {dtype}: {shown(part)}", node)

    # Control

    def sequence(self, node: s.Seq) -> None:
        for statement in node.body:
            if isinstance(statement, s.Seq):
                self.report("GM0446", "a sequence stands directly in a sequence", statement)
        self.later(*(partial(self.statement, statement) for statement in node.body))

    def loop(self, node: s.For) -> None:
        types = (self.expression(node.minimum), self.expression(node.extent), node.var.type)
        name = node.var.name
        if not node.var.type.is_integer or node.var.type.is_vector or len(set(types)) > 1:
            listed = f"variable {types[2]}, minimum {types[0]}, extent {types[1]}"
            self.report("GM0432", f"the loop over `{name}` needs one scalar integer type: {listed}", node)
        extent = constant_value(node.extent)
        if node.kind is s.LoopKind.VECTORIZED and (extent is None or extent > LANES_AT_MOST):
            message = f"the vectorized loop over `{name}` needs a constant extent of at most {LANES_AT_MOST}"
            self.report("GM0434", f"{message}, not {shown(node.extent)}", node)
        if (node.kind is s.LoopKind.THREAD) != (node.thread is not None):
            hint = "a loop over threads names its axis, and no other loop does"
            self.report("GM0433", f"the {node.kind.value} loop over `{name}` has the axis {node.thread}", node, hint)
        self.thread_axis(node, extent)
        if node.hints.unroll < 0 or node.hints.vector_width < 0:
            self.report("GM0432", f"the hints of the loop over `{name}` are negative", node)
        inner = _Loop(node.kind, node.thread, extent)
        body = partial(self.body, node.body, inner)
        self.later(self.open_scope, partial(self.define, node.var), body, self.close_scope)

    def thread_axis(self, node: s.For, extent: int | float | None) -> None:
        if node.kind is s.LoopKind.THREAD and self.function.facts.convention is CallingConvention.PACKED_HOST:
            self.report("GM0444", "a loop over threads cannot stand in a function of the packed host interface", node)
        for outer in self.loops:
            if node.thread is None or outer.thread is not node.thread:
                continue
            if extent is not None and outer.extent is not None and extent != outer.extent:
                message = f"a loop over {node.thread.value} of {extent} stands in one of {outer.extent}"
                self.report("GM0433", message, node, "loops over one axis have equal extents")

    def while_(self, node: s.While) -> None:
        self.condition(node.condition, "the loop")
        self.body(node.body, _Loop(None))

    def break_(self, node: s.Break) -> None:
        kinds = (None, s.LoopKind.SERIAL, s.LoopKind.UNROLLED)
        if not self.is_in_loop:
            self.report("GM0430", "`break` stands outside of every loop", node)
        elif (kind := self.loops[-1].kind) not in kinds:
            name = kind.value if kind else "while"
            self.report("GM0430", f"`break` cannot leave a {name} loop: its iterations have no order", node)

    def continue_(self, node: s.Continue) -> None:
        if not self.is_in_loop:
            self.report("GM0430", "`continue` stands outside of every loop", node)

    @property
    def is_in_loop(self) -> bool:
        """Whether a loop is there to leave; none around a device region can be left from inside."""
        return bool(self.loops) and not self.loops[-1].is_region

    def return_(self, node: s.Return) -> None:
        dtype = VOID if node.value is None else self.expression(node.value)
        returns = self.function.returns
        if dtype != returns or (node.value is not None and dtype.is_void):
            given = "nothing" if node.value is None else f"{dtype}"
            wanted = "nothing" if returns.is_void else f"{returns}"
            self.report("GM0431", f"`{self.function.name}` returns {wanted}, and this `return` gives {given}", node)
        if self.in_unordered_loop:
            self.report("GM0430", "`return` cannot leave a parallel or vectorized loop: it has no order", node)

    def if_(self, node: s.If) -> None:
        self.condition(node.condition, "`if`")
        if node.otherwise is not None:
            self.body(node.otherwise)
        self.body(node.then)

    # Blocks

    def block(self, node: s.Block) -> None:
        # The axes, and the buffers of the block, are seen in the whole block and nowhere else.
        self.later(self.open_scope, partial(self.block_parts, node), self.close_scope)

    def block_parts(self, node: s.Block) -> None:
        if node.predicate is not None:
            self.condition(node.predicate, f"the block `{node.name}`")
        for axis in node.axes:
            self.axis(axis)
        for buffer in node.allocations:
            self.define_buffer(buffer, defines_data=True)
            self.check_allocation(buffer)
        for region in (*(node.reads or ()), *(node.writes or ())):
            self.region(region)
        for match in node.matches:
            self.match(match)
        self.body(node.body)
        if node.init is not None:
            self.body(node.init)

    def axis(self, axis: s.BlockAxis) -> None:
        types = [self.range(axis.domain), self.expression(axis.value)]
        wanted = axis.var.type
        if not wanted.is_integer or wanted.is_vector or any(dtype != wanted for dtype in types):
            listed = f"variable {wanted}, domain {types[0]}, value {types[1]}"
            self.report("GM0435", f"the axis `{axis.var.name}` needs one scalar integer type: {listed}", axis)
        self.define(axis.var)

    def range(self, found: Range) -> DType:
        minimum, extent = self.index(found.minimum, "a range"), self.index(found.extent, "a range")
        if minimum != extent:
            self.report("GM0410", f"the range {shown(found)} is {minimum} and {extent}", found)
        return minimum

    def region(self, region: Region) -> None:
        types = []
        for found in region.ranges:
            types.append(self.expression(found.minimum))
            extent = self.index(found.extent, "the extent of a range")
            if types[-1].is_integer and types[-1] != extent and extent.is_integer:
                self.report("GM0410", f"the range {shown(found)} is {types[-1]} and {extent}", found)
        self.access(region, region.buffer, tuple(types), vector=False)

    def match(self, match: s.MatchBuffer) -> None:
        self.region(match.region)
        source, buffer = match.region.buffer, match.buffer
        if (source.dtype, source.scope) != (buffer.dtype, buffer.scope):
            given = f"{buffer.dtype} in {buffer.scope.value} memory"
            wanted = f"{source.dtype} in {source.scope.value} memory"
            message = f"`{buffer.name}` is {given} and stands for a region of {wanted}"
            self.report("GM0435", message, match)
        if buffer.rank > source.rank:
            message = f"`{buffer.name}` has {buffer.rank} dimensions, the region of `{source.name}` {source.rank}"
            self.report("GM0435", message, match)
        self.define_buffer(buffer, defines_data=None)

    # Devices

    def device_region(self, node: s.DeviceRegion) -> None:
        if not isinstance(node.target, Target):
            self.report("GM0446", f"the target of a device region is a {type(node.target).__name__}", node)
        if self.is_device_code:
            self.report("GM0444", "a device region cannot stand in code of a device", node)
        elif self.function.facts.convention is CallingConvention.PACKED_HOST:
            self.report("GM0444", "a device region cannot stand in a function of the packed host interface", node)
        self.begins_launch = True
        self.body(node.body, _Loop(s.LoopKind.THREAD, is_region=True))

    def evaluate(self, node: s.Evaluate) -> None:
        self.bound = node.value if is_atomic(node.value) or is_matrix(node.value) else None
        self.expression(node.value)


class _Statements(Functor[None], over=STATEMENTS):
    """Which method checks which statement."""

    visit_Seq = StatementVerifier.sequence
    visit_Bind = StatementVerifier.bind
    visit_Allocate = StatementVerifier.allocate
    visit_View = StatementVerifier.view
    visit_Store = StatementVerifier.store
    visit_Evaluate = StatementVerifier.evaluate
    visit_Assert = StatementVerifier.assertion
    visit_For = StatementVerifier.loop
    visit_While = StatementVerifier.while_
    visit_Break = StatementVerifier.break_
    visit_Continue = StatementVerifier.continue_
    visit_Return = StatementVerifier.return_
    visit_If = StatementVerifier.if_
    visit_Block = StatementVerifier.block
    visit_Barrier = StatementVerifier.barrier
    visit_DeviceRegion = StatementVerifier.device_region
    visit_Launch = StatementVerifier.launch


def _is_constant(size: e.Expr) -> bool:
    """Whether a size is made of constants alone."""
    return not any(isinstance(node, (e.Var, e.Load, e.CallFunction, e.CallExtern, e.CallPacked)) for node in walk(size))


def _is_size(value: e.Expr) -> bool:
    return not isinstance(value, e.IntImm) or value.value >= 0


def variables_in(nodes: Iterable[Node]) -> set[e.Var]:
    """The variables that occur in any of the nodes."""
    return {found for node in nodes for found in walk(node) if isinstance(found, e.Var)}
