"""Passes over atomic operations: where barriers stand, what keeps its form, what is kept."""

import numpy as np
import pytest

from gristmill.interp import ExecutionOptions, execute
from gristmill.ir.effects import is_atomic
from gristmill.ir.functor import walk
from gristmill.ir.op import OPS
from gristmill.ir.pointers import written_parameters
from gristmill.ir.printer import print_module
from gristmill.ir.stmt import BarrierScope
from gristmill.ir.target import Target
from gristmill.passes.hoist_shared_memory import HoistSharedMemory
from gristmill.passes.inline_memory_functions import InlineMemoryFunctions
from gristmill.passes.insert_barriers import InsertBarriers
from gristmill.passes.lower_blocks import LowerBlocks
from gristmill.passes.manager import Pipeline, RunOptions
from gristmill.passes.pipeline import build_pipeline
from gristmill.passes.remove_dead_code import RemoveDeadCode
from gristmill.passes.vectorize_loops import VectorizeLoops
from gristmill.plugin.artifacts import Capabilities
from gristmill.plugin.protocols import PassContext
from gristmill.testing.barriers import barrier_scopes, needless_barriers
from gristmill.testing.pass_equivalence import kernels, outcome_of, same_outcome, sizes_of

BARRIERS = Pipeline.of([LowerBlocks(), InlineMemoryFunctions(), HoistSharedMemory(), InsertBarriers()])
BLOCK, GLOBAL = BarrierScope.BLOCK, BarrierScope.BLOCK_AND_GLOBAL

HISTOGRAM = """
@T.prim_func
def f(x: T.Buffer((4, 64), "int32"), counts: T.Buffer((8,), "int32")):
    for b in T.thread_binding(4, thread="blockIdx.x"):
        for t in T.thread_binding(64, thread="threadIdx.x"):
            s = T.alloc_shared((8,), "int32")
            if t < 8:
                s[t] = 0
            T.atomic_add(s[x[b, t]], 1)
            T.atomic_add(s[x[b, 63 - t]], 1)
            if t < 8:
                T.atomic_add(counts[t], s[t])
"""


def ran(module, name, args, seed=None):
    execute(module, name, args, options=ExecutionOptions(shuffle_seed=seed))
    return args


def test_barriers_stand_between_plain_and_atomic_accesses_and_not_between_atomic_ones():
    module = BARRIERS.run(kernels(HISTOGRAM), RunOptions(verify=True))
    assert barrier_scopes(module) == [BLOCK, BLOCK]
    x = np.random.default_rng(1).integers(0, 8, (4, 64), np.int32)
    args = [x, np.zeros(8, np.int32)]
    for seed in (None, 3):
        found = ran(module, "f", [x.copy(), np.zeros(8, np.int32)], seed)
        assert np.array_equal(found[1], 2 * np.bincount(x.ravel(), minlength=8))
    assert needless_barriers(module, "f", args) == []


def test_global_memory_that_one_block_adds_to_and_reads():
    text = """
    @T.prim_func
    def f(x: T.Buffer((1,), "int32"), y: T.Buffer((64,), "int32")):
        for t in T.thread_binding(64, thread="threadIdx.x"):
            T.atomic_add(x[0], 1)
            y[t] = x[0]
    """
    module = BARRIERS.run(kernels(text), RunOptions(verify=True))
    assert barrier_scopes(module) == [GLOBAL]
    found = ran(module, "f", [np.zeros(1, np.int32), np.zeros(64, np.int32)], 2)
    assert found[1].tolist() == [64] * 64


def test_what_a_thread_adds_outside_of_the_loop_over_threads_is_each_threads_own():
    text = """
    @T.prim_func
    def f(x: T.Buffer((1,), "int32"), y: T.Buffer((64,), "int32")):
        for b in T.thread_binding(1, thread="blockIdx.x"):
            old = T.atomic_add(x[0], 1)
            for t in T.thread_binding(64, thread="threadIdx.x"):
                y[t] = x[0] + old * 0
    """
    module = BARRIERS.run(kernels(text), RunOptions(verify=True))
    assert barrier_scopes(module) == [GLOBAL]


