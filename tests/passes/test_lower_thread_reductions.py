"""Reductions over threads: for any number of threads, in a fixed order, with the barriers that they need and no others."""

import numpy as np
import pytest

from gristmill.errors import UserError
from gristmill.interp import Executor
from gristmill.ir.functor import walk
from gristmill.ir.printer import print_module
from gristmill.ir.stmt import Block
from gristmill.passes.hoist_shared_memory import HoistSharedMemory
from gristmill.passes.insert_barriers import InsertBarriers
from gristmill.passes.lower_blocks import LowerBlocks
from gristmill.passes.lower_thread_reductions import LowerThreadReductions
from gristmill.passes.manager import Pipeline, RunOptions
from gristmill.passes.reuse_shared_memory import ReuseSharedMemory
from gristmill.testing.barriers import barrier_scopes, needless_barriers, report_of
from gristmill.testing.pass_equivalence import check_pass, kernels, outcome_of

PASSES = [LowerThreadReductions(), LowerBlocks(), HoistSharedMemory(), ReuseSharedMemory(), InsertBarriers()]


def lowered(text):
    return Pipeline.of(PASSES).run(kernels(text), RunOptions(verify=True))


def test_each_thread_then_all_together():
    check_pass(
        LowerThreadReductions(),
        """
        @T.prim_func
        def f(a: T.Buffer((4, 12), "float32"), c: T.Buffer((4,), "float32")):
            for i in T.thread_binding(4, thread="blockIdx.x"):
                for t in T.thread_binding(3, thread="threadIdx.x"):
                    for k in range(4):
                        with T.block("sum"):
                            vi = T.axis.spatial(4, i)
                            vk = T.axis.reduce(12, k * 3 + t)
                            with T.init():
                                c[vi] = T.float32(0)
                            c[vi] = c[vi] + a[vi, vk]
        """,
        """
        gristmill ir 1

        function @f(a: float32[4, 12], c: float32[4])
          symbol "f"
        {
          for i: int64 in 0 +: 4 thread on blockIdx.x {
            for t: int64 in 0 +: 3 thread on threadIdx.x {
              allocate c_partial: float32[] in local
              c_partial[] = -0.0
              for k: int64 in 0 +: 4 {
                let vi: int64 = i
                let vk: int64 = k * 3 + t
                c_partial[] = c_partial[] + a[vi, vk]
              }
              allocate c_threads: float32[3] in shared
              c_threads[t] = c_partial[]
              if t < 1 {
                c_threads[t] = c_threads[t] + c_threads[t + 2]
              }
              if t < 1 {
                c_threads[t] = c_threads[t] + c_threads[t + 1]
              }
              let vi_1: int64 = i
              if t == 0 {
                c[vi_1] = 0.0
                c[vi_1] = c[vi_1] + c_threads[0]
              }
            }
          }
        }
        """,
    )


def combined(values, operation):
    """What a list of partial results comes to: number i takes number i + ceil(n / 2) until one is left."""
    values = list(values)
    while len(values) > 1:
        half = (len(values) + 1) // 2
        values = [
            operation(value, values[number + half]) if number + half < len(values) else value
            for number, value in enumerate(values[:half])
        ]
    return values[0]


ONE_EACH = """
@T.prim_func
def f(a: T.Buffer(({n},), "{dtype}"), c: T.Buffer((1,), "{dtype}")):
    for t in T.thread_binding({n}, thread="threadIdx.x"):
        with T.block("total"):
            v = T.axis.reduce({n}, t)
            with T.init():
                c[0] = T.{dtype}({start})
            c[0] = {update}
"""
EXTENTS = [1, 2, 3, 7, 32, 33, 100, 256]
DTYPES = [
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64"),
]


def values_of(dtype, n):
    source = np.random.default_rng(n)
    if dtype.startswith("float"):
        return source.standard_normal(n).astype(dtype)
    return source.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, n, dtype=dtype, endpoint=True)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", EXTENTS)
def test_sums_of_any_extent_and_type(n, dtype):
    values = values_of(dtype, n)
    module = lowered(ONE_EACH.format(n=n, dtype=dtype, start=3, update="c[0] + a[v]"))
    args = [values, np.zeros(1, dtype)]
    with np.errstate(over="ignore"):
        start = np.array([3], dtype)
        expected = start + np.array([combined(values, lambda a, b: (np.array([a]) + np.array([b]))[0])], dtype)
    assert np.array_equal(outcome_of(module, "f", args)[2], expected)
    if not dtype.startswith("float"):
        assert int(expected[0]) == int(sum([int(value) for value in values], 3)) % 2 ** (8 * expected.itemsize) - (
            2 ** (8 * expected.itemsize) if expected[0] < 0 else 0
        )


