"""Random atomic operations, where what they leave and give is certain: on an element that is the thread's own."""

from __future__ import annotations

from gristmill.ir import expr as e
from gristmill.ir import stmt as s
from gristmill.ir.build import call
from gristmill.ir.op import ATOMICS, ATOMICS_OF_FLOATS, OPS
from gristmill.ir.verify_atomics import ATOMIC_SCOPES, ATOMIC_TYPES
from gristmill.testing.programs.expressions import ExpressionMaker
from gristmill.testing.programs.scope import Memory


class AtomicMaker(ExpressionMaker):
    """Makes atomic operations on elements of 32 bits, which every device has."""

    def depth(self) -> int:
        """How deep an expression may nest here."""
        raise NotImplementedError

    def name(self, stem: str) -> str:
        """A new name."""
        raise NotImplementedError

    def atomic(self) -> s.Stmt | None:
        """An operation whose old value gets a name, or is dropped."""
        known = [m for m in self.scope.memory if m.writable and m.readable and self._takes(m)]
        if not known:
            return None
        chosen = self.chance.pick(known)
        dtype = chosen.dtype
        # Sums are exact as any sum of two floats is.
        names = sorted(ATOMICS_OF_FLOATS if dtype.is_float else (op.name for op in ATOMICS))
        op = OPS[self.chance.pick(names)]
        element = e.AddressOf(chosen.buffer, self.indices(chosen))
        found = call(op.name, element, *(self.make(dtype, self.depth()) for _ in range(op.arity - 1)))
        if found.dtype.is_void or self.chance.happens(0.4):
            return s.Evaluate(found)
        var = e.Var(self.name("old"), dtype)
        self.scope.variables.append(var)
        return s.Bind(var, found)

    def _takes(self, memory: Memory) -> bool:
        dtype = memory.dtype
        is_shared = bool(memory.buffer.shape) and memory.buffer.scope in ATOMIC_SCOPES
        return is_shared and dtype in ATOMIC_TYPES and dtype.bits == 32
