"""Shared memory in one place: lifetimes, alignment, types, dynamic memory; and barriers between those who use it."""

import random

import numpy as np
import pytest

from gristmill.errors import UserError
from gristmill.ir.build import constant_value
from gristmill.ir.functor import walk
from gristmill.ir.memory import Scope
from gristmill.ir.printer import print_module
from gristmill.ir.stmt import Allocate, View
from gristmill.passes.hoist_shared_memory import HoistSharedMemory
from gristmill.passes.insert_barriers import InsertBarriers
from gristmill.passes.lay_out_dynamic_memory import LayOutDynamicMemory
from gristmill.passes.lower_blocks import LowerBlocks
from gristmill.passes.manager import Pipeline, RunOptions
from gristmill.passes.reuse_shared_memory import ReuseSharedMemory
from gristmill.testing.barriers import needless_barriers, report_of
from gristmill.testing.pass_equivalence import check_pass, kernels, outcome_of, same_outcome


def lowered(text, barriers=True, **options):
    passes = [LowerBlocks(), HoistSharedMemory(), ReuseSharedMemory(**options)]
    if barriers:
        passes.append(InsertBarriers())
    passes.append(LayOutDynamicMemory(**options))
    return Pipeline.of(passes).run(kernels(text), RunOptions(verify=True))


def shared(module):
    scopes = (Scope.SHARED, Scope.SHARED_DYNAMIC)
    return [node.buffer for node in walk(module) if isinstance(node, Allocate) and node.buffer.scope in scopes]


def test_one_after_the_other_in_one_place():
    check_pass(
        ReuseSharedMemory(),
        """
        @T.prim_func
        def f(x: T.Buffer((64,), "float32"), y: T.Buffer((64,), "float32")):
            for t in T.thread_binding(64, thread="threadIdx.x"):
                a = T.alloc_shared((64,), "float32")
                b = T.alloc_shared((64,), "float32")
                a[t] = x[t]
                y[t] = a[63 - t]
                b[t] = y[t]
                y[t] = b[63 - t]
        """,
        """
        gristmill ir 1

        function @f(x: float32[64], y: float32[64])
          symbol "f"
        {
          for t: int64 in 0 +: 64 thread on threadIdx.x {
            allocate a_b: uint8[256] in shared align 4 data a_b_data: ptr<uint8, shared>
            view a: float32[64] in shared over a_b_data
            view b: float32[64] in shared over a_b_data
            a[t] = x[t]
            y[t] = a[63 - t]
            b[t] = y[t]
            y[t] = b[63 - t]
          }
        }
        """,
    )


CHAIN = """
@T.prim_func
def f(x: T.Buffer((64,), "float32"), y: T.Buffer((64,), "float32")):
    a = T.alloc_buffer((64,), "float32", scope="shared")
    b = T.alloc_buffer((64,), "float64", scope="shared")
    c = T.alloc_buffer((64,), "int8", scope="shared")
    d = T.alloc_buffer((60,), "int32", scope="shared")
    for t in T.thread_binding(64, thread="threadIdx.x"):
        a[t] = x[t]
        b[t] = T.cast(a[63 - t], "float64")
        c[t] = T.cast(b[(t + 7) % 64], "int8")
        y[t] = T.cast(c[63 - t], "float32")
        if t < 60:
            d[t] = T.cast(x[t], "int32")
        if t < 60:
            y[t] = y[t] + T.cast(d[59 - t], "float32")
"""


def expected(x):
    b = x[::-1]
    c = np.roll(b, -7)
    y = c[::-1].copy()
    y[:60] += x[59::-1]
    return y


def test_places_are_shared_and_barriers_keep_them_apart():
    module = lowered(CHAIN)
    assert [constant_value(buffer.shape[0]) for buffer in shared(module)] == [64 * 4, 64 * 8]
    args = [np.arange(64, dtype="float32"), np.zeros(64, "float32")]
    assert report_of(module, "f", args, (None, 1, 2)) == "", print_module(module)
    assert np.array_equal(outcome_of(module, "f", args)[2], expected(args[0]))
    assert needless_barriers(module, "f", args) == []


