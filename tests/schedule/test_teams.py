"""Reductions shared by the threads of a block: what the recipe makes of them, and results for all sizes and orders."""

from __future__ import annotations

import copy
import random

import numpy as np
import pytest

from gristmill.interp import ExecutionOptions, execute
from gristmill.ir.functor import walk
from gristmill.ir.module import Module
from gristmill.ir.stmt import AxisKind, Block, For, Store, ThreadAxis
from gristmill.passes.manager import Pipeline, RunOptions
from gristmill.schedule.bind_loops import BindLoops
from gristmill.testing.bound import runnable
from gristmill.testing.pass_equivalence import check_pass, kernels, outcome_of, same_outcome


def module_of(source: str, fast_math: bool = False) -> Module:
    module = kernels(source)
    return module.with_functions(function.with_facts(fast_math=fast_math) for function in module.functions)


def bound(module: Module, threads: int = 256, blocks: int = 0) -> Module:
    return Pipeline.of([BindLoops(threads, blocks)]).run(module, RunOptions(verify=True))


def reductions(module: Module) -> int:
    """How many blocks reduce over threads."""
    threads = {node.var for node in walk(module) if isinstance(node, For) and node.thread is ThreadAxis.THREAD_X}
    return sum(
        isinstance(node, Block) and any(axis.kind is AxisKind.REDUCE and axis.value in threads for axis in node.axes)
        for node in walk(module)
    )


def same(
    module: Module, *arguments: object, threads: int = 8, blocks: int = 0, tolerance: float = 0, name: str = ""
) -> Module:
    """The bound module, which gave the same as the loops, in the order of its threads and in two others."""
    name = name or module.public[0].name
    found = bound(module, threads, blocks)
    ready = runnable(found)
    expected = outcome_of(module, name, arguments)
    for seed in (None, 1, 2):
        actual = copy.deepcopy(list(arguments))
        execute(ready, name, actual, options=ExecutionOptions(shuffle_seed=seed))
        arrays = [array for array in actual if isinstance(array, np.ndarray)]
        if tolerance:
            for one, other in zip(arrays, expected[1:], strict=True):
                np.testing.assert_allclose(one, other, rtol=tolerance)
        else:
            assert same_outcome(arrays, expected[1:])
    return found


SUM = """
    @T.prim_func
    def f(a: T.Buffer(("n",), "{dtype}"), out: T.Buffer((1,), "{dtype}")):
        total = T.{dtype}(0)
        for i in range(n):
            total = total + a[i]
        out[0] = total
    """


# Shapes ---------------------------------------------------------------------------------------------------------------


def test_a_sum_of_integers_is_shared_by_a_block() -> None:
    check_pass(
        BindLoops(256),
        """
        @T.prim_func
        def f(a: T.Buffer(("n",), "int64"), out: T.Buffer((1,), "int64")):
            T.func_attr({"noalias": True})
            total = T.int64(0)
            for i in range(n):
                total = total + a[i]
            out[0] = total
        """,
        """
        gristmill ir 1

        function @f<n: int64>(a: int64[n], out: int64[1])
          symbol "f"
          no_alias
        {
          for tx: int64 in 0 +: 256 thread on threadIdx.x {
            allocate total: int64[] in local
            total[] = 0
            allocate total_partial: int64[] in local
            total_partial[] = 0
            for stride: int64 in 0 +: (n + 255) // 256 {
              let i: int64 = stride * 256 + tx
              if i < n {
                total_partial[] = total_partial[] + a[i]
              }
            }
            block "total"
              where n > 0
              axis lane: int64 reduce in 0 +: 256 = tx
            {
              total[] = total[] + total_partial[]
            }
            if tx == 0 {
              out[0] = total[]
            }
          }
        }
        """,
    )


