"""Kernels for the tests of the runtime: all kinds of arguments, and of launches."""

from gristmill.script import tir as T


@T.prim_func
def saxpy(a: T.float32, x: T.Buffer(("n",), "float32"), y: T.Buffer(("n",), "float32")):
    for i in range(n):
        y[i] = a * x[i] + y[i]


@T.prim_func
def fill(value: T.int32, out: T.Buffer(("n",), "int32")):
    for i in range(n):
        out[i] = value


@T.prim_func
def double(x: T.Buffer(("n",), "int32")):
    for i in range(n):
        x[i] = x[i] * 2 + 1


@T.prim_func
def copy_bytes(x: T.Buffer(("n",), "uint8"), y: T.Buffer(("n",), "uint8")):
    for i in range(n):
        y[i] = x[i]


@T.prim_func
def kinds(
    a: T.int8, b: T.uint8, c: T.int16, d: T.uint16, e: T.int32, f: T.uint32, g: T.int64, h: T.uint64, i: T.bool,
    j: T.float32, out: T.Buffer((10,), "float32"), wide: T.Buffer((2,), "int64"),
):  # fmt: skip
    for _ in range(1):
        out[0] = T.float32(a)
        out[1] = T.float32(b)
        out[2] = T.float32(c)
        out[3] = T.float32(d)
        out[4] = T.float32(e)
        out[5] = T.float32(f)
        out[6] = T.float32(g)
        out[7] = T.float32(h)
        out[8] = T.Select(i, T.float32(1), T.float32(0))
        out[9] = j
        wide[0] = g
        wide[1] = T.int64(h)


@T.prim_func
def many(
    a0: T.int64, a1: T.int64, a2: T.int64, a3: T.int64, a4: T.int64, a5: T.int64, a6: T.int64, a7: T.int64,
    a8: T.int64, a9: T.int64, a10: T.int64, a11: T.int64, a12: T.int64, a13: T.int64, a14: T.int64, a15: T.int64,
    a16: T.int64, out: T.Buffer((17,), "int64"),
):  # fmt: skip
    for _ in range(1):
        out[0] = a0
        out[1] = a1
        out[2] = a2
        out[3] = a3
        out[4] = a4
        out[5] = a5
        out[6] = a6
        out[7] = a7
        out[8] = a8
        out[9] = a9
        out[10] = a10
        out[11] = a11
        out[12] = a12
        out[13] = a13
        out[14] = a14
        out[15] = a15
        out[16] = a16


@T.prim_func
def reverse_blocks(threads: T.int32, x: T.Buffer(("n",), "int32"), y: T.Buffer(("n",), "int32")):
    """The number of threads, and the size of the shared memory, are those of the launch."""
    for b in T.thread_binding((n + threads - 1) // threads, thread="blockIdx.x"):
        kept = T.alloc_buffer((threads,), "int32", scope="shared.dyn")
        for t in T.thread_binding(threads, thread="threadIdx.x"):
            kept[t] = x[b * threads + t]
            T.tvm_storage_sync("shared")
            y[b * threads + t] = kept[threads - 1 - t]


@T.prim_func
def exchange(x: T.Buffer((64,), "int32"), y: T.Buffer((64,), "int32")):
    """Threads of a block hand values on through memory of the device."""
    for _ in T.thread_binding(1, thread="blockIdx.x"):
        for t in T.thread_binding(64, thread="threadIdx.x"):
            x[t] = x[t] + 1
            T.tvm_storage_sync("global")
            y[t] = x[63 - t]


@T.prim_func
def on_many_blocks(count: T.int32, out: T.Buffer(("n",), "int32")):
    for b in T.thread_binding(count, thread="blockIdx.x"):
        for _ in T.thread_binding(1, thread="threadIdx.x"):
            if b < 4:
                out[b] = T.int32(b)


@T.prim_func
def with_temporary(x: T.Buffer(("n",), "float32"), y: T.Buffer(("n",), "float32")):
    kept = T.alloc_buffer((n,), "float32")
    for i in range(n):
        kept[i] = x[i] + T.float32(1)
    for i in range(n):
        y[i] = kept[n - 1 - i]
