"""Barriers that the program has: allowed where all threads of the block come by, refused at their place elsewhere."""

from __future__ import annotations

import numpy as np
import pytest

from gristmill.errors import Diagnostic, UserError
from gristmill.interp import ExecutionError, execute
from gristmill.ir.functor import walk
from gristmill.ir.module import Module
from gristmill.ir.stmt import Barrier
from gristmill.passes.hoist_shared_memory import HoistSharedMemory
from gristmill.passes.inline_memory_functions import InlineMemoryFunctions
from gristmill.passes.insert_barriers import InsertBarriers
from gristmill.passes.lower_blocks import LowerBlocks
from gristmill.passes.manager import Pipeline, RunOptions
from gristmill.testing.pass_equivalence import kernels

PASSES = Pipeline.of([LowerBlocks(), InlineMemoryFunctions(), HoistSharedMemory(), InsertBarriers()])
HEAD = """
@T.prim_func(private=True)
def wait(x: T.Buffer((8, 64), "int32")):
    T.syncthreads()

@T.prim_func(private=True)
def wait_unless(x: T.Buffer((8, 64), "int32"), skip: T.bool):
    if skip:
        return
    T.syncthreads()

@T.prim_func
def f(x: T.Buffer((8, 64), "int32"), n: T.int32):
    for b in T.thread_binding(8, thread="blockIdx.x"):
        for t in T.thread_binding(64, thread="threadIdx.x"):
"""


def text_of(body: str) -> str:
    return HEAD + "".join(f"            {line}\n" for line in body.split("\n"))


def lowered(body: str) -> Module:
    return PASSES.run(kernels(text_of(body)), RunOptions(verify=True))


DIVERGENT = {
    # The statements, and what decides which threads come by.
    "an if": ("if t < 4:\n    T.syncthreads()", "`if`", "t < 4"),
    "its other branch": ("if t < 4:\n    x[b, t] = 1\nelse:\n    T.syncthreads()", "`if`", "t < 4"),
    "an if in an if": ("if n > 3:\n    if x[b, t] > 3:\n        T.syncthreads()", "`if`", "x[b, t] > 3"),
    "an if for some in one for all": ("if t < 4:\n    if n > 3:\n        T.syncthreads()", "`if`", "t < 4"),
    "a loop of unequal length": ("for k in range(t):\n    T.syncthreads()", "loop", "range(t)"),
    "a while loop": ("i = t\nwhile i < 70:\n    T.syncthreads()\n    i = i + 1", "loop", "i < 70"),
    "a loop that some leave": (
        "for k in range(4):\n    if t == k:\n        break\n    T.syncthreads()",
        "loop",
        "range(4)",
    ),
    "after a continue": (
        "for k in range(4):\n    if t == k:\n        continue\n    T.syncthreads()",
        "`continue`",
        "t == k",
    ),
    "global memory": ('if t < 4:\n    T.tvm_storage_sync("global")', "`if`", "t < 4"),
    "a function": ("if t < 4:\n    wait(x)", "`if`", "t < 4"),
    "two calls of one function": ("if t < 4:\n    wait(x)\nelse:\n    wait(x)", "`if`", "t < 4"),
}


def line_of(body: str, found: Diagnostic, note: str) -> str:
    lines = ("from gristmill.script import tir as T\n" + text_of(body).strip()).split("\n")
    (place,) = [one.place for one in found.notes if note in one.message]
    assert place is not None
    return lines[place.line - 1]


@pytest.mark.parametrize(("body", "what", "decides"), DIVERGENT.values(), ids=DIVERGENT)
def test_a_barrier_to_which_only_some_threads_come(body: str, what: str, decides: str) -> None:
    with pytest.raises(UserError) as caught:
        lowered(body)
    (found,) = caught.value.diagnostics
    assert found.code == "GM0607"
    assert found.message == (
        f"only some threads of the block come to this barrier: the {what} around it need not be the same for all"
    )
    assert found.place is not None
    lines = ("from gristmill.script import tir as T\n" + text_of(body).strip()).split("\n")
    marked = lines[found.place.line - 1][found.place.column - 1 : found.place.end_column - 1]
    assert marked.startswith(("T.syncthreads()", "T.tvm_storage_sync("))
    assert decides in line_of(body, found, "not the same for all threads")
    if "wait(" in body:
        assert "wait(x)" in line_of(body, found, "inlined from this call")


def test_what_returns_early_in_a_function_does_not_come_to_its_barrier() -> None:
    with pytest.raises(UserError) as caught:
        lowered("wait_unless(x, t < 4)")
    assert caught.value.code == "GM0607"


@pytest.mark.parametrize(
    "body",
    [
        "if n > 3:\n    T.syncthreads()",
        "if t < 64:\n    T.syncthreads()",
        "if b < 4:\n    wait(x)",
        "if x[b, 0] == 0:\n    T.syncthreads()",
        "for k in range(n):\n    wait(x)",
        "for k in range(4):\n    if k == n:\n        break\n    T.syncthreads()",
        "if t < 4:\n    return\nT.syncthreads()",
        "wait_unless(x, n > 3)",
        "i = T.int32(0)\nwhile i < n:\n    T.syncthreads()\n    i = i + 1",
    ],
)
def test_a_barrier_to_which_all_threads_come_stays(body: str) -> None:
    module = lowered(body)
    assert any(isinstance(node, Barrier) for node in walk(module))
    execute(module, "f", [np.zeros((8, 64), np.int32), 5])


def test_a_barrier_of_a_warp_in_code_for_whole_warps_stays() -> None:
    body = 'if t // 32 == 1:\n    T.tvm_storage_sync("warp")\nx[b, t] = x[b, t] + 1'
    module = lowered(body)
    x = np.zeros((8, 64), np.int32)
    execute(module, "f", [x, 5])
    assert x.min() == x.max() == 1


@pytest.mark.parametrize("body", [body for body, _, _ in DIVERGENT.values() if "else" not in body])
def test_the_executor_reports_what_is_refused(body: str) -> None:
    with pytest.raises(ExecutionError) as caught:
        execute(kernels(text_of(body)), "f", [np.arange(512, dtype=np.int32).reshape(8, 64) % 60, 5])
    assert caught.value.code == "GM0503"
