"""The mathematical operations: near the exact value for ordinary operands, and as IEEE 754 says for the others."""

from __future__ import annotations

import math
import random

import mpmath
import numpy as np
import pytest

from gristmill.interp import Executor
from gristmill.ir import expr as e
from gristmill.ir.build import call
from gristmill.ir.dtype import BOOL, FLOAT32, FLOAT64, DType
from gristmill.ir.module import Function, FunctionFacts, Module
from gristmill.ir.stmt import Return

EXACT = {
    "exp": mpmath.exp, "exp2": lambda a: mpmath.power(2, a), "log": mpmath.log, "log2": lambda a: mpmath.log(a, 2),
    "sqrt": mpmath.sqrt, "rsqrt": lambda a: 1 / mpmath.sqrt(a), "sin": mpmath.sin, "cos": mpmath.cos,
    "tanh": mpmath.tanh, "sigmoid": lambda a: 1 / (1 + mpmath.exp(-a)),
}  # fmt: skip
POSITIVE = {"log", "log2", "sqrt", "rsqrt"}


def formula(name: str, dtype: DType, arity: int):
    params = tuple(e.Var(f"p{number}", dtype) for number in range(arity))
    value = call(name, *params)
    function = Function("formula", params, (), value.dtype, Return(value), FunctionFacts("formula"))
    executor = Executor(Module((function,)))
    return lambda *args: executor.call("formula", args).value


def step(value: float, dtype: DType) -> float:
    return float(np.spacing(np.abs(np.dtype(str(dtype)).type(value))))


@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT64], ids=str)
@pytest.mark.parametrize("name", sorted(EXACT))
def test_results_are_near_the_exact_value(name: str, dtype: DType) -> None:
    given = formula(name, dtype, 1)
    rng = random.Random(3)
    # A float32 comes from a double, so it is the nearest or, at a tie, beside it.
    allowed = 0.501 if dtype == FLOAT32 else 2.0
    with mpmath.workprec(200):
        for _ in range(300):
            a = rng.uniform(0.001, 60) if name in POSITIVE else rng.uniform(-20, 20)
            a = float(np.dtype(str(dtype)).type(a))
            found = given(a)
            error = abs(mpmath.mpf(found) - EXACT[name](mpmath.mpf(a)))
            assert error <= allowed * step(found, dtype), (name, a)


