"""Neighbouring elements are accessed at once where alignment is promised and the index is a multiple; results stay."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gristmill.interp import Executor
from gristmill.ir import expr as e
from gristmill.ir.build import const
from gristmill.ir.dtype import FLOAT32, INT64, SCALARS, DType
from gristmill.runtime.arrays import numpy_dtype
from gristmill.runtime.dlpack import tensor_over
from gristmill.testing.programs.comparison import bits
from gristmill_spirv.vectors import divisor

TARGETS = ("vulkan+float64", "vulkan:1.2+address+float64")
SOURCE = """@T.prim_func
def f(x: T.Buffer((256,), "{dtype}", align={align}), y: T.Buffer((256,), "{dtype}", align={align})):
    for i in T.thread_binding({threads}, thread="threadIdx.x"):
        for k in T.vectorized({lanes}):
            y[{index} + k] = x[{index} + k]
"""


def source(dtype: str, lanes: int, align: int = 16, index: str = "", threads: int = 16) -> str:
    return SOURCE.format(dtype=dtype, lanes=lanes, align=align, index=index or f"i * {lanes}", threads=threads)


def accesses(lines: list[str]) -> list[int]:
    """How many bytes each access of memory that is not the thread's own has."""
    sizes: dict[str, int] = {}
    pointers: dict[str, str] = {}
    values: dict[str, str] = {}
    found = []
    for line in lines:
        words = line.split()
        if "OpTypeInt" in words or "OpTypeFloat" in words:
            sizes[words[0]] = int(words[3]) // 8
        elif "OpTypeVector" in words:
            sizes[words[0]] = sizes[words[3]] * int(words[4])
        elif "OpTypePointer" in words and words[3] in ("StorageBuffer", "PhysicalStorageBuffer"):
            pointers[words[0]] = words[4]
        elif ("OpAccessChain" in words or "OpConvertUToPtr" in words) and words[3] in pointers:
            values[words[0]] = pointers[words[3]]
        elif "OpLoad" in words and words[4] in values:
            found.append(sizes[words[3]])
        elif words[0] == "OpStore" and words[1] in values:
            found.append(sizes[values[words[1]]])
    return found


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (source("float32", 4), [16, 16]),
        (source("float32", 2), [8, 8]),
        (source("float32", 8), [16] * 4),
        (source("int64", 2), [16, 16]),
        (source("float16", 4), [8, 8]),
        (source("float16", 8), [16, 16]),
        (source("bfloat16", 2), [4, 4]),
        (source("int8", 4), [4, 4]),
        (source("float32", 4, align=8), [8] * 4),
        (source("float32", 4, align=4), [4] * 8),
        (source("float32", 4, index="i * 6"), [8] * 4),
        (source("float32", 4, index="i * 4 + 1"), [4] * 8),
        (source("float32", 4, index="i * 4 + 8"), [16] * 2),
        (source("float32", 4, index="i * 2 * 2"), [16] * 2),
        (source("float32", 3, index="i * 4"), [4] * 6),
    ],
)
def test_how_many_bytes_are_accessed_at_once(
    target: str,
    text: str,
    expected: list[int],
    parsed: Callable[..., Any],
    written: Callable[..., Any],
    disassembled: Callable[..., list[str]],
) -> None:
    assert accesses(disassembled(written(parsed(text), target).data)) == expected


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("lanes", [4, 16])
@pytest.mark.parametrize("dtype", SCALARS, ids=str)
def test_results(
    dtype: DType, lanes: int, target: str, parsed: Callable[..., Any], on_vulkan: Callable[..., Any]
) -> None:
    module = parsed(source(str(dtype), lanes))
    x = np.random.default_rng(5).integers(0, 2 if dtype.is_bool else 100, 256).astype(numpy_dtype(dtype))
    expected, given = [x, np.zeros_like(x)], [x, np.zeros_like(x)]
    Executor(module).call("f", expected)
    on_vulkan(target)(module, "f", given)
    np.testing.assert_array_equal(bits(given[1]), bits(expected[1]))


@pytest.mark.parametrize("target", TARGETS)
def test_views_that_start_later_are_right(
    target: str, parsed: Callable[..., Any], on_vulkan: Callable[..., Any]
) -> None:
    """A view by 16 bytes keeps the promise; one by 4 is refused when called."""
    run = on_vulkan(target)
    pack = run.pack(parsed(source("float32", 4).replace("256", '"n"')))
    values = np.arange(300, dtype=np.float32)
    whole, found = run.device.array(values), run.device.empty((256,), "float32")
    start = run.device.memory_of(whole).address
    pack.f(tensor_over(start + 32, (256,), FLOAT32, (7, 0), whole), found)
    np.testing.assert_array_equal(found.numpy()[:64], values[8:72])
    with pytest.raises(ValueError, match="not aligned to 16 bytes"):
        pack.f(tensor_over(start + 4, (256,), FLOAT32, (7, 0), whole), found)


def test_what_divides_an_index() -> None:
    i, j = e.Var("i", INT64), e.Var("j", INT64)
    four, six = const(4, INT64), const(6, INT64)
    bindings: dict[e.Var, e.Expr] = {j: e.Mul(i, four)}
    cases = {
        1: [i, e.Add(j, i), e.Add(j, const(1, INT64)), e.FloorDiv(j, four)],
        2: [six, e.Add(j, six), e.Mul(i, six)],
        4: [j, e.Add(j, four), e.Sub(four, j), e.FloorMod(j, four), e.Select(e.Less(i, j), j, four)],
        8: [e.Mul(j, six), e.ShiftLeft(i, const(3, INT64))],
        16: [const(0, INT64), e.Mul(j, j), e.ShiftLeft(j, const(40, INT64))],
    }
    for power, nodes in cases.items():
        for node in nodes:
            assert divisor(node, bindings) == power, node
