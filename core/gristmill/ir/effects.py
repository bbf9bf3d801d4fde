"""What evaluating an expression may do besides giving its value."""

from __future__ import annotations

from gristmill.ir.expr import Call, CallExtern, CallFunction, CallPacked, Expr, Load
from gristmill.ir.functor import walk
from gristmill.ir.op import PACKED_INTERFACE, PARTIAL, WARP

_NOT_AT_WILL = frozenset(op.name for op in (*PARTIAL, *WARP, *PACKED_INTERFACE))


_WARP = frozenset(op.name for op in WARP)


def is_exchange(node: object) -> bool:
    """Whether this is an exchange between threads, to which all threads of a group must come."""
    return isinstance(node, Call) and node.op.name in _WARP


def may_always_run(expr: Expr) -> bool:
    """Whether evaluating the expression has no effect and cannot be an error, so that it may run without need."""
    for part in walk(expr):
        if isinstance(part, (Load, CallFunction, CallExtern, CallPacked)):
            return False
        if isinstance(part, Call) and part.op.name in _NOT_AT_WILL:
            return False
    return True
