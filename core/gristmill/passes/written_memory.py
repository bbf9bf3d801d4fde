"""Through which pointers code writes, where their names alone tell."""

from __future__ import annotations

from gristmill.ir.effects import atomic_element, is_matrix, written_element
from gristmill.ir.expr import AddressOf, BufferRef, CallExtern, CallFunction, CallPacked, Var
from gristmill.ir.functor import walk
from gristmill.ir.stmt import Bind, Stmt, Store, View


def written_memory(region: Stmt) -> set[Var] | None:
    """The pointers through which the region writes; None where that can not be told from their names."""
    found: set[Var] = set()
    elements: set[AddressOf] = set()
    for node in walk(region):
        if isinstance(node, Store):
            found.add(node.buffer.data)
        elif (element := atomic_element(node)) is not None:
            elements.add(element)
            found.add(element.buffer.data)
        elif is_matrix(node):
            elements |= {arg for arg in node.args if isinstance(arg, AddressOf)}
            if (written := written_element(node)) is not None:
                found.add(written.buffer.data)
        elif node in elements:
            continue
        elif isinstance(node, (CallFunction, CallExtern, CallPacked, AddressOf, BufferRef)):
            return None
        elif isinstance(node, (View, Bind)):
            source = node.source if isinstance(node, View) else node.value
            if source is not None and source.dtype.is_handle:
                return None
    return found