def test_a_condition_on_an_old_value_parts_threads():
    text = """
    @T.prim_func
    def f(x: T.Buffer((1,), "int32"), y: T.Buffer((64,), "int32")):
        for t in T.thread_binding(64, thread="threadIdx.x"):
            s = T.alloc_shared((64,), "int32")
            place = T.atomic_add(x[0], 1)
            if place < 32:
                s[t] = place
                y[t] = s[63 - t]
    """
    with pytest.raises(Exception, match="GM0607"):
        BARRIERS.run(kernels(text))


def test_dead_code_keeps_atomic_operations_and_drops_their_names():
    text = """
    @T.prim_func
    def f(x: T.Buffer((4,), "int32")):
        old = T.atomic_add(x[0], 1)
        unused = old + 1
    """
    found = Pipeline.of([RemoveDeadCode()]).run(kernels(text), RunOptions(verify=True))
    assert "  evaluate atomic_add(&x[0], 1i32)\n" in print_module(found)
    assert "let" not in print_module(found)


def test_vectorized_loops_do_them_lane_by_lane():
    text = """
    @T.prim_func
    def f(x: T.Buffer((64,), "int32"), c: T.Buffer((8,), "int32"), y: T.Buffer((64,), "int32")):
        for j in range(8):
            for i in T.vectorized(8):
                old = T.atomic_add(c[x[j * 8 + i]], 1)
                y[j * 8 + i] = old
                if old > 2:
                    T.atomic_sub(c[x[j * 8 + i]], 3)
    """
    module = kernels(text)
    args = [np.random.default_rng(2).integers(0, 8, 64, np.int32), np.zeros(8, np.int32), np.zeros(64, np.int32)]
    found = Pipeline.of([VectorizeLoops()]).run(module, RunOptions(verify=True))
    assert same_outcome(outcome_of(found, "f", args), outcome_of(module, "f", args))
    assert sum(is_atomic(node) for node in walk(found)) == 2


def test_calls_in_operands_are_put_before_them():
    text = """
    @T.prim_func(private=True)
    def placed(p: T.Buffer((8,), "int32"), i: T.int32) -> T.int32:
        p[i] = p[i] + 1
        return p[i] % 8

    @T.prim_func
    def f(x: T.Buffer((8,), "int32"), p: T.Buffer((8,), "int32"), y: T.Buffer((8,), "int32")):
        for t in T.thread_binding(8, thread="threadIdx.x"):
            i = T.int32(t)
            T.atomic_add(x[p[i]], placed(p, i))
            y[i] = T.atomic_add(x[placed(p, i)], p[i])
    """
    module = kernels(text)
    args = [np.zeros(8, np.int32), np.arange(8, dtype=np.int32)[::-1] % 5, np.zeros(8, np.int32)]
    found = Pipeline.of([LowerBlocks(), InlineMemoryFunctions()]).run(module, RunOptions(verify=True))
    assert same_outcome(outcome_of(found, "f", args), outcome_of(module, "f", args))


def test_a_kernel_writes_what_it_only_adds_to():
    text = """
    @T.prim_func
    def f(x: T.Buffer((8,), "int32"), c: T.Buffer((8,), "int32")):
        for i in range(8):
            T.atomic_add(c[x[i]], 1)
    """
    module = kernels(text)
    assert written_parameters(module.functions[0], module) == {1}


def test_the_whole_pipeline_leaves_the_same_results():
    text = """
    @T.prim_func
    def f(x: T.Buffer(("n", 4), "int32"), c: T.Buffer((2, 4), "int32"), y: T.Buffer(("n",), "int32")):
        for i in range(n):
            T.atomic_add(c[x[i, 0] & 1, x[i, 1] & 3], x[i, 2])
            y[i] = T.atomic_max(c[1, 2], x[i, 3])
            seen = T.atomic_compare_exchange(c[0, 0], 3, 4)
            T.atomic_store(c[0, 1], seen)
    """
    module = kernels(text)
    context = PassContext(Target("cpu"), Capabilities(native_operations=frozenset(OPS)))
    found = build_pipeline(context).run(module, RunOptions(verify=True))
    args = [
        np.random.default_rng(4).integers(0, 9, (20, 4), np.int32),
        np.zeros((2, 4), np.int32),
        np.zeros(20, np.int32),
    ]
    sizes = sizes_of(module.functions[0], args)
    assert same_outcome(outcome_of(found, "f", args, sizes), outcome_of(module, "f", args))
