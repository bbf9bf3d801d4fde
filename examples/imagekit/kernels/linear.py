"""Kernels of linear algebra: saxpy, transpose, matrix products."""

from gristmill.script import tir as T

TILE = 32


@T.prim_func
def saxpy(a: T.float32, x: T.Buffer(("n",), "float32"), y: T.Buffer(("n",), "float32")):
    """y = a * x + y, in place."""
    for i in range(n):
        y[i] = a * x[i] + y[i]


@T.prim_func
def transpose(src: T.Buffer(("m", "n"), "float32"), dst: T.Buffer(("n", "m"), "float32")):
    """dst = src transposed, tile by tile for the caches."""
    for i0, j0 in T.grid((m + TILE - 1) // TILE, (n + TILE - 1) // TILE):
        for i in range(i0 * TILE, T.min(m, i0 * TILE + TILE)):
            for j in range(j0 * TILE, T.min(n, j0 * TILE + TILE)):
                dst[j, i] = src[i, j]


@T.prim_func
def matmul(a: T.Buffer(("m", "k"), "float32"), b: T.Buffer(("k", "n"), "float32"), c: T.Buffer(("m", "n"), "float32")):
    """c = a @ b, as three plain loops with rows of b innermost."""
    for i in range(m):
        for j in range(n):
            c[i, j] = T.float32(0)
        for p in range(k):
            for j in range(n):
                c[i, j] = c[i, j] + a[i, p] * b[p, j]


@T.prim_func
def matmul_tiled(
    a: T.Buffer(("m", "k"), "float32"), b: T.Buffer(("k", "n"), "float32"), c: T.Buffer(("m", "n"), "float32")
):
    """c = a @ b over tiles of TILE x TILE; sizes need not be multiples of TILE."""
    for i, j in T.grid(m, n):
        with T.block("clear"):
            vi, vj = T.axis.remap("SS", [i, j])
            c[vi, vj] = T.float32(0)
    for i0, p0, j0 in T.grid((m + TILE - 1) // TILE, (k + TILE - 1) // TILE, (n + TILE - 1) // TILE):
        for i in range(i0 * TILE, T.min(m, i0 * TILE + TILE)):
            for p in range(p0 * TILE, T.min(k, p0 * TILE + TILE)):
                for j in range(j0 * TILE, T.min(n, j0 * TILE + TILE)):
                    c[i, j] = c[i, j] + a[i, p] * b[p, j]
