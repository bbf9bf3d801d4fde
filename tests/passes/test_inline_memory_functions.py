"""Functions that are given memory become part of launches: places of calls, early returns, sizes, shared memory; and the
barriers that callers and functions need of each other."""

import re
import time

import numpy as np
import pytest

from gristmill.errors import UserError
from gristmill.ir.expr import CallFunction
from gristmill.ir.functor import walk
from gristmill.ir.memory import Scope
from gristmill.ir.printer import print_module
from gristmill.ir.stmt import Allocate, BarrierScope, Store
from gristmill.passes.hoist_shared_memory import HoistSharedMemory
from gristmill.passes.inline_memory_functions import InlineMemoryFunctions
from gristmill.passes.insert_barriers import InsertBarriers
from gristmill.passes.lower_blocks import LowerBlocks
from gristmill.passes.manager import Pipeline, RunOptions
from gristmill.passes.reuse_shared_memory import ReuseSharedMemory
from gristmill.testing.barriers import RACES, barrier_scopes, needless_barriers, report_of
from gristmill.testing.pass_equivalence import check_pass, kernels, outcome_of, same_outcome

PASSES = [LowerBlocks(), InlineMemoryFunctions(), HoistSharedMemory(), ReuseSharedMemory(), InsertBarriers()]
BLOCK, GLOBAL = BarrierScope.BLOCK, BarrierScope.BLOCK_AND_GLOBAL


def lowered(text):
    return Pipeline.of(PASSES).run(kernels(text), RunOptions(verify=True))


def floats(*shape):
    return np.arange(np.prod(shape), dtype="float32").reshape(shape)


def calls_in(module, function):
    return [node.function for node in walk(module.get(function).body) if isinstance(node, CallFunction)]


# The pass by itself ---------------------------------------------------------------------------------------------------


def test_a_call_becomes_the_function_s_code():
    check_pass(
        InlineMemoryFunctions(),
        """
        @T.prim_func(private=True)
        def swap(s: T.Buffer((64,), "float32", scope="shared"), t: T.int64) -> T.float32:
            T.syncthreads()
            return s[63 - t]

        @T.prim_func
        def f(x: T.Buffer((64,), "float32"), y: T.Buffer((64,), "float32")):
            for t in T.thread_binding(64, thread="threadIdx.x"):
                s = T.alloc_shared((64,), "float32")
                s[t] = x[t]
                y[t] = swap(s, t) + 1.0
        """,
        """
        @T.prim_func
        def f(x: T.Buffer((64,), "float32"), y: T.Buffer((64,), "float32")):
            for t in T.thread_binding(64, thread="threadIdx.x"):
                s = T.alloc_shared((64,), "float32")
                s[t] = x[t]
                T.syncthreads()
                y[t] = s[63 - t] + 1.0
        """,
    )


def test_functions_of_scalars_and_host_code_keep_their_calls():
    module = kernels(
        """
        @T.prim_func(private=True)
        def square(a: T.float32) -> T.float32:
            return a * a

        @T.prim_func(private=True)
        def first(x: T.Buffer(("n",), "float32")) -> T.float32:
            return x[0]

        @T.prim_func
        def f(x: T.Buffer((64,), "float32"), y: T.Buffer((64,), "float32")):
            y[0] = first(x)
            for t in T.thread_binding(64, thread="threadIdx.x"):
                y[t] = square(x[t])
        """
    )
    assert InlineMemoryFunctions().run(module) is module


def test_sizes_and_scalars_get_names_where_they_are_not_plain():
    check_pass(
        InlineMemoryFunctions(),
        """
        @T.prim_func(private=True)
        def put(x: T.Buffer(("n",), "float32"), i: T.int64, value: T.float32):
            x[n - 1 - i] = value

        @T.prim_func
        def f(x: T.Buffer(("m",), "float32"), y: T.Buffer((64,), "float32")):
            for t in T.thread_binding(m, thread="threadIdx.x"):
                put(x, t, y[t])
                put(y, t + 1, 2.0)
        """,
        """
        @T.prim_func
        def f(x: T.Buffer(("m",), "float32"), y: T.Buffer((64,), "float32")):
            for t in T.thread_binding(m, thread="threadIdx.x"):
                value: T.let = y[t]
                x[m - 1 - t] = value
                i: T.let = t + 1
                y[T.int64(64) - 1 - i] = 2.0
        """,
    )


