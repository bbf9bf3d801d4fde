"""Reductions over threads whose number only the launch knows: the bits of those over as many that the program states."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gristmill.errors import UserError
from gristmill.interp import ExecutionOptions, Executor
from gristmill.ir.functor import walk
from gristmill.ir.module import Module
from gristmill.ir.stmt import Block
from gristmill.passes.hoist_shared_memory import HoistSharedMemory
from gristmill.passes.insert_barriers import InsertBarriers
from gristmill.passes.lower_blocks import LowerBlocks
from gristmill.passes.lower_thread_reductions import LowerThreadReductions
from gristmill.passes.manager import Pipeline, RunOptions
from gristmill.passes.reuse_shared_memory import ReuseSharedMemory
from gristmill.testing.barriers import barrier_scopes, needless_barriers
from gristmill.testing.pass_equivalence import kernels

EXTENTS = [*range(1, 18), 31, 32, 33, 100, 127, 128]


def lowered(text: str, max_threads: int = 128, warp_size: int = 0) -> Module:
    passes = [
        LowerThreadReductions(warp_size, max_threads),
        LowerBlocks(),
        HoistSharedMemory(),
        ReuseSharedMemory(),
        InsertBarriers(),
    ]
    return Pipeline.of(passes).run(kernels(text), RunOptions(verify=True))


def results(module: Module, *given: Any) -> list[np.ndarray[Any, Any]]:
    """The arrays after the call, the same for three orders of threads."""
    found: list[list[np.ndarray[Any, Any]]] = []
    for seed in (None, 1, 2):
        args = [arg.copy() if isinstance(arg, np.ndarray) else arg for arg in given]
        Executor(module, ExecutionOptions(shuffle_seed=seed)).call("f", args)
        found.append([arg for arg in args if isinstance(arg, np.ndarray)])
    for other in found[1:]:
        for one, two in zip(found[0], other, strict=True):
            assert one.tobytes() == two.tobytes()
    return found[0]


ONE = """
@T.prim_func
def f(a: T.Buffer(("n",), "{dtype}"), c: T.Buffer((1,), "{dtype}"), count: T.int64):
    for t in T.thread_binding({count}, thread="threadIdx.x"):
        with T.block("sum"):
            v = T.axis.reduce({count}, t)
            with T.init():
                c[0] = {start}
            c[0] = {update}
"""


@pytest.mark.parametrize(
    ("dtype", "start", "update"),
    [
        ("float32", "T.float32(0)", "c[0] + a[v]"),
        ("int16", "T.int16(3)", "c[0] + a[v]"),
        ("float64", "T.float64(1)", "T.min(c[0], a[v])"),
        ("int32", "T.int32(0)", "c[0] ^ a[v]"),
    ],
)
def test_the_bits_are_those_of_a_constant_number(dtype: str, start: str, update: str) -> None:
    open_one = lowered(ONE.format(dtype=dtype, count="count", start=start, update=update))
    assert not any(isinstance(node, Block) for node in walk(open_one))
    random = np.random.default_rng(3)
    for n in EXTENTS:
        values = (random.standard_normal(n) * 1000).astype(dtype)
        c = np.zeros(1, dtype)
        fixed = lowered(ONE.format(dtype=dtype, count=n, start=start, update=update))
        expected = results(fixed, values, c, n)
        assert results(open_one, values, c, n)[1].tobytes() == expected[1].tobytes()


def test_no_thread_leaves_the_result() -> None:
    module = lowered(ONE.format(dtype="int32", count="count", start="T.int32(0)", update="c[0] + a[v]"))
    assert results(module, np.zeros(0, np.int32), np.full(1, 7, np.int32), 0)[1].tolist() == [7]


def test_its_barriers_are_needed() -> None:
    module = lowered(ONE.format(dtype="float32", count="count", start="T.float32(0)", update="c[0] + a[v]"))
    assert len(barrier_scopes(module)) == 1
    assert needless_barriers(module, "f", [np.ones(37, np.float32), np.zeros(1, np.float32), 37]) == []


ROWS = """
@T.prim_func
def f(a: T.Buffer(("m", "n"), "float32"), c: T.Buffer(("m",), "float32"), d: T.Buffer(("m", "n"), "float32")):
    for y in T.thread_binding({m}, thread="threadIdx.y"):
        for x in T.thread_binding({n}, thread="threadIdx.x"):
            total = T.alloc_buffer((1,), "float32", scope="local")
            with T.block("rows"):
                vy = T.axis.spatial({m}, y)
                vk = T.axis.reduce({n}, x)
                with T.init():
                    c[vy] = T.float32(0)
                c[vy] = c[vy] + a[vy, vk]
            with T.block("everywhere"):
                vk = T.axis.reduce({n}, x)
                with T.init():
                    total[0] = T.float32(1)
                total[0] = total[0] * a[y, vk]
            d[y, x] = total[0]
"""


@pytest.mark.parametrize(("m", "n"), [(1, 1), (1, 7), (3, 5), (5, 3), (4, 16), (2, 37), (8, 16)])
@pytest.mark.parametrize("open_axes", ["m n", "m", "n"])
def test_rows_of_threads_reduce_for_themselves(m: int, n: int, open_axes: str) -> None:
    a = np.random.default_rng(1).standard_normal((m, n)).astype(np.float32)
    args = (a, np.zeros(m, np.float32), np.zeros((m, n), np.float32))
    expected = results(lowered(ROWS.format(m=m, n=n)), *args)
    found = results(lowered(ROWS.format(m="m" if "m" in open_axes else m, n="n" if "n" in open_axes else n)), *args)
    for one, other in zip(found, expected, strict=True):
        assert one.tobytes() == other.tobytes()


def test_exchanges_between_threads_are_not_used() -> None:
    text = ONE.format(dtype="float32", count="count", start="T.float32(0)", update="c[0] + a[v]")
    assert "warp_shuffle" not in str(lowered(text, 128, 32))
    assert "warp_shuffle" in str(lowered(text.replace("thread_binding(count", "thread_binding(64"), 128, 32))


def test_a_target_that_does_not_say_how_many_threads_a_block_has() -> None:
    with pytest.raises(UserError, match="no constant") as caught:
        lowered(ONE.format(dtype="float32", count="count", start="T.float32(0)", update="c[0] + a[v]"), 0)
    assert caught.value.code == "GM0610"
