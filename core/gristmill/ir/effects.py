"""What evaluating an expression may do besides giving its value."""

from __future__ import annotations

from gristmill.ir.expr import Call, CallExtern, CallFunction, CallPacked, Expr, Load
from gristmill.ir.functor import walk
from gristmill.ir.op import PACKED_INTERFACE, PARTIAL

_WITH_PRECONDITION = frozenset(op.name for op in (*PARTIAL, *PACKED_INTERFACE))


def may_always_run(expr: Expr) -> bool:
    """Whether evaluating the expression has no effect and cannot be an error, so that it may run without need."""
    for part in walk(expr):
        if isinstance(part, (Load, CallFunction, CallExtern, CallPacked)):
            return False
        if isinstance(part, Call) and part.op.name in _WITH_PRECONDITION:
            return False
    return True
