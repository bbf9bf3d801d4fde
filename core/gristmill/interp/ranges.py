"""Where memory lies: the operations ``disjoint`` and ``aligned`` of :mod:`gristmill.ir.op`."""

from __future__ import annotations

from typing import Any

from gristmill.interp.memory import Opaque, Pointer
from gristmill.interp.state import Execution


def disjoint(execution: Execution, site: int, a: Any, a_bytes: int, b: Any, b_bytes: int) -> bool:
    """As the operation says. Of pointers that did not come from the executor's memory nothing is known: not disjoint."""
    if a_bytes <= 0 or b_bytes <= 0:
        return True
    if not (isinstance(a, Pointer) and isinstance(b, Pointer)):
        return False
    # Arrays of the caller that overlap share one memory, so different memories never do.
    if a.memory is not b.memory:
        return True
    return a.offset + a_bytes <= b.offset or b.offset + b_bytes <= a.offset


def aligned(execution: Execution, site: int, pointer: Any, alignment: int) -> bool:
    """As the operation says; nothing else is aligned."""
    if isinstance(pointer, Pointer):
        return (pointer.memory.address + pointer.offset) % alignment == 0
    return isinstance(pointer, Opaque) and pointer.value % alignment == 0
