"""Threads that take several neighbouring elements at once, where a loop goes through whole arrays.

Before::

    for i in range(n):
        y[i] = a * x[i] + y[i]

What each thread runs after, with ``vector`` counting groups of four elements::

    view x4 of x, aligned to 16 bytes
    view y4 of y, aligned to 16 bytes
    for i in vectorized(vector * 4, 4):
        y4[i] = a * x4[i] + y4[i]

A load of 16 bytes by each thread fills the memory bus of a device; one of 4 leaves a third of it idle. It takes arrays
that begin at a multiple of as many bytes and a number of iterations that divides evenly; both are asked for before the
launch, where they are not known. The loop must be straight code, whose iteration ``i`` accesses elements ``[i]`` of
arrays of one dimension, and otherwise only elements that are the same in all iterations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from gristmill.ir.build import call, const, sequence
from gristmill.ir.dtype import BOOL, INT64
from gristmill.ir.expr import AddressOf, BufferRef, Expr, Load, Mul, Var
from gristmill.ir.functor import substitute, walk
from gristmill.ir.memory import Buffer, Scope
from gristmill.ir.stmt import Allocate, Bind, For, LoopKind, Seq, Stmt, Store, View
from gristmill.passes.renewal import defined_variables
from gristmill.passes.vector_lanes import NotVectorizable, vector_form

_STRAIGHT = (Seq, Store, Bind, Allocate)


@dataclass(frozen=True)
class WideAccesses:
    """Several iterations of a loop as one thread runs them."""

    lanes: int
    """How many iterations."""
    body: Stmt
    """Those from ``lanes`` times the variable ``vector`` on."""
    vector: Var
    conditions: tuple[Expr, ...]
    """What must hold before a launch: that arrays are aligned."""


def wide_accesses(body: Stmt, variable: Var, most: int) -> WideAccesses | None:
    """Neighbouring iterations as one, accessing at most ``most`` bytes at once; None if the body does not allow it.

    ``body`` is run for each value of ``variable`` (int64) in any order, and touches no element that another iteration
    writes.
    """
    arrays = _arrays(body, variable)
    if not arrays:
        return None
    lanes = most // max(buffer.dtype.bytes for buffer in arrays)
    if lanes < 2:
        return None
    vector = Var("vector", INT64)
    views: dict[Buffer, Buffer] = {}
    conditions: list[Expr] = []
    for buffer in arrays:
        wanted = lanes * buffer.dtype.bytes
        if buffer.alignment < wanted:
            views[buffer] = replace(buffer, alignment=wanted)
            conditions.append(call("aligned", buffer.data, const(wanted, INT64), dtype=BOOL))
    loop = For(
        variable,
        Mul(vector, const(lanes, INT64)),
        const(lanes, INT64),
        LoopKind.VECTORIZED,
        substitute(body, {}, views),
    )
    try:
        vector_form(loop, lanes)
    except NotVectorizable:
        return None
    found = sequence(*(View(view) for view in views.values()), loop)
    return WideAccesses(lanes, found, vector, tuple(conditions))


def _arrays(body: Stmt, variable: Var) -> Sequence[Buffer]:
    """The arrays of which each iteration accesses its own element, in order; none if anything else stands in the way."""
    inside = defined_variables(body) | {variable}
    own = {node.buffer for node in walk(body) if isinstance(node, Allocate)}
    found: dict[Buffer, None] = {}
    for node in walk(body):
        if isinstance(node, (AddressOf, BufferRef)) or (isinstance(node, Stmt) and not isinstance(node, _STRAIGHT)):
            return ()
        if isinstance(node, Allocate) and (node.buffer.rank or node.buffer.scope is not Scope.LOCAL):
            return ()
        if not isinstance(node, (Load, Store)) or node.buffer in own:
            continue
        buffer = node.buffer
        if len(node.indices) == 1 and node.indices[0] is variable:
            if buffer.scope is not Scope.GLOBAL or buffer.strides or buffer.offset is not None:
                return ()
            if buffer.dtype.is_vector:
                return ()
            found[buffer] = None
        elif isinstance(node, Store) or any(
            part in inside or isinstance(part, Load) for index in node.indices for part in walk(index)
        ):
            return ()
    return tuple(found)
