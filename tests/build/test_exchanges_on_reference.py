"""Exchanges between threads from kernel to launch: built for the reference device with them and without, and loaded."""

from __future__ import annotations

import numpy as np
import pytest

from gristmill.errors import Unsupported
from gristmill.testing.on_reference import ReferenceBackend
from gristmill.testing.pass_equivalence import kernels

SUMS = """
@T.prim_func
def sums(x: T.Buffer(("rows", {n}), "float32"), out: T.Buffer(("rows",), "float32")):
    for i in T.thread_binding(rows, thread="blockIdx.x"):
        for t in T.thread_binding({n}, thread="threadIdx.x"):
            with T.block("sum"):
                vi = T.axis.spatial(rows, i)
                vk = T.axis.reduce({n}, t)
                with T.init():
                    out[vi] = T.float32(0)
                out[vi] = out[vi] + x[vi, vk]
"""
SCAN = """
@T.prim_func
def scan(x: T.Buffer(("n",), "int32"), out: T.Buffer(("n",), "int32")):
    bx = T.launch_thread("blockIdx.x", T.ceildiv(n, 64))
    tx = T.launch_thread("threadIdx.x", 64)
    i = bx * 64 + tx
    total = T.int32(0)
    if i < n:
        total = x[i]
    distance = T.int32(1)
    while distance < 32:
        below = T.warp_shuffle_up(total, distance)
        if tx % 32 >= distance:
            total = total + below
        distance = distance * 2
    if i < n:
        out[i] = total
"""


def shared_bytes(backend: ReferenceBackend, module) -> list[int]:
    return [record.shared_bytes for blob in backend.generated(module).blobs for record in blob.kernels if record.axes]


@pytest.mark.parametrize(("n", "bytes_left"), [(1, 0), (7, 0), (32, 0), (33, 132), (100, 400)])
def test_reductions_give_the_same_bits_with_exchanges_and_without(n: int, bytes_left: int) -> None:
    module = kernels(SUMS.format(n=n))
    x = np.random.default_rng(n).standard_normal((5, n)).astype(np.float32)
    found = []
    for target in ("reference", "reference+warp_shuffles"):
        out = np.zeros(5, np.float32)
        backend = ReferenceBackend(target=target)
        backend(module, "sums", [x, out])
        assert shared_bytes(backend, module) == [4 * n * (n > 1) if target == "reference" else bytes_left]
        found.append(out)
    assert found[0].tobytes() == found[1].tobytes()
    assert np.allclose(found[0], x.sum(1), atol=1e-4)


@pytest.mark.parametrize("n", [0, 1, 31, 64, 65, 200])
def test_a_kernel_that_exchanges(n: int) -> None:
    x, out = np.arange(1, n + 1, dtype=np.int32), np.zeros(n, np.int32)
    ReferenceBackend(target="reference+warp_shuffles")(kernels(SCAN), "scan", [x, out])
    assert out.tolist() == [sum(x[i // 32 * 32 : i + 1].tolist()) for i in range(n)]


def test_a_device_without_exchanges_refuses_it_at_the_kernels_line() -> None:
    with pytest.raises(Unsupported) as caught:
        ReferenceBackend().generated(kernels(SCAN))
    found = caught.value.diagnostics[0]
    assert found.code == "GM0668"
    assert found.place is not None
    assert found.place.line == 12
