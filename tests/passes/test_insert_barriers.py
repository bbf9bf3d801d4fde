"""Barriers: where threads of a block meet in memory, and only there; each one is needed, by the executor's reports."""

import random

import numpy as np
import pytest

from gristmill.errors import UserError
from gristmill.ir.expr import Call
from gristmill.ir.functor import walk
from gristmill.ir.printer import print_module
from gristmill.ir.stmt import Barrier, BarrierScope
from gristmill.passes.hoist_shared_memory import HoistSharedMemory
from gristmill.passes.insert_barriers import InsertBarriers
from gristmill.passes.lower_blocks import LowerBlocks
from gristmill.passes.manager import Pipeline, RunOptions
from gristmill.testing.barriers import RACES, barrier_scopes, needless_barriers, report_of
from gristmill.testing.pass_equivalence import check_pass, kernels

PASSES = Pipeline.of([LowerBlocks(), HoistSharedMemory(), InsertBarriers()])
BLOCK, GLOBAL = BarrierScope.BLOCK, BarrierScope.BLOCK_AND_GLOBAL


def lowered(text):
    return PASSES.run(kernels(text), RunOptions(verify=True))


def floats(*shape):
    return np.arange(np.prod(shape), dtype="float32").reshape(shape)


def test_between_a_write_and_the_read_of_another_thread():
    check_pass(
        InsertBarriers(),
        """
        @T.prim_func
        def f(x: T.Buffer((64,), "float32"), y: T.Buffer((64,), "float32")):
            for t in T.thread_binding(64, thread="threadIdx.x"):
                s = T.alloc_shared((64,), "float32")
                s[t] = x[t]
                y[t] = s[63 - t]
        """,
        """
        @T.prim_func
        def f(x: T.Buffer((64,), "float32"), y: T.Buffer((64,), "float32")):
            for t in T.thread_binding(64, thread="threadIdx.x"):
                s = T.alloc_shared((64,), "float32")
                s[t] = x[t]
                T.tvm_storage_sync("shared")
                y[t] = s[63 - t]
        """,
    )


def test_a_loop_needs_one_for_its_next_iteration_too():
    check_pass(
        InsertBarriers(),
        """
        @T.prim_func
        def f(x: T.Buffer((8, 64), "float32"), y: T.Buffer((64,), "float32")):
            for t in T.thread_binding(64, thread="threadIdx.x"):
                s = T.alloc_shared((64,), "float32")
                for k in range(8):
                    s[t] = x[k, t]
                    y[t] = s[63 - t]
        """,
        """
        @T.prim_func
        def f(x: T.Buffer((8, 64), "float32"), y: T.Buffer((64,), "float32")):
            for t in T.thread_binding(64, thread="threadIdx.x"):
                s = T.alloc_shared((64,), "float32")
                for k in range(8):
                    T.tvm_storage_sync("shared")
                    s[t] = x[k, t]
                    T.tvm_storage_sync("shared")
                    y[t] = s[63 - t]
        """,
    )


