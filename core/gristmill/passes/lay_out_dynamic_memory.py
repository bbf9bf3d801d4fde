"""Make one allocation of all dynamic shared memory of a launch, which is all that a launch has.

Before::

    for t in thread(64, "threadIdx.x"):
        allocate a: int8[n] in shared.dyn
        allocate b: float64[m] in shared.dyn

After::

    for t in thread(64, "threadIdx.x"):
        allocate dynamic_shared_memory: uint8[m * 8 + n] in shared.dyn align 8
        view a: int8[n] offset m * 8 in shared.dyn over dynamic_shared_memory_data
        view b: float64[m] in shared.dyn over dynamic_shared_memory_data

Those that ask for most alignment come first; each begins at a multiple of its own, and of its elements. A size of all
that is too large for int64 is a very large one, and where one of the sizes is negative it is too: no launch takes those. With
``types_apart``, for targets that see one memory as one type only, buffers of two types are an error (GM0611).

Ensures: at most one allocation of ``shared.dyn`` in a launch region. Runs after barriers are in, which tell apart the
memory of several allocations and can not tell apart parts of one whose sizes are unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gristmill.arith.simplify import simplify
from gristmill.errors import Diagnostic, Note, UserError
from gristmill.ir.build import conjunction, const, greater_equal, select
from gristmill.ir.dtype import INT64
from gristmill.ir.expr import Expr, FloorDiv
from gristmill.ir.functor import walk
from gristmill.ir.memory import Scope
from gristmill.ir.module import Function, Module
from gristmill.ir.span import place_of
from gristmill.ir.stmt import Allocate, Stmt
from gristmill.passes.launch_regions import map_regions
from gristmill.passes.layout import plus, times
from gristmill.passes.manager import Pass
from gristmill.passes.ranges import RangeMutator
from gristmill.passes.shared_layout import (
    Home,
    alignment_of,
    bytes_of,
    new_memory,
    offset_steps,
    placed,
    saturated_bytes,
)
from gristmill.plugin.protocols import PassContext


@dataclass(frozen=True)
class LayOutDynamicMemory(Pass):
    """Lay out the dynamic shared memory of a launch in one allocation."""

    types_apart: bool = False

    def run(self, module: Module) -> Module:
        return module.with_functions(
            lay_out_dynamic_memory(function, self.types_apart) for function in module.functions
        )

    @classmethod
    def values_for(cls, context: PassContext) -> Mapping[str, Any]:
        return {"types_apart": context.capabilities.shared_types_apart}


def lay_out_dynamic_memory(function: Function, types_apart: bool = False) -> Function:
    """The function with one dynamic allocation a region; the same object if none has more. Raises UserError (GM0611)."""
    return map_regions(function, lambda region: _laid_out(function, region, types_apart))


def _laid_out(function: Function, region: Stmt, types_apart: bool) -> Stmt:
    found = [node for node in walk(region) if isinstance(node, Allocate) and node.buffer.scope is Scope.SHARED_DYNAMIC]
    if len(found) < 2:
        return region
    kind = found[0].buffer.dtype
    if types_apart:
        other = next((node for node in found if node.buffer.dtype != kind), None)
        if other is not None:
            raise _types_differ(found[0], other)
    steps = offset_steps(region)
    known = RangeMutator(function).simplifier
    # All of them together stay below what int64 holds, also with what lies between them.
    most = INT64.maximum // (2 * len(found))
    offsets: list[tuple[Allocate, Expr]] = []
    sizes: list[Expr] = []
    end = whole = const(0, INT64)
    for node in sorted(found, key=lambda node: -steps[node.buffer.data]):
        start = _aligned(end, steps[node.buffer.data])
        offsets.append((node, start))
        end = plus(start, bytes_of(node.buffer))
        sizes.append(saturated_bytes(node.buffer, known, most))
        whole = plus(_aligned(whole, steps[node.buffer.data]), sizes[-1])
    unsure = [greater_equal(size, 0) for size in sizes if known.bounds.of(size).low < 0]
    if unsure:
        whole = select(conjunction(unsure), whole, const(-1, INT64))
    alignment = max(alignment_of(node.buffer) for node in found)
    memory = new_memory(
        "dynamic_shared_memory", Scope.SHARED_DYNAMIC, known.simplify(whole), alignment, kind if types_apart else None
    )
    return placed(region, ((node.buffer.data, Home(memory, start)) for node, start in offsets))


def _aligned(end: Expr, step: int) -> Expr:
    return simplify(times(FloorDiv(plus(end, const(step - 1, INT64)), const(step, INT64)), const(step, INT64)))


def _types_differ(first: Allocate, second: Allocate) -> UserError:
    return UserError(
        Diagnostic(
            "GM0611",
            f"`{first.buffer.name}` is dynamic shared memory of {first.buffer.dtype} and `{second.buffer.name}` of "
            f"{second.buffer.dtype}; a launch has one, and this target sees it as one type",
            place_of(second.span or second.buffer.span),
            hint="give one of them a constant size and the scope `shared`, or both one type",
            notes=(Note(f"`{first.buffer.name}` is declared here", place_of(first.span)),) if first.span else (),
        )
    )
