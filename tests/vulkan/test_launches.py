"""Plain loops built for Vulkan, packed, loaded and launched, give what NumPy gives."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import gristmill

SOURCE = """
from gristmill.script import tir as T

@T.prim_func
def saxpy(a: T.float32, x: T.Buffer(("n",), "float32"), y: T.Buffer(("n",), "float32")):
    for i in range(n):
        y[i] = a * x[i] + y[i]
"""


@pytest.mark.parametrize("size", [0, 1, 1000])
@pytest.mark.parametrize(
    "target", ['"vulkan"', '"vulkan:1.2+address"', '{ kind = "vulkan", max_push_constants_size = 8 }']
)
def test_saxpy(size: int, target: str, tmp_path: Path) -> None:
    (tmp_path / "saxpy.py").write_text(SOURCE)
    (tmp_path / "kernels.toml").write_text(
        f'schema = 1\n[project]\nname = "p"\n[targets]\ngpu = {target}\n[[module]]\nname = "m"\nsource = "saxpy.py"\n'
    )
    gristmill.build(tmp_path / "kernels.toml")
    gpu = gristmill.device("vulkan:0")
    pack = gristmill.load(str(tmp_path / "build/kernels/m.kpack"), device=gpu)
    x = np.arange(size, dtype=np.float32)
    given, result = gpu.array(x), gpu.array(np.ones(size, np.float32))
    pack.saxpy(2.0, given, result)
    np.testing.assert_array_equal(result.numpy(), 2 * x + 1)