def test_rows_have_a_block_each_where_there_are_few() -> None:
    check_pass(
        BindLoops(32),
        """
        @T.prim_func
        def f(a: T.Buffer(("m", 100), "int32"), out: T.Buffer(("m",), "int32")):
            T.func_attr({"noalias": True})
            for y, x in T.grid(m, 100):
                with T.block("greatest"):
                    vy, vx = T.axis.remap("SR", [y, x])
                    with T.init():
                        out[vy] = T.int32(-1)
                    out[vy] = T.max(out[vy], a[vy, vx])
        """,
        """
        gristmill ir 1

        function @f<m: int64>(a: int32[m, 100], out: int32[m])
          symbol "f"
          no_alias
        {
          if m <= 4096 {
            for y: int64 in 0 +: m thread on blockIdx.x {
              for tx: int64 in 0 +: 32 thread on threadIdx.x {
                if tx == 0 {
                  out[y] = -1i32
                }
                allocate out_partial: int32[] in local
                out_partial[] = -2147483648i32
                for stride: int64 in 0 +: 4 {
                  let x: int64 = stride * 32 + tx
                  if x < 100 {
                    let vy: int64 = y
                    let vx: int64 = x
                    out_partial[] = max(out_partial[], a[vy, vx])
                  }
                }
                block "out"
                  axis lane: int64 reduce in 0 +: 32 = tx
                {
                  out[y] = max(out[y], out_partial[])
                }
              }
            }
          } else {
            for bx: int64 in 0 +: (m + 31) // 32 thread on blockIdx.x {
              for tx1: int64 in 0 +: 32 thread on threadIdx.x independent {
                let y1: int64 = bx * 32 + tx1
                if y1 < m {
                  for x1: int64 in 0 +: 100 {
                    block "greatest"
                      axis vy1: int64 spatial in 0 +: m = y1
                      axis vx1: int64 reduce in 0 +: 100 = x1
                      reads a[vy1 +: 1, vx1 +: 1]
                      writes out[vy1 +: 1]
                      init {
                        out[vy1] = -1i32
                      }
                    {
                      out[vy1] = max(out[vy1], a[vy1, vx1])
                    }
                  }
                }
              }
            }
          }
        }
        """,
    )


@pytest.mark.parametrize("size", [0, 1, 2, 7, 8, 9, 63, 64, 65, 1000])
@pytest.mark.parametrize("threads", [1, 8, 7, 256])
def test_sums_of_all_sizes(size: int, threads: int) -> None:
    values = np.random.default_rng(size).integers(-(1 << 62), 1 << 62, size)
    found = same(module_of(SUM.format(dtype="int64")), values, np.zeros(1, np.int64), threads=threads)
    assert reductions(found) == (threads > 1)


def test_sums_of_floats_are_shared_only_with_fast_math() -> None:
    source = SUM.format(dtype="float32")
    values = np.random.default_rng(0).standard_normal(500).astype(np.float32)
    assert reductions(same(module_of(source), values, np.zeros(1, np.float32))) == 0
    found = same(module_of(source, fast_math=True), np.abs(values), np.zeros(1, np.float32), tolerance=1e-5)
    assert reductions(found) == 1


