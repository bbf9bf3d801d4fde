"""Loops whose iterations meet in atomic operations: which of them many threads run, with the results of one thread."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from gristmill.interp import ExecutionOptions, execute
from gristmill.ir.functor import walk
from gristmill.ir.module import Module
from gristmill.ir.stmt import For, LoopKind
from gristmill.passes.manager import Pipeline, RunOptions
from gristmill.schedule.bind_loops import BindLoops
from gristmill.testing.bound import runnable
from gristmill.testing.pass_equivalence import kernels, outcome_of, same_outcome

HEAD = """
@T.prim_func
def f(x: T.Buffer(("n",), "int32"), c: T.Buffer((8,), "int32"), y: T.Buffer(("n",), "int32"), s: T.Buffer((1,), "float32")):
    T.func_attr({"noalias": True})
"""


def bound(source: str) -> Module:
    return Pipeline.of([BindLoops(threads=256)]).run(kernels(source), RunOptions(verify=True))


def has_many_threads(module: Module) -> bool:
    return any(
        isinstance(node, For) and node.kind is LoopKind.THREAD and repr(node.extent) != "1" for node in walk(module)
    )


def arguments(size: int = 100) -> list[np.ndarray]:
    x = np.random.default_rng(5).integers(0, 8, size, np.int32)
    return [x, np.arange(8, dtype=np.int32), np.zeros(size, np.int32), np.zeros(1, np.float32)]


@pytest.mark.parametrize(
    ("body", "many"),
    [
        ("for i in range(n):\n    T.atomic_add(c[x[i]], 1)", True),
        ("for i in range(n):\n    T.atomic_sub(c[x[i]], x[i])", True),
        ("for i in range(n):\n    T.atomic_max(c[0], x[i])", True),
        ("for i in range(n):\n    if x[i] > 3:\n        T.atomic_xor(c[x[i]], x[i])\n        y[i] = 1", True),
        ("for i in range(n):\n    T.atomic_min(c[0], x[i])\n    T.atomic_min(c[1], x[i])", True),
        # The old value tells which iteration came first.
        ("for i in range(n):\n    y[i] = T.atomic_add(c[0], 1)", False),
        ("for i in range(n):\n    T.atomic_exchange(c[0], x[i])", False),
        ("for i in range(n):\n    T.atomic_add(s[0], T.float32(x[i]) * 0.1)", False),
        # Two operations on one memory do not commute, and plain accesses see what is there so far.
        ("for i in range(n):\n    T.atomic_add(c[0], x[i])\n    T.atomic_max(c[0], x[i])", False),
        ("for i in range(n):\n    T.atomic_add(c[x[i]], 1)\n    y[i] = c[0]", False),
        ("for i in range(n):\n    T.atomic_add(y[i], x[i])\n    y[i] = y[i] + 1", True),
        ("for i in range(n - 1):\n    T.atomic_add(y[i], x[i])\n    y[i + 1] = x[i]", False),
    ],
)
def test_what_many_threads_may_run(body: str, many: bool) -> None:
    source = HEAD + "\n".join(f"    {line}" for line in body.splitlines())
    found = bound(source)
    assert has_many_threads(found) == many
    expected = outcome_of(kernels(source), "f", arguments())
    ready = runnable(found)
    for seed in (None, 7):
        given = arguments()
        execute(ready, "f", given, options=ExecutionOptions(shuffle_seed=seed))
        assert same_outcome(given, expected[1:])


def test_the_word_of_the_author_allows_any_atomic_operation() -> None:
    source = HEAD + "    for i in T.parallel(n):\n        place = T.atomic_add(c[0], 1)\n        y[place] = x[i]\n"
    found = bound(source)
    assert has_many_threads(found)
    given = arguments()
    execute(runnable(found), "f", given, options=ExecutionOptions(shuffle_seed=3))
    assert given[1][0] == 100
    assert sorted(given[2]) == sorted(given[0])


def test_arrays_that_overlap_are_asked_about() -> None:
    source = HEAD.replace('    T.func_attr({"noalias": True})\n', "") + (
        "    for i in range(n):\n        T.atomic_add(c[x[i] & 7], 1)\n"
    )
    found = bound(source)
    assert has_many_threads(found)
    assert "disjoint" in repr(found)
    whole = np.random.default_rng(5).integers(0, 8, 100, np.int32)
    for seed in (None, 9):
        given, wanted = copy.deepcopy(whole), copy.deepcopy(whole)
        zeros = [np.zeros(100, np.int32), np.zeros(1, np.float32)]
        execute(kernels(source), "f", [wanted, wanted[:8], *zeros])
        execute(runnable(found), "f", [given, given[:8], *zeros], options=ExecutionOptions(shuffle_seed=seed))
        assert np.array_equal(given, wanted)


def test_old_values_that_the_host_would_have_are_kept_on_the_device() -> None:
    source = HEAD + (
        "    first = T.atomic_add(c[0], 5)\n    for i in range(n):\n        y[i] = x[i] + first\n    c[1] = first\n"
    )
    given = arguments()
    expected = outcome_of(kernels(source), "f", given)
    found = bound(source)
    assert has_many_threads(found)
    execute(runnable(found), "f", given)
    assert same_outcome(given, expected[1:])
