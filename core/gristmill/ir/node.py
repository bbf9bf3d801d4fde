"""What an IR node is: one decorator, one base class.

Nodes are final, frozen, slotted and compared by identity, so that ``==`` and ``hash`` cost O(1) and never recurse.
Structural equality is an explicit function (:mod:`gristmill.ir.equal`). Every node ends with an optional ``span``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypeVar, dataclass_transform

from gristmill.ir.span import Span

T = TypeVar("T")


@dataclass_transform(frozen_default=True, eq_default=False)
def node(cls: type[T]) -> type[T]:
    """Make a class an IR node: a frozen, slotted dataclass with identity equality."""
    return dataclass(frozen=True, slots=True, eq=False, repr=False)(cls)


class Node:
    """The base of expressions, statements, buffers and the like.

    ``CHILDREN`` names the fields that hold child nodes (a node, None, or a tuple of nodes), in evaluation order;
    walking, mutation and completeness checks go by it. A buffer that is merely *used* (by a load or a store) is not a
    child; a buffer that is *defined* (by an allocation, a view, a parameter) is.
    """

    __slots__ = ()
    CHILDREN: ClassVar[tuple[str, ...]] = ()
    span: Span | None

    def __repr__(self) -> str:
        from gristmill.ir.printer import print_node

        try:
            return print_node(self)
        except Exception:  # a half-made node, seen in a debugger or a failing assertion
            return f"<{type(self).__name__}>"
