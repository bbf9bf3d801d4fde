"""Which pointers code mentions."""

from __future__ import annotations

from collections.abc import Iterator

from gristmill.ir.expr import AddressOf, BufferRef, Var
from gristmill.ir.functor import walk
from gristmill.ir.node import Node


def pointers_in(node: Node) -> Iterator[Var]:
    """The pointer variables in an expression, and the ``data`` of buffers whose addresses it takes, maybe repeatedly."""
    for part in walk(node):
        if isinstance(part, Var):
            if part.dtype.is_handle:
                yield part
        elif isinstance(part, (AddressOf, BufferRef)):
            yield part.buffer.data