@pytest.mark.parametrize("n", [3, 33, 100])
def test_each_barrier_of_a_reduction_is_needed(n):
    text = ONE_EACH.format(n=n, dtype="float32", start=0, update="c[0] + a[v]")
    args = [values_of("float32", n), np.zeros(1, "float32")]
    assert report_of(kernels(text), "f", args, (None, 1)) == "GM0522"
    module = lowered(text)
    assert report_of(module, "f", args, (None, 1, 2)) == ""
    assert needless_barriers(module, "f", args) == []
    assert len(barrier_scopes(module)) == {3: 1, 33: 5, 100: 7}[n]


OPERATIONS = {
    "product": ("int32", "c[0] * a[v]", 1, np.multiply),
    "minimum": ("float32", "T.min(c[0], a[v])", 100, np.fmin),
    "maximum": ("float32", "T.max(a[v], c[0])", -100, np.fmax),
    "least integer": ("int8", "T.min(a[v], c[0])", 127, np.minimum),
    "greatest integer": ("uint16", "T.max(c[0], a[v])", 0, np.maximum),
    "bits of all": ("uint8", "c[0] & a[v]", 255, np.bitwise_and),
    "bits of any": ("int64", "c[0] | a[v]", 0, np.bitwise_or),
    "parity": ("int32", "a[v] ^ c[0]", 0, np.bitwise_xor),
}


@pytest.mark.parametrize(("dtype", "update", "start", "operation"), OPERATIONS.values(), ids=OPERATIONS)
def test_operations(dtype, update, start, operation):
    values = values_of(dtype, 37)
    module = lowered(ONE_EACH.format(n=37, dtype=dtype, start=start, update=update))
    with np.errstate(over="ignore"):
        expected = operation.reduce(np.array([start, *values], dtype), dtype=dtype)
    assert outcome_of(module, "f", [values, np.zeros(1, dtype)])[2][0] == expected


@pytest.mark.parametrize(("operation", "expected"), [("and", False), ("or", True)])
def test_logic(operation, expected):
    values = np.array([True, False, True, True, False], bool)
    module = lowered(
        ONE_EACH.format(n=5, dtype="bool", start=operation == "and", update=f"c[0] {operation} a[v]").replace(
            "T.bool(", "T.bool("
        )
    )
    assert outcome_of(module, "f", [values, np.zeros(1, bool)])[2][0] == expected


def test_zeros_keep_their_sign():
    text = ONE_EACH.format(n=5, dtype="float32", start=0, update="c[0] + a[v]").replace(
        "T.float32(0)", "T.float32(-0.0)"
    )
    found = outcome_of(lowered(text), "f", [np.full(5, -0.0, "float32"), np.ones(1, "float32")])[2][0]
    assert found == 0
    assert np.signbit(found)


def test_a_minimum_of_nothing_but_nan_is_nan():
    text = ONE_EACH.format(n=5, dtype="float32", start=0, update="T.min(c[0], a[v])").replace(
        "c[0] = T.float32(0)", "c[0] = c[0]"
    )
    found = outcome_of(lowered(text), "f", [np.full(5, np.nan, "float32"), np.full(1, np.nan, "float32")])[2][0]
    assert np.isnan(found)


