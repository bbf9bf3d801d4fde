"""Operations on tiles of matrices from kernel to launch: the reference device runs them, other targets refuse them."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest

from gristmill.errors import Unsupported
from gristmill.script import parse_source
from gristmill.testing.on_device import DeviceBackend
from gristmill.testing.on_reference import ReferenceBackend
from gristmill.testing.pass_equivalence import kernels

# Tiles of 16 x 32 of the result for a block of two groups; barriers come by themselves.
PRODUCT = """
@T.prim_func
def product(a: T.Buffer(("m", "k"), "float16"), b: T.Buffer(("k", "n"), "float16"), c: T.Buffer(("m", "n"), "float32")):
    by = T.launch_thread("blockIdx.y", m // 16)
    bx = T.launch_thread("blockIdx.x", n // 32)
    t = T.launch_thread("threadIdx.x", 16)
    a_part = T.alloc_buffer((16, 16), "float16", scope="shared")
    b_part = T.alloc_buffer((16, 32), "float16", scope="shared")
    A = T.alloc_buffer((2, 8, 8), "float16", scope="matrix.a")
    B = T.alloc_buffer((8, 8), "float16", scope="matrix.b")
    C = T.alloc_buffer((2, 2, 8, 8), "float32", scope="matrix.accumulator")
    for i, j in T.grid(2, 2):
        T.matrix_fill(C[i, j], 0, width=8)
    for step in range(k // 16):
        for i in range(16):
            a_part[i, t] = a[by * 16 + i, step * 16 + t]
            b_part[i, t] = b[step * 16 + i, bx * 32 + t]
            b_part[i, t + 16] = b[step * 16 + i, bx * 32 + t + 16]
        for inner in T.unroll(2):
            for i in T.unroll(2):
                T.matrix_load(A[i], a_part[i * 8, inner * 8], 16, width=8)
            for j in T.unroll(2):
                T.matrix_load(B, b_part[inner * 8, t // 8 * 16 + j * 8], 32, width=8)
                for i in T.unroll(2):
                    T.matrix_multiply(C[i, j], A[i], B, C[i, j], width=8)
    for i, j in T.grid(2, 2):
        T.matrix_store(c[by * 16 + i * 8, bx * 32 + t // 8 * 16 + j * 8], C[i, j], n, width=8)
"""


@pytest.mark.parametrize("optimization", [0, 3])
@pytest.mark.parametrize("interpreted", [False, True])
def test_a_product_on_the_reference_device(optimization: int, interpreted: bool) -> None:
    source = np.random.default_rng(5)
    a, b = (source.integers(-4, 5, shape).astype(np.float16) for shape in ((32, 48), (48, 64)))
    c = np.zeros((32, 64), np.float32)
    ReferenceBackend(optimization=optimization, interpreted=interpreted)(kernels(PRODUCT), "product", [a, b, c])
    assert (c == a.astype(np.float32) @ b.astype(np.float32)).all()


def test_vulkan_targets_refuse_it_at_its_line() -> None:
    with pytest.raises(Unsupported) as caught:
        DeviceBackend("vulkan:1.3+address", "vulkan:0").generated(kernels(PRODUCT))
    found = caught.value.diagnostics[0]
    assert found.code == "GM0680"
    assert found.place is not None
    assert "memory of tiles of matrices is not supported" in found.message
    assert "`cooperative_matrix = true`" in found.hint


def test_the_kernel_of_the_figures() -> None:
    """The kernel that benchmarks/vulkan_matrices.py measures, with smaller blocks."""
    path = Path(__file__).parent.parent.parent / "benchmarks" / "vulkan_matrices.py"
    text = runpy.run_path(str(path))["source"]((8, 8, 8), 8, (32, 16, 16))
    numbers = np.random.default_rng(6)
    a, b = (numbers.integers(-4, 5, shape).astype(np.float16) for shape in ((64, 32), (32, 32)))
    c = np.zeros((64, 32), np.float32)
    ReferenceBackend()(parse_source(text, "multiply.py").module, "multiply", [a, b, c])
    assert (c == a.astype(np.float32) @ b.astype(np.float32)).all()