HEAD = """
@T.prim_func
def f(x: T.Buffer((8, 64), "float32"), y: T.Buffer((8, 64), "float32")):
    for b in T.thread_binding(8, thread="blockIdx.x"):
        s = T.alloc_shared((128,), "float32")
        for t in T.thread_binding(64, thread="threadIdx.x"):
"""
SHARED = {
    "a write, then another thread's read": (1, "s[t] = x[b, t]\ny[b, t] = s[63 - t]"),
    "a read, then another thread's write": (2, "s[t] = x[b, t]\ny[b, t] = s[63 - t]\ns[t] = x[b, t]\ny[b, t] = s[t]"),
    "two writes": (1, "s[t] = x[b, t]\ns[63 - t] = x[b, t]\ny[b, t] = s[63 - t]"),
    "the loop before and after": (
        3,
        """
        s[t] = x[b, t]
        y[b, t] = 0.0
        for k in range(4):
            y[b, t] = y[b, t] + s[63 - t]
            s[t] = x[k, t]
        y[b, t] = y[b, t] + s[63 - t]
        """,
    ),
    "a barrier before a loop, not in it": (
        1,
        """
        s[t] = x[b, t]
        y[b, t] = 0.0
        for k in range(4):
            y[b, t] = y[b, t] + s[63 - t]
        """,
    ),
    "one branch of a condition that is the same for all": (
        2,
        """
        s[t] = x[b, t]
        for k in range(4):
            if k % 2 == 0:
                y[b, t] = s[63 - t]
            else:
                s[t] = x[k, t]
        """,
    ),
    "a tree": (
        6,
        """
        s[t] = x[b, t]
        for i in T.unroll(6):
            step = T.shift_right(T.int64(32), i)
            if t < step:
                s[t] = s[t] + s[t + step]
        if t == 0:
            y[b, 0] = s[0]
        """,
    ),
    "a tree over a local scalar": (
        6,
        """
        s[t] = x[b, t]
        step = T.int64(32)
        while step > 0:
            if t < step:
                s[t] = s[t] + s[t + step]
            step = step // 2
        if t == 0:
            y[b, 0] = s[0]
        """,
    ),
    "a tree whose steps take two statements": (
        6,
        """
        s[t] = x[b, t]
        step = T.int64(32)
        while step > 0:
            if t < step:
                other = s[t + step]
                s[t] = T.max(s[t], other)
            step = step // 2
        if t == 0:
            y[b, 0] = s[0]
        """,
    ),
    "a while loop over shared memory": (
        3,
        """
        if t == 0:
            s[0] = 0.0
        while s[0] < 3.0:
            if t == 0:
                s[0] = s[0] + 1.0
        y[b, t] = 0.0
        """,
    ),
    "lanes of a vector": (
        1,
        """
        if t < 16:
            for v in T.vectorized(4):
                s[t * 4 + v] = x[b, t * 4 + v]
        y[b, t] = s[63 - t]
        """,
    ),
    "an end that shared memory asks for": (
        4,
        """
        for k in range(8):
            s[t] = x[k, t]
            if s[3] > 200.0:
                break
            y[b, t] = s[63 - t]
        s[t] = 0.0
        y[b, t] = y[b, t] + s[63 - t]
        """,
    ),
    "only one thread writes": (1, "if t == 0:\n    s[0] = x[b, 0]\ny[b, t] = s[0]"),
    "before code that only some threads run": (1, "s[t] = x[b, t]\nif t < 32:\n    y[b, t] = s[t + 1]"),
    "an early return": (
        1,
        """
        if t >= 50:
            return
        s[t] = x[b, t]
        y[b, t] = s[49 - t]
        """,
    ),
    "early continue of a serial loop": (
        2,
        """
        for k in range(4):
            s[t] = x[k, t]
            y[b, t] = s[63 - t]
            if t < 10:
                continue
            y[b, t] = y[b, t] + 1.0
        """,
    ),
    "an early end that is the same for all": (
        2,
        """
        for k in range(8):
            s[t] = x[k, t]
            if k == b:
                continue
            y[b, t] = s[63 - t]
            if k == 6:
                break
        """,
    ),
    "a view of the same memory": (
        1,
        """
        v = T.decl_buffer((4, 16), "float32", data=s.data, scope="shared")
        s[t] = x[b, t]
        y[b, t] = v[3 - t // 16, t % 16]
        """,
    ),
    "a barrier that is there": (
        1,
        "s[t] = x[b, t]\nT.syncthreads()\ny[b, t] = s[63 - t]",
    ),
    "a barrier that is there, and another that is missing": (
        2,
        "s[t] = x[b, t]\nT.syncthreads()\ny[b, t] = s[63 - t]\ns[t] = x[b, t] + y[b, t]\n",
    ),
    "its own half after the other": (1, "s[t] = x[b, t]\ns[t + 64] = x[b, t]\ny[b, t] = s[t] + s[127 - t]"),
    "halves one step after another": (
        4,
        """
        s[t] = x[b, t]
        for k in range(4):
            s[(k + 1) % 2 * 64 + t] = s[k % 2 * 64 + 63 - t] + 1.0
        y[b, t] = s[63 - t]
        """,
    ),
    "halves by turns": (
        5,
        """
        s[t] = x[b, t]
        for k in range(4):
            old = s[k % 2 * 64 + 63 - t]
            s[(k + 1) % 2 * 64 + t] = old + 1.0
        y[b, t] = s[63 - t]
        """,
    ),
    "halves by turns, by bits": (
        5,
        """
        s[t] = x[b, t]
        for k in range(4):
            old = s[(k & 1) * 64 + 63 - t]
            s[(k + 1 & 1) * 64 + t] = old + 1.0
        y[b, t] = s[63 - t]
        """,
    ),
    "thirds by turns": (
        5,
        """
        if t < 32:
            s[t] = x[b, t]
        for k in range(4):
            old = s[k % 3 * 32 + 31 - t % 32]
            if t < 32:
                s[(k + 1) % 3 * 32 + t] = old + 1.0
        y[b, t] = s[32 + t % 32]
        """,
    ),
    "one half, though it does not look so": (
        9,
        """
        s[t] = x[b, t]
        for k in range(4):
            old = s[k % 2 * 64 + 63 - t]
            s[(k + 2) % 2 * 64 + t] = old + 1.0
            s[(k + 1) % 2 * 64 + t] = old + 1.0
        y[b, t] = s[63 - t]
        """,
    ),
}
NONE = {
    "its own element": "s[t] = x[b, t]\ny[b, t] = s[t]",
    "its own row and column": ("s[t // 16 * 20 + t % 16] = x[b, t]\ny[b, t] = s[t // 16 * 20 + t % 16]"),
    "its own pair": "s[2 * t] = x[b, t]\ns[2 * t + 1] = x[b, t]\ny[b, t] = s[2 * t] + s[2 * t + 1]",
    "other elements": "s[t] = x[b, t]\ns[t + 64] = x[b, t]\ny[b, t] = s[t]",
    "even and odd": ("if t < 32:\n    s[2 * t] = x[b, t]\nif t < 32:\n    s[63 - 2 * t] = x[b, t]"),
    "one thread": "if t == 0:\n    s[0] = x[b, 0]\n    s[1] = s[0]\nif t == 0:\n    y[b, 0] = s[1]",
    "its own element in a loop": "for k in range(8):\n    s[t] = x[k, t]\n    y[b, t] = s[t]",
    "its own elements by a loop": "for k in range(2):\n    s[k * 64 + t] = x[k, t]\n"
    "for i in range(2):\n    y[b, t] = s[i * 64 + t]",
    "global memory of its own": "y[b, t] = x[b, t]\ny[b, t] = y[b, t] + 1.0",
    "its own lanes of a vector": (
        "if t < 32:\n    for v in T.vectorized(4):\n        s[t * 4 + v] = x[b, t]\n        y[b, t] = s[t * 4 + v]"
    ),
    "its own element under a name": "u = t + 3\ns[u] = x[b, t]\nw = u - 3\ny[b, t] = s[w + 3]",
}