def test_early_returns_leave_the_function_alone():
    check_pass(
        InlineMemoryFunctions(),
        """
        @T.prim_func(private=True)
        def at(x: T.Buffer((64,), "float32"), i: T.int64) -> T.float32:
            if i < 0:
                return 0.0
            if i > 63:
                return 1.0
            return x[i]

        @T.prim_func
        def f(x: T.Buffer((64,), "float32"), y: T.Buffer((64,), "float32")):
            for t in T.thread_binding(64, thread="threadIdx.x"):
                y[t] = at(x, t)
        """,
        """
        gristmill ir 1

        function @f(x: float32[64], y: float32[64])
          symbol "f"
        {
          for t: int64 in 0 +: 64 thread on threadIdx.x {
            allocate result: float32[] in local
            if t < 0 {
              result[] = 0.0
            } else {
              if t > 63 {
                result[] = 1.0
              } else {
                result[] = x[t]
              }
            }
            y[t] = result[]
          }
        }
        """,
    )


def test_a_return_in_loops_leaves_them_one_by_one():
    text = """
    @T.prim_func(private=True)
    def find(x: T.Buffer((8, 64), "float32"), t: T.int64) -> T.int64:
        for i in range(8):
            for j in range(64):
                if x[i, j] == T.cast(t * 5, "float32"):
                    return i * 64 + j
            if i == 6:
                return -1
        return -2

    @T.prim_func
    def f(x: T.Buffer((8, 64), "float32"), y: T.Buffer((64,), "int64")):
        for t in T.thread_binding(64, thread="threadIdx.x"):
            y[t] = find(x, t)
            if t % 7 == 3:
                y[t] = y[t] + find(x, t + 50)
    """
    module = InlineMemoryFunctions().run(kernels(text))
    assert calls_in(module, "f") == []
    args = [floats(8, 64), np.zeros(64, "int64")]
    assert same_outcome(outcome_of(kernels(text), "f", args), outcome_of(module, "f", args))
    assert barrier_scopes(lowered(text)) == []


PLACES = {
    "operands in order": "y[t] = x[t] - take(x, t) * x[t]",
    "two in a row": "y[t] = take(x, t) - take(x, t)",
    "one in the other": "y[t] = T.cast(take(x, T.cast(take(x, 1), 'int64') % 64), 'float32')",
    "in an index": "y[T.cast(take(x, t), 'int64') * 0 + t] = x[t]",
    "in a condition": "if take(x, t) > 10.0:\n    y[t] = x[t]\nelse:\n    y[t] = 1.0",
    "in a while loop": (
        "k = T.int64(0)\nwhile take(x, t) < 70.0:\n    k = k + 1\n    if k > 9:\n        continue\n"
        "y[t] = T.cast(k, 'float32')"
    ),
    "in an extent": "y[t] = 0.0\nfor k in range(T.cast(take(x, t), 'int64') // 8):\n    y[t] = y[t] + 1.0",
    "evaluated or not": "y[t] = 0.0\nif t > 5 and take(x, t) > 20.0 and take(x, t) > 21.5:\n    y[t] = x[t]",
    "evaluated or not, or": "y[t] = 0.0\nif t > 5 or take(x, t) > 3.0:\n    y[t] = x[t]",
    "both are evaluated": "y[t] = T.Select(t > 5, take(x, t), take(x, t) + take(x, t))",
    "in a bound name": "v: T.let = take(x, t)\ny[t] = v + x[t]",
    "for its effect": "take(x, t)\ny[t] = x[t]",
    "in an assertion": "assert take(x, t) > -1.0, 'negative'\ny[t] = x[t]",
    "in a vectorised loop": "if t < 16:\n    for v in T.vectorized(4):\n        y[t * 4 + v] = take(x, t * 4 + v)",
}


