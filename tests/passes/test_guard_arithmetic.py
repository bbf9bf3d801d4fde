"""Division and shifts of machines where bounds prove that they are defined; nothing else."""

import numpy as np
import pytest

from gristmill.ir.expr import Call, Div, FloorDiv, FloorMod, Mod, ShiftLeft, ShiftRight
from gristmill.ir.functor import walk
from gristmill.passes.guard_arithmetic import GuardArithmetic
from gristmill.passes.manager import Pipeline, RunOptions
from gristmill.testing.pass_equivalence import check_pass, kernels, outcome_of, same_outcome

TOTAL = (Div, Mod, FloorDiv, FloorMod, ShiftLeft, ShiftRight)


def guarded(expression, dtype="int64"):
    """The names of partial operations, and the number of total ones, that an assignment has afterwards."""
    before = kernels(
        f"""
        @T.prim_func
        def f(a: T.Buffer((64,), "{dtype}"), b: T.Buffer((64,), "{dtype}"), n: T.{dtype}):
            for i in range(1, 60):
                v = T.cast(i, "{dtype}")
                b[i] = {expression}
        """
    )
    after = Pipeline.of([GuardArithmetic()]).run(before, RunOptions(verify=True))
    source = np.random.default_rng(1)
    corners = np.iinfo(dtype)
    values = source.choice(np.array([corners.min, corners.max, 0, 1, 2, 5, corners.max // 2], dtype), 64)
    for number in (0, 1, 3, corners.max, corners.min):
        args = [values, np.zeros(64, dtype), number]
        assert same_outcome(outcome_of(before, "f", args), outcome_of(after, "f", args))
    calls = [node.op.name for node in walk(after) if isinstance(node, Call)]
    return calls, sum(isinstance(node, TOTAL) for node in walk(after))


@pytest.mark.parametrize(
    ("expression", "calls", "total"),
    [
        ("a[i] // 7", [], 1),
        ("a[i] // n", [], 1),
        ("a[i] // 8", ["shift_right"], 0),
        ("a[i] % 8", [], 0),
        ("v // 7", ["quotient"], 0),
        ("v % 7", ["remainder"], 0),
        ("T.truncdiv(a[i], 7)", ["quotient"], 0),
        ("T.truncmod(a[i], 7)", ["remainder"], 0),
        ("T.truncdiv(a[i], -1)", [], 1),
        ("T.truncdiv(v, -1)", ["quotient"], 0),
        ("T.truncdiv(a[i], v)", ["quotient"], 0),
        ("T.truncdiv(a[i], v - 1)", [], 1),
        ("a[i] << 3", ["shift_left"], 0),
        ("a[i] << v", ["shift_left"], 0),
        ("a[i] << (v + 5)", [], 1),
        ("a[i] >> n", [], 1),
        ("a[i] >> (n & 31)", ["shift_right"], 0),
    ],
)
def test_int64(expression, calls, total):
    assert guarded(expression) == (calls, total)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint64"])
def test_results_stay(dtype):
    for expression in ("a[i] // 16", "a[i] % 16", "a[i] // v", "a[i] % v", "a[i] << (v & 7)", "a[i] >> 7", "a[i] // n"):
        guarded(expression, dtype)


def test_before_and_expected():
    check_pass(
        GuardArithmetic(),
        """
        gristmill ir 1

        function @f(a: int64[64], n: int64) {
          for i: int64 in 0 +: 64 {
            a[i] = a[i] // n + (i << 2) + i // 8
          }
        }
        """,
        """
        gristmill ir 1

        function @f(a: int64[64], n: int64) {
          for i: int64 in 0 +: 64 {
            a[i] = a[i] // n + shift_left(i, 2) + shift_right(i, 3)
          }
        }
        """,
    )
