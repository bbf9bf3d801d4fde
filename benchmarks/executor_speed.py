"""Inner iterations a second of the reference executor, with all checks on: a plain triple-loop matrix product.

Serially, as iterations of a parallel loop and as threads of a launch (both with the record of races).
"""

from __future__ import annotations

from functools import partial

import numpy as np
from measure import minimum_seconds

from gristmill.interp import Executor
from gristmill.ir.parser import parse_module

SIZE = 48
OUTER = {
    "serial": ("for i: int64 in 0 +: n", "for j: int64 in 0 +: n"),
    "parallel": ("for i: int64 in 0 +: n parallel", "for j: int64 in 0 +: n"),
    "threads": ("for i: int64 in 0 +: n thread on blockIdx.x", "for j: int64 in 0 +: n thread on threadIdx.x"),
}
TEXT = """gristmill ir 1
function @matmul<n: int64>(a: float32[n, n], b: float32[n, n], c: float32[n, n]) {{
  {} {{
    {} {{
      c[i, j] = 0.0
      for k: int64 in 0 +: n {{
        c[i, j] = c[i, j] + a[i, k] * b[k, j]
      }}
    }}
  }}
}}
"""


def main() -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.normal(size=(SIZE, SIZE)).astype(np.float32) for _ in range(2))
    c = np.empty_like(a)
    executors = {name: Executor(parse_module(TEXT.format(*loops))) for name, loops in OUTER.items()}
    runs = {name: partial(executor.call, "matmul", [a, b, c]) for name, executor in executors.items()}
    for name, seconds in minimum_seconds(runs, rounds=3).items():
        print(f"executor, {name}: {SIZE**3 / seconds:,.0f} inner iterations/s (wanted >= 150,000)", flush=True)
    assert np.allclose(c, a @ b, atol=1e-4)


if __name__ == "__main__":
    main()
