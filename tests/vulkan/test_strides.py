"""Arrays with strides that only the program knows, as a Vulkan device sees them: the elements are those of the language."""

from __future__ import annotations

import numpy as np
import pytest

from gristmill.interp import Executor
from gristmill.script import parse_source
from gristmill.testing.on_device import DeviceBackend

pytestmark = pytest.mark.usefixtures("validation")

SOURCE = """from gristmill.script import tir as T

@T.prim_func
def f(x: T.Buffer(("n",), "int32"), y: T.Buffer(("h", "w"), "int32"), s: T.int64, t: T.int64, first: T.int64):
    seen = T.decl_buffer((h, w), "int32", data=x.data, strides=(s, t), elem_offset=first)
    for i, j in T.grid(h, w):
        y[i, j] = seen[i, j] * 2 + 1
        seen[i, j] = T.int32(i) - T.int32(j)

@T.prim_func
def g(x: T.Buffer(("n", 4), "float16"), y: T.Buffer(("n", 4), "float16"), s: T.int32):
    seen = T.decl_buffer((n * 2, 2), "float16", data=x.data, strides=(T.int64(s), 1))
    for i in range(n * 2):
        y[i // 2, i % 2 * 2] = seen[i, 0]
        y[i // 2, i % 2 * 2 + 1] = seen[i, 1]
"""
LAYOUTS = ((7, 1, 0), (1, 5, 3), (12, 2, 1), (-7, 1, 28), (-1, -5, 24))
"""Strides and offset of five rows of four elements, or of five columns of them."""


@pytest.mark.parametrize("indices", ["both", "wide", "narrow"])
@pytest.mark.parametrize("target", ["vulkan", "vulkan:1.2+address", "vulkan+no-int64"])
def test_views_with_strides(target: str, indices: str) -> None:
    module = parse_source(SOURCE, "strides.py", functions=("f", "g")).module
    backend = DeviceBackend(target, "vulkan:0", indices=indices)
    for s, t, first in LAYOUTS:
        wanted = [np.arange(60, dtype=np.int32), np.zeros((5, 4), np.int32)]
        given = [array.copy() for array in wanted]
        Executor(module).call("f", [*wanted, s, t, first])
        backend(module, "f", [*given, s, t, first])
        for want, got in zip(wanted, given, strict=True):
            np.testing.assert_array_equal(got, want, str((s, t, first)))
    halves = np.arange(24, dtype=np.float16).reshape(6, 4)
    given, wanted = [halves.copy(), halves * 0], [halves.copy(), halves * 0]
    Executor(module).call("g", [*wanted, 2])
    backend(module, "g", [*given, 2])
    np.testing.assert_array_equal(given[1], wanted[1])
    np.testing.assert_array_equal(given[1], halves)
