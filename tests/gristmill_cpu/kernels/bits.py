"""Kernels of bits and bytes, as one would port them from C."""

from gristmill.script import tir as T

POLY = 0xEDB88320


@T.prim_func
def crc_table(table: T.Buffer((256,), "uint32")):
    for i in range(256):
        c = T.uint32(i)
        for _ in range(8):
            if (c & 1) != 0:
                c = (c >> 1) ^ POLY
            else:
                c >>= 1
        table[i] = c


@T.prim_func
def crc32(table: T.Buffer((256,), "uint32"), data: T.Buffer(("n",), "uint8")) -> T.uint32:
    c = 0xFFFFFFFF
    for i in range(n):
        c = table[(c ^ data[i]) & 0xFF] ^ (c >> 8)
    return T.uint32(c ^ 0xFFFFFFFF)


@T.prim_func
def base64(src: T.Buffer(("3 * n",), "uint8"), table: T.Buffer((64,), "uint8"), dst: T.Buffer(("4 * n",), "uint8")):
    for i in range(n):
        word = T.uint32(src[3 * i]) << 16 | T.uint32(src[3 * i + 1]) << 8 | src[3 * i + 2]
        for j in T.unroll(4):
            dst[4 * i + j] = table[(word >> (18 - 6 * j)) & 63]


@T.prim_func
def find(haystack: T.Buffer(("n",), "uint8"), needle: T.Buffer(("m",), "uint8")) -> T.int64:
    for i in range(n - m + 1):
        found = True
        for j in range(m):
            if haystack[i + j] != needle[j]:
                found = False
                break
        if found:
            return i
    return -1


@T.prim_func
def splitmix(seed: T.uint64, out: T.Buffer(("n",), "float64"), raw: T.Buffer(("n",), "uint64")):
    state = seed
    for i in range(n):
        state += 0x9E3779B97F4A7C15
        z = state
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB
        z ^= z >> 31
        raw[i] = z
        out[i] = T.float64(z >> 11) * (1.0 / (1 << 53))


@T.prim_func
def hamming(a: T.Buffer(("n", "w"), "uint64"), b: T.Buffer(("m", "w"), "uint64"), out: T.Buffer(("n", "m"), "int32")):
    for i, j in T.grid(n, m):
        total = T.int32(0)
        for k in range(w):
            total += T.int32(T.popcount(a[i, k] ^ b[j, k]))
        out[i, j] = total


@T.prim_func
def saturate_i16(x: T.Buffer(("n",), "float32"), y: T.Buffer(("n",), "int16")):
    for i in range(n):
        y[i] = T.int16(T.max(T.min(x[i], 32767), -32768))


@T.prim_func
def to_u8(x: T.Buffer(("n",), "int32"), y: T.Buffer(("n",), "uint8")):
    for i in range(n):
        y[i] = T.uint8(T.min(T.max(x[i], 0), 255))


@T.prim_func
def bounce(
    x: T.Buffer(("n",), "float32"),
    y: T.Buffer(("n",), "uint8"),
    z: T.Buffer(("n",), "int64"),
    b: T.Buffer(("n",), "bool"),
):
    for i in range(n):
        y[i] = T.uint8(x[i])
        z[i] = T.int64(x[i])
        b[i] = bool(x[i])
