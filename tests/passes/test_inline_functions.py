"""Small straight helpers are put in the place of their calls."""

import numpy as np
import pytest

from gristmill.ir.expr import CallFunction, Mul
from gristmill.ir.functor import walk
from gristmill.passes.inline_functions import InlineFunctions
from gristmill.passes.manager import Pipeline, RunOptions
from gristmill.testing.pass_equivalence import check_pass, kernels, outcome_of, same_outcome

SQUARE = """
@T.prim_func(private=True)
def square(x: T.int64) -> T.int64:
    y = x * x
    return y + 1
"""


def inlined(text, **options):
    before = kernels(text)
    after = Pipeline.of([InlineFunctions(**options)]).run(before, RunOptions(verify=True))
    args = [np.arange(-4, 4)]
    assert same_outcome(outcome_of(before, "f", args), outcome_of(after, "f", args))
    return sum(isinstance(node, CallFunction) for node in walk(after.get("f"))), after


def kernel(body):
    lines = "\n".join("    " + line for line in body.split("\n"))
    return f'@T.prim_func\ndef f(a: T.Buffer((8,), "int64")):\n{lines}\n'


def test_before_and_expected():
    check_pass(
        InlineFunctions(),
        """
        gristmill ir 1

        function @square(x: float32) -> float32 {
          return x * x
        }

        function @f(a: float32[4]) {
          for i: int64 in 0 +: 4 {
            let y: float32 = @square(a[i]) as float32
            a[i] = y
          }
        }
        """,
        """
        gristmill ir 1

        function @square(x: float32) -> float32 {
          return x * x
        }

        function @f(a: float32[4]) {
          for i: int64 in 0 +: 4 {
            let x: float32 = a[i]
            let y: float32 = x * x
            a[i] = y
          }
        }
        """,
    )


@pytest.mark.parametrize(
    ("body", "left"),
    [
        ("a[0] = square(a[1])", 0),
        ("v = square(a[1])\na[2] = v + v", 0),
        ("a[0] = square(a[1]) + square(a[2])", 2),
        ("for i in range(8):\n    a[i] = square(i)", 0),
    ],
)
def test_calls_that_are_a_whole_value(body, left):
    assert inlined(SQUARE + kernel(body))[0] == left


def test_each_copy_has_its_own_names():
    assert inlined(SQUARE + kernel("a[0] = square(a[1])\na[1] = square(a[2])"))[0] == 0


@pytest.mark.parametrize(
    "helper",
    [
        "def g(x: T.int64) -> T.int64:\n    if x > 2:\n        return x\n    return x + 1\n",
        "def g(x: T.int64) -> T.int64:\n    return g2(x)\n@T.prim_func(private=True)\n"
        "def g2(x: T.int64) -> T.int64:\n    if x <= 0:\n        return 1\n    return g(x - 1)\n",
        "def g(x: T.int64) -> T.int64:\n    return x + T.warp_shuffle(x, 0)\n",
    ],
    ids=["early return", "recursion", "exchange"],
)
def test_other_functions_stay_calls(helper):
    count, _ = inlined(
        "@T.prim_func(private=True)\n"
        + helper.replace("        a = x\n", "        x2 = x\n")
        + kernel("a[0] = g(a[1])")
    )
    assert count == 1


def test_large_functions_stay_calls():
    assert inlined(SQUARE + kernel("a[0] = square(a[1])"), nodes=3)[0] == 1


def test_places_say_through_which_call_they_came():
    _, after = inlined(SQUARE + kernel("a[0] = square(a[1])"))
    (product,) = [node for node in walk(after.get("f")) if isinstance(node, Mul)]
    assert product.span.place.line == 4
    assert product.span.inlined_at.place.line == 8


def test_fast_math_does_not_spread():
    module = kernels(SQUARE + kernel("a[0] = square(a[1])"))
    module = module.with_functions(
        function.with_facts(fast_math=True) if function.name == "f" else function for function in module.functions
    )
    assert InlineFunctions().run(module) is module