def test_without_barriers_sharing_a_place_is_a_race():
    text = """
    @T.prim_func
    def f(x: T.Buffer((64,), "float32"), y: T.Buffer((64,), "float32")):
        a = T.alloc_buffer((64,), "float32", scope="shared")
        b = T.alloc_buffer((64,), "float32", scope="shared")
        for t in T.thread_binding(64, thread="threadIdx.x"):
            a[t] = x[t]
            T.syncthreads()
            y[t] = a[63 - t]
            b[63 - t] = y[t]
            T.syncthreads()
            y[t] = b[t]
    """
    args = [np.arange(64, dtype="float32"), np.zeros(64, "float32")]
    assert len(shared(lowered(text))) == 1
    assert report_of(kernels(text), "f", args, (None, 1)) == ""
    assert report_of(lowered(text, barriers=False), "f", args, (None, 1, 2)) in ("", "GM0504")
    assert report_of(lowered(text), "f", args, (None, 1)) == ""


@pytest.mark.parametrize("apart", [False, True])
def test_types_are_kept_apart_where_a_target_asks(apart):
    module = lowered(CHAIN, types_apart=apart)
    views = [node.buffer for node in walk(module) if isinstance(node, View)]
    found = shared(module)
    if apart:
        assert {buffer.dtype for buffer in found} == {buffer.dtype for buffer in kernel_buffers()}
        assert views == []
    else:
        assert [str(buffer.dtype) for buffer in found] == ["uint8", "uint8"]
    args = [np.arange(64, dtype="float32"), np.zeros(64, "float32")]
    assert np.array_equal(outcome_of(module, "f", args)[2], expected(args[0]))


def kernel_buffers():
    return shared(kernels(CHAIN))


def test_types_apart_share_with_their_own_type():
    text = CHAIN.replace('d = T.alloc_buffer((60,), "int32"', 'd = T.alloc_buffer((60,), "float32"').replace(
        'T.cast(x[t], "int32")', "x[t]"
    )
    module = lowered(text, types_apart=True)
    assert sorted(str(buffer.dtype) for buffer in shared(module)) == ["float32", "float64", "int8"]
    assert {str(node.buffer.dtype) for node in walk(module) if isinstance(node, View)} == {"float32"}


def test_in_use_at_the_same_time_is_left_alone():
    text = """
    @T.prim_func
    def f(x: T.Buffer((64,), "float32"), y: T.Buffer((64,), "float32")):
        for t in T.thread_binding(64, thread="threadIdx.x"):
            a = T.alloc_shared((64,), "float32")
            b = T.alloc_shared((64,), "float32")
            for k in range(2):
                a[t] = x[t]
                y[t] = a[63 - t]
                b[t] = y[t]
                y[t] = b[63 - t]
    """
    module = kernels(text)
    assert ReuseSharedMemory().run(module) is module


def test_code_of_some_threads_is_one_moment():
    text = """
    @T.prim_func
    def f(x: T.Buffer((64,), "float32"), y: T.Buffer((64,), "float32")):
        for t in T.thread_binding(64, thread="threadIdx.x"):
            a = T.alloc_shared((64,), "float32")
            b = T.alloc_shared((64,), "float32")
            if t < 7:
                a[t] = x[t]
                y[t] = a[t]
                b[63 - t] = y[t]
                y[t] = b[63 - t]
    """
    module = kernels(text)
    assert ReuseSharedMemory().run(module) is module


DYNAMIC = """
@T.prim_func
def f(x: T.Buffer(("n",), "float32"), y: T.Buffer(("n",), "float64")):
    for t in T.thread_binding(32, thread="threadIdx.x"):
        a = T.alloc_buffer((n,), "int8", scope="shared.dyn")
        b = T.alloc_buffer((n + 1,), "float64", scope="shared.dyn")
        c = T.alloc_buffer((n,), "float32", scope="shared.dyn")
        for k in range((n + 31) // 32):
            if k * 32 + t < n:
                a[k * 32 + t] = T.int8(1)
                b[k * 32 + t] = T.cast(x[k * 32 + t], "float64")
                c[k * 32 + t] = x[k * 32 + t]
        T.syncthreads()
        for k in range((n + 31) // 32):
            i = k * 32 + t
            if i < n:
                y[i] = T.cast(a[n - 1 - i], "float64") + b[n - 1 - i] + T.cast(c[n - 1 - i], "float64")
"""


