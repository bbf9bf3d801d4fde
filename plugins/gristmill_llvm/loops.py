"""Loops in the form that LLVM's loop passes know best: one count from zero, tested at the end, guarded before."""

from __future__ import annotations

from gristmill.ir.build import constant_value
from gristmill.ir.stmt import For, LoopHints, LoopKind, While
from gristmill_llvm.context import FunctionContext, Loop
from gristmill_llvm.types import integer, register_type


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
    writer.branch_if(more, body, leave, metadata=_metadata(context, node.hints, node.kind, known))
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


def _metadata(context: FunctionContext, hints: LoopHints, kind: LoopKind, trips: int | float | None) -> str:
    """The author's hints as LLVM's loop metadata."""
    wishes = []
    if kind is LoopKind.UNROLLED and not hints.unroll:
        wishes.append('!{!"llvm.loop.unroll.full"}' if trips is not None else '!{!"llvm.loop.unroll.enable"}')
    if hints.unroll == 1:
        wishes.append('!{!"llvm.loop.unroll.disable"}')
    elif hints.unroll > 1:
        wishes.append(f'!{{!"llvm.loop.unroll.count", i32 {hints.unroll}}}')
    if hints.vector_width:
        wishes.append(f'!{{!"llvm.loop.vectorize.width", i32 {hints.vector_width}}}')
    if hints.vectorize is not None or hints.vector_width > 1:
        wishes.append(f'!{{!"llvm.loop.vectorize.enable", i1 {"false" if hints.vectorize is False else "true"}}}')
    if not wishes:
        return ""
    module = context.module
    nodes = ", ".join(["{self}", *(module.metadata(wish) for wish in wishes)])
    return f", !llvm.loop {module.metadata(f'!{{{nodes}}}', distinct=True)}"
