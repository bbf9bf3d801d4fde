"""How far apart the accesses of a loop's iterations lie, read off its indices."""

from __future__ import annotations

import math

from gristmill.ir.build import constant_value
from gristmill.ir.expr import Add, CallFunction, Cast, Expr, Load, Mul, Negate, Sub, Var
from gristmill.ir.functor import walk
from gristmill.ir.memory import Buffer
from gristmill.ir.stmt import For, Stmt, Store, While

CACHE_LINE_BYTES = 64
UNKNOWN = math.nan
VARYING = math.inf
"""A step that is the same in all iterations, but not constant in the code: the size of a row, say."""


def step_of(index: Expr, var: Var) -> float:
    """By how much the index grows when the variable grows by 1: a number, :data:`VARYING`, or :data:`UNKNOWN`."""
    if index is var:
        return 1.0
    if isinstance(index, Cast):
        return step_of(index.value, var)
    if isinstance(index, Negate):
        return -step_of(index.a, var)
    if isinstance(index, (Add, Sub)):
        first, second = step_of(index.a, var), step_of(index.b, var)
        return first + (second if isinstance(index, Add) else -second)
    if isinstance(index, Mul):
        for inner, factor in ((index.a, index.b), (index.b, index.a)):
            if not _mentions(factor, var):
                known = constant_value(factor)
                step = step_of(inner, var)
                if step == 0.0 or math.isnan(step):
                    return step
                return step * float(known) if known is not None else VARYING
    return UNKNOWN if _mentions(index, var) else 0.0


def _mentions(expr: Expr, var: Var) -> bool:
    return any(node is var for node in walk(expr))


def jumps_between_cache_lines(buffer: Buffer, indices: tuple[Expr, ...], var: Var) -> bool:
    """Whether each iteration is known to touch another cache line than the one before, at a regular distance."""
    for place, index in enumerate(indices):
        step = step_of(index, var)
        if step == 0.0 or math.isnan(step):
            continue
        is_row = place + 1 < len(indices)
        if is_row or abs(step) * buffer.dtype.bytes >= CACHE_LINE_BYTES:
            return True
    return False


def is_innermost(body: Stmt) -> bool:
    """Whether a loop's body has no loop in it."""
    return not any(isinstance(node, (For, While)) for node in walk(body))


def has_jumping_loads(loop: For) -> bool:
    """Whether an iteration of the loop loads from a regular distance of a cache line or more."""
    return any(
        isinstance(node, Load) and jumps_between_cache_lines(node.buffer, node.indices, loop.var)
        for node in walk(loop.body)
    )


def may_accumulate_floats(loop: For) -> bool:
    """Whether iterations may combine floats into one place, so that their order shows in the result.

    Judged by stores: one whose place is not known to differ between iterations may accumulate, and so may a function
    that gets a pointer.
    """
    for node in walk(loop.body):
        if isinstance(node, CallFunction) and any(argument.dtype.is_handle for argument in node.args):
            return True
        if isinstance(node, Store) and node.buffer.dtype.is_float:
            steps = [step_of(index, loop.var) for index in node.indices]
            if all(step == 0.0 or math.isnan(step) for step in steps):
                return True
    return False
