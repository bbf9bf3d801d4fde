"""Statements to LLVM IR: control flow, names, memory, errors."""

from __future__ import annotations

from gristmill.ir import stmt as ir
from gristmill.ir.dtype import DType
from gristmill.ir.functor import STATEMENTS, Functor
from gristmill.ir.span import Span
from gristmill_llvm import memory
from gristmill_llvm.allocation import allocate
from gristmill_llvm.context import FunctionContext
from gristmill_llvm.launches import launch
from gristmill_llvm.loops import counted_loop, while_loop
from gristmill_llvm.raising import raise_unless
from gristmill_llvm.refusals import refused_construct, refused_dtype
from gristmill_llvm.types import typed, zero

_LOWERED = "run core's pipeline first; it lowers this construct"


class Statements(Functor[None], over=STATEMENTS):
    """Writes the statements of one function."""

    def __init__(self, context: FunctionContext) -> None:
        self.context = context
        self.writer = context.writer

    # Sequence and names ---------------------------------------------------------------------------------------------

    def visit_Seq(self, node: ir.Seq) -> None:
        depth = len(self.context.cleanups)
        for statement in node.body:
            self.visit(statement)
            if self.writer.terminated:  # what stands after a return, break or continue never runs
                break
        if not self.writer.terminated:
            self.context.clean_up(depth)
        del self.context.cleanups[depth:]

    def visit_Bind(self, node: ir.Bind) -> None:
        self.context.values[node.var] = self.context.evaluate(node.value)

    def visit_Allocate(self, node: ir.Allocate) -> None:
        self.check_dtype(node.buffer.dtype, node.span)
        allocate(self.context, node)

    def visit_View(self, node: ir.View) -> None:
        self.check_dtype(node.buffer.dtype, node.span)
        if node.source is not None:
            self.context.values[node.buffer.data] = self.context.evaluate(node.source)

    # Effects --------------------------------------------------------------------------------------------------------

    def visit_Store(self, node: ir.Store) -> None:
        self.check_dtype(node.buffer.dtype, node.span)
        memory.store(self.context, node.buffer, node.indices, node.value)

    def visit_Evaluate(self, node: ir.Evaluate) -> None:
        self.context.evaluate(node.value)

    def visit_Assert(self, node: ir.Assert) -> None:
        raise_unless(self.context, self.context.evaluate(node.condition), node.kind, node.message)

    # Control --------------------------------------------------------------------------------------------------------

    def visit_If(self, node: ir.If) -> None:
        writer = self.writer
        condition = self.context.evaluate(node.condition)
        then, done = writer.new_label("then"), writer.new_label("after")
        otherwise = writer.new_label("else") if node.otherwise is not None else done
        writer.branch_if(condition, then, otherwise)
        writer.block(then)
        self.visit(node.then)
        ends = writer.terminated
        if not ends:
            writer.branch(done)
        if node.otherwise is not None:
            writer.block(otherwise)
            self.visit(node.otherwise)
            ends = ends and writer.terminated
            if ends:
                return
        writer.block(done)

    def visit_For(self, node: ir.For) -> None:
        target = self.context.profile.target
        if node.kind is ir.LoopKind.THREAD:
            axis = node.thread.value if node.thread else "a thread axis"
            remedy = "write a plain loop for the CPU, or build the function for a GPU target"
            raise refused_construct(f"a loop bound to `{axis}`", target, remedy, node.span)
        if node.kind is ir.LoopKind.VECTORIZED:
            raise refused_construct("a vectorized loop that was not lowered", target, _LOWERED, node.span)
        counted_loop(self.context, node)

    def visit_While(self, node: ir.While) -> None:
        while_loop(self.context, node)

    def visit_Break(self, node: ir.Break) -> None:
        loop = self.context.loops[-1]
        self.context.clean_up(loop.cleanups)
        self.writer.branch(loop.leave)

    def visit_Continue(self, node: ir.Continue) -> None:
        loop = self.context.loops[-1]
        self.context.clean_up(loop.cleanups)
        self.writer.branch(loop.next)

    def visit_Return(self, node: ir.Return) -> None:
        value = None
        if node.value is not None:
            value = typed(self.context.evaluate(node.value), node.value.dtype)
        self.context.clean_up()
        give_back(self.context, value)

    # Refused --------------------------------------------------------------------------------------------------------

    def visit_Block(self, node: ir.Block) -> None:
        raise refused_construct(
            f"the block `{node.name}`, not lowered,", self.context.profile.target, _LOWERED, node.span
        )

    def visit_Barrier(self, node: ir.Barrier) -> None:
        remedy = "leave the barrier out: a CPU runs the iterations one after the other"
        raise refused_construct("a barrier", self.context.profile.target, remedy, node.span)

    def visit_DeviceRegion(self, node: ir.DeviceRegion) -> None:
        remedy = "run the launch lowering of the device's plugin first"
        raise refused_construct(f"code for {node.target}", self.context.profile.target, remedy, node.span)

    def visit_Launch(self, node: ir.Launch) -> None:
        launch(self.context, node)

    def check_dtype(self, dtype: DType, span: Span | None) -> None:
        """Refuse what the machine has no code for (GM0660)."""
        if dtype.is_float and dtype.bits < 32:
            raise refused_dtype(dtype.element, self.context.profile.target, span)


def give_back(context: FunctionContext, value: str | None) -> None:
    """Return success with the typed operand, or with 0 of the result type."""
    writer, signature = context.writer, context.signature
    if value is None and not signature.returns.is_void:
        value = typed(zero(signature.returns), signature.returns)
    if not signature.fails:
        writer.ret(value or "void")
        return
    if value is not None:
        writer.effect(f"store {value}, ptr %result")
    writer.ret("i32 0")
