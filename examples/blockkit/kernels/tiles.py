"""Threads that share tiles, halos and lines of memory; where they must wait for each other is found by the build."""

from gristmill.script import tir as T

TILE = 16
STRIP = 4
RADIUS = 2
HALO = TILE + 2 * RADIUS
THREADS = 128
RUN_AT_MOST = 256


def clamped(index: T.int64, size: T.int64) -> T.int64:
    """The index moved into [0, size)."""
    return T.min(T.max(index, 0), size - 1)


@T.prim_func
def saxpy(a: T.float32, x: T.Buffer(("n",), "float32"), y: T.Buffer(("n",), "float32")):
    """y = a * x + y, in place; threads behind the end leave at once."""
    bx = T.launch_thread("blockIdx.x", T.ceildiv(n, THREADS))
    tx = T.launch_thread("threadIdx.x", THREADS)
    i = bx * THREADS + tx
    if i >= n:
        return
    y[i] = a * x[i] + y[i]


@T.prim_func
def matmul(a: T.Buffer(("m", "k"), "float32"), b: T.Buffer(("k", "n"), "float32"), c: T.Buffer(("m", "n"), "float32")):
    """c = a @ b: the threads of a block load tiles of a and b together, and make a tile of c from them."""
    by = T.launch_thread("blockIdx.y", T.ceildiv(m, TILE))
    bx = T.launch_thread("blockIdx.x", T.ceildiv(n, TILE))
    ty = T.launch_thread("threadIdx.y", TILE)
    tx = T.launch_thread("threadIdx.x", TILE)
    left = T.alloc_shared((TILE, TILE), "float32")
    right = T.alloc_shared((TILE, TILE), "float32")
    row = by * TILE + ty
    column = bx * TILE + tx
    total = T.float32(0)
    for step in range(T.ceildiv(k, TILE)):
        across = step * TILE + tx
        down = step * TILE + ty
        left[ty, tx] = a[row, across] if row < m and across < k else 0.0
        right[ty, tx] = b[down, column] if down < k and column < n else 0.0
        for p in range(TILE):
            total += left[ty, p] * right[p, tx]
    if row < m and column < n:
        c[row, column] = total


@T.prim_func
def transpose(src: T.Buffer(("m", "n"), "float32"), dst: T.Buffer(("n", "m"), "float32")):
    """dst = src transposed, so that rows of both are touched whole; the tile's spare column keeps its banks apart."""
    by = T.launch_thread("blockIdx.y", T.ceildiv(m, TILE))
    bx = T.launch_thread("blockIdx.x", T.ceildiv(n, TILE))
    ty = T.launch_thread("threadIdx.y", TILE // STRIP)
    tx = T.launch_thread("threadIdx.x", TILE)
    tile = T.alloc_shared((TILE, TILE + 1), "float32")
    for strip in range(STRIP):
        y = strip * (TILE // STRIP) + ty
        if by * TILE + y < m and bx * TILE + tx < n:
            tile[y, tx] = src[by * TILE + y, bx * TILE + tx]
    for strip in range(STRIP):
        y = strip * (TILE // STRIP) + ty
        if bx * TILE + y < n and by * TILE + tx < m:
            dst[bx * TILE + y, by * TILE + tx] = tile[tx, y]


@T.prim_func
def blur(src: T.Buffer(("h", "w"), "float32"), dst: T.Buffer(("h", "w"), "float32")):
    """The mean of 2 * RADIUS + 1 neighbours along rows, then along columns; the border repeats."""
    by = T.launch_thread("blockIdx.y", T.ceildiv(h, TILE))
    bx = T.launch_thread("blockIdx.x", T.ceildiv(w, TILE))
    ty = T.launch_thread("threadIdx.y", TILE)
    tx = T.launch_thread("threadIdx.x", TILE)
    tile = T.alloc_shared((HALO, HALO), "float32")
    rows = T.alloc_shared((HALO, TILE), "float32")
    for y in range(ty, HALO, TILE):
        for x in range(tx, HALO, TILE):
            tile[y, x] = src[clamped(by * TILE + y - RADIUS, h), clamped(bx * TILE + x - RADIUS, w)]
    for y in range(ty, HALO, TILE):
        total = T.float32(0)
        for k in range(2 * RADIUS + 1):
            total += tile[y, tx + k]
        rows[y, tx] = total / (2 * RADIUS + 1)
    total = T.float32(0)
    for k in range(2 * RADIUS + 1):
        total += rows[ty + k, tx]
    if by * TILE + ty < h and bx * TILE + tx < w:
        dst[by * TILE + ty, bx * TILE + tx] = total / (2 * RADIUS + 1)


@T.prim_func
def heat(src: T.Buffer(("n",), "float32"), dst: T.Buffer(("n",), "float32"), rate: T.float32, steps: T.int32):
    """Heat flow along a rod for some steps, the ends as they are; each step is a launch, between two lines of memory."""
    now = T.alloc_buffer((n,), "float32")
    for bx in T.thread_binding(T.ceildiv(n, THREADS), thread="blockIdx.x"):
        for tx in T.thread_binding(THREADS, thread="threadIdx.x"):
            i = bx * THREADS + tx
            if i < n:
                dst[i] = src[i]
    for _ in range(steps):
        for bx in T.thread_binding(T.ceildiv(n, THREADS), thread="blockIdx.x"):
            for tx in T.thread_binding(THREADS, thread="threadIdx.x"):
                i = bx * THREADS + tx
                if i < n:
                    now[i] = dst[i]
        for bx in T.thread_binding(T.ceildiv(n, THREADS), thread="blockIdx.x"):
            line = T.alloc_shared((THREADS + 2,), "float32")
            for tx in T.thread_binding(THREADS, thread="threadIdx.x"):
                i = bx * THREADS + tx
                for x in range(tx, THREADS + 2, THREADS):
                    line[x] = now[clamped(bx * THREADS + x - 1, n)]
                if i > 0 and i < n - 1:
                    dst[i] = line[tx + 1] + rate * (line[tx] + line[tx + 2] - 2.0 * line[tx + 1])


@T.prim_func
def reverse_runs(x: T.Buffer(("n",), "float32"), run: T.int32):
    """Each run of values reversed, in place; the last may be shorter. A run lies in shared memory of its own size."""
    assert 0 < run <= RUN_AT_MOST, f"runs have 1 to 256 values, not {run}"
    bx = T.launch_thread("blockIdx.x", T.ceildiv(n, run))
    tx = T.launch_thread("threadIdx.x", run)
    line = T.alloc_buffer((run,), "float32", scope="shared.dyn")
    length = T.min(n - bx * run, run)
    if tx < length:
        line[tx] = x[bx * run + tx]
    if tx < length:
        x[bx * run + tx] = line[length - 1 - tx]
