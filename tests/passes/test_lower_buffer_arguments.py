"""Buffers are passed by pointer, sizes as numbers; what a call cannot prove of shapes is checked where it happens."""

import numpy as np
import pytest

from gristmill.errors import UserError
from gristmill.ir.expr import Var
from gristmill.passes.lower_buffer_arguments import LowerBufferArguments
from gristmill.passes.manager import Pipeline, RunOptions
from gristmill.testing.pass_equivalence import check_pass, kernels, outcome_of, same_outcome, sizes_of


def lowered(text):
    before = kernels(text)
    return before, Pipeline.of([LowerBufferArguments()]).run(before, RunOptions(verify=True))


def results(text, *args):
    """The outcomes before and after, which must agree."""
    before, after = lowered(text)
    sizes = sizes_of(before.get("f"), args)
    first, second = outcome_of(before, "f", args, sizes), outcome_of(after, "f", args, sizes)
    assert same_outcome(first, second), (first, second)
    return second


def test_parameters_become_pointers_and_sizes():
    check_pass(
        LowerBufferArguments(),
        """
        @T.prim_func
        def f(x: T.Buffer(("n",), "float32"), factor: T.float32):
            for i in range(n):
                x[i] = x[i] * factor
        """,
        """
        gristmill ir 1

        function @f(x: ptr<float32, global>, factor: float32, n: int64)
          symbol "f"
        {
          view xs: float32[n] over x
          for i: int64 in 0 +: n {
            xs[i] = xs[i] * factor
          }
        }
        """,
    )


SCALE = """
@T.prim_func(private=True)
def scale(x: T.Buffer(("n", 3), "int32"), by: T.int32):
    for i, j in T.grid(n, 3):
        x[i, j] = x[i, j] * by + T.cast(n, "int32")
"""


def test_a_call_passes_the_sizes_it_can_prove():
    _, after = lowered(
        SCALE
        + """
@T.prim_func
def f(a: T.Buffer(("m", 3), "int32")):
    scale(a, 5)
"""
    )
    assert [function.name for function in after.functions] == ["scale", "f"]
    assert all(isinstance(param, Var) for function in after.functions for param in function.params)
    assert not any(function.sizes for function in after.functions)


def test_calls_give_the_same_results():
    found = results(
        SCALE
        + """
@T.prim_func
def f(a: T.Buffer(("m", 3), "int32")):
    scale(a, 5)
""",
        np.arange(12, dtype="int32").reshape(4, 3),
    )
    assert found[1][1, 0] == 3 * 5 + 4


def test_what_is_not_proven_is_checked_at_the_call():
    text = (
        SCALE
        + """
@T.prim_func
def f(a: T.Buffer(("m", "k"), "int32")):
    scale(a, 2)
"""
    )
    before, after = lowered(text)
    assert after.get("checked_scale") is not None
    good = [np.ones((2, 3), "int32")]
    assert same_outcome(outcome_of(before, "f", good), outcome_of(after, "f", good, [2, 3]))
    wrong = outcome_of(after, "f", [np.ones((2, 4), "int32")], [2, 4])
    assert "size of dimension 1 of `x` is 4, expected 3" in wrong[0]
    assert np.all(wrong[1] == 1)


def test_sizes_inside_expressions_are_solved():
    text = """
@T.prim_func(private=True)
def shift(x: T.Buffer(("n + 1",), "int32"), y: T.Buffer(("n",), "int32")):
    for i in range(n):
        y[i] = x[i + 1]

@T.prim_func
def f(a: T.Buffer((5,), "int32"), b: T.Buffer((4,), "int32")):
    shift(a, b)
"""
    found = results(text, np.arange(5, dtype="int32"), np.zeros(4, "int32"))
    assert found[2].tolist() == [1, 2, 3, 4]
    assert lowered(text)[1].get("checked_shift") is None


def test_a_size_that_a_call_does_not_say_is_refused():
    text = """
@T.prim_func(private=True)
def g(x: T.Buffer(("n * m",), "int32")):
    x[0] = T.cast(n, "int32")

@T.prim_func
def f(a: T.Buffer((6,), "int32")):
    g(a)
"""
    with pytest.raises(UserError, match="doesn't say what `n`") as caught:
        lowered(text)
    assert caught.value.code == "GM0606"


def test_recursion_and_results_survive():
    text = """
@T.prim_func(private=True)
def total(x: T.Buffer(("n",), "int64"), i: T.int64) -> T.int64:
    if i >= n:
        return T.int64(0)
    return x[i] + total(x, i + 1)

@T.prim_func
def f(a: T.Buffer(("n",), "int64")) -> T.int64:
    return total(a, T.int64(0))
"""
    assert results(text, np.arange(10, dtype="int64"))[0] == 45


def test_strided_arguments_pass_their_strides_or_are_refused():
    text = """
@T.prim_func(private=True)
def fill(x: T.Buffer((4, 4), "int32")):
    for i, j in T.grid(4, 4):
        x[i, j] = T.cast(i * 4 + j, "int32")

@T.prim_func
def f(a: T.Buffer((8, 8), "int32")):
    with T.block("b"):
        part = T.match_buffer(a[0:4, 0:4], (4, 4), "int32")
        fill(part)
"""
    from gristmill.passes.lower_blocks import LowerBlocks

    module = Pipeline.of([LowerBlocks(), LowerBufferArguments()]).run(kernels(text), RunOptions(verify=True))
    found = outcome_of(module, "f", [np.zeros((8, 8), "int32")])
    assert "stride of dimension 0 of `x` is 8, expected 4" in found[0]
