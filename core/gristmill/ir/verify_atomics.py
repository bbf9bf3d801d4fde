"""The verifier's part for atomic operations (GM0451). Rules: :mod:`gristmill.ir.verify`."""

from __future__ import annotations

from gristmill.ir.dtype import FLOAT32, FLOAT64, INT32, INT64, UINT32, UINT64, DType
from gristmill.ir.expr import AddressOf, Call
from gristmill.ir.memory import Scope
from gristmill.ir.op import ATOMICS_OF_FLOATS
from gristmill.ir.verify_walk import VerifierWalk, shown

ATOMIC_TYPES = (INT32, UINT32, INT64, UINT64, FLOAT32, FLOAT64)
"""The types of elements that atomic operations work on."""
ATOMIC_SCOPES = frozenset((Scope.GLOBAL, Scope.SHARED, Scope.SHARED_DYNAMIC))
"""Memory that atomic operations work on: what more than one thread sees."""


def element_type(node: Call) -> DType:
    """The type of the element that an operation is on; that of the call itself where it is on none."""
    element = node.args[0]
    return element.buffer.dtype if isinstance(element, AddressOf) else node.type


def check_atomic(walk: VerifierWalk, node: Call) -> None:
    """An atomic operation: its place, its element, then its operands."""
    op, element = node.op, node.args[0]
    if node is not walk.bound:
        hint = f"bind it to a name, and use the name: `x = {shown(node).strip('`')}`"
        walk.report("GM0451", f"`{op}` stands where it is not the whole value of a binding", node, hint)
    if not isinstance(element, AddressOf):
        walk.report("GM0451", f"`{op}` takes the address of an element, not {shown(element)}", node)
        return
    buffer = element.buffer
    dtype = buffer.dtype
    if dtype not in ATOMIC_TYPES:
        wanted = ", ".join(map(str, ATOMIC_TYPES))
        walk.report("GM0451", f"`{op}` works on {wanted}, and `{buffer.name}` holds {dtype}", node)
    elif dtype.is_float and op.name not in ATOMICS_OF_FLOATS:
        walk.report("GM0451", f"`{op}` works on integers, and `{buffer.name}` holds {dtype}", node)
    if buffer.scope not in ATOMIC_SCOPES:
        message = f"`{op}` works on memory that threads share, and `{buffer.name}` is {buffer.scope.value} memory"
        walk.report("GM0451", message, node, "no other thread sees it: use plain loads and stores")
    for given in walk.types[1:]:
        if given != dtype:
            walk.report("GM0451", f"an operand of {shown(node)} is {given}, and the element {dtype}", node)
