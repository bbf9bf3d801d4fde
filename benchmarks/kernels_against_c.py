"""Speed of built kernels beside the same loops in C from `gcc -O3 -march=native`, one thread (needs gcc).

An elementwise kernel and a plain triple-loop matrix product; the figure is C's time over ours, so above 1 is faster than C.
"""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from measure import minimum_seconds

import gristmill

KERNELS = """
from gristmill.script import tir as T

@T.prim_func
def saxpy(a: T.float32, x: T.Buffer(("n",), "float32"), y: T.Buffer(("n",), "float32")):
    for i in range(n):
        y[i] = a * x[i] + y[i]

@T.prim_func
def matmul(a: T.Buffer(("m", "k"), "float32"), b: T.Buffer(("k", "n"), "float32"), c: T.Buffer(("m", "n"), "float32")):
    for i in range(m):
        for j in range(n):
            total = T.float32(0)
            for p in range(k):
                total = total + a[i, p] * b[p, j]
            c[i, j] = total
"""

MANIFEST = """
schema = 1
[project]
name = "bench"
[targets]
cpu = "cpu:native"
[[module]]
name = "kernels"
source = "kernels.py"
"""

C_SOURCE = """
#include <stdint.h>
void saxpy(float a, const float *x, float *y, int64_t n) {
    for (int64_t i = 0; i < n; i++) y[i] = a * x[i] + y[i];
}
void matmul(const float *a, const float *b, float *c, int64_t m, int64_t n, int64_t k) {
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            float total = 0;
            for (int64_t p = 0; p < k; p++) total += a[i * k + p] * b[p * n + j];
            c[i * n + j] = total;
        }
}
"""


def pointer(array: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "kernels.py").write_text(KERNELS)
        (root / "kernels.toml").write_text(MANIFEST)
        (root / "loops.c").write_text(C_SOURCE)
        subprocess.run(
            ["gcc", "-O3", "-march=native", "-shared", "-fPIC", "-o", str(root / "loops.so"), str(root / "loops.c")],
            check=True,
        )
        compiled = ctypes.CDLL(str(root / "loops.so"))
        gristmill.build(root / "kernels.toml")
        pack = gristmill.load(root / "build" / "kernels" / "kernels.kpack")
        generator = np.random.default_rng(1)

        # Below 2**18 elements the cost of the two calls, TVM FFI's and ctypes', would be what is compared.
        for count in (1 << 18, 1 << 20, 1 << 24):
            x = generator.random(count, np.float32)
            y = generator.random(count, np.float32)
            seconds = minimum_seconds(
                {
                    "gristmill": lambda x=x, y=y: pack.saxpy(0.5, x, y),
                    "C": lambda x=x, y=y, count=count: compiled.saxpy(
                        ctypes.c_float(0.5), pointer(x), pointer(y), ctypes.c_int64(count)
                    ),
                },
                rounds=15,
                calls=max(1, (1 << 22) // count),
            )
            print(f"saxpy {count}: {seconds['C'] / seconds['gristmill']:.2f}x of C (wanted >= 0.9)")

        for size in (256, 512):
            a = generator.random((size, size), np.float32)
            b = generator.random((size, size), np.float32)
            ours = np.empty((size, size), np.float32)
            theirs = np.empty((size, size), np.float32)
            sizes = [ctypes.c_int64(size)] * 3
            seconds = minimum_seconds(
                {
                    "gristmill": lambda a=a, b=b, c=ours: pack.matmul(a, b, c),
                    "C": lambda a=a, b=b, c=theirs, s=sizes: compiled.matmul(pointer(a), pointer(b), pointer(c), *s),
                },
                rounds=5,
            )
            assert np.allclose(ours, theirs, rtol=1e-4)
            print(f"matmul {size}: {seconds['C'] / seconds['gristmill']:.2f}x of C (wanted >= 1)")


if __name__ == "__main__":
    main()
