"""The kernels of `vulkan_peers.py` in Gristmill: plain loops, and bound to threads by hand where others' are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import gristmill

KERNELS = """
from gristmill.script import tir as T

THREADS = 256
TILE = 16

@T.prim_func
def step(x: T.Buffer(("n",), "float32"), y: T.Buffer(("n",), "float32"), z: T.Buffer(("n",), "float32")):
    for i in range(n):
        z[i] = x[i] + y[i]

@T.prim_func
def saxpy(a: T.float32, x: T.Buffer(("n",), "float32"), y: T.Buffer(("n",), "float32")):
    for i in range(n):
        y[i] = a * x[i] + y[i]

@T.prim_func
def sum(x: T.Buffer(("n",), "float32"), out: T.Buffer((1,), "float32")):
    total = T.float32(0)
    for i in range(n):
        total = total + x[i]
    out[0] = total

@T.prim_func
def sum_by_hand(x: T.Buffer(("n",), "float32"), partial: T.Buffer(("b",), "float32"), out: T.Buffer((1,), "float32")):
    for bx in T.thread_binding(b, thread="blockIdx.x"):
        for tx in T.thread_binding(THREADS, thread="threadIdx.x"):
            shared = T.alloc_shared((THREADS,), "float32")
            own = T.float32(0)
            for stride in range((n - bx * THREADS - tx + b * THREADS - 1) // (b * THREADS)):
                own = own + x[(stride * b + bx) * THREADS + tx]
            shared[tx] = own
            for level in range(8):
                if tx < (THREADS >> (level + 1)):
                    shared[tx] = shared[tx] + shared[tx + (THREADS >> (level + 1))]
            if tx == 0:
                partial[bx] = shared[0]
    for _ in T.thread_binding(1, thread="threadIdx.x"):
        total = T.float32(0)
        for i in range(b):
            total = total + partial[i]
        out[0] = total

@T.prim_func
def softmax(x: T.Buffer(("h", "w"), "float32"), out: T.Buffer(("h", "w"), "float32")):
    for i in range(h):
        top = T.min_value("float32")
        for j in range(w):
            top = T.max(top, x[i, j])
        total = T.float32(0)
        for j in range(w):
            total = total + T.exp(x[i, j] - top)
        for j in range(w):
            out[i, j] = T.exp(x[i, j] - top) / total

@T.prim_func
def stencil(x: T.Buffer(("h", "w"), "float32"), out: T.Buffer(("h", "w"), "float32")):
    for i, j in T.grid(h - 2, w - 2):
        out[i + 1, j + 1] = T.float32(0.2) * (
            x[i + 1, j + 1] + x[i, j + 1] + x[i + 2, j + 1] + x[i + 1, j] + x[i + 1, j + 2]
        )

@T.prim_func
def convolution(
    x: T.Buffer(("h", "w"), "float32"), weights: T.Buffer((3, 3), "float32"), out: T.Buffer(("h", "w"), "float32")
):
    for i, j in T.grid(h - 2, w - 2):
        total = T.float32(0)
        for p, q in T.grid(3, 3):
            total = total + weights[p, q] * x[i + p, j + q]
        out[i + 1, j + 1] = total

@T.prim_func
def matmul(a: T.Buffer(("m", "k"), "float32"), b: T.Buffer(("k", "n"), "float32"), c: T.Buffer(("m", "n"), "float32")):
    for i, j in T.grid(m, n):
        total = T.float32(0)
        for p in range(k):
            total = total + a[i, p] * b[p, j]
        c[i, j] = total

@T.prim_func
def matmul_by_hand(
    a: T.Buffer(("m", "k"), "float32"), b: T.Buffer(("k", "n"), "float32"), c: T.Buffer(("m", "n"), "float32")
):
    for by in T.thread_binding(m // TILE, thread="blockIdx.y"):
        for bx in T.thread_binding(n // TILE, thread="blockIdx.x"):
            for ty in T.thread_binding(TILE, thread="threadIdx.y"):
                for tx in T.thread_binding(TILE, thread="threadIdx.x"):
                    left = T.alloc_shared((TILE, TILE), "float32")
                    right = T.alloc_shared((TILE, TILE), "float32")
                    total = T.float32(0)
                    for tile in range(k // TILE):
                        left[ty, tx] = a[by * TILE + ty, tile * TILE + tx]
                        right[ty, tx] = b[tile * TILE + ty, bx * TILE + tx]
                        for p in range(TILE):
                            total = total + left[ty, p] * right[p, tx]
                    c[by * TILE + ty, bx * TILE + tx] = total
"""
MANIFEST = """
schema = 1
[project]
name = "peers"
[targets]
gpu = {target}
[[module]]
name = "peers"
source = "peers.py"
options = {{ fast_math = true }}
"""
TARGET = '"vulkan"'
BLOCKS = 64
"""Blocks of the sum that is written by hand, in every language."""


class Gristmill:
    """Builds the kernels, and runs them on one device."""

    name = "gristmill"

    def __init__(self, device: int, folder: Path, target: str = TARGET) -> None:
        (folder / "peers.py").write_text(KERNELS)
        (folder / "kernels.toml").write_text(MANIFEST.format(target=target))
        gristmill.build(folder / "kernels.toml")
        self.device: Any = gristmill.device(f"vulkan:{device}")
        self.pack = gristmill.load(folder / "build/kernels/peers.kpack", device=self.device)
        self.wait = self.device.synchronize

    def runs(self, problem: str, inputs: Mapping[str, np.ndarray], out: str) -> dict[str, Callable[[], Any]]:
        """The ways to solve a problem, each a function that queues it, and ``read``, which reads the result."""
        arrays = {name: self.device.array(value) for name, value in inputs.items() if value.ndim}
        scalars = {name: float(value) for name, value in inputs.items() if not value.ndim}
        given = [scalars.get(name, arrays.get(name)) for name in inputs]
        plain = getattr(self.pack, problem)
        found = {"plain loops": lambda: plain(*given), "read": arrays[out].numpy}
        by_hand = getattr(self.pack, f"{problem}_by_hand", None)
        if by_hand is not None:
            if problem == "sum":
                given_by_hand = [arrays["x"], self.device.empty((BLOCKS,), "float32"), arrays["out"]]
            else:
                given_by_hand = given
            found["by hand"] = lambda: by_hand(*given_by_hand)
        return found
