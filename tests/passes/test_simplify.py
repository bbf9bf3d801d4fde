"""Statements that constants decide, and what loops and branches tell the simplifier."""

import numpy as np
import pytest

from gristmill.passes.manager import Pipeline, RunOptions
from gristmill.passes.simplify import Simplify
from gristmill.testing.pass_equivalence import check_pass, kernels, outcome_of, same_outcome


def kernel(body):
    lines = "\n".join("    " + line for line in body.split("\n"))
    return f'@T.prim_func\ndef f(a: T.Buffer(("n",), "int64"), m: T.int64):\n{lines}\n'


CASES = {
    "constants are folded": ("a[1 + 2] = 3 * 4", "a[3] = 12"),
    "terms cancel": ("a[0] = m + 3 - m", "a[0] = 3"),
    "a true branch": ("if 1 < 2:\n    a[0] = 1\nelse:\n    a[0] = 2", "a[0] = 1"),
    "what a loop says of its variable": (
        "for i in range(8):\n    if i < 8:\n        a[i] = i // 8 + i % 8",
        "for i in range(8):\n    a[i] = i",
    ),
    "what a symbolic loop says": (
        "for i in range(n):\n    if i < n:\n        a[i] = 1",
        "for i in range(n):\n    a[i] = 1",
    ),
    "what a branch says": (
        "if m > 3:\n    if m >= 2:\n        a[0] = 1\n    else:\n        a[0] = 2",
        "if 3 < m:\n    a[0] = 1",
    ),
    "nothing is said after the branch": ("if m > 3:\n    a[0] = 1\na[1] = T.max(m, 2)",) * 2,
    "a loop of one iteration": ("for i in range(3, 4):\n    a[i] = i", "a[3] = 3"),
    "a loop of none": ("for i in range(4, 4):\n    a[i] = i\na[0] = 1", "a[0] = 1"),
    "a loop that is left stays": (
        "for i in range(1):\n    if m > 3:\n        break\n    a[i] = i",
        "for i in range(1):\n    if 3 < m:\n        break\n    a[i] = i",
    ),
    "a split index": (
        "for i in range(32):\n    a[i // 4 * 4 + i % 4] = 1",
        "for i in range(32):\n    a[i] = 1",
    ),
    "an assert that holds": ("assert 1 < 2, 'never'\na[0] = 1", "a[0] = 1"),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_before_and_expected(case):
    before, expected = case
    if before == expected:
        expected = expected.replace("m > 3", "3 < m")
    check_pass(Simplify(), kernel(before), kernel(expected))


def test_names_for_constants_and_names_go():
    check_pass(
        Simplify(),
        """
        gristmill ir 1

        function @f(a: int64[8], m: int64) {
          let four: int64 = 4
          let again: int64 = m
          for i: int64 in 0 +: four * 2 {
            a[i] = again + four
          }
        }
        """,
        """
        gristmill ir 1

        function @f(a: int64[8], m: int64) {
          for i: int64 in 0 +: 8 {
            a[i] = m + 4
          }
        }
        """,
    )


def test_a_simple_module_comes_back_as_it_is():
    module = kernels(kernel("for i in range(n):\n    if i < m:\n        a[i] = a[i] * 2 + 1"))
    once = Pipeline.of([Simplify()]).run(module, RunOptions(verify=True))
    assert Pipeline.of([Simplify()]).run(once) is once


def test_an_end_that_was_loaded_says_nothing_later():
    text = """
        @T.prim_func
        def f(c: T.Buffer((2,), "int8"), a: T.Buffer((200,), "int64")):
            for i in range(T.cast(c[0], "int64")):
                c[0] = T.int8(0)
                if i < T.cast(c[0], "int64"):
                    a[i] = 1
        """
    check_pass(Simplify(), text, text)


@pytest.mark.parametrize(
    "around", ["for i in range(k):", "if a[0] > 0:", "while a[0] > 0:"], ids=["loop", "branch", "while"]
)
def test_a_size_in_code_that_may_not_run_says_nothing_outside(around):
    check_pass(
        Simplify(),
        f"""
        @T.prim_func
        def f(a: T.Buffer((8,), "int64"), m: T.int64, k: T.int64):
            {around}
                t = T.alloc_buffer((m,), "int64")
                t[0] = 1
                a[0] = t[0]
            if m < 0:
                a[1] = 1
        """,
        f"""
        @T.prim_func
        def f(a: T.Buffer((8,), "int64"), m: T.int64, k: T.int64):
            {around.replace("a[0] > 0", "0 < a[0]")}
                t = T.alloc_buffer((m,), "int64")
                t[0] = 1
                a[0] = t[0]
            if m < 0:
                a[1] = 1
        """,
    )


def test_a_single_thread_has_one_number_and_stays_a_thread():
    check_pass(
        Simplify(),
        """
        @T.prim_func
        def f(a: T.Buffer((8,), "int64")):
            for b in T.thread_binding(1, thread="blockIdx.x"):
                for t in T.thread_binding(8, thread="threadIdx.x"):
                    i = b * 8 + t
                    if i < 8:
                        a[i] = a[i] + b
        """,
        """
        @T.prim_func
        def f(a: T.Buffer((8,), "int64")):
            for b in T.thread_binding(1, thread="blockIdx.x"):
                for t in T.thread_binding(8, thread="threadIdx.x"):
                    a[t] = a[t]
        """,
    )


def test_a_block_begins_within_what_blocks_are_counted_for():
    check_pass(
        Simplify(),
        """
        @T.prim_func
        def f(a: T.Buffer(("n",), "int64"), m: T.int64):
            for b in T.thread_binding((n + 63) // 64, thread="blockIdx.x"):
                if b * 64 < n:
                    a[b * 64] = 1
                if b * 64 + 1 < n:
                    a[b * 64 + 1] = 2
                if n > 0:
                    a[0] = a[0] + 1
            for b in range((m + 63) // 64):
                if b * 64 < m:
                    a[b] = 3
            if (n + 63) // 64 * 64 - 64 < n:
                a[1] = 4
        """,
        """
        @T.prim_func
        def f(a: T.Buffer(("n",), "int64"), m: T.int64):
            for b in T.thread_binding((n + 63) // 64, thread="blockIdx.x"):
                a[b * 64] = 1
                if b * 64 + 1 < n:
                    a[b * 64 + 1] = 2
                a[0] = a[0] + 1
            for b in range((m + 63) // 64):
                if b * 64 < m:
                    a[b] = 3
            if (n + 63) // 64 * 64 - 64 < n:
                a[1] = 4
        """,
    )


@pytest.mark.parametrize("added", [0, 1, 63, 64, 200, 2**63 - 1])
def test_a_count_of_blocks_that_wraps_runs_none_of_them(added):
    module = kernels(
        kernel(
            f"if m >= 0:\n    for b in range((m + {added}) // 64):\n        a[0] += b\n        if b > 6:\n            break"
            "\n        if b * 64 < m:\n            a[1] += 1\n        if m > 0:\n            a[2] += 1"
        )
    )
    simplified = Pipeline.of([Simplify()]).run(module, RunOptions(verify=True))
    for m in (0, 1, 63, 64, 65, 129, 2**63 - 201, 2**63 - 65, 2**63 - 64, 2**63 - 2, 2**63 - 1):
        args = [np.zeros(3, np.int64), m]
        assert same_outcome(outcome_of(module, "f", args), outcome_of(simplified, "f", args)), m
