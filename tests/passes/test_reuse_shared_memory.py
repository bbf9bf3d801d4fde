"""Shared memory in one place: lifetimes, alignment, types, dynamic memory; and barriers between those who use it."""

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
    assert [constant_value(buffer.shape[0]) for buffer in shared(module)] == [64 * 4, 64]
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
        assert [str(buffer.dtype) for buffer in found] == ["uint8", "float64"]
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
