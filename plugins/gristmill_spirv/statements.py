"""Statements to SPIR-V: control flow, names, memory, barriers."""

from __future__ import annotations

import os

from gristmill.ir import stmt as ir
from gristmill.ir.dtype import UINT32, DType
from gristmill.ir.functor import STATEMENTS, Functor
from gristmill.ir.span import Span
from gristmill_spirv import memory
from gristmill_spirv.allocation import allocate
from gristmill_spirv.asserts import write_assert
from gristmill_spirv.context import FunctionContext
from gristmill_spirv.conversions import cast
from gristmill_spirv.enumerants import Capability, MemoryModel, MemorySemantics, Op
from gristmill_spirv.enumerants import Scope as Group
from gristmill_spirv.integers import wrap
from gristmill_spirv.refusals import refused_construct
from gristmill_spirv.registers import constant, register_type, word_constant
from gristmill_spirv.zeros import float_constant

_LOWERED = "run core's pipeline first; it lowers this construct"
_ORDERED = MemorySemantics.AcquireRelease
_SEEN = {
    ir.BarrierScope.WARP: _ORDERED | MemorySemantics.WorkgroupMemory,
    ir.BarrierScope.BLOCK: _ORDERED | MemorySemantics.WorkgroupMemory,
    ir.BarrierScope.BLOCK_AND_GLOBAL: _ORDERED | MemorySemantics.WorkgroupMemory | MemorySemantics.UniformMemory,
}


