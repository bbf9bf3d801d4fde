"""Reductions in plain loops on the reference device: built, packed, loaded, launched."""

from __future__ import annotations

import numpy as np
import pytest

from gristmill.interp import Executor
from gristmill.testing.loop_nests import random_loop_nest
from gristmill.testing.on_reference import ReferenceBackend
from gristmill.testing.pass_equivalence import kernels

SOURCE = """
@T.prim_func
def total(a: T.Buffer(("n",), "int32"), out: T.Buffer((1,), "int64")):
    found = T.int64(0)
    for i in range(n):
        found = found + a[i]
    out[0] = found

@T.prim_func
def dot(a: T.Buffer(("n",), "float32"), b: T.Buffer(("n",), "float32"), out: T.Buffer((1,), "float32")):
    out[0] = 0.0
    for i in range(n):
        with T.block("dot"):
            vi = T.axis.reduce(n, i)
            out[0] = out[0] + a[vi] * b[vi]

@T.prim_func
def extremes(a: T.Buffer(("m", "n"), "float32"), out: T.Buffer(("m", 2), "float32")):
    for y in range(m):
        out[y, 0] = T.infinity("float32")
        out[y, 1] = -T.infinity("float32")
        for x in range(n):
            out[y, 0] = T.min(out[y, 0], a[y, x])
            out[y, 1] = T.max(out[y, 1], a[y, x])

@T.prim_func
def count(a: T.Buffer(("m", "n"), "int32"), least: T.int32, out: T.Buffer((1,), "int32")):
    out[0] = 0
    for y, x in T.grid(m, n):
        if a[y, x] >= least:
            out[0] = out[0] + 1
"""


@pytest.fixture(scope="module")
def backend() -> ReferenceBackend:
    return ReferenceBackend(verify=False)


@pytest.fixture(scope="module")
def backends(backend: ReferenceBackend) -> dict[str, ReferenceBackend]:
    return {
        "all passes": backend,
        "no optional passes": ReferenceBackend(optimization=0),
        "exchanges in warps": ReferenceBackend(target="reference+warp_shuffles"),
    }


@pytest.mark.parametrize("name", ["all passes", "no optional passes", "exchanges in warps"])
def test_they_give_what_the_loops_give(backends: dict[str, ReferenceBackend], name: str) -> None:
    run = backends[name]
    module = kernels(SOURCE)
    random = np.random.default_rng(7)
    for n in (0, 1, 255, 256, 257, 1000):
        values = random.integers(-(1 << 31), 1 << 31, n).astype(np.int32)
        out = np.ones(1, np.int64)
        run(module, "total", [values, out])
        assert out[0] == values.sum(dtype=np.int64)
    for m, n in ((0, 3), (3, 0), (1, 1), (5, 300)):
        values = random.integers(-9, 9, (m, n)).astype(np.int32)
        out = np.ones(1, np.int32)
        run(module, "count", [values, 2, out])
        assert out[0] == (values >= 2).sum()
        floats = values.astype(np.float32)
        floats[:, :1] = np.nan
        found, expected = np.zeros((m, 2), np.float32), np.zeros((m, 2), np.float32)
        run(module, "extremes", [floats, found])
        Executor(module).call("extremes", [floats, expected])
        np.testing.assert_array_equal(found, expected)


def test_sums_of_floats_keep_their_order_unless_fast_math_is_set(backend: ReferenceBackend) -> None:
    random = np.random.default_rng(8)
    a, b = random.standard_normal((2, 700)).astype(np.float32)
    module = kernels(SOURCE)
    found, expected = np.zeros(1, np.float32), np.zeros(1, np.float32)
    Executor(module).call("dot", [a, b, expected])
    backend(module, "dot", [a, b, found])
    assert found[0] == expected[0]
    fast = module.with_functions(function.with_facts(fast_math=True) for function in module.functions)
    backend(fast, "dot", [a, b, found])
    np.testing.assert_allclose(found, np.dot(a.astype(np.float64), b), rtol=1e-4)


def test_long_arrays_and_long_rows(backend: ReferenceBackend) -> None:
    module = kernels(SOURCE)
    values = np.arange((1 << 20) - 3, dtype=np.int32)
    out = np.zeros(1, np.int64)
    backend(module, "total", [values, out])
    assert out[0] == values.sum(dtype=np.int64)
    rows = np.random.default_rng(9).random((4, 100_000)).astype(np.float32)
    extremes = np.zeros((4, 2), np.float32)
    backend(module, "extremes", [rows, extremes])
    np.testing.assert_array_equal(extremes, np.stack([rows.min(1), rows.max(1)], 1))


@pytest.mark.parametrize("seed", range(12))
def test_random_nests(backend: ReferenceBackend, seed: int) -> None:
    source, arguments = random_loop_nest(7000 + seed)
    print(source)
    module = kernels(source)
    expected, found = [array.copy() for array in arguments], [array.copy() for array in arguments]
    Executor(module).call("main", expected)
    backend(module, "main", found)
    for one, other in zip(expected, found, strict=True):
        np.testing.assert_array_equal(other, one)