@pytest.mark.parametrize("body", PLACES.values(), ids=PLACES)
def test_calls_in_every_place_are_made_in_order(body):
    lines = "".join(f"            {line}\n" for line in body.split("\n"))
    text = f"""
    @T.prim_func(private=True)
    def take(x: T.Buffer((64,), "float32"), i: T.int64) -> T.float32:
        x[i] = x[i] + 1.0
        return x[i] * 0.5

    @T.prim_func
    def f(x: T.Buffer((64,), "float32"), y: T.Buffer((64,), "float32")):
        for t in T.thread_binding(64, thread="threadIdx.x"):
{lines}"""
    if "take(x, 1)" in body:
        text = text.replace("thread_binding(64", "thread_binding(1")
    before = kernels(text)
    after = Pipeline.of([InlineMemoryFunctions()]).run(before, RunOptions(verify=True))
    assert (calls_in(after, "f") == []) is ("vectorized" not in body)
    args = [floats(64), floats(64) * 0]
    assert same_outcome(outcome_of(before, "f", args), outcome_of(after, "f", args)), print_module(after)


def test_shapes_that_do_not_fit_are_still_refused():
    text = """
    @T.prim_func(private=True)
    def add(a: T.Buffer(("n",), "float32"), b: T.Buffer(("n",), "float32"), i: T.int64):
        a[i] = a[i] + b[i]

    @T.prim_func
    def f(x: T.Buffer(("n",), "float32"), y: T.Buffer(("m",), "float32")):
        for t in T.thread_binding(4, thread="threadIdx.x"):
            add(x, y, t)
    """
    after = Pipeline.of([InlineMemoryFunctions()]).run(kernels(text), RunOptions(verify=True))
    assert same_outcome(outcome_of(after, "f", [floats(4), floats(4)]), [None, floats(4) * 2, floats(4)])
    result = outcome_of(after, "f", [floats(4), floats(5)])[0]
    assert result == "ValueError: add: the size of dimension 0 of `b` is 5, expected 4"


def test_parts_of_memory_and_views_of_it():
    text = """
    @T.prim_func(private=True)
    def turn(part: T.Buffer((16,), "float32"), t: T.int64) -> T.int32:
        bits = T.decl_buffer((4, 4), "int32", data=part.data)
        part[t] = part[t] + 1.0
        return bits[t // 4, t % 4]

    @T.prim_func
    def f(x: T.Buffer((64,), "float32"), y: T.Buffer((16,), "int32")):
        for t in T.thread_binding(16, thread="threadIdx.x"):
            part = T.decl_buffer((16,), "float32", data=x.data, elem_offset=32)
            y[t] = turn(part, t)
    """
    before = kernels(text)
    after = Pipeline.of([InlineMemoryFunctions()]).run(before, RunOptions(verify=True))
    args = [floats(64), np.zeros(16, "int32")]
    assert calls_in(after, "f") == []
    assert same_outcome(outcome_of(before, "f", args), outcome_of(after, "f", args))


def test_memory_is_where_the_argument_s_is():
    text = """
    @T.prim_func(private=True)
    def fill(part: T.Buffer((64,), "float32"), t: T.int64):
        bits = T.decl_buffer((64,), "int32", data=part.data)
        bits[t] = T.int32(0)

    @T.prim_func
    def f(y: T.Buffer((64,), "float32")):
        for t in T.thread_binding(64, thread="threadIdx.x"):
            s = T.alloc_shared((64,), "float32")
            fill(s, t)
            y[t] = s[t]
    """
    after = Pipeline.of([InlineMemoryFunctions()]).run(kernels(text), RunOptions(verify=True))
    assert same_outcome(outcome_of(after, "f", [floats(64)]), [None, floats(64) * 0])


def test_a_function_that_the_host_calls_too_stays():
    text = """
    @T.prim_func(private=True)
    def put(x: T.Buffer(("n",), "float32"), i: T.int64):
        x[i] = 1.0

    @T.prim_func
    def f(x: T.Buffer((64,), "float32")):
        put(x, 3)
        for t in T.thread_binding(64, thread="threadIdx.x"):
            put(x, t)
    """
    after = InlineMemoryFunctions().run(kernels(text))
    assert [function.name for function in after.functions] == ["put", "f"]
    assert calls_in(after, "f") == ["put"]


def test_recursion_stays_a_call():
    text = """
    @T.prim_func(private=True)
    def put(x: T.Buffer(("n",), "float32"), i: T.int64):
        if i > 0:
            put(x, i - 1)
        x[i] = 1.0

    @T.prim_func
    def f(x: T.Buffer((64,), "float32")):
        for t in T.thread_binding(1, thread="threadIdx.x"):
            put(x, t)
    """
    module = kernels(text)
    assert InlineMemoryFunctions().run(module) is module


