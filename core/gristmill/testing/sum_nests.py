"""Random kernels of loops over sums, in the kernel language, with arguments that overlap or not.

They are what :mod:`gristmill.passes.vectorize_outer_loops` looks for, and what it must leave alone.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import numpy as np

ROWS, DEPTH = 3, 5
DTYPES = ("int8", "uint8", "int16", "int32", "uint32", "int64", "uint64", "float32", "float64")
EXTENTS = (0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 40, 63, 65)

# Arrays: x[DEPTH, n], y[ROWS, n], v[DEPTH], z[n + DEPTH], and the results out[ROWS, n], last[n].
_OPERANDS = (
    *("x[p, j]", "y[i, j]", "v[p]", "z[j + p]", "z[j]", "out[i, j]", "last[j]", "T.Cast('{t}', j)", "T.Cast('{t}', p)"),
    *("x[p, n - 1 - j]", "x[DEPTH - 1 - p, j]", "y[i, 0]", "scratch[p]", "own"),
)
_COMBINE = ("{a} + {b}", "{a} - {b}", "{a} * {b}", "T.min({a}, {b})", "T.max({a}, {b})", "{a} + {b} * {c}")
_AFTER = (
    "out[i, j] = total",
    "out[i, j] = total + out[i, j]",
    "last[j] = total - last[j]",
    "last[j] = total\n{pad}out[i, j] = last[j] * total",
    "out[i, j] = T.Select(total > last[j], total, last[j])",
    "z[j] = total",
    "z[j + 1] = total",
    "last[0] = total",
)


@dataclass(frozen=True)
class SumNest:
    """A kernel ``f(x, y, v, z, out, last)`` and arguments for it."""

    seed: int
    text: str
    dtype: str
    extent: int

    def arguments(self, overlap: bool) -> list[Any]:
        """Arrays with small and extreme values; with ``overlap`` all are parts of one piece of memory."""
        source = np.random.default_rng(self.seed)
        n = self.extent
        shapes = ((DEPTH, n), (ROWS, n), (DEPTH,), (n + DEPTH,), (ROWS, n), (n,))
        sizes = [int(np.prod(shape)) for shape in shapes]
        starts = [int(source.integers(0, 2 * n + 2)) if overlap else sum(sizes[:place]) for place in range(len(sizes))]
        whole = self._values(source, max(start + size for start, size in zip(starts, sizes, strict=True)))
        return [
            whole[start : start + size].reshape(shape) for start, size, shape in zip(starts, sizes, shapes, strict=True)
        ]

    def _values(self, source: np.random.Generator, count: int) -> np.ndarray[Any, Any]:
        kind = np.dtype(self.dtype)
        if kind.kind == "f":
            return (source.standard_normal(count) * 10.0 ** source.integers(-3, 4, count)).astype(kind)
        info = np.iinfo(kind)
        values = source.integers(info.min, info.max, count, dtype=kind, endpoint=True)
        found: np.ndarray[Any, Any] = np.where(source.random(count) < 0.5, values % kind.type(7), values).astype(kind)
        return found


def random_sum_nest(seed: int) -> SumNest:
    """The kernel of a seed."""
    chance = random.Random(seed)
    dtype, extent = chance.choice(DTYPES), chance.choice(EXTENTS)

    def operand() -> str:
        # Half of the time one with which lanes are apart.
        return chance.choice(_OPERANDS[:6] if chance.random() < 0.6 else _OPERANDS).format(t=dtype)

    def combined() -> str:
        return chance.choice(_COMBINE).format(a="total", b=operand(), c=operand())

    lines = [f"own = T.Cast('{dtype}', i) + {chance.choice(('z[j]', 'y[i, j]', 'v[0]'))}"]
    lines.append(f'scratch = T.alloc_buffer(({DEPTH},), "{dtype}", scope="local")')
    lines += [f"for p in range({DEPTH}):", f"    scratch[p] = {operand().replace('scratch[p]', 'v[p]')}"]
    lines.append(f"total = {chance.choice(('own', f'T.{dtype}(1)', 'y[i, j]'))}")
    bound = chance.choice((str(DEPTH), "depth", "T.min(depth, i + 2)", "T.min(depth, j)"))
    lines.append(f"for p in range({bound}):")
    if chance.random() < 0.3:
        condition = chance.choice(("i == 1", "p > 1", "v[p] > v[0]", "x[p, j] > v[0]"))
        lines += [f"    if {condition}:", f"        total = {combined()}"]
    lines += [f"    total = {combined()}" for _ in range(chance.choice((1, 1, 2)))]
    lines.append(chance.choice(_AFTER).format(pad=" " * 12))
    if chance.random() < 0.2:
        lines.append(chance.choice(_AFTER).format(pad=" " * 12))
    loops = [f"i in range({ROWS})", "j in range(n)"]
    if chance.random() < 0.3:
        loops.reverse()
    outside = f"    total = T.{dtype}(7)\n" if chance.random() < 0.3 else ""
    body = "\n".join(" " * 12 + line for line in lines)
    head = ", ".join(
        f'{name}: T.Buffer({shape}, "{dtype}")'
        for name, shape in (
            ("x", '("depth", "n")'),
            ("y", f'({ROWS}, "n")'),
            ("v", '("depth",)'),
            ("z", '("n + depth",)'),
            ("out", f'({ROWS}, "n")'),
            ("last", '("n",)'),
        )
    )
    text = (
        f"from gristmill.script import tir as T\n\nDEPTH = {DEPTH}\n\n\n@T.prim_func\ndef f({head}):\n"
        f"{outside}    for {loops[0]}:\n        for {loops[1]}:\n{body}\n"
    )
    return SumNest(seed, text, dtype, extent)
