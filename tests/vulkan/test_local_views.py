"""Local memory that is seen in several widths, also by helper functions: its bits are those of the language."""

from __future__ import annotations

import numpy as np
import pytest

from gristmill.interp import Executor
from gristmill.script import parse_source
from gristmill.testing.on_device import DeviceBackend

pytestmark = pytest.mark.usefixtures("validation")
SOURCE = """from gristmill.script import tir as T

@T.prim_func(private=True)
def halves(part: T.Buffer((4,), "int16"), k: T.int32) -> T.int32:
    part[k] = part[k] + T.int16(1)
    return T.int32(part[0]) + T.int32(part[3])

@T.prim_func
def f(x: T.Buffer(("n", 2), "{wide}"), y: T.Buffer(("n", 16), "{narrow}"), z: T.Buffer(("n",), "int32")):
    for i in range(n):
        own = T.alloc_buffer((2,), "{wide}", scope="local")
        seen = T.decl_buffer(({count},), "{narrow}", data=own.data, scope="local")
        short = T.decl_buffer((4,), "int16", data=own.data, scope="local")
        own[0] = x[i, 0]
        own[1] = x[i, 1]
        z[i] = halves(short, T.int32(i % 4))
        for j in range({count}):
            y[i, j] = seen[j]
        seen[i % {count}] = T.{narrow}(5)
        x[i, 0] = own[0]
        x[i, 1] = own[1]
"""


@pytest.fixture(scope="module", params=[("vulkan", 3), ("vulkan", 0), ("vulkan:1.2+address", 3)], ids=str)
def backend(request: pytest.FixtureRequest) -> DeviceBackend:
    target, optimization = request.param
    return DeviceBackend(target, "vulkan:0", optimization=optimization)


@pytest.mark.parametrize(
    ("wide", "narrow"), [("int64", "uint8"), ("uint64", "int32"), ("uint32", "uint8"), ("int32", "int16")]
)
def test_views(backend: DeviceBackend, wide: str, narrow: str) -> None:
    count = 2 * np.dtype(wide).itemsize // np.dtype(narrow).itemsize
    module = parse_source(SOURCE.format(wide=wide, narrow=narrow, count=count), "views.py").module
    seed = 7
    bytes_ = np.random.default_rng(seed).integers(0, 256, 20 * 2 * np.dtype(wide).itemsize, dtype=np.uint8)
    expected = [bytes_.view(wide).reshape(20, 2), np.zeros((20, 16), narrow), np.zeros(20, np.int32)]
    found = [array.copy() for array in expected]
    Executor(module).call("f", expected)
    backend(module, "f", found)
    for want, got in zip(expected, found, strict=True):
        np.testing.assert_array_equal(got, want)
