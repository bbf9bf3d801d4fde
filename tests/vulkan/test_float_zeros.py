"""Arithmetic with the constants 0.0 and -0.0: drivers that think they know the result are not let know the constant."""

from __future__ import annotations

import numpy as np
import pytest

from gristmill.interp import Executor
from gristmill.ir.parser import parse_module
from gristmill.script import parse_source
from gristmill.testing.on_device import DeviceBackend
from gristmill.testing.programs.comparison import bits

pytestmark = pytest.mark.usefixtures("validation")
FORMS = ["x[i] + {}", "x[i] - {}", "{} - x[i]", "x[i] * {}", "{} / x[i]", "x[i] / {}"]
HEAD = """from gristmill.script import tir as T

@T.prim_func
def f(x: T.Buffer((11,), "{dtype}"), y: T.Buffer((13, 11), "{dtype}")):
    for i in range(11):
"""
SUM = """
        total = T.{dtype}(0)
        for k in range(2):
            total = total + x[i]
        y[12, i] = total
"""
VALUES = [1, -1, 0.0, -0.0, -0.3, 6e-8, np.inf, -np.inf, np.nan, 65504, 5e-5]


# With float controls and without.
BACKENDS = {
    "plain": ("vulkan+float64", 0),
    "optimized": ("vulkan+float64", 3),
    "address": ("vulkan:1.2+float64+address", 3),
}


@pytest.fixture(scope="module", params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> DeviceBackend:
    target, optimization = BACKENDS[request.param]
    return DeviceBackend(target, "vulkan:0", optimization=optimization)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_zeros_as_operands(backend: DeviceBackend, dtype: str) -> None:
    zeros = [f"T.{dtype}({zero})" for zero in ("0.0", "-0.0")]
    lines = [form.format(zero) for form in FORMS for zero in zeros]
    body = "\n".join(f"        y[{row}, i] = {line}" for row, line in enumerate(lines))
    module = parse_source(HEAD.format(dtype=dtype) + body + SUM.format(dtype=dtype), "zeros.py").module
    x = np.array(VALUES, _numpy_type(dtype))
    expected, found = [x, np.zeros((13, 11), x.dtype)], [x.copy(), np.zeros((13, 11), x.dtype)]
    Executor(module).call("f", expected)
    backend(module, "f", found)
    wrong = np.argwhere(bits(expected[1]) != bits(found[1]))
    assert not len(wrong), [((*lines, "a sum")[row], str(x[place])) for row, place in wrong]


def _numpy_type(dtype: str) -> np.dtype:
    if dtype == "bfloat16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(dtype)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_zeros_that_a_driver_finds_out(backend: DeviceBackend, dtype: str) -> None:
    source = f"""from gristmill.script import tir as T

@T.prim_func
def f(x: T.Buffer((11,), "{dtype}"), p: T.int32, q: T.bool, y: T.Buffer((8, 11), "{dtype}")):
    for i in range(11):
        none = T.Cast("{dtype}", p ^ p)
        y[0, i] = x[i] + none
        y[1, i] = x[i] / none
        y[2, i] = none / x[i]
        y[3, i] = x[i] * none
        y[4, i] = none / none
        y[5, i] = x[i] / T.Cast("{dtype}", q ^ q)
        for k in range(2):
            y[6 + k, i] = x[i] * T.Cast("{dtype}", k)
"""
    module = parse_source(source, "found.py").module
    x = np.array(VALUES, dtype)
    expected, found = [x, 5, True, np.zeros((8, 11), dtype)], [x.copy(), 5, True, np.zeros((8, 11), dtype)]
    Executor(module).call("f", expected)
    backend(module, "f", found)
    wrong = np.argwhere(bits(expected[3]) != bits(found[3]))
    assert not len(wrong), [(int(row), str(x[place])) for row, place in wrong]


CONSTANTS = """gristmill ir 1

function @f(x: float{bits}[11], y: float{bits}[3, 11])
  symbol "f"
  signature "f(...)"
{{
  for i: int64 in 0 +: 11 {{
    y[0, i] = x[i] / floor(0.25f{bits})
    y[1, i] = x[i] + (0.25f{bits} - 0.25f{bits})
    y[2, i] = x[i] * float{bits}(1e-320f64)
  }}
}}
"""


@pytest.mark.parametrize("bits_", [16, 32, 64])
def test_zeros_that_come_of_constants(backend: DeviceBackend, bits_: int) -> None:
    """As they are where no pass has worked them out."""
    module = parse_module(CONSTANTS.format(bits=bits_))
    x = np.array(VALUES, f"float{bits_}")
    expected, found = [x, np.zeros((3, 11), x.dtype)], [x.copy(), np.zeros((3, 11), x.dtype)]
    Executor(module).call("f", expected)
    backend(module, "f", found)
    wrong = np.argwhere(bits(expected[1]) != bits(found[1]))
    assert not len(wrong), [(int(row), str(x[place])) for row, place in wrong]


ENDS = """gristmill ir 1

function @some(number: float32) -> float32 {
}

function @f(x: float32[11], y: float32[11])
  symbol "f"
  signature "f(...)"
{
  for i: int64 in 0 +: 11 {
    y[i] = x[i] / @some(x[i]) as float32
  }
}
"""


def test_what_a_function_gives_back_that_ends_without_saying(backend: DeviceBackend) -> None:
    module = parse_module(ENDS)
    x = np.array(VALUES, np.float32)
    expected, found = [x, np.zeros(11, x.dtype)], [x.copy(), np.zeros(11, x.dtype)]
    Executor(module).call("f", expected)
    backend(module, "f", found)
    np.testing.assert_array_equal(bits(expected[1]), bits(found[1]))