class Statements(Functor[None], over=STATEMENTS):
    """Writes the statements of one function."""

    def __init__(self, context: FunctionContext) -> None:
        self.context = context
        self.writer = context.writer

    # Sequence and names ---------------------------------------------------------------------------------------------

    def visit_Seq(self, node: ir.Seq) -> None:
        for statement in node.body:
            if not self.writer.is_open:  # what stands after a return, break or continue never runs
                return
            self.visit(statement)

    def visit_Bind(self, node: ir.Bind) -> None:
        if node.var.dtype.is_handle:
            self.context.places[node.var] = memory.pointed_to(self.context, node.value)
        else:
            self.line(node.span)
            before = self.writer.module.bound
            lanes = self.context.values[node.var] = self.context.evaluate(node.value)
            # Only what was made for this name is called by it.
            if len(lanes) == 1 and lanes[0] >= before and self.writer.is_open:
                self.writer.module.name(lanes[0], node.var.name)
            self.context.bindings[node.var] = node.value

    def visit_Allocate(self, node: ir.Allocate) -> None:
        allocate(self.context, node)

    def visit_View(self, node: ir.View) -> None:
        if node.source is not None:
            self.context.places[node.buffer.data] = memory.pointed_to(self.context, node.source)

    # Effects --------------------------------------------------------------------------------------------------------

    def visit_Store(self, node: ir.Store) -> None:
        self.line(node.span)
        memory.store(self.context, node)

    def visit_Evaluate(self, node: ir.Evaluate) -> None:
        self.line(node.span)
        self.context.evaluate(node.value)

    def visit_Assert(self, node: ir.Assert) -> None:
        """Nothing, unless the target asks for reports: a shader has no way to stop its launch with an error."""
        if self.context.kernel.profile.asserts:
            self.line(node.span)
            write_assert(self.context, node)

    # Control --------------------------------------------------------------------------------------------------------

    def visit_If(self, node: ir.If) -> None:
        self.line(node.span)
        (condition,) = self.context.evaluate(node.condition)
        otherwise = node.otherwise
        self.writer.selection(
            condition,
            lambda: self.visit(node.then),
            None if otherwise is None else lambda: self.visit(otherwise),
        )

    def visit_For(self, node: ir.For) -> None:
        if node.kind is ir.LoopKind.THREAD:
            self.threads(node)
            return
        if node.kind is ir.LoopKind.VECTORIZED:
            raise self.refused("a vectorized loop that was not lowered", _LOWERED, node.span)
        dtype, writer = node.var.dtype, self.writer
        self.line(node.span)
        (first,) = self.context.evaluate(node.minimum)
        (extent,) = self.context.evaluate(node.extent)
        type_, condition = register_type(writer.module, dtype), writer.module.type_bool()
        one, zero = constant(writer, dtype, 1), constant(writer, dtype, 0)
        less = Op.SLessThan if dtype.is_signed else Op.ULessThan
        # Counting from zero: minimum + extent may lie beyond the type's maximum.
        with writer.counted(
            type_,
            zero,
            lambda counter: writer.value(less, condition, counter, extent),
            lambda counter: writer.value(Op.IAdd, type_, counter, one),
            unroll=-1 if node.kind is ir.LoopKind.UNROLLED else node.hints.unroll,
        ) as counter:
            value = wrap(writer, dtype, writer.value(Op.IAdd, type_, first, counter))
            if self.writer.is_open:
                writer.module.name(value, node.var.name)
            self.context.values[node.var] = (value,)
            self.visit(node.body)

    def threads(self, node: ir.For) -> None:
        """A loop over threads: this thread's iteration of it."""
        assert node.thread is not None
        dtype, writer = node.var.dtype, self.writer
        self.context.kernel.require_dtype(dtype, node.span)
        number = cast(writer, self.context.kernel.axes[node.thread], UINT32, dtype)
        (first,) = self.context.evaluate(node.minimum)
        if first != constant(writer, dtype, 0):
            number = wrap(writer, dtype, writer.value(Op.IAdd, register_type(writer.module, dtype), first, number))
        self.context.values[node.var] = (number,)
        if not _continues(node.body):
            self.visit(node.body)
            return
        with writer.once():
            self.visit(node.body)

    def visit_While(self, node: ir.While) -> None:
        with self.writer.loop(lambda: self.context.evaluate(node.condition)[0]):
            self.visit(node.body)

    def visit_Break(self, node: ir.Break) -> None:
        self.writer.leave_loop()

    def visit_Continue(self, node: ir.Continue) -> None:
        self.writer.next_iteration()

    def visit_Return(self, node: ir.Return) -> None:
        returns = self.context.function.returns
        if returns.is_void:
            self.writer.end(Op.Return)
            return
        lanes = self.context.evaluate(node.value) if node.value is not None else None
        self.give_back(lanes or (self.zero(returns.element),) * returns.lanes)

    def zero(self, dtype: DType) -> int:
        """What a function gives back that ends without saying."""
        return float_constant(self.context, dtype, 0.0) if dtype.is_float else constant(self.writer, dtype, 0)

    def give_back(self, lanes: tuple[int, ...]) -> None:
        """Return a value of one lane or several."""
        found = lanes[0]
        if len(lanes) > 1:
            found = self.writer.value(Op.CompositeConstruct, self.writer.returns, *lanes)
        self.writer.end(Op.ReturnValue, found)

    def finish(self) -> None:
        """End a function whose end is reached: with 0 of its result type."""
        if self.writer.is_open:
            self.visit_Return(ir.Return())

    def visit_Barrier(self, node: ir.Barrier) -> None:
        scope = Group.Workgroup
        if node.scope is ir.BarrierScope.WARP:
            self.context.kernel.require_subgroups("a barrier of a warp", node.span)
            self.context.kernel.features.add("subgroup_basic")
            self.writer.module.capability(Capability.GroupNonUniform)
            scope = Group.Subgroup
        group, seen = word_constant(self.writer, scope), _SEEN[node.scope]
        if self.writer.module.memory_model is MemoryModel.Vulkan:
            seen |= MemorySemantics.MakeAvailable | MemorySemantics.MakeVisible
        self.writer.effect(Op.ControlBarrier, group, group, word_constant(self.writer, seen))

    # Refused --------------------------------------------------------------------------------------------------------

    def visit_Block(self, node: ir.Block) -> None:
        raise self.refused(f"the block `{node.name}`, not lowered,", _LOWERED, node.span)

    def visit_DeviceRegion(self, node: ir.DeviceRegion) -> None:
        raise self.refused(f"code for {node.target}", _LOWERED, node.span)

    def visit_Launch(self, node: ir.Launch) -> None:
        raise self.refused(f"the launch of `{node.kernel}` by a kernel", "launch it from the host", node.span)

    def refused(self, construct: str, remedy: str, span: Span | None) -> Exception:
        return refused_construct(construct, self.context.kernel.profile.target, remedy, span)

    def line(self, span: Span | None) -> None:
        """Say where in the source the instructions after this come from."""
        if span is not None and self.writer.is_open:
            # The name alone: where the sources lie must not change the code.
            file = self.writer.module.string(os.path.basename(span.place.file))
            self.writer.effect(Op.Line, file, span.place.line, span.place.column)


def _continues(body: ir.Stmt) -> bool:
    """Whether a statement has a ``continue`` that is of no loop in it."""
    if isinstance(body, ir.Continue):
        return True
    if isinstance(body, ir.Seq):
        return any(_continues(statement) for statement in body.body)
    if isinstance(body, ir.If):
        return _continues(body.then) or (body.otherwise is not None and _continues(body.otherwise))
    return False
