"""Threads that take several elements at once: which loops allow it, when it is asked for, and equal results."""

from __future__ import annotations

import numpy as np
import pytest

from gristmill.interp import ExecutionOptions, execute
from gristmill.ir.functor import walk
from gristmill.ir.module import Module
from gristmill.ir.stmt import For, LoopKind, View
from gristmill.passes.manager import Pipeline, RunOptions
from gristmill.schedule.bind_loops import BindLoops
from gristmill.testing.bound import runnable
from gristmill.testing.pass_equivalence import check_pass, kernels, outcome_of, same_outcome

WORK = BindLoops(threads=8, access=16)
SAXPY = """
    @T.prim_func
    def f(a: T.float32, x: T.Buffer(("n",), "float32"), y: T.Buffer(("n",), "float32")):
        for i in range(n):
            y[i] = a * x[i] + y[i]
"""


def bound(source: str) -> tuple[Module, Module]:
    module = kernels(source)
    return module, Pipeline.of([WORK]).run(module, RunOptions(verify=True))


def lanes(module: Module) -> list[int]:
    """How many iterations the threads of each such launch take at once."""
    found = [node for node in walk(module) if isinstance(node, For) and node.kind is LoopKind.VECTORIZED]
    return [node.extent.value for node in found]  # type: ignore[attr-defined]


def test_what_it_asks_for_and_what_it_makes() -> None:
    check_pass(
        WORK,
        """
        @T.prim_func
        def f(x: T.Buffer(("n",), "float32", align=16), y: T.Buffer(("n",), "float32")):
            for i in range(n):
                y[i] = x[i] * 2.0
        """,
        """
        gristmill ir 1

        function @f<n: int64>(
          x: float32[n] align 16 data xp: ptr<float32, global>, y: float32[n] data yp: ptr<float32, global>
        )
          symbol "f"
        {
          if disjoint(yp, n * 4, xp, n * 4) as bool {
            let vectors: int64 = n // 4
            if n % 4 == 0 and aligned(yp, 16) as bool {
              for bx: int64 in 0 +: (vectors + 7) // 8 thread on blockIdx.x {
                for tx: int64 in 0 +: 8 thread on threadIdx.x independent {
                  let vector: int64 = bx * 8 + tx
                  if vector < vectors {
                    view y4: float32[n] align 16 over yp
                    for i: int64 in vector * 4 +: 4 vectorized {
                      y4[i] = x[i] * 2.0
                    }
                  }
                }
              }
            } else {
              for bx1: int64 in 0 +: (n + 7) // 8 thread on blockIdx.x {
                for tx1: int64 in 0 +: 8 thread on threadIdx.x independent {
                  let i1: int64 = bx1 * 8 + tx1
                  if i1 < n {
                    y[i1] = x[i1] * 2.0
                  }
                }
              }
            }
          } else {
            for one: int64 in 0 +: 1 thread on threadIdx.x {
              for i2: int64 in 0 +: n {
                y[i2] = x[i2] * 2.0
              }
            }
          }
        }
        """,
    )


@pytest.mark.parametrize("size", [0, 1, 4, 7, 31, 32, 36, 100])
@pytest.mark.parametrize("first", [0, 1, 2, 4])
def test_results_are_the_same_wherever_arrays_begin(size: int, first: int) -> None:
    module, result = bound(SAXPY)
    assert lanes(result) == [4]
    x, y = np.arange(size, dtype=np.float32), np.ones(size + 8, np.float32)[first : first + size]
    expected = outcome_of(module, "f", (0.5, x, y))
    ready = runnable(result)
    assert same_outcome(outcome_of(ready, "f", (0.5, x, y)), expected)
    execute(ready, "f", [0.5, x, y], options=ExecutionOptions(shuffle_seed=3))
    np.testing.assert_array_equal(y, 0.5 * x + 1)


@pytest.mark.parametrize(
    ("dtypes", "expected"),
    [
        (("float32", "float32"), 4),
        (("float16", "float16"), 8),
        (("float16", "float32"), 4),
        (("uint8", "uint8"), 16),
        (("bool", "int64"), 2),
        (("float64", "float64"), 2),
    ],
)
def test_the_widest_element_says_how_many(dtypes: tuple[str, str], expected: int) -> None:
    x, y = dtypes
    _, result = bound(f"""
        @T.prim_func
        def f(x: T.Buffer(("n",), "{x}"), y: T.Buffer(("n",), "{y}")):
            for i in range(n):
                y[i] = T.Cast("{y}", x[i])
    """)
    assert lanes(result) == [expected]


@pytest.mark.parametrize(("count", "expected"), [(32, [4]), (33, []), (28, []), (1 << 20, [4])])
def test_known_sizes_are_not_asked_for(count: int, expected: list[int]) -> None:
    _, result = bound(SAXPY.replace('("n",)', f"({count},)").replace("range(n)", f"range({count})"))
    assert lanes(result) == expected
    assert "% 4 == 0" not in repr(result)


def test_names_scalars_and_elements_that_are_the_same_for_all() -> None:
    module, result = bound("""
        @T.prim_func
        def f(w: T.Buffer((2,), "float32"), x: T.Buffer(("n",), "float32"), y: T.Buffer(("n",), "float32")):
            for i in range(n):
                twice = x[i] * w[1]
                total = twice + T.Cast("float32", i)
                total = total + w[0]
                y[i] = T.max(total, 0.0)
    """)
    assert lanes(result) == [4]
    arguments = (np.array([1, -2], np.float32), np.arange(40, dtype=np.float32), np.zeros(40, np.float32))
    assert same_outcome(outcome_of(runnable(result), "f", arguments), outcome_of(module, "f", arguments))


@pytest.mark.parametrize(
    "body",
    [
        "y[i] = x[i + 1]",
        "y[i] = x[n - 1 - i]",
        "y[i * 2] = x[i]",
        "y[i] = x[T.int64(k[i])]",
        "if x[i] > 0.0:\n                    y[i] = x[i]",
        "for j in range(3):\n                    y[i] = y[i] + x[i]",
    ],
)
def test_other_loops_stay_as_they_are(body: str) -> None:
    _, result = bound(f"""
        @T.prim_func
        def f(k: T.Buffer(("m",), "int32"), x: T.Buffer(("m",), "float32"), y: T.Buffer(("m",), "float32"), n: T.int64):
            for i in range(n):
                {body}
    """)
    assert not lanes(result)
    assert not any(isinstance(node, View) for node in walk(result))


def test_loops_of_several_dimensions_and_of_other_starts_stay_as_they_are() -> None:
    _, result = bound("""
        @T.prim_func
        def f(x: T.Buffer(("h", "w"), "float32"), y: T.Buffer(("n",), "float32")):
            for i, j in T.grid(h, w):
                x[i, j] = 1.0
            for i in range(1, n):
                y[i] = 1.0
    """)
    assert not lanes(result)
