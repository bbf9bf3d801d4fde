"""Turn blocks that reduce over threads into a reduction by each thread and one across threads, through shared memory.

Before::

    for t in thread(100, "threadIdx.x"):
        for k in range(4):
            with block("sum"):
                vk = reduce(400, k * 100 + t)
                with init():
                    c[0] = 0.0
                c[0] = c[0] + a[vk]

After::

    for t in thread(100, "threadIdx.x"):
        c_partial = -0.0
        for k in range(4):
            vk = k * 100 + t
            c_partial = c_partial + a[vk]
        allocate c_threads: float32[100] in shared
        c_threads[t] = c_partial
        if t < 50:
            c_threads[t] = c_threads[t] + c_threads[t + 50]
        if t < 25:
            c_threads[t] = c_threads[t] + c_threads[t + 25]
        if t < 12:                                      ; of 25: 12 and 13, the one in the middle waits
            c_threads[t] = c_threads[t] + c_threads[t + 13]
        ...
        if t == 0:
            c[0] = 0.0
            c[0] = c[0] + c_threads[0]

The order is fixed, and the same on every device: each thread combines its own elements in the order of its loops, starting
from the neutral element of the operation; then of ``n`` partial results number ``i`` takes number ``i + ceil(n / 2)``,
until one is left (threads count with x fastest, then y, z); that is combined with what is in the result. The neutral
element changes no value: for a float sum it is -0.0, and for a float minimum or maximum NaN, which those ignore.

Nothing is assumed of warps. Where a target has exchanges between threads (``warp_size`` is not 0), those do the last steps,
in the same order and so with the same bits, without memory and barriers::

        c_partial = c_threads[t]                         ; above, after the step that leaves 25 of 32
        c_other = warp_shuffle_down(c_partial, 13, 32)   ; all threads come by
        if t < 12:
            c_partial = c_partial + c_other
        ...

That needs rows of consecutive threads that begin where groups of lanes do, and code to which all threads of a block come;
elsewhere all steps go through memory. So they do where the number of threads is no constant: the steps are a loop then, and
the memory is for ``max_threads``, as many threads as a block can have.

A reduction has the form ``c[...] = c[...] + x`` (or ``*``, ``min``, ``max``, ``&``, ``|``, ``^``, ``and``, ``or``), one or
several in a block. If the result is memory of one thread, each thread gets it. Barriers are put in later, by
``insert_barriers``. What can not be done so is GM0610.

Ensures: no block has a reduce axis bound to threads. Runs while there are blocks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gristmill.ir.build import constant_value
from gristmill.ir.expr import Expr, Var
from gristmill.ir.functor import Mutator, substitute, walk
from gristmill.ir.module import Function, Module
from gristmill.ir.stmt import (
    AxisKind,
    Bind,
    Block,
    BlockAxis,
    Break,
    Continue,
    For,
    If,
    LoopKind,
    Stmt,
    Store,
    While,
)
from gristmill.passes.divergence import Divergence
from gristmill.passes.launch_regions import has_regions, is_region
from gristmill.passes.manager import Pass
from gristmill.passes.thread_reduction import Reduction, refuse
from gristmill.plugin.protocols import PassContext


@dataclass(frozen=True)
class LowerThreadReductions(Pass):
    """Reduce over threads through shared memory, and by exchanges, in a fixed order."""

    warp_size: int = 0
    """How many threads may exchange values at most, a power of two; 0: the target has no exchanges."""

    max_threads: int = 0
    """How many threads a block has at most; 0: not known, so that their number must be a constant."""

    def run(self, module: Module) -> Module:
        return module.with_functions(
            lower_thread_reductions(function, self.warp_size, self.max_threads) for function in module.functions
        )

    @classmethod
    def values_for(cls, context: PassContext) -> Mapping[str, Any]:
        found = context.capabilities
        warp_size = found.warp_size if found.warp_shuffles else 0
        return {"warp_size": warp_size, "max_threads": found.max_threads_per_block}


def lower_thread_reductions(function: Function, warp_size: int = 0, max_threads: int = 0) -> Function:
    """The function without reduce axes bound to threads; the same object if it has none. Raises UserError (GM0610)."""
    if not has_regions(function) or not any(isinstance(node, Block) for node in walk(function.body)):
        return function
    return function.with_body(_Lowering(function, warp_size, max_threads).visit(function.body))


class _Lowering(Mutator):
    def __init__(self, function: Function, warp_size: int, max_threads: int) -> None:
        super().__init__()
        self.function = function
        self.warp_size = warp_size
        self.max_threads = max_threads
        self.divergence: Divergence | None = None
        self.apart = 0
        """How many statements around let only some threads of a block come by."""
        self.threads: list[For] = []
        """The loops over threads around."""
        self.serial: list[For] = []
        """The other loops around, inside of those."""
        self.region: For | None = None
        self.values: dict[Var, Expr] = {}
        """What bindings and axes around stand for, in terms of loops."""

    def visit_Bind(self, node: Bind) -> Any:
        self.values[node.var] = substitute(node.value, self.values)
        return node

    def visit_BlockAxis(self, node: BlockAxis) -> Any:
        self.values[node.var] = substitute(node.value, self.values)
        return node

    def visit_For(self, node: For) -> Any:
        found = self.nest(node)
        if found is not None:
            return self.reduction(*found)
        if not is_region(node):
            self.serial.append(node)
            changed = self.inside(node)
            self.serial.pop()
            return changed
        if self.region is not None:
            return self.threads_of(node)
        self.region = node
        if self.warp_size:
            self.divergence = Divergence(self.function, node)
        changed = self.threads_of(node)
        self.region = self.divergence = None
        return changed

    def threads_of(self, node: For) -> Any:
        self.threads.append(node)
        changed = self.inside(node)
        self.threads.pop()
        return changed

    def visit_While(self, node: While) -> Any:
        return self.inside(node)

    def visit_If(self, node: If) -> Any:
        return self.inside(node)

    def visit_Block(self, node: Block) -> Any:
        if self.region is not None and self.axes_over_threads(node, ()):
            return self.reduction([], node)
        return self.inside(node)

    def inside(self, node: For | While | If | Block) -> Any:
        apart = self.parts_threads(node)
        self.apart += apart
        changed = self.generic(node)
        self.apart -= apart
        return changed

    def parts_threads(self, node: For | While | If | Block) -> bool:
        """Whether perhaps not all threads of a block come to what stands in the statement, or not side by side."""
        found = self.divergence
        if found is None:
            return False
        if isinstance(node, If):
            return found.splits(node)
        if isinstance(node, Block):
            return bool(node.axes) or node.predicate is not None
        return (
            found.is_uneven(node)
            or found.leaves_unevenly(node.body, Break)
            or found.leaves_unevenly(node.body, Continue)
        )

    def nest(self, node: For) -> tuple[list[For], Block] | None:
        """The loops from here to a block that reduces over threads, if there is nothing else in them and no result
        depends on which iteration of them it is."""
        loops: list[For] = []
        inner: Stmt = node
        kinds = (LoopKind.SERIAL, LoopKind.UNROLLED, LoopKind.THREAD)
        while isinstance(inner, For) and inner.kind in kinds:
            loops.append(inner)
            inner = inner.body
        if not isinstance(inner, Block) or not (self.region or any(is_region(loop) for loop in loops)):
            return None
        if not self.axes_over_threads(inner, loops):
            return None
        reduced = {loop.var for loop in loops if not is_region(loop)}
        threads = {loop.var for loop in loops if is_region(loop)}
        if self.region is None or any(loop.thread is not None and loop.thread.is_block for loop in loops):
            return None
        outermost = next((loop for loop in loops if not is_region(loop)), None)
        if inner.init is not None and outermost is not None and not self.reduces(inner, outermost):
            # All of the reduction is done once for each iteration, from its start.
            return None
        for axis in inner.axes:
            if axis.kind is AxisKind.SPATIAL and self.uses(axis.value, reduced):
                return None
        for part in walk(inner):
            if isinstance(part, Store) and any(self.uses(index, reduced) for index in part.indices):
                return None
        if any(
            self.uses(loop.extent, reduced | threads) or self.uses(loop.minimum, reduced | threads) for loop in loops
        ):
            return None
        return loops, inner

    def reduces(self, block: Block, loop: For) -> bool:
        """Whether a reduce axis of the block goes along the loop."""
        return any(axis.kind is AxisKind.REDUCE and self.uses(axis.value, {loop.var}) for axis in block.axes)

    def check_steps(self, block: Block, loops: list[For], over: list[For]) -> None:
        """Refuse loops by which the threads take unequal numbers of steps, or take one step several times."""
        threads = {loop.var for loop in over}
        for loop in (*self.serial, *loops):
            if is_region(loop):
                continue
            if self.uses(loop.extent, threads) or self.uses(loop.minimum, threads):
                refuse(
                    loop.span or block.span,
                    f"the block `{block.name}` reduces over threads in a loop over `{loop.var.name}`, of which each of "
                    "them has its own number of steps or start",
                    "let all take equally many steps, and leave out what lies beyond: "
                    "`for k in range(T.ceildiv(n, 32))` with the axis `k * 32 + t` and `T.where(k * 32 + t < n)`",
                )
        for loop in loops:
            once = constant_value(loop.extent) == 1
            if block.init is not None and not once and not is_region(loop) and not self.reduces(block, loop):
                refuse(
                    loop.span or block.span,
                    f"the block `{block.name}` reduces over threads, and the loop over `{loop.var.name}` inside of the "
                    "loops that it reduces over repeats every step, `T.init` too",
                    "put that loop outside of the others, or let a reduce axis go along it",
                )

    def uses(self, expr: Expr, variables: set[Var]) -> bool:
        return any(part in variables for part in walk(substitute(expr, self.values)))

    def axes_over_threads(self, block: Block, loops: list[For] | tuple[()]) -> list[For]:
        """The loops over threads that the block's reduce axes depend on."""
        used = {
            part
            for axis in block.axes
            if axis.kind is AxisKind.REDUCE
            for part in walk(substitute(axis.value, self.values))
            if isinstance(part, Var)
        }
        found = [loop for loop in (*self.threads, *loops) if is_region(loop) and loop.var in used]
        across = next((loop for loop in found if loop.thread is not None and loop.thread.is_block), None)
        if across is not None:
            refuse(
                block.span,
                f"the block `{block.name}` reduces over `{across.thread.value if across.thread else ''}`: "
                "blocks of threads can not wait for each other",
                "reduce over `threadIdx` axes and serial loops; or in two kernels, the second over the results of the first",
            )
        return found

    def reduction(self, loops: list[For], block: Block) -> Stmt:
        assert self.region is not None
        over = self.axes_over_threads(block, loops)
        self.check_steps(block, loops, over)
        warp_size = 0 if self.apart else self.warp_size
        return Reduction(
            block, loops, over, self.threads, self.region, self.values, warp_size, self.max_threads
        ).lowered()
