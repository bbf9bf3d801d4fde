"""Loops in the form that LLVM's loop passes know best: one count from zero, tested at the end, guarded before.

Of the author's hints, ``vectorize=True`` alone asks for nothing: LLVM makes vectors of every loop where it finds that
they pay. Saying so to LLVM would also permit it to reorder float sums, and would print warnings where it cannot.
"""

from __future__ import annotations

from gristmill.ir.build import constant_value
from gristmill.ir.stmt import For, LoopKind, While
from gristmill_llvm.context import FunctionContext, Loop
from gristmill_llvm.strides import has_jumping_loads, is_innermost, may_accumulate_floats
from gristmill_llvm.types import integer, register_type

FULLY_UNROLLED_TRIPS = 64
"""Loops of fewer iterations, if their number is constant, are left to LLVM, which may unroll them wholly."""


def counted_loop(context: FunctionContext, node: For) -> None:
    """``for var in range(minimum, minimum + extent)``, one iteration after the other."""
    writer, dtype = context.writer, node.var.dtype
    text, zero, one = register_type(dtype), integer(0, dtype), integer(1, dtype)
    minimum = context.evaluate(node.minimum)
    extent = context.evaluate(node.extent)
    body, following, leave = (writer.new_label(purpose) for purpose in ("loop", "next", "end"))
    known = constant_value(node.extent)
    greater = "sgt" if dtype.is_signed else "ugt"
    less = "slt" if dtype.is_signed else "ult"
    if known is None:
        writer.branch_if(writer.value(f"icmp {greater} {text} {extent}, {zero}"), body, leave)
    elif known <= 0:
        return
    before = writer.label
    writer.block(body)
    count, after = f"%{body}.count", f"%{body}.after"
    writer.effect(f"{count} = phi {text} [ {zero}, %{before} ], [ {after}, %{following} ]")
    if minimum == zero:
        context.values[node.var] = count
    else:
        flags = _sum_flags(node)
        context.values[node.var] = writer.value(f"add {flags}{text} {minimum}, {count}")
    context.loops.append(Loop(leave, following, len(context.cleanups)))
    context.execute(node.body)
    context.loops.pop()
    writer.block(following)
    # count < extent here, so count + 1 does not overflow.
    flags = "nuw nsw" if dtype.is_signed else "nuw"
    writer.effect(f"{after} = add {flags} {text} {count}, {one}")
    more = writer.value(f"icmp {less} {text} {after}, {extent}")
    writer.branch_if(more, body, leave, metadata=_metadata(context, node, known))
    writer.block(leave)


def _sum_flags(node: For) -> str:
    """What is sure of ``minimum + count``: with constants that the whole range fits into the type, no overflow."""
    minimum, extent, dtype = constant_value(node.minimum), constant_value(node.extent), node.var.dtype
    if minimum is None or extent is None or minimum + extent > dtype.maximum:
        return ""
    if not dtype.is_signed:
        return "nuw "
    return "nuw nsw " if minimum >= 0 else "nsw "


def while_loop(context: FunctionContext, node: While) -> None:
    """Evaluate the condition before each iteration."""
    writer = context.writer
    head, body, leave = (writer.new_label(purpose) for purpose in ("while", "do", "end"))
    writer.block(head)
    condition = context.evaluate(node.condition)
    writer.branch_if(condition, body, leave)
    writer.block(body)
    context.loops.append(Loop(leave, head, len(context.cleanups)))
    context.execute(node.body)
    context.loops.pop()
    if not writer.terminated:
        writer.branch(head)
    writer.block(leave)


def _metadata(context: FunctionContext, node: For, trips: int | float | None) -> str:
    """The author's hints, and one of our own, as LLVM's loop metadata."""
    wishes = [*_unroll_wishes(node, trips), *_vector_wishes(context, node)]
    if not wishes:
        return ""
    module = context.module
    nodes = ", ".join(["{self}", *(module.metadata(wish) for wish in wishes)])
    return f", !llvm.loop {module.metadata(f'!{{{nodes}}}', distinct=True)}"


def _unroll_wishes(node: For, trips: int | float | None) -> list[str]:
    wished = node.hints.unroll
    if wished == 1:
        return ['!{!"llvm.loop.unroll.disable"}']
    if wished > 1:
        return [f'!{{!"llvm.loop.unroll.count", i32 {wished}}}']
    if node.kind is LoopKind.UNROLLED:
        return ['!{!"llvm.loop.unroll.full"}' if trips is not None else '!{!"llvm.loop.unroll.enable"}']
    if (trips is None or trips >= FULLY_UNROLLED_TRIPS) and is_innermost(node.body) and has_jumping_loads(node):
        # The processor foresees a walk down a column by the address of the load instruction. Eight copies of it, LLVM's
        # choice, are eight walks of long steps, which it does not foresee.
        return ['!{!"llvm.loop.unroll.count", i32 2}']
    return []


def _vector_wishes(context: FunctionContext, node: For) -> list[str]:
    """Hints for vectors. To LLVM they also permit another order of float additions, so sums must stay without them."""
    hints = node.hints
    if hints.vectorize is False:
        return ['!{!"llvm.loop.vectorize.width", i32 1}', '!{!"llvm.loop.interleave.count", i32 1}']
    if not context.function.facts.fast_math and may_accumulate_floats(node):
        return []
    if hints.vector_width:
        return [f'!{{!"llvm.loop.vectorize.width", i32 {hints.vector_width}}}']
    return []
