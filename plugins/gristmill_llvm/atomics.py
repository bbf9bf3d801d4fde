"""Atomic operations: LLVM's ``atomicrmw`` and ``cmpxchg``, relaxed ("monotonic"), on elements that are aligned as their size.

Machines that have no instruction for one (sums of floats) get a loop of compare-and-exchange from LLVM, and never a call
of a library.
"""

from __future__ import annotations

from gristmill.ir.expr import AddressOf, Call
from gristmill_llvm import memory
from gristmill_llvm.context import FunctionContext
from gristmill_llvm.types import memory_type

_SIGNED = {"atomic_min": "min", "atomic_max": "max"}
_COMBINED = {
    "atomic_exchange": "xchg",
    "atomic_min": "umin",
    "atomic_max": "umax",
    "atomic_and": "and",
    "atomic_or": "or",
    "atomic_xor": "xor",
}


def emit_atomic(context: FunctionContext, node: Call) -> str:
    """Write an atomic operation; its value, empty for a store. Evaluates the indices, then the operands."""
    element, name = node.args[0], node.op.name
    assert isinstance(element, AddressOf)
    writer, dtype = context.writer, element.buffer.dtype
    pointer = memory.element_address(context, element.buffer, element.indices)
    operands = [f"{memory_type(dtype)} {context.evaluate(operand)}" for operand in node.args[1:]]
    order = f"monotonic, align {dtype.bytes}"
    if name == "atomic_load":
        return writer.value(f"load atomic {memory_type(dtype)}, {pointer} {order}")
    if name == "atomic_store":
        writer.effect(f"store atomic {operands[0]}, {pointer} {order}")
        return ""
    if name == "atomic_compare_exchange":
        pair = writer.value(f"cmpxchg {pointer}, {operands[0]}, {operands[1]} monotonic {order}")
        return writer.value(f"extractvalue {{ {memory_type(dtype)}, i1 }} {pair}, 0")
    if name == "atomic_add":
        combined = "fadd" if dtype.is_float else "add"
    else:
        combined = (_SIGNED if dtype.is_signed and name in _SIGNED else _COMBINED)[name]
    return writer.value(f"atomicrmw {combined} {pointer}, {operands[0]} {order}")
