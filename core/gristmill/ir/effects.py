"""What evaluating an expression may do besides giving its value."""

from __future__ import annotations

from typing import TypeGuard

from gristmill.ir.expr import AddressOf, Call, CallExtern, CallFunction, CallPacked, Expr, Load
from gristmill.ir.functor import walk
from gristmill.ir.op import ATOMICS, MATRIX, PACKED_INTERFACE, PARTIAL, WARP

_NOT_AT_WILL = frozenset(op.name for op in (*PARTIAL, *WARP, *ATOMICS, *MATRIX, *PACKED_INTERFACE))
_WARP = frozenset(op.name for op in WARP)
_MATRIX = frozenset(op.name for op in MATRIX)
_ATOMICS = frozenset(op.name for op in ATOMICS)


def is_exchange(node: object) -> bool:
    """Whether this is an exchange between threads."""
    return isinstance(node, Call) and node.op.name in _WARP


def is_matrix(node: object) -> TypeGuard[Call]:
    """Whether this is an operation on tiles of matrices."""
    return isinstance(node, Call) and node.op.name in _MATRIX


def is_collective(node: object) -> bool:
    """Whether this is what all threads of a group must come to together: an exchange, or an operation on matrices."""
    return is_exchange(node) or is_matrix(node)


def is_atomic(node: object) -> TypeGuard[Call]:
    """Whether this is an atomic operation on an element of memory."""
    return isinstance(node, Call) and node.op.name in _ATOMICS


def atomic_element(node: object) -> AddressOf | None:
    """The element that an atomic operation is on; None for what is no atomic operation."""
    if is_atomic(node):
        element = node.args[0]
        assert isinstance(element, AddressOf)  # by the verifier
        return element
    return None


def matrix_element(node: object) -> AddressOf | None:
    """Where in memory an operation on matrices loads from or stores to; None for what does neither."""
    if is_matrix(node) and node.op.name in ("matrix_load", "matrix_store"):
        element = node.args[1 if node.op.name == "matrix_load" else 0]
        assert isinstance(element, AddressOf)  # by the verifier
        return element
    return None


def written_element(node: object) -> AddressOf | None:
    """The element of memory that an operation writes, or where the elements that it writes begin; None for others."""
    if is_matrix(node):
        return matrix_element(node) if node.op.name == "matrix_store" else None
    return atomic_element(node)


def may_always_run(expr: Expr) -> bool:
    """Whether evaluating the expression has no effect and cannot be an error, so that it may run without need."""
    for part in walk(expr):
        if isinstance(part, (Load, CallFunction, CallExtern, CallPacked)):
            return False
        if isinstance(part, Call) and part.op.name in _NOT_AT_WILL:
            return False
    return True