def kernel(body):
    lines = body.strip("\n").split("\n")
    indent = min(len(line) - len(line.lstrip()) for line in lines if line.strip())
    return HEAD + "\n".join(" " * 12 + line[indent:] for line in lines) + "\n"


@pytest.mark.parametrize(("count", "body"), SHARED.values(), ids=SHARED)
def test_each_barrier_is_needed(count, body):
    args = [floats(8, 64), floats(8, 64)]
    module = lowered(kernel(body))
    assert report_of(module, "f", args, (None, 1, 2)) == "", print_module(module)
    assert needless_barriers(module, "f", args) == [], print_module(module)
    assert set(barrier_scopes(module)) <= {BLOCK}
    before = kernels(kernel(body))
    if "syncthreads" not in body:
        assert report_of(before, "f", args, (None, 1, 2)) in RACES


@pytest.mark.parametrize("body", NONE.values(), ids=NONE)
def test_where_threads_keep_to_their_own_there_is_none(body):
    module = lowered(kernel(body))
    assert barrier_scopes(module) == [], print_module(module)
    assert report_of(module, "f", [floats(8, 64), floats(8, 64)], (None, 1)) == ""


def test_the_same_function_comes_back_where_nothing_is_missing():
    module = kernels(kernel(NONE["its own element"]))
    assert InsertBarriers().run(module) is module


