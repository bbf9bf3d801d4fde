"""Reductions over threads by exchanges: the same bits as through memory, with fewer barriers, or through memory as before."""

import numpy as np
import pytest

from gristmill.ir.effects import is_exchange
from gristmill.ir.functor import walk
from gristmill.ir.memory import Scope
from gristmill.ir.op import WARP_WIDTH_AT_MOST
from gristmill.ir.printer import print_module
from gristmill.ir.stmt import Allocate
from gristmill.ir.target import Target
from gristmill.passes.hoist_shared_memory import HoistSharedMemory
from gristmill.passes.insert_barriers import InsertBarriers
from gristmill.passes.lower_blocks import LowerBlocks
from gristmill.passes.lower_thread_reductions import LowerThreadReductions
from gristmill.passes.manager import Pipeline, RunOptions
from gristmill.passes.reduction_tree import width_for
from gristmill.passes.reuse_shared_memory import ReuseSharedMemory
from gristmill.plugin.artifacts import Capabilities
from gristmill.plugin.protocols import PassContext
from gristmill.testing.barriers import barrier_scopes, needless_barriers, report_of
from gristmill.testing.pass_equivalence import check_pass, kernels, outcome_of, same_outcome

REST = [LowerBlocks(), HoistSharedMemory(), ReuseSharedMemory(), InsertBarriers()]
ORDERS = (None, 1, 2, 3)


def lowered(text, warp_size):
    passes = [LowerThreadReductions(warp_size), *REST]
    return Pipeline.of(passes).run(kernels(text), RunOptions(verify=True))


def exchanges(module):
    return [(node.op.name, node.args[-1].value) for node in walk(module) if is_exchange(node)]


def shared_memory(module):
    return [node for node in walk(module) if isinstance(node, Allocate) and node.buffer.scope is Scope.SHARED]


ROW = """
@T.prim_func
def f(a: T.Buffer(({n},), "{dtype}"), c: T.Buffer((1,), "{dtype}")):
    for t in T.thread_binding({n}, thread="threadIdx.x"):
        with T.block("total"):
            v = T.axis.reduce({n}, t)
            with T.init():
                c[0] = T.{dtype}({start})
            c[0] = {update}
"""


def values_of(dtype, shape):
    source = np.random.default_rng(5)
    if dtype == "bool":
        return source.integers(0, 2, shape).astype(bool)
    if dtype.startswith("float"):
        return source.standard_normal(shape).astype(dtype)
    return source.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, shape, dtype=dtype, endpoint=True)


def test_a_row_of_one_group():
    check_pass(
        LowerThreadReductions(32),
        ROW.format(n=7, dtype="float32", start=0, update="c[0] + a[v]"),
        """
        gristmill ir 1

        function @f(a: float32[7], c: float32[1])
          symbol "f"
        {
          for t: int64 in 0 +: 7 thread on threadIdx.x {
            allocate c_partial: float32[] in local
            c_partial[] = -0.0
            let v: int64 = t
            c_partial[] = c_partial[] + a[v]
            let c_other: float32 = warp_shuffle_down(c_partial[], 4i32, 8i32)
            if t < 3 {
              c_partial[] = c_partial[] + c_other
            }
            let c_other_1: float32 = warp_shuffle_down(c_partial[], 2i32, 8i32)
            if t < 2 {
              c_partial[] = c_partial[] + c_other_1
            }
            let c_other_2: float32 = warp_shuffle_down(c_partial[], 1i32, 8i32)
            if t < 1 {
              c_partial[] = c_partial[] + c_other_2
            }
            if t == 0 {
              c[0] = 0.0
              c[0] = c[0] + c_partial[]
            }
          }
        }
        """,
    )


def test_a_row_of_several_groups():
    check_pass(
        LowerThreadReductions(4),
        ROW.format(n=7, dtype="int32", start=0, update="T.max(c[0], a[v])"),
        """
        gristmill ir 1

        function @f(a: int32[7], c: int32[1])
          symbol "f"
        {
          for t: int64 in 0 +: 7 thread on threadIdx.x {
            allocate c_partial: int32[] in local
            c_partial[] = -2147483648i32
            let v: int64 = t
            c_partial[] = max(c_partial[], a[v])
            allocate c_threads: int32[7] in shared
            c_threads[t] = c_partial[]
            if t < 3 {
              c_threads[t] = max(c_threads[t], c_threads[t + 4])
            }
            c_partial[] = c_threads[t]
            let c_other: int32 = warp_shuffle_down(c_partial[], 2i32, 4i32)
            if t < 2 {
              c_partial[] = max(c_partial[], c_other)
            }
            let c_other_1: int32 = warp_shuffle_down(c_partial[], 1i32, 4i32)
            if t < 1 {
              c_partial[] = max(c_partial[], c_other_1)
            }
            if t == 0 {
              c[0] = 0i32
              c[0] = max(c[0], c_partial[])
            }
          }
        }
        """,
    )