KERNELS = {
    "two axes of threads, a guard, a row a block": """
        @T.prim_func
        def f(a: T.Buffer((3, 50), "float32"), c: T.Buffer((3,), "float32")):
            for i in T.thread_binding(3, thread="blockIdx.x"):
                for u in T.thread_binding(3, thread="threadIdx.y"):
                    for t in T.thread_binding(5, thread="threadIdx.x"):
                        for k in range(4):
                            with T.block("sum"):
                                vi = T.axis.spatial(3, i)
                                vk = T.axis.reduce(50, k * 15 + u * 5 + t)
                                T.where(k * 15 + u * 5 + t < 50)
                                with T.init():
                                    c[vi] = T.float32(0)
                                c[vi] = c[vi] + a[vi, vk]
        """,
    "several rows a block": """
        @T.prim_func
        def f(a: T.Buffer((10, 7), "float32"), c: T.Buffer((10,), "float32")):
            for b in T.thread_binding(3, thread="blockIdx.x"):
                for i in T.thread_binding(4, thread="threadIdx.y"):
                    for t in T.thread_binding(7, thread="threadIdx.x"):
                        with T.block("sum"):
                            vi = T.axis.spatial(10, b * 4 + i)
                            vk = T.axis.reduce(7, t)
                            T.where(b * 4 + i < 10)
                            with T.init():
                                c[vi] = T.float32(0)
                            c[vi] = c[vi] + a[vi, vk]
        """,
    "rows one after the other": """
        @T.prim_func
        def f(a: T.Buffer((4, 12), "float32"), c: T.Buffer((4,), "float32")):
            for t in T.thread_binding(6, thread="threadIdx.x"):
                for i in range(4):
                    for k in range(2):
                        with T.block("sum"):
                            vi = T.axis.spatial(4, i)
                            vk = T.axis.reduce(12, t * 2 + k)
                            with T.init():
                                c[vi] = T.float32(0)
                            c[vi] = c[vi] + a[vi, vk]
        """,
    "serial steps around the rows": """
        @T.prim_func
        def f(a: T.Buffer((4, 12), "float32"), c: T.Buffer((4,), "float32")):
            for t in T.thread_binding(6, thread="threadIdx.x"):
                for k in range(2):
                    for i in range(4):
                        with T.block("sum"):
                            vi = T.axis.spatial(4, i)
                            vk = T.axis.reduce(12, k * 6 + t)
                            with T.init():
                                c[vi] = T.float32(0)
                            c[vi] = c[vi] + a[vi, vk]
        """,
    "threads within the serial steps, and more threads elsewhere": """
        @T.prim_func
        def f(a: T.Buffer((4, 12), "float32"), c: T.Buffer((4,), "float32")):
            for i in T.thread_binding(4, thread="blockIdx.x"):
                for k in range(2):
                    for t in T.thread_binding(6, thread="threadIdx.x"):
                        with T.block("sum"):
                            vi = T.axis.spatial(4, i)
                            vk = T.axis.reduce(12, k * 6 + t)
                            with T.init():
                                c[vi] = T.float32(0)
                            c[vi] = c[vi] + a[vi, vk]
                for u in T.thread_binding(2, thread="threadIdx.y"):
                    for t in T.thread_binding(6, thread="threadIdx.x"):
                        with T.block("more"):
                            vi = T.axis.spatial(4, i)
                            if u == 1 and t == 2:
                                c[vi] = c[vi] + T.float32(0)
        """,
    "fused axes": """
        @T.prim_func
        def f(a: T.Buffer((4, 3, 4), "float32"), c: T.Buffer((4,), "float32")):
            for i in T.thread_binding(4, thread="blockIdx.x"):
                for t in T.thread_binding(12, thread="threadIdx.x"):
                    with T.block("sum"):
                        vi = T.axis.spatial(4, i)
                        vj = T.axis.reduce(3, t // 4)
                        vk = T.axis.reduce(4, t % 4)
                        with T.init():
                            c[vi] = T.float32(0)
                        c[vi] = c[vi] + a[vi, vj, vk]
        """,
    "no init": """
        @T.prim_func
        def f(a: T.Buffer((4, 12), "float32"), c: T.Buffer((4,), "float32")):
            for i in T.thread_binding(4, thread="blockIdx.x"):
                for t in T.thread_binding(12, thread="threadIdx.x"):
                    with T.block("sum"):
                        vi = T.axis.spatial(4, i)
                        vk = T.axis.reduce(12, t)
                        c[vi] = c[vi] + a[vi, vk]
        """,
    "a result of each thread": """
        @T.prim_func
        def f(a: T.Buffer((4, 12), "float32"), c: T.Buffer((4, 12), "float32")):
            for i in T.thread_binding(4, thread="blockIdx.x"):
                for t in T.thread_binding(12, thread="threadIdx.x"):
                    r = T.alloc_buffer((1,), "float32", scope="local")
                    with T.block("sum"):
                        vi = T.axis.spatial(4, i)
                        vk = T.axis.reduce(12, t)
                        with T.init():
                            r[0] = T.float32(0)
                        r[0] = r[0] + a[vi, vk]
                    c[i, t] = r[0] + a[i, t]
        """,
}


def row_sums(a, c):
    total = a.reshape(a.shape[0], -1).sum(1)
    return total[:, None] + a if c.ndim == 2 else total