def test_global_memory_asks_for_a_barrier_that_orders_it():
    module = lowered(kernel("y[b, t] = x[b, t]\nx[b, t] = y[b, 63 - t]"))
    assert barrier_scopes(module) == [GLOBAL]
    assert report_of(module, "f", [floats(8, 64), floats(8, 64)]) == ""
    assert needless_barriers(module, "f", [floats(8, 64), floats(8, 64)]) == []


def test_one_barrier_serves_both_memories():
    module = lowered(kernel("y[b, t] = x[b, t]\ns[t] = x[b, t]\nx[b, t] = y[b, 63 - t] + s[63 - t]"))
    assert barrier_scopes(module) == [GLOBAL]


def test_memory_of_warps_asks_for_a_barrier_of_the_warp():
    text = """
    @T.prim_func
    def f(x: T.Buffer((64,), "float32"), y: T.Buffer((64,), "float32")):
        for t in T.thread_binding(64, thread="threadIdx.x"):
            w = T.alloc_buffer((32,), "float32", scope="warp")
            w[t % 32] = x[t]
            y[t] = w[31 - t % 32]
    """
    module = lowered(text)
    assert barrier_scopes(module) == [BarrierScope.WARP]
    assert report_of(module, "f", [floats(64), floats(64)]) == ""


TWO_AXES = """
@T.prim_func
def f(x: T.Buffer((4, 16), "float32"), y: T.Buffer((4, 16), "float32")):
    s = T.alloc_buffer((4, 17), "float32", scope="shared")
    for i in T.thread_binding(4, thread="threadIdx.y"):
        for j in T.thread_binding(16, thread="threadIdx.x"):
            {}
"""


@pytest.mark.parametrize(
    ("count", "body"),
    [
        (0, "s[i, j] = x[i, j]\ny[i, j] = s[i, j]"),
        (1, "s[i, j] = x[i, j]\ny[i, j] = s[i, 15 - j]"),
        (1, "s[i, j] = x[i, j]\ny[i, j] = s[3 - i, j]"),
        (1, "if i == 0:\n    s[0, j] = x[0, j]\ny[i, j] = s[0, j]"),
        (0, "if j == 0:\n    s[i, 16] = 0.0\ns[i, j] = x[i, j]\ny[i, j] = s[i, j]"),
    ],
)
def test_blocks_of_two_axes(count, body):
    module = lowered(TWO_AXES.format(body.replace("\n", "\n            ")))
    args = [floats(4, 16), floats(4, 16)]
    assert len(barrier_scopes(module)) == count
    assert report_of(module, "f", args, (None, 1)) == ""
    assert needless_barriers(module, "f", args) == []


def test_loops_over_one_axis_run_on_the_same_threads():
    text = """
    @T.prim_func
    def f(x: T.Buffer((64,), "float32"), y: T.Buffer((64,), "float32")):
        for b in T.thread_binding(1, thread="blockIdx.x"):
            s = T.alloc_shared((64,), "float32")
            for t in T.thread_binding(64, thread="threadIdx.x"):
                s[t] = x[t]
            for u in T.thread_binding(64, thread="threadIdx.x"):
                y[u] = s[u]
            for v in T.thread_binding(64, thread="threadIdx.x"):
                y[v] = y[v] + s[63 - v]
    """
    module = lowered(text)
    assert len(barrier_scopes(module)) == 1
    assert needless_barriers(module, "f", [floats(64), floats(64)]) == []


