"""fmod of float64, a loop, on the executor against the C library's (which is exact), scalar and in lanes."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from gristmill.interp import Executor
from gristmill.ir.dtype import FLOAT64, HANDLE, INT64, VOID, DType
from gristmill.ir.expr import CallFunction, IntImm, Load, Ramp, Var
from gristmill.ir.memory import Buffer, PointerType
from gristmill.ir.module import Function, FunctionFacts, Module
from gristmill.ir.stmt import For, LoopKind, Store
from gristmill.ir.verify import verify
from gristmill.mathlib import function_for

SPECIAL = [0.0, 5e-324, 1.5e-323, 2.2250738585072009e-308, 2.2250738585072014e-308, 1e-300, 0.1, 1.0, 1.5, 3.0]
SPECIAL += [2.0**52, 2.0**53 - 1, 1e22, 1.7976931348623157e308, math.inf, math.nan]
SPECIAL += [-value for value in SPECIAL]


def pairs(seed: int) -> tuple[np.ndarray, np.ndarray]:
    print(f"seed {seed}")
    random = np.random.default_rng(seed)
    special = np.array(list(itertools.product(SPECIAL, repeat=2)))
    bits = random.integers(0, 1 << 64, (400, 2), np.uint64, endpoint=False).view(np.float64)
    near = random.normal(size=(400, 2)) * 2.0 ** random.integers(-30, 30, (400, 2))
    whole = np.floor(random.normal(size=(400, 1)) * 100) * [[7.0, 7.0]] * [[1.0, 0.0]] + [[0.0, 7.0]]
    a, b = np.concatenate([special, bits, near, whole]).T
    size = len(a) // 8 * 8
    return a[:size].copy(), b[:size].copy()


def remainder(a: float, b: float) -> float:
    return math.nan if math.isinf(a) or b == 0 or math.isnan(a) else math.fmod(a, b)


def results(dtype: DType, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Of a loop over the arrays that calls the library's function."""
    function = function_for("fmod", dtype)
    assert function is not None
    size = Var("n", INT64)
    buffers = [Buffer(name, FLOAT64, (size,), Var(f"{name}_data", HANDLE, PointerType(FLOAT64))) for name in "abc"]
    i, lanes = Var("i", INT64), dtype.lanes
    index = i if lanes == 1 else Ramp(i * lanes, IntImm(1, INT64), lanes)
    value = CallFunction(function.name, tuple(Load(buffer, (index,)) for buffer in buffers[:2]), dtype)
    count = IntImm(len(a) // lanes, INT64)
    loop = For(i, IntImm(0, INT64), count, LoopKind.SERIAL, Store(buffers[2], (index,), value))
    main = Function(
        "main", tuple(buffers), (size,), VOID, loop, FunctionFacts(symbol="main", signature="main(a, b, c)")
    )
    module = Module((main, function))
    assert [found.message for found in verify(module)] == []
    found = np.zeros_like(a)
    Executor(module).call("main", [a, b, found])
    return found


@pytest.mark.parametrize("dtype", [FLOAT64, FLOAT64.with_lanes(4), FLOAT64.with_lanes(8)], ids=str)
def test_fmod_of_float64_is_exact(dtype: DType):
    a, b = pairs(int(np.random.SeedSequence().entropy) % (1 << 32))
    found = results(dtype, a, b)
    wanted = np.array([remainder(x, y) for x, y in zip(a.tolist(), b.tolist(), strict=True)])
    is_same = (found.view(np.uint64) == wanted.view(np.uint64)) | (np.isnan(found) & np.isnan(wanted))
    assert is_same.all(), f"fmod({a[~is_same][0]!r}, {b[~is_same][0]!r}) = {found[~is_same][0]!r}"
    assert np.count_nonzero(wanted == 0) > 300
    assert np.count_nonzero(np.isnan(wanted)) > 100
