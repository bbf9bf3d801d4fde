"""Atomic operations in generated code: a read and a write of one element, into which no other strand comes.

Threads of the executor take turns only where they wait, and an atomic operation does not wait; so a plain read and a
plain write do. What is left is to record the operation, so that plain accesses that race with it are found.
"""

from __future__ import annotations

from gristmill.interp.buffers import BufferAccess, load_text
from gristmill.interp.memory import WRITTEN
from gristmill.interp.values import Value, value
from gristmill.ir import expr as e
from gristmill.ir.dtype import VOID
from gristmill.ir.memory import Buffer

_COMBINED: dict[str, type[e.BinaryExpr]] = {
    "atomic_add": e.Add,
    "atomic_min": e.Min,
    "atomic_max": e.Max,
    "atomic_and": e.BitAnd,
    "atomic_or": e.BitOr,
    "atomic_xor": e.BitXor,
}


class AtomicAccess(BufferAccess):
    """Writes atomic operations."""

    def atomic_access(self, name: str, buffer: Buffer, indices: list[Value], operands: list[Value], site: int) -> Value:
        """One operation on the element at scalar indices; its value is what the element held before."""
        names, dtype = self.names_of[buffer], buffer.dtype
        at = self.checked(names, indices, site)
        if names.tracked:
            self.writer.emit(f"{names.atomic}({at.number}, {self.path_of(buffer)}, {site}, {self.strand})")
        if name == "atomic_store":
            self._put(buffer, at.number, operands[0], site)
            return Value("None", VOID)
        self.writer.emit(
            f"if {names.shadow}[{at.number}] != {WRITTEN[dtype.bits // 8]}: "
            f"E.uninitialised({site}, {at.indices}, {self.strand})",
            site,
        )
        held = self.writer.fresh("t")
        self.writer.emit(f"{held} = {load_text(dtype, names.elements, at.number)}", site)
        old = value(held, dtype)
        if name == "atomic_compare_exchange":
            with self.writer.block(f"if {held} == {operands[0].text}:"):
                self._put(buffer, at.number, operands[1], site)
        elif name == "atomic_exchange":
            self._put(buffer, at.number, operands[0], site)
        elif name != "atomic_load":
            self._put(buffer, at.number, self.named(self.binary(_COMBINED[name], old, operands[0])), site)
        return old

    def _put(self, buffer: Buffer, number: str, stored: Value, site: int) -> None:
        names = self.names_of[buffer]
        self.writer.emit(f"{names.elements}[{number}] = {stored.text}", site)
        self.writer.emit(f"{names.shadow}[{number}] = {WRITTEN[buffer.dtype.bits // 8]}", site)
