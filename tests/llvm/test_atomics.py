"""Atomic operations on the CPU: what the executor gives, in no call of a library, and whole beside other threads."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from gristmill.interp import execute
from gristmill.ir.target import parse_target
from gristmill.objfile.summary import describe
from gristmill.passes.manager import RunOptions
from gristmill.passes.pipeline import build_pipeline
from gristmill.plugin.protocols import GenerateOptions, PassContext
from gristmill.plugin.registry import Registry
from gristmill.script import parse_source
from gristmill_llvm.cpu import CPU
from gristmill_llvm.generator import LLVMGenerator

SEED = 41
INTEGERS = ("add", "sub", "min", "max", "and", "or", "xor", "exchange")
FLOATS = ("add", "sub", "exchange")


def source(dtype: str) -> str:
    names = FLOATS if dtype.startswith("float") else INTEGERS
    lines = [f"        out[i, {place}] = T.atomic_{name}(x[{place}, k[i]], y[i])" for place, name in enumerate(names)]
    if dtype not in ("float32", "float64"):
        lines.append("        out[i, 8] = T.atomic_compare_exchange(x[8, k[i]], y[i], y[i] + 1)")
    return f"""from gristmill.script import tir as T

@T.prim_func
def f(x: T.Buffer((10, 4), "{dtype}"), k: T.Buffer(("n",), "int32"), y: T.Buffer(("n",), "{dtype}"),
      out: T.Buffer(("n", 10), "{dtype}")):
    for i in range(n):
""" + "\n".join([*lines, "        out[i, 9] = T.atomic_load(x[9, k[i]])", "        T.atomic_store(x[9, k[i]], y[i])\n"])


def lowered(text: str, host: str = "cpu:x86-64-v2", optimization: int = 3):
    module = parse_source(text, "kernel.py").module
    target = CPU.resolve(parse_target(host))
    context = PassContext(target, CPU.capabilities(target), {"optimization": optimization, "fast_math": False})
    return module, build_pipeline(context, Registry.installed().pass_entries()).run(module, RunOptions(verify=True))


@pytest.mark.parametrize("optimization", [0, 3])
@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64", "uint64", "float32", "float64"])
def test_each_operation_gives_what_the_executor_gives(compile_module, dtype: str, optimization: int) -> None:
    module, code = lowered(source(dtype), optimization=optimization)
    random = np.random.default_rng(SEED)
    kind = np.dtype(dtype)
    low, high = (-100, 100) if kind.kind == "f" else (np.iinfo(kind).min, np.iinfo(kind).max)

    def numbers(*shape: int) -> np.ndarray:
        if kind.kind == "f":
            return random.uniform(low, high, shape).astype(kind)
        return random.integers(low, high, shape, kind, endpoint=True)

    given = [numbers(10, 4), random.integers(0, 4, 60, np.int32), numbers(60), np.zeros((60, 10), kind)]
    given[2][::3] = given[0][8, 0]
    expected = [array.copy() for array in given]
    with np.errstate(all="ignore"):
        execute(module, "f", expected)
    compile_module(code.functions, "cpu:x86-64-v2", optimization=optimization).packed("f")(*given)
    for found, wanted in zip(given, expected, strict=True):
        np.testing.assert_array_equal(found, wanted, err_msg=f"seed {SEED}")


@pytest.mark.parametrize("dtype", ["int64", "float32", "float64"])
def test_the_code_of_no_machine_calls_a_library(dtype: str) -> None:
    for target in ("cpu:x86-64-v2", "cpu:x86-64-v4"):
        _, code = lowered(source(dtype), target)
        options = GenerateOptions(texts=frozenset(("assembly",)))
        (blob,) = LLVMGenerator().generate(code, CPU.resolve(parse_target(target)), options)
        assert "__atomic" not in dict(blob.texts)["assembly"]
        assert "outline" not in dict(blob.texts)["assembly"]
        assert not [name for name in describe(blob.data).imports if "TVMFFI" not in name]


def test_threads_lose_nothing(compile_module) -> None:
    text = """from gristmill.script import tir as T

@T.prim_func
def f(n: T.Buffer((1,), "int64"), s: T.Buffer((1,), "float64"), taken: T.Buffer((80000,), "int32")):
    T.func_attr({"release_gil": True})
    for i in range(20000):
        place = T.atomic_add(n[0], 1)
        T.atomic_add(taken[place], 1)
        T.atomic_add(s[0], 0.5)
"""
    _, code = lowered(text)
    run = compile_module(code.functions, "cpu:x86-64-v2").packed("f")
    n, s, taken = np.zeros(1, np.int64), np.zeros(1), np.zeros(80000, np.int32)
    threads = [threading.Thread(target=run, args=(n, s, taken)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert n[0] == 80000
    assert s[0] == 40000
    assert taken.tolist() == [1] * 80000