@pytest.mark.parametrize(
    "dtype", ["int8", "uint8", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64"]
)
def test_minima_and_maxima_ignore_nans(dtype: str) -> None:
    module = module_of(
        f"""
        @T.prim_func
        def f(a: T.Buffer(("n",), "{dtype}"), out: T.Buffer((2,), "{dtype}")):
            for i in range(n):
                out[0] = T.min(out[0], a[i])
                out[1] = T.max(a[i], out[1])
        """
    )
    values = np.random.default_rng(1).integers(1, 100, 77).astype(dtype)
    out = np.array([50, 50], dtype)
    if values.dtype.kind == "f":
        values[::3] = np.nan
        out[:] = np.nan
    assert reductions(same(module, values, out)) == 2
    same(module, values[:0], out)
    if values.dtype.kind == "f":
        same(module, np.full(9, np.nan, dtype), out)


@pytest.mark.parametrize(
    ("dtype", "update"),
    [
        ("int32", "out[0] = out[0] * a[i]"),
        ("int32", "out[0] = out[0] - a[i]"),
        ("uint8", "out[0] = out[0] & a[i]"),
        ("uint8", "out[0] = a[i] | out[0]"),
        ("int64", "out[0] ^= a[i]"),
        ("bool", "out[0] = out[0] and a[i]"),
        ("bool", "out[0] = out[0] or a[i]"),
        ("int32", "out[0] += T.Select(a[i] > 3, T.int32(1), T.int32(0))"),
    ],
)
def test_operations(dtype: str, update: str) -> None:
    module = module_of(
        f"""
        @T.prim_func
        def f(a: T.Buffer(("n",), "{dtype}"), out: T.Buffer((1,), "{dtype}")):
            for i in range(n):
                {update}
        """
    )
    random = np.random.default_rng(5)
    for size in (0, 3, 70):
        for bits in (1, 9, 255):
            values = (random.integers(0, 256, size) | bits).astype(dtype)
            found = same(module, values, np.ones(1, dtype))
    assert reductions(found) == 1


@pytest.mark.parametrize(
    "body",
    [
        # What is not known to be there: the serial loop stops to look when the result is known.
        "for i in range(m):\n    out[0] = out[0] and a[i]",
        # Used in between, overwritten, combined in two ways, or carried along.
        "for i in range(n):\n    out[0] = out[0] + a[i]\n    a[i] = out[0]",
        "for i in range(n):\n    out[0] = a[i]",
        "for i in range(n):\n    out[0] = (out[0] + a[i]) * 2",
        "for i in range(n):\n    out[0] = out[0] + a[i]\n    out[0] = out[0] * 3",
        "for i in range(n):\n    out[0] = a[i] - out[0]",
        "for i in range(n):\n    out[0] = out[0] + out[1]",
        "for i in range(n):\n    out[i % 2] = out[i % 2] + a[i]",
        "for i in range(n):\n    out[0] = out[0] + a[i]\n    out[m] = out[m] + 1",
        "for i in range(n):\n    if a[i] == 3:\n        break\n    out[0] = out[0] + a[i]",
        # Few iterations.
        "for i in range(8):\n    out[0] = out[0] + a[i]",
    ],
)
def test_what_is_not_shared(body: str) -> None:
    dtype = "bool" if "and" in body else "int64"
    lines = "\n".join("    " + line for line in body.splitlines())
    module = kernels(
        f'@T.prim_func\ndef f(a: T.Buffer(("n",), "{dtype}"), out: T.Buffer((2,), "{dtype}"), m: T.int64):\n{lines}\n'
    )
    assert reductions(same(module, np.arange(40).astype(dtype), np.array([1, 2], dtype), 1)) == 0


def test_what_no_iteration_touches_is_not_touched() -> None:
    # out[n - 1] is no element where n is 0, and new memory has no value.
    module = module_of(
        """
        @T.prim_func
        def f(a: T.Buffer(("n",), "int32"), out: T.Buffer(("n",), "int32"), k: T.int32):
            T.func_attr({"noalias": True})
            for i in range(n):
                out[n - 1] = out[n - 1] + a[i]
            for i in range(n):
                if a[i] > k:
                    out[k] = out[k] + 1
        """
    )
    values = np.arange(100, dtype=np.int32)
    assert reductions(same(module, values, values.copy(), 3)) == 3
    same(module, values[:0], values[:0].copy(), 0)
    same(module, values, values.copy(), 5000)


def test_arrays_that_overlap_are_left_to_one_thread() -> None:
    module = module_of(
        """
        @T.prim_func
        def f(a: T.Buffer(("n",), "int64"), out: T.Buffer((1,), "int64")):
            for i in range(n):
                out[0] = out[0] + a[i]
        """
    )
    ready = runnable(bound(module, 8))
    for place in (0, 1, 50, 99, 100):
        results = []
        for one in (module, ready):
            memory = np.arange(101)
            execute(one, "f", [memory[:100], memory[place : place + 1]])
            results.append(memory)
        assert np.array_equal(*results)


def test_parallel_rows_whose_arrays_overlap() -> None:
    module = module_of(
        """
        @T.prim_func
        def f(a: T.Buffer(("m", "n"), "int64"), out: T.Buffer(("m",), "int64")):
            for y in T.parallel(m):
                for x in range(n):
                    out[y] = out[y] + a[y, x]
        """
    )
    ready = runnable(bound(module, 8))
    for place in (0, 36, 70):
        results = []
        for one in (module, ready):
            memory = np.arange(100)
            execute(one, "f", [memory[:70].reshape(1, 70), memory[place : place + 1]])
            results.append(memory)
        assert np.array_equal(*results)


def test_few_long_rows_of_constant_sizes() -> None:
    module = module_of(
        """
        @T.prim_func
        def f(a: T.Buffer((4, 1000), "int32"), out: T.Buffer((4,), "int32")):
            for y in range(4):
                out[y] = 0
                for x in range(1000):
                    out[y] = out[y] + a[y, x]
        """
    )
    found = same(module, np.random.default_rng(2).integers(-9, 9, (4, 1000)).astype(np.int32), np.ones(4, np.int32))
    assert reductions(found) == 1
    (grid,) = {node.extent.value for node in walk(found) if isinstance(node, For) and node.thread is ThreadAxis.BLOCK_X}
    assert grid == 4


@pytest.mark.parametrize("blocks", [0, 3])
def test_loops_in_loops_are_fused(blocks: int) -> None:
    module = module_of(
        """
        @T.prim_func
        def f(a: T.Buffer(("m", "n"), "int32"), out: T.Buffer((2,), "int32"), first: T.int32):
            T.func_attr({"noalias": True})
            out[0] = 0
            out[1] = 0
            for y in range(first, m):
                for x in range(n):
                    if a[y, x] % 2 == 0:
                        out[0] = out[0] + T.int32(y) * a[y, x]
                    else:
                        square = a[y, x] * a[y, x]
                        out[0] = out[0] - square
                    for k in range(3):
                        out[1] = T.max(out[1], a[y, x] * T.int32(k))
        """
    )
    random = np.random.default_rng(3)
    for shape in ((0, 5), (5, 0), (1, 1), (13, 11), (2, 64)):
        for first in (0, 1, 20):
            values = random.integers(-99, 99, shape).astype(np.int32)
            found = same(module, values, np.ones(2, np.int32), first, blocks=blocks)
    # Each has a second one for whether anything was touched.
    assert reductions(found) == 4


def test_several_reductions_in_a_row_share_one_launch() -> None:
    module = module_of(
        """
        @T.prim_func
        def f(a: T.Buffer(("n",), "float32"), out: T.Buffer((3,), "float32"), times: T.int32):
            T.func_attr({"noalias": True})
            low = T.float32(1000)
            high = T.float32(-1000)
            for i in range(n):
                low = T.min(low, a[i])
                high = T.max(high, a[i])
            out[0] = low
            for t in range(times):
                near = T.int32(0)
                for i in range(n):
                    if a[i] < low + 1.0:
                        near = near + 1
                out[1] = out[1] + T.Cast("float32", near)
            out[2] = high
        """
    )
    values = np.random.default_rng(4).integers(-50, 50, 200).astype(np.float32)
    found = same(module, values, np.zeros(3, np.float32), 3)
    assert reductions(found) == 3
    assert len([node for node in walk(found) if isinstance(node, For) and node.thread is not None]) == 1


def test_results_that_others_need_stay_on_the_device() -> None:
    module = module_of(
        """
        @T.prim_func
        def f(a: T.Buffer(("n",), "int32"), b: T.Buffer(("n",), "int32")):
            T.func_attr({"noalias": True})
            greatest = T.int32(0)
            for i in range(n):
                greatest = T.max(greatest, a[i])
            for i in range(n):
                b[i] = greatest - a[i]
        """
    )
    found = same(module, np.arange(90, dtype=np.int32), np.zeros(90, np.int32))
    assert reductions(found) == 1


def test_lengths_that_only_the_device_knows() -> None:
    module = module_of(
        """
        @T.prim_func
        def f(ptr: T.Buffer(("m + 1",), "int32"), a: T.Buffer(("n",), "int32"), out: T.Buffer(("m",), "int32")):
            T.func_attr({"noalias": True})
            for row in range(m):
                total = T.int32(0)
                for k in range(ptr[row], ptr[row + 1]):
                    total = total + a[k]
                out[row] = total
        """
    )
    starts = np.array([0, 0, 3, 3, 90, 91, 200], np.int32)
    found = same(module, starts, np.arange(200, dtype=np.int32), np.zeros(6, np.int32))
    assert reductions(found) == 1


def test_accesses_through_indices_in_memory_are_not_shared_where_they_would_meet() -> None:
    module = module_of(
        """
        @T.prim_func
        def f(p: T.Buffer((1,), "int32"), a: T.Buffer(("n",), "int32"), out: T.Buffer((1,), "int32")):
            T.func_attr({"noalias": True})
            a[p[0]] = 7
            for i in range(n):
                out[0] = out[0] + a[i]
        """
    )
    assert (
        reductions(same(module, np.array([60], np.int32), np.arange(100, dtype=np.int32), np.zeros(1, np.int32))) == 0
    )


def test_writes_before_and_after_are_ordered_by_barriers() -> None:
    module = module_of(
        """
        @T.prim_func
        def f(a: T.Buffer(("n",), "int32")):
            a[0] = 5
            for t in range(3):
                total = T.int32(0)
                for i in range(n):
                    total = total + a[i]
                a[t] = total
        """
    )
    assert reductions(same(module, np.arange(100, dtype=np.int32))) == 1


def test_private_functions_that_reduce_have_kernels_of_their_own() -> None:
    module = kernels(
        """
        @T.prim_func(private=True)
        def dot(a: T.Buffer(("n",), "int32"), b: T.Buffer(("n",), "int32"), out: T.Buffer((1,), "int32")):
            out[0] = 0
            for i in range(n):
                out[0] = out[0] + a[i] * b[i]

        @T.prim_func
        def f(a: T.Buffer(("n",), "int32"), b: T.Buffer(("n",), "int32"), out: T.Buffer((1,), "int32")):
            dot(a, b, out)
        """
    )
    values = np.arange(90, dtype=np.int32)
    assert reductions(same(module, values, values[::-1].copy(), np.zeros(1, np.int32), name="f")) == 1


def test_nests_in_a_few_rows_are_worth_more_than_rows() -> None:
    module = module_of(
        """
        @T.prim_func
        def f(a: T.Buffer((3, "n"), "int64"), out: T.Buffer((3,), "int64")):
            T.func_attr({"noalias": True})
            for y in range(3):
                for x in range(n):
                    a[y, x] = a[y, x] + x % 7
                for x in range(n):
                    out[y] = out[y] + a[y, x]
        """
    )
    found = same(module, np.zeros((3, 90), np.int64), np.zeros(3, np.int64))
    assert reductions(found) == 1
    assert any(isinstance(node, For) and node.hints.independent for node in walk(found))


def test_conditions_that_memory_decides_about_stand_within_what_is_shared() -> None:
    module = module_of(
        """
        @T.prim_func
        def f(a: T.Buffer(("n",), "int32"), out: T.Buffer((2,), "int32")):
            T.func_attr({"noalias": True})
            flag = a[0]
            if flag > 0:
                for i in range(n):
                    out[0] = out[0] + a[i]
            if n > 5:
                for i in range(n):
                    out[1] = out[1] + a[i]
        """
    )
    for first in (1, 0):
        values = np.ones(90, np.int32)
        values[0] = first
        # The condition stands inside of the first loop, so the threads also find out together whether any of them came by.
        assert reductions(same(module, values, np.full(2, 7, np.int32))) == 3


def test_conditions_that_memory_decides_about_are_not_shared_where_they_cannot_move() -> None:
    module = module_of(
        """
        @T.prim_func
        def f(a: T.Buffer(("n",), "int32"), out: T.Buffer((2,), "int32")):
            T.func_attr({"noalias": True})
            flag = a[0]
            if flag > 0:
                for i in range(flag):
                    out[0] = out[0] + a[i]
            if n > 5:
                for i in range(n):
                    out[1] = out[1] + a[i]
        """
    )
    assert reductions(same(module, np.full(90, 40, np.int32), np.zeros(2, np.int32))) == 1


def test_bins_that_read_everything_have_a_block_each() -> None:
    module = module_of(
        """
        @T.prim_func
        def histogram(src: T.Buffer(("n",), "uint8"), counts: T.Buffer((256,), "int32")):
            for bin in range(256):
                found = T.int32(0)
                for i in range(n):
                    if src[i] == bin:
                        found = found + 1
                counts[bin] = found
        """
    )
    values = np.random.default_rng(6).integers(0, 256, 40).astype(np.uint8)
    found = same(module, values, np.zeros(256, np.int32), threads=4)
    assert reductions(found) == 1
    (grid,) = {node.extent.value for node in walk(found) if isinstance(node, For) and node.thread is ThreadAxis.BLOCK_X}
    assert grid == 256


def test_independent_loops_beside_reductions_are_shared_too() -> None:
    source = """
        @T.prim_func
        def f(src: T.Buffer(("rows", "columns"), "float32"), dst: T.Buffer(("rows", "columns"), "float32")):
            for row in range(rows):
                greatest = -T.infinity("float32")
                for column in range(columns):
                    greatest = T.max(greatest, src[row, column])
                for column in range(columns):
                    dst[row, column] = src[row, column] - greatest
                total = T.float32(0)
                for column in range(columns):
                    total = total + dst[row, column]
                for column in range(columns):
                    dst[row, column] = dst[row, column] - total
        """
    values = np.random.default_rng(7).integers(0, 9, (3, 70)).astype(np.float32)
    for fast_math in (False, True):
        found = same(module_of(source, fast_math), values, np.zeros_like(values))
        assert reductions(found) == 1 + fast_math
        same(module_of(source, fast_math), values[:, :0], values[:, :0].copy())


def _random_rows(seed: int) -> str:
    """Rows that reduce, write in all columns and in single ones, and read what they wrote, in any order."""
    chance = random.Random(seed)
    values = ["a[y, x]", "b[y, x]", "b[y, 0]", "a[y, n - 1]", "out[y]", "near", "far", "x", "b[y, n - 1 - x]"]
    lines = ["near = T.int64(0)", "far = T.int64(y)"]
    for _ in range(chance.randint(2, 6)):
        value = " + ".join(chance.sample(values, chance.randint(1, 3)))
        single = value.replace("x", "(n - 1)")
        loop = ["for x in range(n):", f"    {chance.choice(('if a[y, x] > 0:', 'if x > 2:', 'if True:'))}"]
        target = chance.choice(("near", "far"))
        others = value.replace(target, "3")
        lines += chance.choice(
            (
                [*loop, f"        {target} = {target} + {others}"],
                [*loop, f"        {target} = T.max({target}, {others})"],
                [*loop, f"        out[y] = out[y] ^ ({value.replace('out[y]', '1')})"],
                [*loop, f"        b[y, x] = {value}"],
                [*loop, f"        b[y, x] = b[y, x] - {value}"],
                [f"out[y] = {single}"],
                [f"b[y, 0] = {single}"],
                ["if n > 3:", f"    b[y, 3] = {single}"],
            )
        )
    lines += ["out[y] = out[y] + near + far"]
    head = 'a: T.Buffer(("m", "n"), "int64"), b: T.Buffer(("m", "n"), "int64"), out: T.Buffer(("m",), "int64")'
    body = "\n".join("        " + line for line in lines)
    return f"@T.prim_func\ndef f({head}):\n    for y in range(m):\n{body}\n"


@pytest.mark.parametrize("case", range(4))
def test_random_rows(case: int) -> None:
    shared = spread = 0
    for seed in range(case * 12, case * 12 + 12):
        source = _random_rows(seed)
        print(f"seed {seed}\n{source}")
        values = np.random.default_rng(seed)
        n = (1, 5, 8, 20)[seed % 4]
        a, b, out = values.integers(-9, 9, (2, n)), values.integers(-9, 9, (2, n)), values.integers(-9, 9, 2)
        found = same(module_of(source), a, b, out)
        shared += reductions(found)
        for node in walk(found):
            if isinstance(node, For) and node.var.name == "stride":
                spread += any(isinstance(part, Store) and part.buffer.name == "b" for part in walk(node.body))
    assert shared > 5
    assert spread > 2
