"""Shared memory is allocated at the start of its launch region, wherever it was declared."""

import numpy as np
import pytest

from gristmill.errors import UserError
from gristmill.ir.functor import walk
from gristmill.ir.memory import Scope
from gristmill.ir.printer import print_module
from gristmill.ir.stmt import Allocate
from gristmill.passes.hoist_shared_memory import HoistSharedMemory
from gristmill.passes.lower_blocks import LowerBlocks
from gristmill.passes.manager import Pipeline, RunOptions
from gristmill.testing.pass_equivalence import check_pass, kernels, outcome_of, same_outcome


def hoisted(text):
    return Pipeline.of([LowerBlocks(), HoistSharedMemory()]).run(kernels(text), RunOptions(verify=True))


def test_declared_outside_of_the_loops_over_threads():
    check_pass(
        HoistSharedMemory(),
        """
        @T.prim_func
        def f(x: T.Buffer((8, 64), "float32"), y: T.Buffer((8, 64), "float32")):
            s = T.alloc_buffer((64,), "float32", scope="shared")
            for b in T.thread_binding(8, thread="blockIdx.x"):
                for t in T.thread_binding(64, thread="threadIdx.x"):
                    s[t] = x[b, t]
                    T.syncthreads()
                    y[b, t] = s[63 - t]
        """,
        """
        @T.prim_func
        def f(x: T.Buffer((8, 64), "float32"), y: T.Buffer((8, 64), "float32")):
            for b in T.thread_binding(8, thread="blockIdx.x"):
                s = T.alloc_buffer((64,), "float32", scope="shared")
                for t in T.thread_binding(64, thread="threadIdx.x"):
                    s[t] = x[b, t]
                    T.syncthreads()
                    y[b, t] = s[63 - t]
        """,
    )


def test_declared_deep_inside():
    check_pass(
        HoistSharedMemory(),
        """
        @T.prim_func
        def f(x: T.Buffer((8, 64), "float32"), n: T.int64):
            for b in T.thread_binding(8, thread="blockIdx.x"):
                for t in T.thread_binding(64, thread="threadIdx.x"):
                    for k in range(4):
                        m = n * 2
                        s = T.alloc_buffer((64,), "float32", scope="shared")
                        d = T.alloc_buffer((m + 1,), "float32", scope="shared.dyn")
                        s[t] = x[b, t]
                        d[t] = s[t]
                        x[b, t] = d[t]
        """,
        """
        @T.prim_func
        def f(x: T.Buffer((8, 64), "float32"), n: T.int64):
            for b in T.thread_binding(8, thread="blockIdx.x"):
                s = T.alloc_buffer((64,), "float32", scope="shared")
                d = T.alloc_buffer((n * 2 + 1,), "float32", scope="shared.dyn")
                for t in T.thread_binding(64, thread="threadIdx.x"):
                    for k in range(4):
                        m = n * 2
                        s[t] = x[b, t]
                        d[t] = s[t]
                        x[b, t] = d[t]
        """,
    )


def test_two_launches_have_memory_of_their_own():
    text = """
    @T.prim_func
    def f(x: T.Buffer((64,), "float32"), y: T.Buffer((64,), "float32")):
        s = T.alloc_buffer((64,), "float32", scope="shared")
        v = T.decl_buffer((8, 8), "float32", data=s.data, scope="shared")
        r = T.alloc_buffer((1,), "float32", scope="local")
        for t in T.thread_binding(64, thread="threadIdx.x"):
            s[t] = x[t]
            T.syncthreads()
            r[0] = v[t % 8, t // 8]
            y[t] = r[0]
        for t in T.thread_binding(64, thread="threadIdx.x"):
            v[t // 8, t % 8] = y[t]
            T.syncthreads()
            r[0] = s[63 - t]
            x[t] = r[0]
    """
    before, after = kernels(text), hoisted(text)
    args = [np.arange(64, dtype="float32"), np.zeros(64, "float32")]
    assert same_outcome(outcome_of(before, "f", args), outcome_of(after, "f", args))
    allocations = [node.buffer for node in walk(after) if isinstance(node, Allocate)]
    assert len([buffer for buffer in allocations if buffer.scope is Scope.SHARED]) == 2
    assert len({buffer.data for buffer in allocations}) == len(allocations) == 4
    body = after.functions[0].body.body
    assert not any(isinstance(part, Allocate) for part in body)
    assert Pipeline.of([HoistSharedMemory()]).run(after) is after


