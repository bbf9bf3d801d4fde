"""Names of the operations that the generator emits itself; apart from the code, so that targets are known without it."""

from __future__ import annotations

from gristmill.ir.op import HINTS, MEMORY, PACKED_INTERFACE, PARTIAL

CPU_OPERATIONS = frozenset(
    (
        *("sqrt", "rsqrt", "floor", "ceil", "round", "trunc", "abs", "fma", "copysign"),
        *("isnan", "isinf", "isfinite", "popcount", "clz", "ctz"),
        *(op.name for group in (HINTS, PARTIAL, MEMORY, PACKED_INTERFACE) for op in group),
    )
)
"""What every CPU has in instructions (fma: with the feature)."""
