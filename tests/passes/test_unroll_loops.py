"""Short unrolled loops are repeated with names of their own; others stay."""

import pytest

from gristmill.passes.manager import Pipeline, RunOptions
from gristmill.passes.unroll_loops import UnrollLoops
from gristmill.testing.pass_equivalence import check_pass, kernels


def test_the_body_is_repeated():
    check_pass(
        UnrollLoops(),
        """
        @T.prim_func
        def f(a: T.Buffer((8,), "int64")):
            for i in T.unroll(2, 4):
                v = a[i] + 1
                a[i] = v * v
        """,
        """
        @T.prim_func
        def f(a: T.Buffer((8,), "int64")):
            v = a[2] + 1
            a[2] = v * v
            w = a[3] + 1
            a[3] = w * w
        """,
    )


def test_a_minimum_that_is_no_constant_is_evaluated_once():
    result = check_pass(
        UnrollLoops(),
        """
        gristmill ir 1

        function @f(a: int64[8]) {
          for i: int64 in a[0] +: 2 unrolled {
            a[0] = i
          }
        }
        """,
        """
        gristmill ir 1

        function @f(a: int64[8]) {
          let start: int64 = a[0]
          let i: int64 = start
          a[0] = i
          let j: int64 = start + 1
          a[0] = j
        }
        """,
    )
    assert result


@pytest.mark.parametrize(
    ("options", "body"),
    [
        ({"limit": 3}, "a[i] = i"),
        ({"nodes": 5}, "a[i] = i"),
        ({}, "if a[i] > 0:\n                    break\n                a[i] = i"),
        ({}, "if a[i] > 0:\n                    continue\n                a[i] = i"),
    ],
    ids=["too long", "too large", "break", "continue"],
)
def test_other_loops_stay(options, body):
    module = kernels(
        f"""
        @T.prim_func
        def f(a: T.Buffer((8,), "int64")):
            for i in T.unroll(4):
                {body}
        """
    )
    assert Pipeline.of([UnrollLoops(**options)]).run(module, RunOptions(verify=True)) is module


def test_no_iterations_leave_nothing():
    check_pass(
        UnrollLoops(),
        """
        @T.prim_func
        def f(a: T.Buffer((8,), "int64")):
            for i in T.unroll(0):
                a[i] = i
            a[0] = 1
        """,
        """
        @T.prim_func
        def f(a: T.Buffer((8,), "int64")):
            a[0] = 1
        """,
    )
