"""Threads that combine many values: sums, softmax, prefix sum and histogram."""

from gristmill.script import tir as T

THREADS = 128
EACH = 8
CHUNK = THREADS * EACH
STEPS = 7
BINS = 256


@T.prim_func
def total(src: T.Buffer(("n",), "float32"), out: T.Buffer((1,), "float32")):
    """The sum of all values; of none 0. Each block sums a chunk, and a block in one more launch what they have found."""
    sums = T.alloc_buffer((T.ceildiv(n, CHUNK),), "float32")
    for bx in T.thread_binding(T.ceildiv(n, CHUNK), thread="blockIdx.x"):
        for tx in T.thread_binding(THREADS, thread="threadIdx.x"):
            for step in range(EACH):
                with T.block("chunk"):
                    chunk = T.axis.spatial(T.ceildiv(n, CHUNK), bx)
                    i = T.axis.reduce(CHUNK, step * THREADS + tx)
                    T.where(bx * CHUNK + step * THREADS + tx < n)
                    with T.init():
                        sums[chunk] = 0
                    sums[chunk] += src[chunk * CHUNK + i]
    for tx in T.thread_binding(THREADS, thread="threadIdx.x"):
        own = T.float32(0)
        for chunk in range(tx, T.ceildiv(n, CHUNK), THREADS):
            own += sums[chunk]
        with T.block("all"):
            i = T.axis.reduce(THREADS, tx)
            with T.init():
                out[0] = 0
            out[0] += own


@T.prim_func
def softmax(src: T.Buffer(("rows", "columns"), "float32"), dst: T.Buffer(("rows", "columns"), "float32")):
    """exp(x - greatest) of each row, divided by their sum; a block for each row, its threads meet in trees."""
    row = T.launch_thread("blockIdx.x", rows)
    tx = T.launch_thread("threadIdx.x", THREADS)
    tree = T.alloc_shared((THREADS,), "float32")
    greatest = -T.infinity("float32")
    for column in range(tx, columns, THREADS):
        greatest = T.max(greatest, src[row, column])
    tree[tx] = greatest
    for level in T.unroll(STEPS):
        if tx < THREADS >> (level + 1):
            tree[tx] = T.max(tree[tx], tree[tx + (THREADS >> (level + 1))])
    greatest = tree[0]
    total = T.float32(0)
    for column in range(tx, columns, THREADS):
        total += T.exp(src[row, column] - greatest)
    tree[tx] = total
    for level in T.unroll(STEPS):
        if tx < THREADS >> (level + 1):
            tree[tx] += tree[tx + (THREADS >> (level + 1))]
    for column in range(tx, columns, THREADS):
        dst[row, column] = T.exp(src[row, column] - greatest) / tree[0]


@T.prim_func
def prefix_sum(src: T.Buffer(("n",), "int32"), dst: T.Buffer(("n",), "int64")):
    """dst[i] = src[0] + ... + src[i], after Hillis and Steele: within blocks, then of their ends, then both together."""
    ends = T.alloc_buffer((T.ceildiv(n, THREADS),), "int64")
    for bx in T.thread_binding(T.ceildiv(n, THREADS), thread="blockIdx.x"):
        line = T.alloc_shared((2, THREADS), "int64")
        for tx in T.thread_binding(THREADS, thread="threadIdx.x"):
            i = bx * THREADS + tx
            line[0, tx] = src[i] if i < n else 0
            for step in range(STEPS):
                before = line[step % 2, tx - (1 << step)] if tx >= 1 << step else 0
                line[(step + 1) % 2, tx] = line[step % 2, tx] + before
            if i < n:
                dst[i] = line[STEPS % 2, tx]
            if tx == THREADS - 1:
                ends[bx] = line[STEPS % 2, tx]
    for _ in T.thread_binding(1, thread="threadIdx.x"):
        running = T.int64(0)
        for bx in range(T.ceildiv(n, THREADS)):
            running += ends[bx]
            ends[bx] = running
    for bx in T.thread_binding(T.ceildiv(n, THREADS), thread="blockIdx.x"):
        for tx in T.thread_binding(THREADS, thread="threadIdx.x"):
            i = bx * THREADS + tx
            if bx > 0 and i < n:
                dst[i] += ends[bx - 1]


@T.prim_func
def histogram(src: T.Buffer(("h", "w"), "uint8"), counts: T.Buffer((BINS,), "int32")):
    """How often each byte occurs: the threads of a block count some rows in memory that they share, and blocks add those up."""
    for bin in T.thread_binding(BINS, thread="threadIdx.x"):
        counts[bin] = 0
    for bx in T.thread_binding(T.ceildiv(h, EACH), thread="blockIdx.x"):
        for tx in T.thread_binding(BINS, thread="threadIdx.x"):
            found = T.alloc_shared((BINS,), "int32")
            found[tx] = 0
            for row in range(bx * EACH, T.min(h, bx * EACH + EACH)):
                for x in range(tx, w, BINS):
                    T.atomic_add(found[src[row, x]], 1)
            T.atomic_add(counts[tx], found[tx])