# Shared memory of functions -------------------------------------------------------------------------------------------

SUM = """
@T.prim_func(private=True)
def total(value: T.float32, t: T.int64) -> T.float32:
    s = T.alloc_shared((64,), "float32")
    s[t] = value
    for i in T.unroll(6):
        step = T.shift_right(T.int64(32), i)
        if t < step:
            s[t] = s[t] + s[t + step]
    return s[0]

@T.prim_func
def f(x: T.Buffer((2, 64), "float32"), y: T.Buffer((2, 64), "float32")):
    for b in T.thread_binding(2, thread="blockIdx.x"):
        for t in T.thread_binding(64, thread="threadIdx.x"):
            y[b, t] = total(x[b, t], t) + total(x[b, t] * 2.0, 63 - t)
"""


def shared(module):
    return [n.buffer for n in walk(module) if isinstance(n, Allocate) and n.buffer.scope is Scope.SHARED]


def test_shared_memory_of_a_function_is_one_instance_a_block():
    module = lowered(SUM)
    assert [buffer.name for buffer in shared(module)] == ["s"]
    args = [floats(2, 64), floats(2, 64)]
    assert report_of(module, "f", args, (None, 1, 2)) == "", print_module(module)
    assert needless_barriers(module, "f", args) == [], print_module(module)
    sums = np.repeat(floats(2, 64).sum(axis=1, keepdims=True) * 3, 64, axis=1)
    assert np.array_equal(outcome_of(module, "f", args)[2], sums)
    assert report_of(kernels(SUM), "f", args, (None, 1, 2)) in RACES


def test_dynamic_shared_memory_of_a_function():
    text = SUM.replace("(value: T.float32, ", "(value: T.float32, n: T.int64, ")
    text = text.replace('T.alloc_shared((64,), "float32")', 'T.alloc_buffer((n,), "float32", scope="shared.dyn")')
    text = text.replace("total(x[b, t], t)", "total(x[b, t], m, t)").replace("* 2.0, 63", "* 2.0, m + 1, 63")
    text = text.replace('y: T.Buffer((2, 64), "float32")', 'y: T.Buffer((2, 64), "float32"), m: T.int64')
    module = lowered(text)
    args = [floats(2, 64), floats(2, 64), 64]
    assert report_of(module, "f", args, (None, 1)) == "", print_module(module)
    sums = np.repeat(floats(2, 64).sum(axis=1, keepdims=True) * 3, 64, axis=1)
    assert np.array_equal(outcome_of(module, "f", args)[2], sums)


# Barriers across calls ------------------------------------------------------------------------------------------------

FUNCTIONS = {
    "put": """(s: T.Buffer(("n",), "float32"), i: T.int64, value: T.float32):
    s[i] = value
""",
    "get": """(s: T.Buffer(("n",), "float32"), i: T.int64) -> T.float32:
    return s[i]
""",
    "reverse": """(s: T.Buffer(("n",), "float32"), t: T.int64):
    old = get(s, 63 - t)
    put(s, t, old)
""",
    "waits": """(s: T.Buffer(("n",), "float32"), t: T.int64) -> T.float32:
    T.syncthreads()
    return get(s, 63 - t)
""",
    "clamped": """(s: T.Buffer(("n",), "float32"), t: T.int64) -> T.float32:
    if t > 60:
        return 0.0
    return s[60 - t]
""",
    "last": """(s: T.Buffer(("n",), "float32"), t: T.int64, b: T.int64) -> T.float32:
    if b == 7:
        return get(s, 63 - t)
    reverse(s, t)
    for k in range(3):
        if t == k:
            return s[t + 3]
    return s[t // 2]
""",
    "late": """(s: T.Buffer(("n",), "float32"), t: T.int64) -> T.float32:
    if t > 40:
        return 0.0
    s[t] = 1.0
    return s[t // 2]
""",
    "later": """(s: T.Buffer(("n",), "float32"), t: T.int64) -> T.float32:
    for k in range(2):
        if t > 40 + k:
            return 0.0
    s[t] = 1.0
    return s[t // 2]
""",
}
HEAD = """
@T.prim_func
def f(x: T.Buffer((8, 64), "float32"), y: T.Buffer((8, 64), "float32")):
    for b in T.thread_binding(8, thread="blockIdx.x"):
        s = T.alloc_shared((128,), "float32")
        r = T.alloc_shared((64,), "float32")
        for t in T.thread_binding(64, thread="threadIdx.x"):
"""


