"""Kernels that combine many values into few: sums, maxima, softmax, prefix sum, histogram."""

from gristmill.script import tir as T

BINS = 256


@T.prim_func
def sum(src: T.Buffer(("n",), "float32"), out: T.Buffer((1,), "float32")):
    """The sum of all values; of none 0. Sixteen partial sums keep it fast, and its rounding error small."""
    partial = T.alloc_buffer((16,), "float32", scope="local")
    for lane in range(16):
        partial[lane] = T.float32(0)
    for i in range(n // 16):
        for lane in range(16):
            partial[lane] = partial[lane] + src[i * 16 + lane]
    total = T.float32(0)
    for i in range(n // 16 * 16, n):
        total = total + src[i]
    for lane in range(16):
        total = total + partial[lane]
    out[0] = total


@T.prim_func
def maximum(src: T.Buffer(("n",), "float32"), out: T.Buffer((1,), "float32")):
    """The greatest value; NaNs are ignored, and of none it is minus infinity."""
    with T.block("start"):
        out[0] = -T.infinity("float32")
    for i in range(n):
        with T.block("maximum"):
            vi = T.axis.reduce(n, i)
            T.reads(src[vi], out[0])
            T.writes(out[0])
            out[0] = T.max(out[0], src[vi])


@T.prim_func
def softmax(src: T.Buffer(("rows", "columns"), "float32"), dst: T.Buffer(("rows", "columns"), "float32")):
    """exp(x - greatest) of each row, divided by their sum."""
    for row in T.parallel(rows):
        greatest = -T.infinity("float32")
        for column in range(columns):
            greatest = T.max(greatest, src[row, column])
        for column in range(columns):
            dst[row, column] = T.exp(src[row, column] - greatest)
        total = T.float32(0)
        for column in range(columns):
            total = total + dst[row, column]
        scale = 1.0 / total
        for column in range(columns):
            dst[row, column] = dst[row, column] * scale


@T.prim_func
def prefix_sum(src: T.Buffer(("n",), "int32"), dst: T.Buffer(("n",), "int64")):
    """dst[i] = src[0] + ... + src[i]."""
    running = T.int64(0)
    for i in range(n):
        running = running + src[i]
        dst[i] = running


@T.prim_func
def histogram(src: T.Buffer(("h", "w"), "uint8"), counts: T.Buffer((BINS,), "int32")):
    """How often each byte occurs."""
    for bin in range(BINS):
        counts[bin] = 0
    for y, x in T.grid(h, w):
        counts[src[y, x]] += 1