@pytest.mark.parametrize("n", [1, 2, 7, 31, 32, 33, 64, 100, 1024])
@pytest.mark.parametrize("warp_size", [2, 32, 64])
def test_the_same_bits_as_through_memory(n, warp_size):
    text = ROW.format(n=n, dtype="float32", start=3, update="c[0] + a[v]")
    args = [values_of("float32", n), np.zeros(1, "float32")]
    by_memory, by_exchange = lowered(text, 0), lowered(text, warp_size)
    assert same_outcome(outcome_of(by_memory, "f", args), outcome_of(by_exchange, "f", args))
    assert report_of(by_exchange, "f", args, ORDERS if n < 500 else (None, 1)) == ""
    assert exchanges(by_memory) == []
    assert len(exchanges(by_exchange)) == (min(n, warp_size) - 1).bit_length()


@pytest.mark.parametrize(
    ("n", "barriers", "memory"), [(7, 0, 0), (31, 0, 0), (32, 0, 0), (33, 1, 1), (64, 1, 1), (100, 2, 1), (1024, 5, 1)]
)
def test_barriers_are_left_where_groups_meet_alone(n, barriers, memory):
    text = ROW.format(n=n, dtype="int64", start=0, update="c[0] ^ a[v]")
    module = lowered(text, 32)
    assert len(barrier_scopes(module)) == barriers
    assert len(shared_memory(module)) == memory
    if n <= 100:
        assert needless_barriers(module, "f", [values_of("int64", n), np.zeros(1, "int64")]) == []


@pytest.mark.parametrize(
    "dtype",
    [
        *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        *("float16", "float32", "float64"),
    ],
)
def test_every_type(dtype):
    update = "c[0] or a[v]" if dtype == "bool" else "c[0] * a[v]"
    text = ROW.format(n=45, dtype=dtype, start=1 if dtype != "bool" else "False", update=update)
    args = [values_of(dtype, 45), np.zeros(1, dtype)]
    module = lowered(text, 32)
    assert exchanges(module) != []
    assert same_outcome(outcome_of(lowered(text, 0), "f", args), outcome_of(module, "f", args))


GRID = """
@T.prim_func
def f(a: T.Buffer({shape}, "float32"), c: T.Buffer(({rows},), "float32")):
    for z in T.thread_binding({z}, thread="threadIdx.z"):
        for y in T.thread_binding({y}, thread="threadIdx.y"):
            for x in T.thread_binding({x}, thread="threadIdx.x"):
                for k in range(2):
                    with T.block("sum"):
                        vi = T.axis.spatial({rows}, {row})
                        vk = T.axis.reduce({count} * 2, k * {count} + {number})
                        with T.init():
                            c[vi] = T.float32(0)
                        c[vi] = c[vi] + a[vi, vk]
"""
# Extents along x, y and z; the axes that are reduced; the widths of the exchanges, None for none.
GRIDS = [
    ((8, 4, 1), "x", 8),
    ((32, 3, 2), "x", 32),
    ((64, 2, 1), "x", 32),
    ((48, 2, 1), "x", 16),
    ((7, 5, 1), "x", None),
    ((12, 5, 1), "x", 4),
    ((1, 9, 1), "x", None),
    ((4, 8, 3), "xy", 32),
    ((3, 5, 1), "xy", 16),
    ((3, 5, 2), "xy", None),
    ((5, 3, 7), "xyz", 32),
    ((4, 8, 1), "y", None),
    ((1, 8, 3), "y", 8),
    ((1, 1, 20), "z", 32),
    ((2, 1, 20), "z", None),
    ((1, 4, 4), "xz", None),
    ((4, 1, 4), "xz", 16),
]