def kernel(body):
    """A kernel of the statements, with the functions that it calls."""
    text = HEAD + "".join(f"            {line}\n" for line in body.split("\n"))
    for name, function in reversed(FUNCTIONS.items()):
        if re.search(rf"\b{name}\(", text):
            text = f"\n@T.prim_func(private=True)\ndef {name}{function}" + text
    return text


NEEDED = {
    "the caller writes, a function reads": (1, "s[t] = x[b, t]\ny[b, t] = get(s, 63 - t)"),
    "a function writes, the caller reads": (1, "put(s, t, x[b, t])\ny[b, t] = s[63 - t]"),
    "two calls": (1, "put(s, t, x[b, t])\ny[b, t] = get(s, 63 - t)"),
    "two calls in a loop": (2, "for k in range(4):\n    put(s, t, x[k, t])\n    y[b, t] = get(s, 63 - t)"),
    "inside of the function": (3, "put(s, t, x[b, t])\nreverse(s, t)\ny[b, t] = get(s, 63 - t)"),
    "inside of the function, in a loop": (
        3,
        "put(s, t, x[b, t])\nfor k in range(3):\n    reverse(s, t)\ny[b, t] = get(s, 63 - t)",
    ),
    "the function has its own": (1, "put(s, t, x[b, t])\ny[b, t] = waits(s, t)"),
    "the function has its own, in a loop": (
        2,
        "for k in range(4):\n    put(s, t, x[k, t])\n    y[b, t] = waits(s, t)",
    ),
    "before code that some threads run": (1, "put(s, t, x[b, t])\nif t < 32:\n    y[b, t] = get(s, 63 - t)"),
    "a branch that all threads take": (1, "put(s, t, x[b, t])\nif b > 3:\n    y[b, t] = get(s, 63 - t)"),
    "early returns of a function": (
        2,
        "put(s, t, x[b, t])\ny[b, t] = clamped(s, t)\nput(s, t, x[b, t] + 1.0)\ny[b, t] = y[b, t] + get(s, t)",
    ),
    "before early returns": (4, "put(s, t, x[b, t])\ny[b, t] = last(s, t, b)"),
    "one of two memories": (1, "put(s, t, x[b, t])\nput(r, t, x[b, t])\ny[b, t] = get(s, t) + get(r, 63 - t)"),
}
NONE = {
    "each its own": "put(s, t, x[b, t])\ny[b, t] = get(s, t)",
    "each its own, from another place": "put(s, t + 64, x[b, t])\nput(s, t, 0.0)\ny[b, t] = get(s, t + 64)",
    "in some threads": "if t < 32:\n    put(s, t, x[b, t])\n    y[b, t] = get(s, t)",
    "two memories": "put(s, t, x[b, t])\nput(r, 63 - t, x[b, t])\ny[b, t] = get(s, t) + get(r, 63 - t)",
    "reads of what nothing writes": (
        "row = T.decl_buffer((64,), 'float32', data=x.data)\ny[b, t] = get(row, 63 - t) + get(row, t // 2)"
    ),
}


@pytest.mark.parametrize(("count", "body"), NEEDED.values(), ids=NEEDED)
def test_each_barrier_across_calls_is_needed(count, body):
    text = kernel(body)
    args = [floats(8, 64), floats(8, 64)]
    module = lowered(text)
    assert barrier_scopes(module) == [BLOCK] * count, print_module(module)
    assert report_of(module, "f", args, (None, 1, 2)) == "", print_module(module)
    assert needless_barriers(module, "f", args) == [], print_module(module)
    if "waits" not in body:
        assert report_of(kernels(text), "f", args, (None, 1, 2)) in RACES


@pytest.mark.parametrize("body", NONE.values(), ids=NONE)
def test_where_threads_keep_to_their_own_across_calls_there_is_none(body):
    module = lowered(kernel(body))
    assert barrier_scopes(module) == [], print_module(module)
    assert report_of(module, "f", [floats(8, 64), floats(8, 64)], (None, 1)) == ""