@pytest.mark.parametrize("text", KERNELS.values(), ids=KERNELS)
def test_shapes_of_reductions(text):
    module = lowered(text)
    function = module.functions[0]
    shapes = [[size.value for size in param.shape] for param in function.params]
    a = np.arange(np.prod(shapes[0]), dtype="float32").reshape(shapes[0]) % 97
    c = np.zeros(shapes[1], "float32")
    assert report_of(module, "f", [a, c], (None, 1, 2)) == "", print_module(module)
    assert np.array_equal(outcome_of(module, "f", [a, c])[2], row_sums(a, c))
    assert needless_barriers(module, "f", [a, c]) == [], print_module(module)


def test_several_results_and_a_name_in_the_body():
    text = """
    @T.prim_func
    def f(a: T.Buffer((40,), "int32"), c: T.Buffer((1,), "int32"), d: T.Buffer((1,), "int32")):
        for t in T.thread_binding(40, thread="threadIdx.x"):
            with T.block("both"):
                v = T.axis.reduce(40, t)
                with T.init():
                    c[0] = 0
                    d[0] = -1000
                x = a[v] * 2
                c[0] = c[0] + x
                d[0] = T.max(d[0], x)
    """
    values = values_of("int8", 40).astype("int32")
    found = outcome_of(lowered(text), "f", [values, np.zeros(1, "int32"), np.zeros(1, "int32")])
    assert found[2][0] == 2 * values.sum()
    assert found[3][0] == 2 * values.max()


def test_sizes_known_at_run_time():
    text = """
    @T.prim_func
    def f(a: T.Buffer(("n",), "int32"), c: T.Buffer((1,), "int32")):
        for t in T.thread_binding(8, thread="threadIdx.x"):
            for k in range((n + 7) // 8):
                with T.block("sum"):
                    v = T.axis.reduce(n, k * 8 + t)
                    T.where(k * 8 + t < n)
                    with T.init():
                        c[0] = 0
                    c[0] = c[0] + a[v]
    """
    module = lowered(text)
    for n in (0, 1, 7, 8, 9, 30):
        found = outcome_of(module, "f", [np.arange(n, dtype="int32"), np.full(1, 77, "int32")])
        assert found[2][0] == (n * (n - 1) // 2 if n else 77)


def test_blocks_that_do_not_reduce_over_threads_come_back():
    module = kernels(
        """
        @T.prim_func
        def f(a: T.Buffer((4, 12), "float32"), c: T.Buffer((4,), "float32")):
            for i in T.thread_binding(4, thread="threadIdx.x"):
                for k in range(12):
                    with T.block("sum"):
                        vi, vk = T.axis.remap("SR", [i, k])
                        with T.init():
                            c[vi] = T.float32(0)
                        c[vi] = c[vi] + a[vi, vk]
        """
    )
    assert LowerThreadReductions().run(module) is module


ERRORS = {
    "no reduction": ("c[0] * T.float32(2) + a[v]", "another order"),
    "reads its result": ("c[0] + a[v] * c[0]", "before it is complete"),
}


@pytest.mark.parametrize(("update", "message"), ERRORS.values(), ids=ERRORS)
def test_forms_that_can_not_be_lowered(update, message):
    with pytest.raises(UserError, match=message) as caught:
        lowered(ONE_EACH.format(n=4, dtype="float32", start=0, update=update))
    assert caught.value.code == "GM0610"
    assert caught.value.diagnostics[0].place is not None


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('thread="threadIdx.x"', 'thread="blockIdx.x"', "can not wait"),
        ("reduce(4, t)", "reduce(4, 3 - t)", "does not begin with the first step"),
        ("c[0] = c[0] + a[v]", "c[0] = c[0] + a[v]\n            a[v] = 1.0", "another order"),
        (
            'T.thread_binding(4, thread="threadIdx.x")',
            'T.thread_binding(T.int64(2) * m, thread="threadIdx.x")',
            "no constant",
        ),
        ("v = T.axis.reduce(4, t)", "v = T.axis.reduce(4, t)\n            T.where(t > 1)", "not the first ones"),
        ("with T.init():", "with T.init():\n                a[0] = 7.0", "writes to `a`, which is no result"),
    ],
)
def test_threads_that_can_not_reduce(old, new, message):
    text = ONE_EACH.format(n=4, dtype="float32", start=0, update="c[0] + a[v]").replace(old, new)
    text = text.replace('"float32")):', '"float32"), m: T.int64):')
    with pytest.raises(UserError, match=message) as caught:
        lowered(text)
    assert caught.value.code == "GM0610"