def test_memory_of_the_host_stays_beside_that_of_a_thread():
    text = """
    @T.prim_func
    def f(y: T.Buffer((64,), "float32"), n: T.int64):
        r = T.alloc_buffer((1,), "float32", scope="local")
        r[0] = T.float32(2)
        y[0] = r[0]
        for t in T.thread_binding(64, thread="threadIdx.x"):
            r[0] = T.cast(t, "float32")
            y[t] = r[0]
    """
    after = hoisted(text)
    assert len([node for node in walk(after) if isinstance(node, Allocate)]) == 2
    args = [np.zeros(64, "float32"), 3]
    assert same_outcome(outcome_of(kernels(text), "f", args), outcome_of(after, "f", args))


@pytest.mark.parametrize(
    "text",
    [
        """
        @T.prim_func
        def f(x: T.Buffer((64,), "float32")):
            for t in T.thread_binding(64, thread="threadIdx.x"):
                s = T.alloc_shared((64,), "float32")
                s[t] = x[t]
        """,
        """
        @T.prim_func
        def f(x: T.Buffer((64,), "float32")):
            s = T.alloc_buffer((64,), "float32", scope="local")
            for t in range(64):
                s[t] = x[t]
        """,
    ],
)
def test_what_is_in_its_place_comes_back(text):
    module = kernels(text)
    assert HoistSharedMemory().run(module) is module


ERRORS = {
    "a value for the next launch": (
        "GM0608",
        "y[t] = s[63 - t]",
        """
        @T.prim_func
        def f(x: T.Buffer((64,), "float32"), y: T.Buffer((64,), "float32")):
            s = T.alloc_buffer((64,), "float32", scope="shared")
            for t in T.thread_binding(64, thread="threadIdx.x"):
                s[t] = x[t]
            for t in T.thread_binding(64, thread="threadIdx.x"):
                y[t] = s[63 - t]
        """,
    ),
    "a value for the launch's next turn": (
        "GM0608",
        "y[t] = s[t]",
        """
        @T.prim_func
        def f(x: T.Buffer((64,), "float32"), y: T.Buffer((64,), "float32")):
            s = T.alloc_buffer((64,), "float32", scope="shared")
            for k in range(4):
                for t in T.thread_binding(64, thread="threadIdx.x"):
                    y[t] = s[t]
                    s[t] = x[t]
        """,
    ),
    "host code that uses shared memory": (
        "GM0608",
        "s[0] = T.float32(1)",
        """
        @T.prim_func
        def f(x: T.Buffer((64,), "float32")):
            s = T.alloc_buffer((64,), "float32", scope="shared")
            s[0] = T.float32(1)
            for t in T.thread_binding(64, thread="threadIdx.x"):
                s[t] = x[t]
        """,
    ),
    "a size by the coordinate of the outermost loop": (
        "GM0609",
        "s = T.alloc_buffer((t + 1,)",
        """
        @T.prim_func
        def f(x: T.Buffer((64,), "float32")):
            for t in T.thread_binding(64, thread="threadIdx.x"):
                s = T.alloc_buffer((t + 1,), "float32", scope="shared.dyn")
                s[t] = x[t]
        """,
    ),
    "a size that the kernel reads": (
        "GM0609",
        "s = T.alloc_buffer((sizes[0],)",
        """
        @T.prim_func
        def f(x: T.Buffer((64,), "float32"), sizes: T.Buffer((1,), "int64")):
            for b in T.thread_binding(1, thread="blockIdx.x"):
                for t in T.thread_binding(64, thread="threadIdx.x"):
                    s = T.alloc_buffer((sizes[0],), "float32", scope="shared.dyn")
                    s[t] = x[t]
        """,
    ),
}


@pytest.mark.parametrize(("code", "line", "text"), ERRORS.values(), ids=ERRORS)
def test_errors(code, line, text):
    module = kernels(text)
    with pytest.raises(UserError) as caught:
        Pipeline.of([HoistSharedMemory()]).run(module)
    found = caught.value.diagnostics[0]
    assert found.code == code, print_module(module)
    from textwrap import dedent

    source = "from gristmill.script import tir as T\n" + dedent(text).strip()
    assert line in source.split("\n")[found.place.line - 1]


def test_a_value_carried_within_one_launch_is_none_of_another():
    text = """
    @T.prim_func
    def f(x: T.Buffer((4, 64), "float32"), y: T.Buffer((64,), "float32")):
        s = T.alloc_buffer((64,), "float32", scope="shared")
        for i in range(2):
            for t in T.thread_binding(64, thread="threadIdx.x"):
                for k in range(4):
                    if k > 0:
                        y[t] = s[t]
                    s[t] = x[k, t]
    """
    args = [np.arange(256, dtype="float32").reshape(4, 64), np.zeros(64, "float32")]
    assert same_outcome(outcome_of(kernels(text), "f", args), outcome_of(hoisted(text), "f", args))
