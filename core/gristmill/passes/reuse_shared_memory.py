"""Let buffers of shared memory that are not in use at the same time lie in the same place.

Before::

    for t in thread(64, "threadIdx.x"):
        allocate a: float32[64] in shared
        allocate b: float64[64] in shared
        ... a ...
        ... b ...

After::

    for t in thread(64, "threadIdx.x"):
        allocate a_b: uint8[512] in shared
        view a: float32[64] over a_b_data
        view b: float64[64] over a_b_data
        ... a ...
        ... b ...

Buffers of constant sizes are packed by offsets: two small ones that follow a big one lie side by side in its room, each
where its alignment lets it. Buffers whose size the launch gives lie over each other from the start.

A buffer is in use from the first to the last statement that names it, among the statements that all threads of a block
run one after the other; what stands in a loop, or in code that only some threads run, is in use in all of it. So a
barrier has a place between two buffers in one place, and ``insert_barriers``, which runs later and takes buffers over one
memory as one, puts it there.

With ``types_apart`` only buffers of one type share memory, as targets ask for that can not see memory as two types.

Needs shared memory allocated first thing in its region.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gristmill.arith.simplify import simplify
from gristmill.ir.build import const, constant_value
from gristmill.ir.dtype import INT64, DType
from gristmill.ir.expr import Expr, Max, Var
from gristmill.ir.functor import walk
from gristmill.ir.memory import Buffer, Scope
from gristmill.ir.module import Function, Module
from gristmill.ir.node import Node
from gristmill.ir.stmt import Allocate, Continue, For, If, LoopKind, Seq, Stmt, View
from gristmill.passes.divergence import Divergence, steady_functions
from gristmill.passes.hoist_shared_memory import used_data
from gristmill.passes.launch_regions import map_regions
from gristmill.passes.manager import Pass
from gristmill.passes.memory_packing import Block, pack, peak
from gristmill.passes.shared_layout import Home, alignment_of, bytes_of, new_memory, offset_steps, placed
from gristmill.plugin.protocols import PassContext


@dataclass(frozen=True)
class ReuseSharedMemory(Pass):
    """Let shared buffers that are in use one after the other lie in one place."""

    types_apart: bool = False

    def run(self, module: Module) -> Module:
        steady = steady_functions(module)
        return module.with_functions(
            reuse_shared_memory(function, self.types_apart, steady) for function in module.functions
        )

    @classmethod
    def values_for(cls, context: PassContext) -> Mapping[str, Any]:
        return {"types_apart": context.capabilities.shared_types_apart}


def reuse_shared_memory(
    function: Function, types_apart: bool = False, steady: frozenset[str] = frozenset()
) -> Function:
    """The function with shared memory used several times; the same object if none is free in time."""
    return map_regions(function, lambda region: _reused(function, region, types_apart, steady))


@dataclass(slots=True, eq=False)
class _Place:
    """Memory of several buffers: each at its offset in bytes, some over each other."""

    offsets: dict[Buffer, int]
    until: int
    """The last moment at which one of them is in use."""
    size: Expr
    """In bytes, int64."""

    def homes(self, kind: DType | None, steps: Mapping[Var, int]) -> list[tuple[Var, Home]]:
        memory = self.memory(kind, steps)
        return [(buffer.data, Home(memory, const(offset, INT64))) for buffer, offset in self.offsets.items()]

    def memory(self, kind: DType | None, steps: Mapping[Var, int]) -> Buffer:
        buffers = list(self.offsets)
        alignment = max(alignment_of(buffer) for buffer in buffers)
        if kind is not None:
            # Whole elements, which offsets count in.
            alignment = max(alignment, kind.bits // 8)
        wanted = math.lcm(*(steps.get(buffer.data, 1) for buffer in buffers))
        alignment = max(alignment, wanted & -wanted)
        name = "_".join(buffer.name for buffer in buffers)
        return new_memory(name, buffers[0].scope, self.size, alignment, kind)


def _reused(function: Function, region: Stmt, types_apart: bool, steady: frozenset[str]) -> Stmt:
    scopes = (Scope.SHARED, Scope.SHARED_DYNAMIC)
    found = [node.buffer for node in walk(region) if isinstance(node, Allocate) and node.buffer.scope in scopes]
    if len(found) < 2:
        return region
    moments, steps = _Moments(function, region, steady), offset_steps(region)
    homes: list[tuple[Var, Home]] = []
    groups: dict[tuple[Scope, DType | None], list[Buffer]] = {}
    for buffer in found:
        groups.setdefault((buffer.scope, buffer.dtype if types_apart else None), []).append(buffer)
    for (_, kind), buffers in groups.items():
        known = [buffer for buffer in buffers if constant_value(bytes_of(buffer)) is not None]
        given = [buffer for buffer in buffers if constant_value(bytes_of(buffer)) is None]
        for place in (*_packed(known, moments, steps), *_one_over_the_other(given, moments)):
            if len(place.offsets) > 1:
                homes += place.homes(kind, steps)
    return placed(region, homes) if homes else region


def _packed(buffers: list[Buffer], moments: _Moments, steps: Mapping[Var, int]) -> list[_Place]:
    """Places for buffers of constant sizes: those that lie over each other, or over the same ones, are in one."""
    blocks = [
        Block(moments.first(buffer), moments.last(buffer), _size(buffer), steps.get(buffer.data, 1))
        for buffer in buffers
    ]
    offsets = pack(blocks)
    if peak(blocks, offsets) >= sum(block.size for block in blocks):
        return []
    found: list[_Place] = []
    end = 0
    start = 0
    for offset, number in sorted((offset, number) for number, offset in enumerate(offsets)):
        buffer, block = buffers[number], blocks[number]
        if not found or (offset >= end and offset % _alignment(blocks, offsets, offset) == 0):
            start = offset
            found.append(_Place({}, 0, const(0, INT64)))
        place = found[-1]
        place.offsets[buffer] = offset - start
        end = max(end, offset + block.size)
        place.size = const(end - start, INT64)
    return [_in_order(place, buffers) for place in found]


def _alignment(blocks: list[Block], offsets: list[int], start: int) -> int:
    """What the start of a place must be a multiple of, so that all that lies from there on stays aligned in it."""
    return math.lcm(*(block.step for block, offset in zip(blocks, offsets, strict=True) if offset >= start))


def _in_order(place: _Place, buffers: list[Buffer]) -> _Place:
    """The place with its buffers in the order of the program."""
    place.offsets = {buffer: place.offsets[buffer] for buffer in buffers if buffer in place.offsets}
    return place


def _size(buffer: Buffer) -> int:
    size = constant_value(bytes_of(buffer))
    assert size is not None
    return int(size)


def _one_over_the_other(buffers: list[Buffer], moments: _Moments) -> list[_Place]:
    """Places for buffers whose sizes the launch gives, each in one that is free: those first in use first."""
    found: list[_Place] = []
    for buffer in sorted(buffers, key=moments.first):
        free = next((place for place in found if place.until < moments.first(buffer)), None)
        if free is None:
            found.append(_Place({buffer: 0}, moments.last(buffer), bytes_of(buffer)))
            continue
        free.offsets[buffer] = 0
        free.until = moments.last(buffer)
        free.size = simplify(Max(free.size, bytes_of(buffer)))
    return found


class _Moments:
    """When each allocation is in use, counted in statements that all threads of a block run in order."""

    def __init__(self, function: Function, region: Stmt, steady: frozenset[str]) -> None:
        self.divergence = Divergence(function, region, steady)
        self.used: dict[Var, list[int]] = {}
        self.aliases: dict[Var, Var] = {}
        self.now = 0
        self.apart = False
        """Whether some threads have left the rest of the body by `continue`."""
        for node in walk(region):
            if isinstance(node, View) and node.source is not None:
                for part in used_data(node.source):
                    self.aliases[node.buffer.data] = part
        self._visit(region)

    def first(self, buffer: Buffer) -> int:
        return min(self.used.get(buffer.data, [0]))

    def last(self, buffer: Buffer) -> int:
        return max(self.used.get(buffer.data, [0]))

    def _visit(self, stmt: Stmt) -> None:
        match stmt:
            case Seq(body=body):
                for part in body:
                    self._visit(part)
            case For(kind=LoopKind.THREAD):
                self._use(stmt.extent)
                was = self.apart
                self._visit(stmt.body)
                self.apart = was
            case If() if not self.divergence.splits(stmt):
                self._use(stmt.condition)
                self._visit(stmt.then)
                if stmt.otherwise is not None:
                    self._visit(stmt.otherwise)
            case Allocate():
                pass
            case _:
                self._use(stmt)
        self.apart = self.apart or self.divergence.leaves_unevenly(stmt, Continue)
        if not self.apart:
            self.now += 1

    def _use(self, node: Node) -> None:
        for data in used_data(node):
            while data in self.aliases:
                data = self.aliases[data]
            self.used.setdefault(data, []).append(self.now)
