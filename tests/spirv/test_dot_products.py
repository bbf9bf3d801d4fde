"""Sums of products of bytes on Vulkan: plain code, or an instruction where the target states it; the executor's results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gristmill.interp import Executor

SOURCE = """
@T.prim_func
def f(x: T.Buffer(("n",), "{word}"), y: T.Buffer(("n",), "{word}"), out: T.Buffer(("n",), "{word}")):
    T.func_attr({{"noalias": True}})
    for i in range(n):
        out[i] = T.dp4a(x[i], y[i], out[i])
"""


@pytest.mark.parametrize("target", ["vulkan", "vulkan:1.3+dot_product", "vulkan:1.3+address+dot_product"])
@pytest.mark.parametrize("word", ["int32", "uint32"])
def test_it_gives_what_the_executor_gives(
    word: str, target: str, parsed: Callable[..., Any], on_vulkan: Callable[..., Any]
) -> None:
    module = parsed(SOURCE.format(word=word))
    random, info = np.random.default_rng(4), np.iinfo(word)
    given = [random.integers(info.min, info.max, 300, word, endpoint=True) for _ in range(3)]
    given[0][:2], given[1][:2] = info.min, info.min
    expected = [array.copy() for array in given]
    Executor(module).call("f", expected)
    on_vulkan(target)(module, "f", given)
    np.testing.assert_array_equal(given[2], expected[2])


MIXED = """
@T.prim_func
def f(x: T.Buffer(("n",), "int32"), y: T.Buffer(("n",), "uint32"), out: T.Buffer(("n",), "int32")):
    T.func_attr({"noalias": True})
    for i in range(n):
        out[i] = T.dp4a(x[i], y[i], out[i])
"""
CORNERS = (0, 1, 127, 128, 129, 254, 255)


@pytest.mark.parametrize("target", ["vulkan", "vulkan:1.3+dot_product", "vulkan:1.3+address+dot_product"])
def test_signed_by_unsigned_bytes(target: str, parsed: Callable[..., Any], on_vulkan: Callable[..., Any]) -> None:
    module = parsed(MIXED)
    words = np.array([a | b << 8 | a << 16 | (255 - b) << 24 for a in CORNERS for b in CORNERS], np.uint32)
    x, y = np.repeat(words, len(words)).view(np.int32), np.tile(words, len(words))
    given = [x, y, np.random.default_rng(5).integers(-(1 << 31), 1 << 31, len(x)).astype(np.int32)]
    expected = [array.copy() for array in given]
    Executor(module).call("f", expected)
    products = x.view(np.int8).reshape(-1, 4).astype(np.int64) * y.view(np.uint8).reshape(-1, 4)
    exact = products.sum(1) + given[2]
    on_vulkan(target)(module, "f", given)
    np.testing.assert_array_equal(given[2], expected[2])
    np.testing.assert_array_equal(given[2], exact.astype(np.uint64).astype(np.int32))


@pytest.mark.parametrize(("word", "op"), [("int32", "OpSDot"), ("uint32", "OpUDot"), ("mixed", "OpSUDot")])
def test_the_instruction_is_there_where_the_target_states_it(
    word: str, op: str, parsed: Callable[..., Any], written: Callable[..., Any], disassembled: Callable[..., Any]
) -> None:
    module = parsed(MIXED if word == "mixed" else SOURCE.format(word=word))
    found = written(module, "vulkan:1.3+dot_product")
    assert "dot_product" in found.features
    assert any(op in line for line in disassembled(found.data))
    plain = written(module, "vulkan:1.3")
    assert "dot_product" not in plain.features
    assert not any("Dot" in line for line in disassembled(plain.data))