@pytest.mark.parametrize("n", [1, 5, 32, 45])
def test_dynamic_memory_is_laid_out_in_one(n):
    module = lowered(DYNAMIC)
    assert [buffer.scope for buffer in shared(module)] == [Scope.SHARED_DYNAMIC]
    assert shared(module)[0].alignment == 8
    x = np.arange(n, dtype="float32")
    args = [x, np.zeros(n, "float64")]
    assert report_of(module, "f", args, (None, 1)) == ""
    assert np.array_equal(outcome_of(module, "f", args)[2], 1 + 2 * x[::-1].astype("float64"))


def test_dynamic_memory_that_is_free_is_used_again():
    text = """
    @T.prim_func
    def f(x: T.Buffer((64,), "float32"), y: T.Buffer((64,), "float32"), n: T.int64):
        for t in T.thread_binding(64, thread="threadIdx.x"):
            a = T.alloc_buffer((n,), "float32", scope="shared.dyn")
            b = T.alloc_buffer((n * 2,), "float32", scope="shared.dyn")
            a[t] = x[t]
            y[t] = a[63 - t]
            b[t] = y[t]
            y[t] = b[63 - t]
    """
    module = lowered(text)
    assert len(shared(module)) == 1
    args = [np.arange(64, dtype="float32"), np.zeros(64, "float32"), 64]
    assert np.array_equal(outcome_of(module, "f", args)[2], args[0])
    assert needless_barriers(module, "f", args) == []


def test_dynamic_memory_of_two_types_where_they_must_be_apart():
    with pytest.raises(UserError) as caught:
        lowered(DYNAMIC, types_apart=True)
    assert caught.value.code == "GM0611"
    assert "`b`" in caught.value.diagnostics[0].message


def test_views_of_what_is_laid_out():
    text = """
    @T.prim_func
    def f(x: T.Buffer((64,), "float32"), y: T.Buffer((64,), "float32")):
        for t in T.thread_binding(64, thread="threadIdx.x"):
            first = T.alloc_shared((3,), "int8")
            a = T.alloc_shared((64,), "float32")
            v = T.decl_buffer((8, 8), "float32", data=a.data, scope="shared")
            w = T.decl_buffer((64,), "int32", data=a.data, scope="shared")
            last = T.alloc_shared((64,), "float32")
            if t < 3:
                first[t] = T.int8(1)
            a[t] = x[t]
            y[t] = v[t % 8, t // 8] + T.cast(first[t % 3], "float32")
            if w[63 - t] == 0:
                y[t] = 100.0
            last[t] = y[t]
            y[t] = last[63 - t]
    """
    module = lowered(text)
    assert [buffer.name for buffer in shared(module)] == ["first", "a_last"]
    args = [np.arange(64, dtype="float32"), np.zeros(64, "float32")]
    before = Pipeline.of([InsertBarriers()]).run(kernels(text))
    assert same_outcome(outcome_of(before, "f", args), outcome_of(module, "f", args))
    assert needless_barriers(module, "f", args) == []


# Packing by offsets ---------------------------------------------------------------------------------------------------

SIDE_BY_SIDE = """
@T.prim_func
def f(x: T.Buffer((64,), "float32"), y: T.Buffer((64,), "float32")):
    for t in T.thread_binding(32, thread="threadIdx.x"):
        big = T.alloc_shared((64,), "float64")
        small = T.alloc_shared((33,), "float16")
        other = T.alloc_shared((32,), "float32")
        big[t] = T.cast(x[t], "float64")
        big[t + 32] = T.cast(x[t + 32], "float64")
        y[t] = T.cast(big[63 - t], "float32")
        small[t] = T.cast(y[t], "float16")
        other[t] = x[t]
        y[t] = T.cast(small[31 - t], "float32") + other[31 - t]
"""


