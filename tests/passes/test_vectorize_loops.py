"""Vectorised loops: vectors where there is a vector form, a serial loop where that is proven, else lock step.

The executor runs vectorised loops in lock step itself; results must be the same before and after.
"""

import numpy as np
import pytest

from gristmill.ir.expr import Ramp
from gristmill.ir.functor import walk
from gristmill.ir.stmt import For, LoopKind
from gristmill.passes.flatten_buffers import FlattenBuffers
from gristmill.passes.lower_buffer_arguments import LowerBufferArguments
from gristmill.passes.manager import Pipeline, RunOptions
from gristmill.passes.vectorize_loops import VectorizeLoops
from gristmill.testing.pass_equivalence import check_pass, kernels, outcome_of, same_outcome, sizes_of


def kernel(body, extra="", facts=""):
    lines = "\n".join("    " + line for line in body.strip("\n").split("\n"))
    head = 'a: T.Buffer((64,), "int64"), b: T.Buffer((64,), "int64"), c: T.Buffer((4, 16), "int64"), n: T.int64'
    return f"{extra}\n@T.prim_func\ndef f({head}):\n{facts}{lines}\n"


def vectorized(text):
    before = kernels(text)
    passes = [LowerBufferArguments(), FlattenBuffers(), VectorizeLoops()]
    after = Pipeline.of(passes).run(before, RunOptions(verify=True))
    assert not any(isinstance(node, For) and node.kind is LoopKind.VECTORIZED for node in walk(after))
    return before, after


def loops(module):
    return [node for node in walk(module.get("f")) if isinstance(node, For)]


def agree(text, n=5):
    """Run before and after on arrays with small values, equal ones among them; the module after."""
    before, after = vectorized(text)
    source = np.random.default_rng(3)
    args = [source.integers(-3, 7, 64), source.integers(-3, 7, 64), source.integers(-3, 7, (4, 16)), n]
    sizes = sizes_of(before.get("f"), args)
    first, second = outcome_of(before, "f", args, sizes), outcome_of(after, "f", args, sizes)
    assert same_outcome(first, second), (first, second)
    return after


def test_before_and_expected():
    check_pass(
        VectorizeLoops(),
        """
        gristmill ir 1

        function @f(p: ptr<float32, global>, q: ptr<float32, global>, j: int64) {
          view a: float32[64] over p
          view b: float32[64] over q
          for i: int64 in 0 +: 4 vectorized {
            b[j * 4 + i] = a[j * 4 + i] * 2.0
          }
        }
        """,
        """
        gristmill ir 1

        function @f(p: ptr<float32, global>, q: ptr<float32, global>, j: int64) {
          view a: float32[64] over p
          view b: float32[64] over q
          let i: int64 = 0
          b[broadcast(j * 4, 4) + ramp(i, 1, 4)] = a[broadcast(j * 4, 4) + ramp(i, 1, 4)] * broadcast(2.0, 4)
        }
        """,
    )


VECTOR = {
    "a copy": "for i in T.vectorized(8):\n    b[i] = a[i + 3]",
    "a shift within one buffer": "for i in T.vectorized(8):\n    a[i + 1] = a[i] + 1",
    "names": "for i in T.vectorized(8):\n    v = a[i] * 2\n    b[i] = v + v",
    "columns": "for i in T.vectorized(4):\n    c[i, 3] = a[i]",
    "a local scalar": "for i in T.vectorized(8):\n    v = a[i]\n    v = v + b[i]\n    v = v * v\n    b[i] = v",
    "a broadcast": "for i in T.vectorized(8):\n    b[i] = a[5]",
    "all into one element": "for i in T.vectorized(8):\n    b[5] = a[i]",
    "a select": "for i in T.vectorized(8):\n    b[i] = T.Select(a[i] > 2, a[i], 0 - i)",
    "an inner loop": "for i in T.vectorized(8):\n    for k in range(n):\n        b[i] = b[i] + a[i * 4 + k]",
    "the same branch": "for i in T.vectorized(8):\n    if n > 2:\n        b[i] = a[i]\n    else:\n        b[i] = 7",
    "local memory": (
        'for i in T.vectorized(4):\n    t = T.alloc_buffer((3,), "int64", scope="local")\n'
        "    for k in range(3):\n        t[k] = a[i + k]\n    b[i] = t[0] * t[1] + t[2]"
    ),
}


@pytest.mark.parametrize("body", VECTOR.values(), ids=VECTOR.keys())
def test_what_has_a_vector_form_gets_it(body):
    after = agree(kernel(body))
    assert any(isinstance(node, Ramp) for node in walk(after.get("f")))
    assert all("lane" not in loop.var.name for loop in loops(after))


HELPER = """
@T.prim_func(private=True)
def pick(x: T.int64) -> T.int64:
    if x > 2:
        return x * 10
    return x
"""