def test_narrow_indices():
    text = """
    @T.prim_func
    def f(x: T.Buffer((64,), "float32"), y: T.Buffer((64,), "float32")):
        for t in T.thread_binding(T.int32(64), thread="threadIdx.x"):
            s = T.alloc_shared((64,), "float32")
            s[t] = x[t]
            if t < T.int32(16):
                s[t] = s[t] + s[t + T.int32(16)]
            y[t] = s[T.int32(63) - t]
    """
    module = lowered(text)
    assert len(barrier_scopes(module)) == 2
    assert needless_barriers(module, "f", [floats(64), floats(64)]) == []


@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize(("count", "read"), [(0, "b * m + t"), (1, "b * m + m - 1 - t")])
def test_blocks_of_a_size_that_the_caller_gives(index, count, read):
    text = f"""
    @T.prim_func
    def f(x: T.Buffer((64,), "float32"), y: T.Buffer((64,), "float32"), m: T.{index}):
        for b in T.thread_binding(T.{index}(64) // m, thread="blockIdx.x"):
            for t in T.thread_binding(m, thread="threadIdx.x"):
                y[b * m + t] = x[b * m + t]
                x[b * m + t] = y[{read}]
    """
    module = lowered(text)
    assert barrier_scopes(module) == [GLOBAL] * count
    args = [floats(64), floats(64), 8]
    assert report_of(module, "f", args, (None, 1)) == ""
    assert needless_barriers(module, "f", args) == []


def test_a_condition_that_a_function_of_scalars_gives():
    text = """
    @T.prim_func(private=True)
    def even(k: T.int64) -> T.bool:
        return k % 2 == 0

    @T.prim_func
    def f(x: T.Buffer((64,), "float32"), y: T.Buffer((64,), "float32")):
        s = T.alloc_buffer((64,), "float32", scope="shared")
        for t in T.thread_binding(64, thread="threadIdx.x"):
            for k in range(4):
                if even(k):
                    s[t] = x[t]
                    y[t] = s[63 - t]
    """
    module = lowered(text)
    assert len(barrier_scopes(module)) == 2
    assert needless_barriers(module, "f", [floats(64), floats(64)]) == []
    with pytest.raises(UserError, match="no barrier can stand"):
        lowered(text.replace("even(k)", "even(t)"))


DIVERGENT = {
    "an if": "if t < 32:\n    s[t] = x[b, t]\n    y[b, t] = s[31 - t]",
    "a loop of unequal length": "s[t] = 0.0\nfor k in range(t):\n    s[t] = s[63 - t]\n",
    "after a continue": (
        "for k in range(2):\n    if t < 10:\n        continue\n    s[t] = x[k, t]\n    y[b, t] = s[73 - t]"
    ),
    "a loop that some leave early": (
        "for k in range(4):\n    s[t] = x[k, t]\n    y[b, t] = s[63 - t]\n    if x[b, t] > 3.0:\n        break"
    ),
}


@pytest.mark.parametrize("body", DIVERGENT.values(), ids=DIVERGENT)
def test_no_barrier_where_only_some_threads_come(body):
    with pytest.raises(UserError) as caught:
        lowered(kernel(body))
    found = caught.value.diagnostics[0]
    assert found.code == "GM0607"
    assert found.place is not None
    assert "`s`" in found.message
    assert any("not the same for all threads" in note.message for note in found.notes)


def test_the_place_of_the_error_is_the_second_access():
    with pytest.raises(UserError) as caught:
        lowered(kernel(DIVERGENT["an if"]))
    found = caught.value.diagnostics[0]
    text = "from gristmill.script import tir as T\n" + kernel(DIVERGENT["an if"]).strip()
    line = text.split("\n")[found.place.line - 1]
    assert line[found.place.column - 1 : found.place.end_column - 1] == "s[31 - t]"


