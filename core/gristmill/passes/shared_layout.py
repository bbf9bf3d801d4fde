"""Where buffers lie in shared memory: sizes, alignment, and putting views in the place of allocations."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from gristmill.arith.simplify import Simplifier, simplify
from gristmill.ir.build import conjunction, const, constant_value, greater, greater_equal, select
from gristmill.ir.dtype import HANDLE, INT64, UINT8, DType
from gristmill.ir.expr import AddressOf, Expr, FloorDiv, Max, Min, Var
from gristmill.ir.functor import Mutator, walk
from gristmill.ir.memory import Buffer, PointerType, Scope
from gristmill.ir.stmt import Allocate, Seq, Stmt, View
from gristmill.passes.layout import as_int64, flat_size, plus, times


def element_bytes(dtype: DType) -> int:
    """The bytes of one element, lanes included."""
    return max(1, dtype.bits // 8) * dtype.lanes


def alignment_of(buffer: Buffer) -> int:
    """The alignment that a buffer asks for, in bytes."""
    return max(buffer.alignment, buffer.dtype.bits // 8, 1)


def bytes_of(buffer: Buffer) -> Expr:
    """The size of a buffer in bytes, as int64."""
    return simplify(times(flat_size(buffer), const(element_bytes(buffer.dtype), INT64)))


def saturated_bytes(buffer: Buffer, known: Simplifier, most: int = INT64.maximum) -> Expr:
    """The size in bytes as int64, where it may be too large for that: ``most`` then, or little less; below 0 where a size is.

    For what must not wrap to a small number: the size of an allocation that is made elsewhere. ``known`` has the ranges of
    variables. The buffer is compact.
    """
    sizes = [known.simplify(as_int64(size)) for size in buffer.shape]
    factor = element_bytes(buffer.dtype)
    for size in sizes:
        factor *= max(int(constant_value(size) or 1), 1)
    total: Expr = const(min(factor, most), INT64)
    for size in sizes:
        if (constant_value(size) or 0) <= 0:
            total = _saturated_product(size, total, known, most)
    return known.simplify(total)


def _saturated_product(size: Expr, total: Expr, known: Simplifier, most: int) -> Expr:
    factor, of_size, of_total = constant_value(total), known.bounds.of(size), known.bounds.of(total)
    if factor is not None and factor > 0:
        limit = most // int(factor)
        if of_size.high > limit or of_size.low < -limit:
            size = Max(Min(size, const(limit, INT64)), const(-1, INT64))
        return times(size, total)
    if of_size.low >= 0 and of_total.low >= 0 and of_size.high * of_total.high <= most:
        return times(size, total)
    too_large = greater(size, FloorDiv(const(most, INT64), Max(total, const(1, INT64))))
    product = select(conjunction([greater(total, 0), too_large]), const(most, INT64), times(size, total))
    return select(conjunction([greater_equal(size, 0), greater_equal(total, 0)]), product, const(-1, INT64))


def offset_steps(region: Stmt) -> dict[Var, int]:
    """For memory by its pointer: what its place must be a multiple of, in bytes. Buffers over it count in elements."""
    found: dict[Var, int] = {}
    for node in walk(region):
        if isinstance(node, Allocate) or (isinstance(node, View) and node.source is None):
            step = math.lcm(element_bytes(node.buffer.dtype), alignment_of(node.buffer))
            found[node.buffer.data] = math.lcm(step, found.get(node.buffer.data, 1))
    return found


def new_memory(name: str, scope: Scope, size: Expr, alignment: int, element: DType | None) -> Buffer:
    """A buffer for a number of bytes; of bytes, or of whole elements of the type."""
    kind = UINT8 if element is None else element
    count = size if element_bytes(kind) == 1 else simplify(FloorDiv(size, const(element_bytes(kind), INT64)))
    return Buffer(
        name, kind, (count,), Var(f"{name}_data", HANDLE, PointerType(kind, scope)), scope=scope, alignment=alignment
    )


@dataclass(frozen=True, slots=True)
class Home:
    """Where an allocation goes: into this memory, at an offset in bytes (int64)."""

    memory: Buffer
    offset: Expr


def placed(region: Stmt, homes: Iterable[tuple[Var, Home]]) -> Stmt:
    """The region with views in the place of the allocations with these pointers, and the memory allocated before."""
    found: Stmt = _Placing(dict(homes)).visit(region)
    return found


class _Placing(Mutator):
    def __init__(self, homes: dict[Var, Home]) -> None:
        super().__init__()
        self.homes = homes
        self.made: set[Buffer] = set()
        self.placed: dict[Var, Buffer] = {}

    def visit_Var(self, node: Var) -> Any:
        # A pointer by its own name; in buffers it is seen to below.
        found = self.placed.get(node)
        if found is None:
            return node
        return AddressOf(found, tuple(const(0, INT64) for _ in found.shape), node.span)

    def visit_Buffer(self, node: Buffer) -> Any:
        home = self.homes.get(node.data)
        if home is None:
            return super().visit_Buffer(node)
        changed = self.generic(node)
        start = simplify(FloorDiv(home.offset, const(element_bytes(node.dtype), INT64)))
        offset = start if changed.offset is None else simplify(plus(start, changed.offset))
        zero = constant_value(offset) == 0
        found = replace(changed, data=home.memory.data, offset=None if zero else offset)
        self.buffers[node] = found
        return found

    def visit_Allocate(self, node: Allocate) -> Any:
        home = self.homes.get(node.buffer.data)
        if home is None:
            return self.generic(node)
        buffer = self.visit(node.buffer)
        self.placed[node.buffer.data] = buffer
        view = View(buffer, None, node.span)
        if home.memory in self.made:
            return view
        self.made.add(home.memory)
        return Seq((Allocate(home.memory, node.span), view))
