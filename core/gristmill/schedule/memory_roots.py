"""Which buffers lie in the same memory: every view, match and pointer, led back to what was allocated or passed in."""

from __future__ import annotations

from gristmill.ir.expr import AddressOf, Expr, Var
from gristmill.ir.functor import walk
from gristmill.ir.module import Function
from gristmill.ir.stmt import Bind, Block, View


def memory_roots(function: Function) -> dict[Var, Var]:
    """For each pointer that the function derives from another: the data of the allocation or parameter it points into."""
    found: dict[Var, Var] = {}

    def root(pointer: Expr) -> Var | None:
        for part in walk(pointer):
            data = part.buffer.data if isinstance(part, AddressOf) else part
            if isinstance(data, Var) and data.dtype.is_handle:
                return found.get(data, data)
        return None

    # A walk meets definitions before their uses.
    for node in walk(function.body):
        derived: Var | None = None
        source: Var | None = None
        if isinstance(node, View) and node.source is not None:
            derived, source = node.buffer.data, root(node.source)
        elif isinstance(node, Bind) and node.var.dtype.is_handle:
            derived, source = node.var, root(node.value)
        elif isinstance(node, Block):
            for match in node.matches:
                data = match.region.buffer.data
                if match.buffer.data is not data:
                    found[match.buffer.data] = found.get(data, data)
        if derived is not None and source is not None:
            found[derived] = source
    return found
