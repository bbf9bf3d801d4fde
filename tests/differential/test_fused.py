"""fma of both types and fmod of float64 through the whole chain, on CPUs with and without the instruction.

The compiled code, the executor and the exact results agree bit for bit.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from gristmill.interp import Executor
from gristmill.ir.dtype import FLOAT32, FLOAT64, DType
from gristmill.ir.module import Module
from gristmill.script import parse_source
from gristmill.testing.compiled import CompiledBackend
from gristmill.testing.fused import exact_fma_of, random_triples, special_triples, special_values

COUNT = 50_000
TARGETS = ["cpu:x86-64-v2", "cpu:x86-64-v3"]
LANES = 8
Arrays = tuple[np.ndarray, ...]


def kernels(dtype: DType, value: str, params: str) -> Module:
    """``one`` with a plain loop and ``many`` with vectors, of the arrays ``params`` into ``out``."""
    shown = ", ".join(f'{name}: T.Buffer(("n",), "{dtype}")' for name in [*params, "out"])
    plain, lanes = (value.format(*(f"{name}[{index}]" for name in params)) for index in ("i", f"i * {LANES} + j"))
    text = f"""
from gristmill.script import tir as T

@T.prim_func
def one({shown}):
    for i in range(n):
        out[i] = {plain}

@T.prim_func
def many({shown}):
    for i in range(n // {LANES}):
        for j in T.vectorized({LANES}):
            out[i * {LANES} + j] = {lanes}
"""
    return parse_source(text, "fused.py").module


def cut(arrays: Arrays) -> Arrays:
    size = len(arrays[0]) // LANES * LANES
    return tuple(array[:size].copy() for array in arrays)


def check(module: Module, run, arrays: Arrays, wanted: np.ndarray) -> None:
    for name in ("one", "many"):
        out = np.zeros_like(wanted)
        run(module, name, [*arrays, out])
        bits = f"u{out.itemsize}"
        wrong = ~((out.view(bits) == wanted.view(bits)) | (np.isnan(out) & np.isnan(wanted)))
        shown = [float(values[wrong][0]).hex() for values in (*arrays, out, wanted)] if wrong.any() else []
        assert not wrong.any(), f"{name}: operands, result, wanted: {shown}"


def execute(module: Module, name: str, args: list[np.ndarray]) -> None:
    Executor(module).call(name, args)


@pytest.fixture(scope="module")
def seed() -> int:
    found = int(np.random.SeedSequence().entropy) % (1 << 32)
    print(f"seed {found}")
    return found


@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT64], ids=str)
def test_fma_is_exact_everywhere(dtype: DType, seed: int) -> None:
    parts = zip(special_triples(dtype), random_triples(dtype, seed, COUNT), strict=True)
    arrays = cut(tuple(np.concatenate(part) for part in parts))
    wanted = exact_fma_of(*arrays, dtype)
    module = kernels(dtype, "T.fma({}, {}, {})", "abc")
    for target in TARGETS:
        for optimization in (0, 3):
            check(module, CompiledBackend(target, optimization=optimization), arrays, wanted)
    # One value at a time is slow: a part of them.
    some = cut(tuple(array[seed % 7 :: 7] for array in arrays))
    check(module, execute, some, exact_fma_of(*some, dtype))


def test_fmod_of_float64_is_exact_everywhere(seed: int) -> None:
    random = np.random.default_rng(seed)
    special = np.array(np.meshgrid(special_values(FLOAT64), special_values(FLOAT64))).reshape(2, -1)
    bits = random.integers(0, 1 << 64, (2, 4000), np.uint64).view(np.float64)
    near = random.normal(size=(2, 4000)) * 2.0 ** random.integers(-40, 40, (2, 4000))
    a, b = cut(tuple(np.concatenate([special, bits, near], 1)))
    undefined = np.isinf(a) | np.isnan(a) | (b == 0)
    wanted = np.array([math.nan if u else math.fmod(x, y) for x, y, u in zip(a, b, undefined, strict=True)])
    module = kernels(FLOAT64, "T.fmod({}, {})", "ab")
    for target in TARGETS:
        for optimization in (0, 3):
            check(module, CompiledBackend(target, optimization=optimization), (a, b), wanted)
    check(module, execute, (a, b), wanted)
