"""Bits of vectors read as vectors of any other type: on a Vulkan device as in the executor."""

from __future__ import annotations

import numpy as np
import pytest

from gristmill.interp import Executor
from gristmill.ir.dtype import BOOL, SCALARS, DType
from gristmill.ir.parser import parse_module
from gristmill.runtime.arrays import numpy_dtype
from gristmill.testing.on_device import DeviceBackend
from gristmill.testing.programs.comparison import bits

pytestmark = pytest.mark.usefixtures("validation")

NUMBERS = [dtype for dtype in SCALARS if dtype != BOOL]
BYTES = 16
SEED = 20261201


def lanes(dtype: DType) -> int:
    return BYTES // dtype.bytes


def text(source: DType) -> str:
    """A function that reads a vector of 16 bytes as each other type."""
    outputs = ", ".join(f"to_{target}: {target}[{lanes(target)}]" for target in NUMBERS)
    stores = "\n".join(
        f"    to_{target}[ramp(0, 1, {lanes(target)})] = reinterpret[{target}x{lanes(target)}](x[ramp(0, 1, {lanes(source)})])"
        for target in NUMBERS
        if target != source
    )
    return f"""gristmill ir 1

function @f(x: {source}[{lanes(source)}], {outputs})
  symbol "f"
  signature "f(...)"
{{
  for i: int64 in 0 +: 1 thread on threadIdx.x {{
{stores}
  }}
}}
"""


@pytest.mark.parametrize("source", NUMBERS, ids=str)
def test_vectors(source: DType) -> None:
    module = parse_module(text(source))
    backend = DeviceBackend("vulkan+float64", "vulkan:0", interpreted=True)
    random = np.random.default_rng(SEED)
    for _ in range(8):
        # The highest bits of every float are low enough that none is a NaN, whose bits may change.
        values = random.integers(0, 256, BYTES, np.uint8)
        values[1::2] &= 0x3F
        expected = [np.frombuffer(values.tobytes(), numpy_dtype(source)).copy()]
        expected += [np.zeros(lanes(target), numpy_dtype(target)) for target in NUMBERS]
        given = [array.copy() for array in expected]
        Executor(module).call("f", expected)
        backend(module, "f", given)
        for target, want, got in zip(NUMBERS, expected[1:], given[1:], strict=True):
            np.testing.assert_array_equal(bits(got), bits(want), f"{source} as {target} (seed {SEED})")
