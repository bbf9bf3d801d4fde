"""Turn buffers of several dimensions into buffers of one, and their indices into one index.

Before::

    view a: float32[n, 4] over a_data
    for i in range(n):
      a[i, 1] = 0.0

After::

    view a: float32[n * 4] over a_data
    for i in range(n):
      a[i * 4 + 1] = 0.0

Index arithmetic is int64. Buffers whose strides are not constants stay as they are, since a stride may be negative;
so do buffers of no dimension (local scalars), and those of tiles of matrices. A buffer that is passed whole to a packed
or extern call keeps its shape in a view of its own.

Requires: no blocks, no buffer parameters. Ensures: every load and store of a flattened buffer has one int64 index.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from gristmill.ir.build import sequence
from gristmill.ir.expr import AddressOf, BufferRef, Expr, IntImm, Load
from gristmill.ir.functor import Mutator, walk
from gristmill.ir.memory import MATRIX_SCOPES, Buffer
from gristmill.ir.module import Function, Module
from gristmill.ir.stmt import Allocate, Block, Stmt, Store, View
from gristmill.passes.layout import element_offset, flat_size
from gristmill.passes.manager import Pass


@dataclass(frozen=True)
class FlattenBuffers(Pass):
    """Turn buffers of several dimensions into buffers of one, and their indices into one int64 index."""

    def run(self, module: Module) -> Module:
        return module.with_functions(flatten_buffers(function) for function in module.functions)


def flatten_buffers(function: Function) -> Function:
    """The function with flat buffers, but for those of parameters; the same object if all are flat already."""
    flattened, whole, accessed = set(), set(), set()
    for node in walk(function.body):
        if isinstance(node, (Allocate, View)) and _can_flatten(node.buffer):
            flattened.add(node.buffer)
        elif isinstance(node, BufferRef):
            whole.add(node.buffer)
        elif isinstance(node, (Load, Store, AddressOf)):
            accessed.add(node.buffer)
        elif isinstance(node, Block):
            raise TypeError("flatten_buffers runs after lower_blocks")
    flattened &= accessed
    if not flattened:
        return function
    return function.with_body(_Flattening(flattened, whole).visit(function.body))


def _can_flatten(buffer: Buffer) -> bool:
    if buffer.scope in MATRIX_SCOPES:
        return False
    if buffer.rank == 0 or (buffer.rank == 1 and not buffer.strides and buffer.offset is None):
        return False
    return all(isinstance(stride, IntImm) and stride.value >= 0 for stride in buffer.strides)


class _Flattening(Mutator):
    def __init__(self, flattened: set[Buffer], whole: set[Buffer]) -> None:
        super().__init__()
        self.flattened = flattened
        self.whole = whole
        self.flat: dict[Buffer, Buffer] = {}

    def flatten(self, buffer: Buffer) -> Buffer:
        found = replace(buffer, shape=(flat_size(buffer),), strides=(), offset=None)
        self.flat[buffer] = found
        return found

    def index(self, buffer: Buffer, indices: tuple[Expr, ...]) -> tuple[Buffer, tuple[Expr, ...]]:
        return self.flat[buffer], (element_offset(buffer, indices),)

    def visit_Allocate(self, node: Allocate) -> Stmt:
        if node.buffer not in self.flattened:
            return self.generic(node)
        found = replace(node, buffer=self.flatten(node.buffer))
        return self.with_whole(node.buffer, found)

    def visit_View(self, node: View) -> Stmt:
        if node.buffer not in self.flattened:
            return self.generic(node)
        source = None if node.source is None else self.visit(node.source)
        return self.with_whole(node.buffer, replace(node, source=source, buffer=self.flatten(node.buffer)))

    def with_whole(self, buffer: Buffer, definition: Stmt) -> Stmt:
        """The definition, and behind it a view of the old shape if something refers to the whole buffer."""
        return sequence(definition, View(buffer, None, definition.span)) if buffer in self.whole else definition

    def visit_Load(self, node: Load) -> Any:
        node = self.generic(node)
        if node.buffer not in self.flat:
            return node
        buffer, indices = self.index(node.buffer, node.indices)
        return replace(node, buffer=buffer, indices=indices)

    def visit_Store(self, node: Store) -> Any:
        node = self.generic(node)
        if node.buffer not in self.flat:
            return node
        buffer, indices = self.index(node.buffer, node.indices)
        return replace(node, buffer=buffer, indices=indices)

    def visit_AddressOf(self, node: AddressOf) -> Any:
        node = self.generic(node)
        if node.buffer not in self.flat:
            return node
        buffer, indices = self.index(node.buffer, node.indices)
        return replace(node, buffer=buffer, indices=indices)
