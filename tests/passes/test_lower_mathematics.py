"""Mathematics that is not native becomes calls of library functions, which come into the module once each."""

import numpy as np

from gristmill.ir.dtype import FLOAT32, FLOAT64, INT32
from gristmill.ir.expr import Call, Expr
from gristmill.ir.functor import walk
from gristmill.ir.target import Target
from gristmill.passes.lower_mathematics import LowerMathematics
from gristmill.passes.manager import Pipeline, RunOptions
from gristmill.plugin.artifacts import Capabilities
from gristmill.plugin.protocols import PassContext
from gristmill.testing.pass_equivalence import kernels, outcome_of

TEXT = """
@T.prim_func
def f(a: T.Buffer((8,), "float32")):
    for i in range(8):
        a[i] = T.exp(a[i]) + T.exp(T.sqrt(a[i])) + T.exp(a[i] - 1.0)
"""


def lowered(text, native=("sqrt",)):
    return Pipeline.of([LowerMathematics(native)]).run(kernels(text), RunOptions(verify=True))


def test_each_library_function_comes_once_and_private():
    module = lowered(TEXT)
    assert [function.name for function in module.functions] == ["f", "math_exp_float32"]
    assert not module.functions[1].is_public
    assert {node.op.name for node in walk(module.functions[0]) if isinstance(node, Call)} == {"sqrt"}


def test_results_are_within_a_few_ulp():
    args = [np.linspace(0.1, 3, 8, dtype="float32")]
    expected = outcome_of(kernels(TEXT), "f", args)[1]
    found = outcome_of(lowered(TEXT), "f", args)[1]
    assert np.all(np.abs(found - expected) <= 8 * np.spacing(expected))


def test_native_operations_stay():
    module = kernels(TEXT)
    assert LowerMathematics(("exp", "sqrt")).run(module) is module


def test_a_function_of_the_user_keeps_its_name():
    module = lowered(
        """
@T.prim_func(private=True)
def math_exp_float32(x: T.float32) -> T.float32:
    return x

@T.prim_func
def f(a: T.Buffer((8,), "float32")):
    a[0] = T.exp(a[1]) + math_exp_float32(a[2])
"""
    )
    assert [function.name for function in module.functions] == ["math_exp_float32", "f", "math_exp_float32_2"]


def test_the_native_operations_come_from_the_target():
    context = PassContext(Target("cpu"), Capabilities(native_operations=frozenset({"sqrt", "popcount"})))
    assert LowerMathematics.values_for(context) == {"native": ("sqrt",), "float64": True}


def test_fma_of_float32_uses_float64_only_where_the_target_has_it():
    text = """
@T.prim_func
def f(a: T.Buffer((8,), "float32")):
    for i in range(8):
        a[i] = T.fma(a[i], a[i], a[i])
"""
    for dtypes, is_used in (({FLOAT32, INT32}, False), ({FLOAT32, FLOAT64}, True)):
        context = PassContext(Target("cpu"), Capabilities(dtypes=frozenset(dtypes)))
        module = Pipeline.of([LowerMathematics(**LowerMathematics.values_for(context))]).run(
            kernels(text), RunOptions(verify=True)
        )
        types = {node.dtype for node in walk(module.get("math_fma_float32").body) if isinstance(node, Expr)}
        assert (FLOAT64 in types) is is_used
        args = [np.linspace(-3, 3, 8, dtype="float32")]
        assert np.array_equal(outcome_of(module, "f", args)[1], outcome_of(kernels(text), "f", args)[1])