@pytest.mark.parametrize(("extents", "axes", "width"), GRIDS)
def test_rows_along_any_axes(extents, axes, width):
    sizes = dict(zip("xyz", extents, strict=True))

    def rank(names):
        text, step = "0", 1
        for name in names:
            text, step = f"{text} + {name} * {step}", step * sizes[name]
        return text, step

    number, count = rank(axes)
    row, rows = rank([name for name in "xyz" if name not in axes])
    text = GRID.format(shape=(rows, count * 2), rows=rows, row=row, number=number, count=count, **sizes)
    args = [values_of("float32", (rows, count * 2)), np.zeros(rows, "float32")]
    by_memory, by_exchange = lowered(text, 0), lowered(text, 32)
    assert same_outcome(outcome_of(by_memory, "f", args), outcome_of(by_exchange, "f", args))
    assert report_of(by_exchange, "f", args, ORDERS) == "", print_module(by_exchange)
    assert {found for _, found in exchanges(by_exchange)} == ({width} if width else set())


OF_EACH = """
@T.prim_func
def f(a: T.Buffer((3, {n}), "float32"), c: T.Buffer((3, {n}), "float32")):
    for i in T.thread_binding(3, thread="blockIdx.x"):
        for t in T.thread_binding({n}, thread="threadIdx.x"):
            r = T.alloc_buffer((1,), "float32", scope="local")
            with T.block("sum"):
                vi = T.axis.spatial(3, i)
                vk = T.axis.reduce({n}, t)
                with T.init():
                    r[0] = T.float32(0)
                r[0] = r[0] + a[vi, vk]
            c[i, t] = r[0] + a[i, t]
"""


@pytest.mark.parametrize(("n", "barriers"), [(5, 0), (32, 0), (33, 2), (64, 2), (100, 3)])
def test_a_result_of_each_thread(n, barriers):
    text = OF_EACH.format(n=n)
    args = [values_of("float32", (3, n)), np.zeros((3, n), "float32")]
    by_memory, by_exchange = lowered(text, 0), lowered(text, 32)
    assert same_outcome(outcome_of(by_memory, "f", args), outcome_of(by_exchange, "f", args))
    assert report_of(by_exchange, "f", args, ORDERS) == ""
    assert len(barrier_scopes(by_exchange)) == barriers
    assert needless_barriers(by_exchange, "f", args) == []


APART = """
@T.prim_func
def f(a: T.Buffer((4, 8), "float32"), c: T.Buffer((4,), "float32"), n: T.int64):
    for y in T.thread_binding(4, thread="threadIdx.y"):
        for x in T.thread_binding(8, thread="threadIdx.x"):
            {around}
                with T.block("sum"):
                    vi = T.axis.spatial(4, y)
                    vk = T.axis.reduce(8, x)
                    with T.init():
                        c[vi] = T.float32(0)
                    c[vi] = c[vi] + a[vi, vk]
"""


@pytest.mark.parametrize(
    ("around", "expected"),
    [
        ("if n > 3:", 3),
        ("for k in range(n):", 3),
        ("for k in range(n):\n                a[y, x] = a[y, x] + 1", 3),
        ("if y < 4:", 3),
        ("if y < n:", 0),
        ("if x < 4:", 0),
        ("for k in range(y):\n                a[y, x] = a[y, x] + 1", 0),
        ("while a[y, x] > 0:", 0),
    ],
)
def test_code_to_which_only_some_threads_come(around, expected):
    """There memory is used as on every device; that it needs barriers, and is refused for them, is another matter."""
    found = Pipeline.of([LowerThreadReductions(32)]).run(kernels(APART.format(around=around)))
    assert len(exchanges(found)) == expected
    assert len(shared_memory(found)) == (0 if expected else 1)


def test_code_that_some_threads_leave_early():
    text = APART.format(around="for k in range(3):").replace(
        'with T.block("sum")', 'if a[y, x] > k:\n                    continue\n                with T.block("sum")'
    )
    assert exchanges(Pipeline.of([LowerThreadReductions(32)]).run(kernels(text))) == []


def test_a_target_says_whether_it_has_exchanges():
    def made(**has):
        return LowerThreadReductions(**LowerThreadReductions.values_for(PassContext(Target("t"), Capabilities(**has))))

    assert made(warp_size=32).warp_size == 0
    assert made(warp_size=64, warp_shuffles=True).warp_size == 64
    assert made(warp_shuffles=True).warp_size == 0


@pytest.mark.parametrize("warp_size", [0, 1, 2, 32, 48, 64, 128])
def test_widths(warp_size):
    for count in (1, 2, 3, 7, 8, 24, 32, 33, 64, 96, 1000, 1024):
        for rows in (1, 2, 5):
            width = width_for(count, rows, warp_size)
            assert width & (width - 1) == 0
            assert 1 <= width <= max(1, min(warp_size, WARP_WIDTH_AT_MOST))
            assert rows == 1 or count % width == 0
            assert width == 1 or warp_size not in (0, 1, 48)
