"""Turn blocks into plain statements: axes become names, init a condition, allocations and matches declarations.

Before::

    for i in range(4):
        for k in range(8):
            with block("sum"):
                vi = spatial(4, i)
                vk = reduce(8, k)
                with init():
                    C[vi] = 0.0
                C[vi] = C[vi] + A[vi, vk]

After::

    for i in range(4):
        for k in range(8):
            vi = i
            vk = k
            if vk == 0:
                C[vi] = 0.0
            C[vi] = C[vi] + A[vi, vk]

Ensures: no Block is left. A buffer matched to a region becomes a View with the region's offset and the strides of the
buffer it lies in; sizes, strides and the offset that the match introduces as variables become bindings.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from gristmill.ir.build import cast, conjunction, equal, sequence
from gristmill.ir.expr import Expr, Var
from gristmill.ir.functor import Mutator, walk
from gristmill.ir.memory import Buffer
from gristmill.ir.module import Function, Module
from gristmill.ir.stmt import Allocate, AxisKind, Bind, Block, BlockAxis, For, If, MatchBuffer, Stmt, View
from gristmill.passes.layout import element_offset, strides_of
from gristmill.passes.manager import Pass


@dataclass(frozen=True)
class LowerBlocks(Pass):
    """Turn blocks into plain statements with explicit init conditions and views."""

    def run(self, module: Module) -> Module:
        return module.with_functions(lower_blocks(function) for function in module.functions)


def lower_blocks(function: Function) -> Function:
    """The function without blocks; the same object if it has none."""
    if not any(isinstance(node, Block) for node in walk(function.body)):
        return function
    return function.with_body(_Lowering(set(_defined(function))).visit(function.body))


def _defined(function: Function) -> Iterator[Var]:
    """The variables that something else than a match defines."""
    yield from function.sizes
    for param in function.params:
        yield param if isinstance(param, Var) else param.data
    for node in walk(function):
        if isinstance(node, (Bind, For, BlockAxis)):
            yield node.var


class _Lowering(Mutator):
    def __init__(self, bound: set[Var]) -> None:
        super().__init__()
        self.bound = bound
        self.pointers: dict[Var, Var] = {}

    def visit_Var(self, node: Var) -> Var:
        return self.pointers.get(node, node)

    def visit_Block(self, node: Block) -> Stmt:
        axes = [Bind(axis.var, cast(self.visit(axis.value), axis.var.dtype), axis.span) for axis in node.axes]
        predicate = None if node.predicate is None else self.visit(node.predicate)
        allocations = [Allocate(self.visit(buffer), buffer.span or node.span) for buffer in node.allocations]
        matches = [part for match in node.matches for part in self.match(match)]
        init = None
        if node.init is not None:
            starts = conjunction(
                equal(axis.var, cast(self.visit(axis.domain.minimum), axis.var.dtype))
                for axis in node.axes
                if axis.kind is AxisKind.REDUCE
            )
            init = If(starts, self.visit(node.init), None, node.span)
        run = sequence(*allocations, *matches, init, self.visit(node.body), span=node.span)
        if predicate is not None:
            run = If(predicate, run, None, node.span)
        return sequence(*axes, run, span=node.span)

    def match(self, match: MatchBuffer) -> Iterator[Stmt]:
        """Bind what the match introduces, then declare its buffer as a view of the memory of the region's buffer."""
        region = self.visit(match.region)
        source: Buffer = region.buffer
        # A match of fewer dimensions leaves out the leading ones of the region, which have extent 1.
        dropped = len(region.ranges) - match.buffer.rank
        strides = strides_of(source)[dropped:]
        offset = element_offset(source, [span.minimum for span in region.ranges])
        for size, given in zip(match.buffer.shape, region.ranges[dropped:], strict=True):
            yield from self.bind(size, given.extent)
        for stride, actual in zip(match.buffer.strides, strides, strict=False):
            yield from self.bind(stride, actual)
        if match.buffer.offset is not None:
            yield from self.bind(match.buffer.offset, offset)
        self.pointers[match.buffer.data] = source.data
        shape = tuple(self.visit(size) for size in match.buffer.shape)
        buffer = replace(match.buffer, shape=shape, data=source.data, strides=strides, offset=offset)
        self.buffers[match.buffer] = buffer
        yield View(buffer, None, match.span)

    def bind(self, part: Expr, value: Expr) -> Iterator[Stmt]:
        if isinstance(part, Var) and part not in self.bound:
            self.bound.add(part)
            yield Bind(part, cast(value, part.dtype), part.span)