def test_global_memory_through_calls_asks_for_a_barrier_that_orders_it():
    text = """
    @T.prim_func(private=True)
    def put(x: T.Buffer(("n",), "float32"), i: T.int64, value: T.float32):
        x[i] = value

    @T.prim_func
    def f(x: T.Buffer((64,), "float32"), y: T.Buffer((64,), "float32")):
        for t in T.thread_binding(64, thread="threadIdx.x"):
            put(y, t, x[t])
            put(x, t, y[63 - t])
    """
    module = lowered(text)
    assert barrier_scopes(module) == [GLOBAL]
    assert needless_barriers(module, "f", [floats(64), floats(64)]) == []


DIVERGENT = {
    "a branch": "put(s, t, x[b, t])\nif t < 40:\n    reverse(s, t)\ny[b, t] = s[t]",
    "after an early return": "put(s, t, x[b, t])\ny[b, t] = late(s, t)",
    "after an early return in a loop": "put(s, t, x[b, t])\ny[b, t] = later(s, t)",
}


@pytest.mark.parametrize("body", DIVERGENT.values(), ids=DIVERGENT)
def test_a_function_that_needs_a_barrier_inside_cannot_be_called_by_some_threads(body):
    with pytest.raises(UserError) as caught:
        lowered(kernel(body))
    assert caught.value.code == "GM0607"
    (found,) = caught.value.diagnostics
    assert "`s`" in found.message
    lines = kernel(body).split("\n")
    calls = [note.place for note in found.notes if note.message == "inlined from this call"]
    # The text begins one line down in its file.
    assert [lines[place.line - 2].strip() for place in calls if place is not None][-1] in body


def test_a_size_of_shared_memory_that_a_thread_gives_is_refused_with_the_call():
    text = """
    @T.prim_func(private=True)
    def total(value: T.float32, n: T.int64) -> T.float32:
        s = T.alloc_buffer((n,), "float32", scope="shared.dyn")
        s[0] = value
        return s[0]

    @T.prim_func
    def f(x: T.Buffer((64,), "float32")):
        for t in T.thread_binding(64, thread="threadIdx.x"):
            x[t] = total(x[t], t + 1)
    """
    with pytest.raises(UserError) as caught:
        lowered(text)
    assert caught.value.code == "GM0609"
    assert [note.message for note in caught.value.diagnostics[0].notes] == ["inlined from this call"]


def doubling(levels: int) -> str:
    """Functions that call the one before twice, and a launch that calls the last."""
    body = "    s = T.alloc_shared((8,), 'int32')\n    s[t] = x[t]\n    x[t] = s[7 - t]\n"
    found = f'@T.prim_func(private=True)\ndef h0(x: T.Buffer((8,), "int32"), t: T.int64):\n{body}\n'
    for level in range(1, levels):
        found += f'\n@T.prim_func(private=True)\ndef h{level}(x: T.Buffer((8,), "int32"), t: T.int64):\n'
        found += f"    h{level - 1}(x, t)\n    h{level - 1}(x, t)\n"
    found += '\n@T.prim_func\ndef f(x: T.Buffer((8,), "int32")):\n'
    return found + f"    for t in T.thread_binding(8, thread='threadIdx.x'):\n        h{levels - 1}(x, t)\n"


@pytest.mark.parametrize("levels", [16, 60])
def test_calls_that_double_at_each_level_are_refused(levels):
    started = time.monotonic()
    with pytest.raises(UserError) as caught:
        InlineMemoryFunctions().run(kernels(doubling(levels)))
    assert time.monotonic() - started < 30
    (found,) = caught.value.diagnostics
    assert found.code == "GM0612"
    assert "with that of `h" in found.message
    assert "more than 20,000 nodes" in found.message
    assert found.place is not None
    # The place is the call in the launch, on the last line, after the import.
    assert found.place.line == len(doubling(levels).splitlines()) + 1


def test_calls_below_the_limit_are_put_in_place():
    module = InlineMemoryFunctions().run(kernels(doubling(6)))
    assert [function.name for function in module.functions] == ["f"]
    assert sum(isinstance(node, Store) for node in walk(module.functions[0].body)) == 64