def test_no_block_is_left_that_reduces_over_threads():
    for text in KERNELS.values():
        module = Pipeline.of([LowerThreadReductions()]).run(kernels(text), RunOptions(verify=True))
        assert all(node.name == "more" for node in walk(module) if isinstance(node, Block))


REPEATED = """
@T.prim_func
def f(a: T.Buffer((3, 2, 8), "float32"), c: T.Buffer((1,), "float32"), m: T.int32):
    for t in T.thread_binding(4, thread="threadIdx.x"):
        for {first} in range({first_extent}):
            for {second} in range({second_extent}):
                with T.block("sum"):
                    v = T.axis.reduce(8, k * 4 + t)
                    with T.init():
                        c[0] = T.float32(0)
                    c[0] = c[0] + a[q, 0, v]
"""


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_loop_that_is_not_reduced_over_begins_anew(count):
    module = lowered(REPEATED.format(first="q", first_extent="m", second="k", second_extent=2))
    a = values_of("float32", 48).reshape(3, 2, 8)
    c = np.full(1, 7, "float32")
    Executor(module).call("f", [a, c, count])
    assert c[0] == (
        np.float32(7) if count == 0 else np.float32(0) + combined(a[count - 1, 0, :4] + a[count - 1, 0, 4:], np.add)
    )


def test_a_step_that_is_repeated_with_its_start_is_refused():
    with pytest.raises(UserError, match=r"over `q` inside of the loops .* repeats every step") as caught:
        lowered(REPEATED.format(first="k", first_extent=2, second="q", second_extent="m"))
    assert caught.value.code == "GM0610"


UNEQUAL = """
@T.prim_func
def f(a: T.Buffer(("n",), "float32"), c: T.Buffer((1,), "float32")):
    for t in T.thread_binding(4, thread="threadIdx.x"):
        for k in {steps}:
            with T.block("sum"):
                v = T.axis.reduce(n, {index})
                with T.init():
                    c[0] = T.float32(0)
                c[0] = c[0] + a[v]
"""


@pytest.mark.parametrize(("steps", "index"), [("range(t)", "k * 4 + t"), ("range(t, n, 4)", "k")])
def test_loops_of_unequal_lengths_are_refused(steps, index):
    with pytest.raises(UserError, match="each of them has its own number of steps or start") as caught:
        lowered(UNEQUAL.format(steps=steps, index=index))
    assert caught.value.code == "GM0610"
    assert "T.where" in caught.value.diagnostics[0].hint


@pytest.mark.parametrize("scope", ["", "local"])
def test_several_results_in_one_buffer_start_once(scope):
    """Statistics of a line, in the elements of one buffer: each starts from its own value."""
    text = """
@T.prim_func
def f(a: T.Buffer((37,), "float32"), c: T.Buffer((3,), "float32")):
    for t in T.thread_binding(8, thread="threadIdx.x"):
        own = T.alloc_local((3,), "float32")
        for k in range(5):
            with T.block("statistics"):
                v = T.axis.reduce(40, k * 8 + t)
                T.where(k * 8 + t < 37)
                with T.init():
                    R[0] = T.min_value("float32")
                    R[1] = T.float32(0)
                    R[2] = T.max_value("float32")
                R[0] = T.max(R[0], a[v])
                R[1] = R[1] + T.float32(1)
                R[2] = T.min(R[2], a[v])
        if t == 0:
            own[0] = T.float32(0)
            COPY
"""
    copy = "\n            ".join(f"c[{i}] = own[{i}]" for i in range(3))
    copied = text.replace("            own[0] = T.float32(0)\n", "").replace("R[", "own[").replace("COPY", copy)
    plain = text.replace("R[", "c[").replace("COPY", "pass")
    a, c = values_of("float32", 37), np.zeros(3, "float32")
    Executor(lowered(copied if scope else plain)).call("f", [a, c])
    assert c.tolist() == [a.max(), 37, a.min()]


@pytest.mark.parametrize(
    ("body", "hint"),
    [
        ("c[0] = c[0] - a[v]", "`c[0] += -x`"),
        ("if a[v] > 0:\n                c[0] = c[0] + a[v]", "if x > limit else 0"),
        ("c[0] = a[v]", "write each result as"),
    ],
)
def test_what_is_close_to_a_reduction_is_told_what_to_write(body, hint):
    text = ONE_EACH.format(n=4, dtype="float32", start=0, update="X").replace("c[0] = X", body)
    with pytest.raises(UserError, match="another order") as caught:
        lowered(text)
    assert hint in caught.value.diagnostics[0].hint