INFINITY, NAN = math.inf, math.nan
SPECIALS = {
    "exp": [(INFINITY, INFINITY), (-INFINITY, 0.0), (NAN, NAN), (1e5, INFINITY), (-1e5, 0.0), (0.0, 1.0)],
    "exp2": [(INFINITY, INFINITY), (-INFINITY, 0.0), (NAN, NAN), (5000.0, INFINITY), (-3.0, 0.125)],
    "log": [(0.0, -INFINITY), (-0.0, -INFINITY), (-1.0, NAN), (INFINITY, INFINITY), (-INFINITY, NAN), (NAN, NAN)],
    "log2": [(0.0, -INFINITY), (-0.0, -INFINITY), (-1.0, NAN), (INFINITY, INFINITY), (8.0, 3.0), (NAN, NAN)],
    "sqrt": [(0.0, 0.0), (-0.0, -0.0), (-1.0, NAN), (INFINITY, INFINITY), (-INFINITY, NAN), (NAN, NAN)],
    "rsqrt": [(0.0, INFINITY), (-0.0, -INFINITY), (-1.0, NAN), (INFINITY, 0.0), (-INFINITY, NAN), (NAN, NAN)],
    "sin": [(INFINITY, NAN), (-INFINITY, NAN), (NAN, NAN), (-0.0, -0.0)],
    "cos": [(INFINITY, NAN), (-INFINITY, NAN), (NAN, NAN), (0.0, 1.0)],
    "tanh": [(INFINITY, 1.0), (-INFINITY, -1.0), (NAN, NAN), (-0.0, -0.0)],
    "sigmoid": [(INFINITY, 1.0), (-INFINITY, 0.0), (NAN, NAN), (0.0, 0.5), (-1e4, 0.0)],
    "floor": [(-0.0, -0.0), (-0.5, -1.0), (0.5, 0.0), (INFINITY, INFINITY), (NAN, NAN), (1e30, 1e30)],
    "ceil": [(-0.0, -0.0), (-0.5, -0.0), (0.5, 1.0), (-INFINITY, -INFINITY), (NAN, NAN)],
    "round": [(0.5, 0.0), (1.5, 2.0), (2.5, 2.0), (-0.5, -0.0), (-1.5, -2.0), (-0.3, -0.0), (INFINITY, INFINITY)],
    "trunc": [(-0.5, -0.0), (1.9, 1.0), (-1.9, -1.0), (NAN, NAN), (INFINITY, INFINITY)],
    "isnan": [(NAN, True), (INFINITY, False), (1.0, False)],
    "isinf": [(NAN, False), (INFINITY, True), (-INFINITY, True), (1e300, False)],
    "isfinite": [(NAN, False), (INFINITY, False), (-INFINITY, False), (1e300, True)],
}
PAIRS = {
    "pow": [
        (2.0, 10.0, 1024.0), (0.0, -1.0, INFINITY), (-0.0, -1.0, -INFINITY), (-0.0, -3.0, -INFINITY),
        (-0.0, -2.0, INFINITY), (0.0, -0.5, INFINITY), (-0.0, -0.5, INFINITY), (-0.0, 3.0, -0.0), (-0.0, 2.0, 0.0),
        (-1.0, INFINITY, 1.0), (-1.0, -INFINITY, 1.0), (1.0, NAN, 1.0), (NAN, 0.0, 1.0), (-8.0, 1 / 3, NAN),
        (0.5, INFINITY, 0.0), (0.5, -INFINITY, INFINITY), (2.0, -INFINITY, 0.0), (-INFINITY, 3.0, -INFINITY),
        (-INFINITY, 2.0, INFINITY), (-INFINITY, -3.0, -0.0), (INFINITY, -1.0, 0.0), (-10.0, 401.0, -INFINITY),
        (10.0, 400.0, INFINITY), (-10.0, 400.0, INFINITY), (NAN, 1.0, NAN), (0.0, -INFINITY, INFINITY),
    ],
    "fmod": [
        (5.5, 2.0, 1.5), (-5.5, 2.0, -1.5), (5.5, -2.0, 1.5), (1.0, 0.0, NAN), (INFINITY, 2.0, NAN),
        (2.0, INFINITY, 2.0), (-0.0, 2.0, -0.0), (NAN, 1.0, NAN), (1.0, NAN, NAN), (4.0, 2.0, 0.0), (-4.0, 2.0, -0.0),
        (1e300, 3.0, 2.0),
    ],
}  # fmt: skip


def is_same(found: object, expected: object) -> bool:
    if isinstance(expected, bool):
        return found is expected
    assert isinstance(found, float)
    assert isinstance(expected, float)
    return (found != found and expected != expected) or (
        found == expected and math.copysign(1, found) == math.copysign(1, expected)
    )


@pytest.mark.parametrize("name", sorted(SPECIALS))
def test_special_operands(name: str) -> None:
    given = formula(name, FLOAT64, 1)
    for a, expected in SPECIALS[name]:
        assert is_same(given(a), expected), (name, a)


@pytest.mark.parametrize("name", sorted(PAIRS))
def test_special_pairs_of_operands(name: str) -> None:
    given = formula(name, FLOAT64, 2)
    for a, b, expected in PAIRS[name]:
        if (a, b) == (1e300, 3.0):
            expected = math.fmod(a, b)
        assert is_same(given(a, b), expected), (name, a, b)


def test_remainders_of_float32_are_exact() -> None:
    given = formula("fmod", FLOAT32, 2)
    rng = np.random.default_rng(4)
    values = rng.normal(size=(400, 2)).astype(np.float32) * np.float32(2.0) ** rng.integers(-40, 40, (400, 2)).astype(
        np.float32
    )
    for a, b in values:
        assert given(a, b) == float(np.fmod(a, b))


def test_likely_is_its_operand() -> None:
    flag = e.Var("flag", BOOL)
    function = Function("f", (flag,), (), BOOL, Return(call("likely", flag)), FunctionFacts("f"))
    assert Executor(Module((function,))).call("f", [True]).value is True
