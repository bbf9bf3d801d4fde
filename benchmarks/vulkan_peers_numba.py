"""The kernels of `vulkan_peers.py` for numba-vulkan: one thread an element, and with shared memory where that is usual."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numba_vulkan as nv
import numpy as np

BLOCKS = 64
THREADS = 256
TILE = 16


@nv.jit(fastmath=True)
def step(x, y, z):
    i = nv.global_id(0)
    if i < z.shape[0]:
        z[i] = x[i] + y[i]


@nv.jit(fastmath=True)
def saxpy(a, x, y):
    i = nv.global_id(0)
    if i < x.shape[0]:
        y[i] = a * x[i] + y[i]


@nv.jit(fastmath=True)
def sum_of_block(x, out):
    shared = nv.shared.array(256, np.float32)
    t, own = nv.local_id(0), np.float32(0)
    for i in range(nv.global_id(0), x.shape[0], 64 * 256):
        own += x[i]
    shared[t] = own
    nv.barrier()
    step = 128
    while step > 0:
        if t < step:
            shared[t] += shared[t + step]
        nv.barrier()
        step //= 2
    if t == 0:
        out[nv.group_id(0)] = shared[0]


@nv.jit(fastmath=True)
def sum_of_all(partial, out):
    total = np.float32(0)
    for i in range(partial.shape[0]):
        total += partial[i]
    out[0] = total


@nv.jit(fastmath=True)
def softmax(x, out):
    i = nv.global_id(0)
    if i < x.shape[0]:
        top = x[i, 0]
        for j in range(x.shape[1]):
            top = max(top, x[i, j])
        total = np.float32(0)
        for j in range(x.shape[1]):
            total += math.exp(x[i, j] - top)
        for j in range(x.shape[1]):
            out[i, j] = math.exp(x[i, j] - top) / total


@nv.jit(fastmath=True)
def softmax_of_block(x, out):
    shared = nv.shared.array(256, np.float32)
    t, i = nv.local_id(0), nv.group_id(0)
    own = np.float32(-math.inf)
    for j in range(t, x.shape[1], 256):
        own = max(own, x[i, j])
    shared[t] = own
    nv.barrier()
    step = 128
    while step > 0:
        if t < step:
            shared[t] = max(shared[t], shared[t + step])
        nv.barrier()
        step //= 2
    top = shared[0]
    nv.barrier()
    own = np.float32(0)
    for j in range(t, x.shape[1], 256):
        own += math.exp(x[i, j] - top)
    shared[t] = own
    nv.barrier()
    step = 128
    while step > 0:
        if t < step:
            shared[t] += shared[t + step]
        nv.barrier()
        step //= 2
    total = shared[0]
    for j in range(t, x.shape[1], 256):
        out[i, j] = math.exp(x[i, j] - top) / total


@nv.jit(fastmath=True)
def stencil(x, out):
    j, i = nv.global_id(0) + 1, nv.global_id(1) + 1
    if i < x.shape[0] - 1 and j < x.shape[1] - 1:
        out[i, j] = np.float32(0.2) * (x[i, j] + x[i - 1, j] + x[i + 1, j] + x[i, j - 1] + x[i, j + 1])


@nv.jit(fastmath=True)
def convolution(x, weights, out):
    j, i = nv.global_id(0), nv.global_id(1)
    if i < x.shape[0] - 2 and j < x.shape[1] - 2:
        total = np.float32(0)
        for p in range(3):
            for q in range(3):
                total += weights[p, q] * x[i + p, j + q]
        out[i + 1, j + 1] = total


@nv.jit(fastmath=True)
def matmul(a, b, c):
    j, i = nv.global_id(0), nv.global_id(1)
    if i < c.shape[0] and j < c.shape[1]:
        total = np.float32(0)
        for p in range(a.shape[1]):
            total += a[i, p] * b[p, j]
        c[i, j] = total


@nv.jit(fastmath=True)
def matmul_of_tiles(a, b, c):
    left = nv.shared.array((16, 16), np.float32)
    right = nv.shared.array((16, 16), np.float32)
    tx, ty, j, i = nv.local_id(0), nv.local_id(1), nv.global_id(0), nv.global_id(1)
    total = np.float32(0)
    for tile in range(a.shape[1] // 16):
        left[ty, tx] = a[i, tile * 16 + tx]
        right[ty, tx] = b[tile * 16 + ty, j]
        nv.barrier()
        for p in range(16):
            total += left[ty, p] * right[p, tx]
        nv.barrier()
    c[i, j] = total


class NumbaVulkan:
    """Runs the kernels on one device."""

    name = "numba-vulkan"

    def __init__(self, device: int) -> None:
        self.device = nv.get_device(device)
        self.wait = nv.synchronize
        nv.select_device(device)

    def runs(self, problem: str, inputs: Mapping[str, np.ndarray], out: str) -> dict[str, Callable[[], Any]]:
        """The ways to solve a problem, each a function that queues it, and ``read``, which reads the result."""
        arrays = {name: nv.to_device(value) for name, value in inputs.items() if value.ndim}
        given = [arrays[name] if value.ndim else value[()] for name, value in inputs.items()]
        height, width = ([*inputs[out].shape, 1])[:2]
        lines, grid = (height,), (width, height)
        partial = nv.to_device(np.zeros(BLOCKS, np.float32))

        def sum_by_hand() -> None:
            sum_of_block[BLOCKS, THREADS](arrays["x"], partial)
            sum_of_all[1, 1](partial, arrays["out"])

        found: dict[str, dict[str, Callable[[], Any]]] = {
            "step": {"default": lambda: step.forall(lines)(*given)},
            "saxpy": {
                "default": lambda: saxpy.forall(lines)(*given),
                "256 threads": lambda: saxpy.forall(lines, local_size=THREADS)(*given),
            },
            "sum": {"by hand": sum_by_hand},
            "softmax": {
                "one thread a row": lambda: softmax.forall(lines)(*given),
                "by hand": lambda: softmax_of_block[height, THREADS](*given),
            },
            "stencil": {"default": lambda: stencil.forall(grid)(*given)},
            "convolution": {"default": lambda: convolution.forall(grid)(*given)},
            "matmul": {
                "default": lambda: matmul.forall(grid)(*given),
                "by hand": lambda: matmul_of_tiles[(width // TILE, height // TILE), (TILE, TILE)](*given),
            },
        }
        return found[problem] | {"read": arrays[out].copy_to_host}