LOCK_STEP = {
    "branches": "for i in T.vectorized(8):\n    if a[i] > 2:\n        b[i] = a[i + 1]\n    else:\n        b[i + 2] = 0 - i",
    "calls": "for i in T.vectorized(8):\n    b[i + 1] = pick(b[i])",
    "statements that see each other": "for i in T.vectorized(8):\n    if a[i] > 0:\n        a[i + 1] = i\n    b[i] = a[i]",
    "loops of unequal length": "for i in T.vectorized(6):\n    for k in range(a[i] + 3):\n        b[i + k] = b[i] + k + i",
    "while": (
        "for i in T.vectorized(6):\n    v = a[i]\n    while v > 0:\n        b[i] = b[i + 1] + v\n        v = v - 1"
    ),
    "break": (
        "for i in T.vectorized(6):\n    for k in range(5):\n        if a[i + k] > 3:\n            break\n"
        "        b[i + k] = b[i] + 1\n    a[i] = b[i + 1]"
    ),
    "continue in an inner loop": (
        "for i in T.vectorized(6):\n    for k in range(5):\n        if a[i + k] > 3:\n            continue\n"
        "        b[i + k] = b[i] + 1\n        b[i] = k"
    ),
    "continue": "for i in T.vectorized(6):\n    if a[i] > 2:\n        continue\n    b[i + 1] = b[i]\n    b[i] = 1",
    "continue in a while loop": (
        "for i in T.vectorized(6):\n    v = a[i]\n    while v > 0:\n        v = v - 1\n        if b[i] > 3:\n"
        "            continue\n        b[i] = b[i + 1] + v\n        if v == 2:\n            break"
    ),
    "memory of a lane": (
        'for i in T.vectorized(4):\n    t = T.alloc_buffer((2, 3), "int64", scope="local")\n'
        "    for k in range(3):\n        t[0, k] = a[i + k]\n        t[1, k] = k\n"
        "    if a[i] > 1:\n        b[i] = t[0, 1] * t[0, 2] + t[1, 2]"
    ),
    "an operand that some lanes evaluate": "for i in T.vectorized(8):\n    b[i + 1] = T.if_then_else(a[i] > 2, b[i], 9)",
    "vectorized in vectorized": (
        "for i in T.vectorized(4):\n    v = a[i]\n    for j in T.vectorized(3):\n        b[i + j] = b[j] + v + i\n"
        "        b[2 - j + i] = i * 10 + j\n    a[i + 1] = b[i]"
    ),
    "vectorized in a branch of vectorized": (
        'for i in T.vectorized(4):\n    t = T.alloc_buffer((3,), "int64", scope="local")\n    for k in range(3):\n'
        "        t[k] = a[i + k]\n    if a[i] > 0:\n        for j in T.vectorized(3):\n"
        "            if b[j] > 1:\n                continue\n"
        "            u = t[j]\n            u = u + 1\n            b[i] = u + j"
    ),
    "branches in branches": (
        "for i in T.vectorized(8):\n    if a[i] > 0:\n        if b[i] > 0:\n            b[i + 1] = 5\n"
        "        else:\n            b[i + 2] = 6\n        a[i + 1] = b[i]\n    b[i] = a[i + 1]"
    ),
}


@pytest.mark.parametrize("body", LOCK_STEP.values(), ids=LOCK_STEP.keys())
def test_other_loops_run_in_lock_step(body):
    after = agree(kernel(body, HELPER))
    assert any(loop.var.name == "lane" for loop in loops(after))


SERIAL = {
    "one array in place": "for i in T.vectorized(8):\n    if a[i] > 2:\n        a[i] = a[i] * 3",
    "local memory only is written": (
        't = T.alloc_buffer((8,), "int64")\nfor i in T.vectorized(8):\n    t[i] = 0\n'
        "for i in T.vectorized(8):\n    if a[i] > 2:\n        t[i] = a[i + 1]\nfor i in range(8):\n    b[i] = t[i]"
    ),
}


@pytest.mark.parametrize("body", SERIAL.values(), ids=SERIAL.keys())
def test_proven_loops_become_serial(body):
    after = agree(kernel(body))
    assert any(loop.hints.vectorize for loop in loops(after))
    assert all(loop.var.name != "lane" for loop in loops(after))


def test_buffers_that_may_overlap_prove_nothing():
    after = agree(kernel("for i in T.vectorized(8):\n    if a[i] > 2:\n        b[i] = a[i]"))
    assert any(loop.var.name == "lane" for loop in loops(after))


def test_loops_of_one_iteration_and_of_none():
    agree(kernel("for i in T.vectorized(1):\n    b[i] = a[i]"))
    agree(kernel("for i in T.vectorized(0):\n    b[i] = a[i]"))
    agree(kernel("for i in T.vectorized(1):\n    if a[i] > -9:\n        continue\n    b[i] = a[i]"))