def test_two_small_ones_lie_side_by_side_in_the_room_of_a_big_one():
    module = lowered(SIDE_BY_SIDE)
    assert [(buffer.name, constant_value(buffer.shape[0])) for buffer in shared(module)] == [("big_small_other", 512)]
    views = {node.buffer.name: node.buffer for node in walk(module) if isinstance(node, View)}
    assert views["big"].offset is None
    places = {}
    for name, size in (("small", 66), ("other", 128)):
        start = constant_value(views[name].offset) if views[name].offset is not None else 0
        places[name] = range(start * (2 if name == "small" else 4), start * (2 if name == "small" else 4) + size)
        assert places[name].stop <= 512
    assert not set(places["small"]) & set(places["other"])
    args = [np.arange(64, dtype="float32"), np.zeros(64, "float32")]
    assert report_of(module, "f", args, (None, 1, 2)) == "", print_module(module)
    assert needless_barriers(module, "f", args) == [], print_module(module)
    before = Pipeline.of([InsertBarriers()]).run(kernels(SIDE_BY_SIDE))
    assert same_outcome(outcome_of(before, "f", args), outcome_of(module, "f", args))


def test_parts_of_one_memory_are_not_in_each_other_s_way():
    # Only some threads read `small` at an index that memory gives; it is never one of `other`, which all write.
    text = SIDE_BY_SIDE.replace(
        "        y[t] = T.cast(small[31 - t]",
        "        T.syncthreads()\n"
        "        if t < 5:\n            other[t] = 0.0\n            y[t] = T.cast(small[T.cast(x[t], 'int64') % 32], 'float32')\n"
        "        y[t] = T.cast(small[31 - t]",
    )
    module = lowered(text)
    assert len(shared(module)) == 1
    args = [np.arange(64, dtype="float32")[::-1].copy(), np.zeros(64, "float32")]
    assert report_of(module, "f", args, (None, 1)) == ""
    assert needless_barriers(module, "f", args) == []


@pytest.mark.parametrize("seed", range(12))
def test_random_lifetimes_never_race(seed):
    text = random_lifetimes(random.Random(f"lifetimes {seed}"))
    module = lowered(text)
    args = [np.arange(32, dtype="int32"), np.zeros(32, "int32")]
    assert report_of(module, "f", args, (None, seed)) == "", f"seed {seed}\n{print_module(module)}"
    plain = Pipeline.of([InsertBarriers()]).run(kernels(text))
    assert same_outcome(outcome_of(plain, "f", args), outcome_of(module, "f", args)), f"seed {seed}"
    assert sum(map(bytes_in, shared(module))) <= sum(map(bytes_in, shared(plain)))


def bytes_in(buffer):
    return constant_value(buffer.shape[0]) * buffer.dtype.bits // 8


def random_lifetimes(chance):
    """A kernel of several shared buffers, each written, read by other threads for a while, and done with."""
    count, moments = chance.randint(3, 6), 6
    lines: list[list[str]] = [[] for _ in range(moments + 1)]
    declared = []
    for number in range(count):
        name = f"s{number}"
        size, dtype = chance.choice((32, 40, 64, 100)), chance.choice(("int8", "int16", "int32", "int64"))
        declared.append(f'{name} = T.alloc_shared(({size},), "{dtype}")')
        first = chance.randrange(moments)
        last = min(moments, first + chance.choice((0, 0, 1, 2, 4)))
        lines[first].append(f'{name}[t + {size - 32}] = T.cast(x[t] + {number}, "{dtype}")')
        for now in range(first, last + 1):
            lines[now].append(f'y[t] = y[t] * 3 + T.cast({name}[{size - 1} - t], "int32")')
    body = [line for now in lines for line in now]
    return (
        '@T.prim_func\ndef f(x: T.Buffer((32,), "int32"), y: T.Buffer((32,), "int32")):\n'
        '    for t in T.thread_binding(32, thread="threadIdx.x"):\n'
        + "".join(f"        {line}\n" for line in (*declared, *body))
    )
