"""Conditions over memory of the device around loops: many threads run the loops, and ask for themselves."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from gristmill.interp import ExecutionOptions, execute
from gristmill.ir.functor import walk
from gristmill.ir.module import Module
from gristmill.ir.stmt import For
from gristmill.passes.manager import Pipeline, RunOptions
from gristmill.schedule.bind_loops import BindLoops
from gristmill.testing.bound import runnable
from gristmill.testing.pass_equivalence import check_pass, kernels, outcome_of, same_outcome

HEAD = """@T.prim_func
def f(a: T.Buffer(("n",), "int64"), b: T.Buffer(("n",), "int64"), k: T.int64):
"""


def grids(module: Module) -> int:
    return sum(isinstance(node, For) and node.thread is not None and node.thread.is_block for node in walk(module))


def same(body: str, k: int, noalias: bool = True) -> Module:
    """The bound module of a kernel body, which gave the same as the kernel for a few arrays."""
    lines = ['    T.func_attr({"noalias": True})'] if noalias else []
    source = HEAD + "\n".join([*lines, *("    " + line for line in body.splitlines())])
    module = kernels(source)
    found = Pipeline.of([BindLoops(8)]).run(module, RunOptions(verify=True))
    ready = runnable(found)
    for first in (-3, 0, 3):
        arguments = [np.arange(first, first + 40), np.zeros(40, np.int64), k]
        actual = copy.deepcopy(arguments)
        execute(ready, "f", actual, options=ExecutionOptions(shuffle_seed=first + 5))
        assert same_outcome(actual[:2], outcome_of(module, "f", arguments)[1:])
    return found


def test_the_condition_is_found_out_once() -> None:
    check_pass(
        BindLoops(256),
        """
        @T.prim_func
        def f(a: T.Buffer(("n",), "int64"), b: T.Buffer(("n",), "int64")):
            T.func_attr({"noalias": True})
            if a[0] > 0:
                for i in range(n):
                    b[i] = 1
        """,
        """
        gristmill ir 1

        function @f<n: int64>(a: int64[n], b: int64[n])
          symbol "f"
          no_alias
        {
          allocate flag: bool[]
          for tx: int64 in 0 +: 1 thread on threadIdx.x {
            flag[] = a[0] > 0
          }
          for bx: int64 in 0 +: (n + 255) // 256 thread on blockIdx.x {
            for tx1: int64 in 0 +: 256 thread on threadIdx.x independent {
              let i: int64 = bx * 256 + tx1
              if i < n {
                if flag[] {
                  b[i] = 1
                }
              }
            }
          }
        }
        """,
    )


@pytest.mark.parametrize(
    ("body", "count"),
    [
        ("if a[0] > 0:\n    for i in range(n):\n        b[i] = 1\nelse:\n    for i in range(n):\n        b[i] = 2", 2),
        # What the condition reads is written under it.
        (
            "if a[0] > 0:\n    for i in range(n):\n        a[i] = -1\n    b[0] = 1\n    for i in range(n):\n        b[i] = 3",
            2,
        ),
        ("if a[0] > 0:\n    m = k * 2\n    for i in range(m):\n        b[i] = m", 1),
        # The inner condition must not be asked where the outer one is false.
        (
            "if k < n:\n    if a[k] > 0:\n        if a[a[k]] > 0:\n            for i in range(n):\n                b[i] = 1\n"
            "        else:\n            for i in range(n):\n                b[i] = 4",
            2,
        ),
        ("for t in range(3):\n    if a[t] > 0:\n        for i in range(n):\n            b[i] = b[i] + t", 1),
        ("if a[0] > 0:\n    for y, x in T.grid(n // 8, 8):\n        b[y * 8 + x] = y", 1),
        # Names and scalars whose values come from memory.
        ("first = a[0]\nif first > 0:\n    for i in range(n):\n        b[i] = first", 1),
        (
            "total = T.int64(0)\nfor i in range(n):\n    total = total + a[i] % 2\nif total > 0:\n"
            "    for i in range(n):\n        b[i] = a[i] // total\nelse:\n    b[0] = k",
            1,
        ),
        ("first = a[3]\nif first > 0:\n    for i in range(first):\n        b[i] = 1", 0),
        # Nothing for many threads; not to be taken apart.
        ("if a[0] > 0:\n    b[0] = 1", 0),
        ("if a[0] > 0:\n    j = a[1]\n    for i in range(n):\n        b[i] = j", 0),
        ("if a[0] > 0:\n    for i in range(a[1]):\n        b[i] = 1", 0),
        ("if a[0] > 0:\n    for i in range(1, n):\n        b[i] = b[i - 1] + 1", 0),
    ],
)
@pytest.mark.parametrize("noalias", [True, False])
def test_results(body: str, count: int, noalias: bool) -> None:
    assert grids(same(body, 12, noalias)) == count
    same(body, 1, noalias)


def test_reductions_are_shared_under_a_condition() -> None:
    body = "if a[0] > 0:\n    for i in range(n):\n        b[0] = b[0] + a[i]"
    module = same(body, 0)
    assert any(isinstance(node, For) and getattr(node.extent, "value", 0) == 8 for node in walk(module))


@pytest.mark.parametrize(
    ("start", "update"),
    [
        ("T.int64(0)", "T.max(s, a[j] + 1)"),
        ("T.int64(7)", "s + 1"),
        ("b[3]", "s * 3"),
        ("T.bool(False)", "s or j < 1"),
        ("T.bool(True)", "s and j < 50"),
    ],
)
def test_what_a_reduction_under_the_condition_starts_from(start: str, update: str) -> None:
    """The loop that reduces is shared whether or not the condition holds, and its scalar has a value in both cases."""
    body = f"""for i in range(n):
    for r in range(k):
        b[(i * 3 + r) % 40] = a[i] + b[(i + r) % 40]
        if a[(i + r) % 40] > 0:
            s = {start}
            for j in range(n):
                s = {update}
            b[i] = T.cast(s, 'int64')"""
    same(body, 2)
    same(body.replace("for r in range(k):", "if k > 0:").replace("r)", "k)"), 2)