class RandomKernel:
    """Statements that each write by one thread an element; what they read, others may have written."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.counter = 0

    def text(self):
        lines = ["s[t] = x[b, t]", "s[t + 64] = x[b, t]", "u[t] = x[b, t]", *self.body(3, [])]
        return HEAD.replace("        for t", '        u = T.alloc_shared((64,), "float32")\n        for t') + "\n".join(
            " " * 12 + line for line in lines
        )

    def body(self, depth, loops):
        return [line for _ in range(self.random.randint(1, 4)) for line in self.statement(depth, loops)]

    def own(self):
        return self.random.choice(("t", "63 - t", "(t + 5) % 64", "t // 8 + t % 8 * 8"))

    def any(self, loops):
        found = [self.own(), "0", "t // 2", "31 + t // 4"]
        return self.random.choice([*found, *(f"(t + {k}) % 64" for k in loops), *(f"{k} * 16 + t // 8" for k in loops)])

    def place(self, name, index, loops):
        half = self.random.choice(("", "", " + 64", *(f" + {k} % 2 * 64" for k in loops)))
        return f"y[b, {index}]" if name == "y" else f"u[{index}]" if name == "u" else f"s[{index}{half}]"

    def statement(self, depth, loops):
        kind = self.random.randrange(8) if depth else 0
        if kind <= 4:
            target, source = self.random.sample(("s", "u", "y"), 2)
            read = self.place(source, self.any(loops), loops)
            return [*self.guard(f"{self.place(target, self.own(), loops)} = {read} + x[b, t]")]
        if kind == 5:
            self.counter += 1
            name = f"k{self.counter}"
            extent = self.random.choice((1, 2, 3))
            return [f"for {name} in range({extent}):", *self.inner(depth, [*loops, name])]
        if kind == 6 and loops:
            condition = f"{self.random.choice(loops)} % 2 == {self.random.randint(0, 1)}"
            lines = [f"if {condition}:", *self.inner(depth, loops)]
            return lines if self.random.random() < 0.5 else [*lines, "else:", *self.inner(depth, loops)]
        return [f"if b {self.random.choice(('<', '>'))} 3:", *self.inner(depth, loops)]

    def inner(self, depth, loops):
        return ["    " + line for line in self.body(depth - 1, loops)]

    def guard(self, line):
        if self.random.random() < 0.7:
            return [line]
        condition = self.random.choice(("t < 32", "t == 0", "t % 2 == 0", "x[b, t] > 100.0"))
        return [f"if {condition}:", "    " + line]


def test_random_kernels_do_not_race():
    total, needless, raced = 0, 0, 0
    args = [floats(8, 64), floats(8, 64)]
    for seed in range(60):
        text = RandomKernel(seed).text()
        module = lowered(text)
        assert report_of(module, "f", args, (None, seed)) == "", f"seed {seed}\n{print_module(module)}"
        raced += report_of(kernels(text), "f", args) in RACES
        if seed < 12:
            total += len(barrier_scopes(module))
            needless += len(needless_barriers(module, "f", args))
    assert raced > 20
    print(f"{total} barriers in 12 kernels, {needless} that no run needed; {raced} of 60 raced before")
    assert needless * 4 <= total


def test_tiles_of_matrices_meet_what_threads_do_to_the_same_memory():
    """A load or store of a tile is by threads of a group together, so that even their own accesses are in its way."""
    module = kernels("""
@T.prim_func
def f(x: T.Buffer((64,), "float16"), y: T.Buffer((64,), "float16")):
    for t in T.thread_binding(32, thread="threadIdx.x"):
        s = T.alloc_buffer((64,), "float16", scope="shared")
        A = T.alloc_buffer((8, 8), "float16", scope="matrix.a")
        C = T.alloc_buffer((8, 8), "float16", scope="matrix.accumulator")
        T.matrix_fill(C, 1)
        T.matrix_load(A, x[0], 8)
        T.matrix_store(s[0], C, 8)
        T.matrix_load(A, s[0], 8)
        s[t] = x[t]
        y[t] = s[t]
""")
    order = [
        "barrier" if isinstance(node, Barrier) else node.op.name
        for node in walk(PASSES.run(module, RunOptions(verify=True)))
        if isinstance(node, (Barrier, Call))
    ]
    assert order == ["matrix_fill", "matrix_load", "matrix_store", "barrier", "matrix_load", "barrier"]
