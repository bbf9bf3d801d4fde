"""Kernels of numbers, as one would port them from Python."""

from gristmill.script import tir as T

TILE = 32


@T.prim_func
def kmeans_assign(
    points: T.Buffer(("n", "d"), "float32"),
    centers: T.Buffer(("k", "d"), "float32"),
    labels: T.Buffer(("n",), "int32"),
    counts: T.Buffer(("k",), "int64"),
):
    for c in range(k):
        counts[c] = 0
    for i in range(n):
        best = T.int32(0)
        best_dist = T.infinity("float32")
        for c in range(k):
            dist = T.float32(0)
            for j in range(d):
                diff = points[i, j] - centers[c, j]
                dist += diff * diff
            if dist < best_dist:
                best_dist = dist
                best = T.int32(c)
        labels[i] = best
        counts[best] += 1


@T.prim_func
def floyd_warshall(dist: T.Buffer(("n", "n"), "float64")):
    for k in range(n):
        for i in range(n):
            for j in range(n):
                dist[i, j] = min(dist[i, j], dist[i, k] + dist[k, j])


@T.prim_func
def smith_waterman(
    a: T.Buffer(("n",), "uint8"),
    b: T.Buffer(("m",), "uint8"),
    score: T.Buffer(("n + 1", "m + 1"), "int32"),
    match: T.int32,
    mismatch: T.int32,
    gap: T.int32,
) -> T.int32:
    best = T.int32(0)
    for i in range(n + 1):
        score[i, 0] = 0
    for j in range(m + 1):
        score[0, j] = 0
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            s = match if a[i - 1] == b[j - 1] else mismatch
            v = max(0, score[i - 1, j - 1] + s, score[i - 1, j] - gap, score[i, j - 1] - gap)
            score[i, j] = v
            best = max(best, v)
    return best


@T.prim_func
def nbody_step(
    pos: T.Buffer(("n", 3), "float64"),
    vel: T.Buffer(("n", 3), "float64"),
    mass: T.Buffer(("n",), "float64"),
    dt: T.float64,
):
    acc = T.alloc_buffer((n, 3), "float64")
    for i in T.parallel(n):
        for c in T.unroll(3):
            acc[i, c] = 0.0
        for j in range(n):
            if i == j:
                continue
            dx = pos[j, 0] - pos[i, 0]
            dy = pos[j, 1] - pos[i, 1]
            dz = pos[j, 2] - pos[i, 2]
            inv = 1.0 / T.sqrt(dx**2 + dy**2 + dz**2 + 1e-9)
            f = mass[j] * inv**3
            acc[i, 0] += f * dx
            acc[i, 1] += f * dy
            acc[i, 2] += f * dz
    for i, c in T.grid(n, 3):
        vel[i, c] += acc[i, c] * dt
        pos[i, c] += vel[i, c] * dt


@T.prim_func
def fft_stage(re: T.Buffer(("n",), "float32"), im: T.Buffer(("n",), "float32"), half: T.int64):
    for block in range(n // (2 * half)):
        start = block * 2 * half
        for k in range(half):
            angle = -3.141592653589793 * T.float32(k) / half
            wr = T.cos(angle)
            wi = T.sin(angle)
            i = start + k
            j = i + half
            tr = re[j] * wr - im[j] * wi
            ti = re[j] * wi + im[j] * wr
            re[j] = re[i] - tr
            im[j] = im[i] - ti
            re[i] += tr
            im[i] += ti


@T.prim_func
def csr_matvec(
    indptr: T.Buffer(("n + 1",), "int32"),
    indices: T.Buffer(("nnz",), "int32"),
    data: T.Buffer(("nnz",), "float32"),
    x: T.Buffer(("m",), "float32"),
    y: T.Buffer(("n",), "float32"),
):
    for row in T.parallel(n):
        acc = T.float32(0)
        for p in range(indptr[row], indptr[row + 1]):
            acc += data[p] * x[indices[p]]
        y[row] = acc


@T.prim_func
def bitonic_step(data: T.Buffer(("n",), "int32"), j: T.int64, k: T.int64):
    for i in range(n):
        other = i ^ j
        if other > i:
            up = (i & k) == 0
            if (up and data[i] > data[other]) or (not up and data[i] < data[other]):
                data[i], data[other] = data[other], data[i]


@T.prim_func
def moving_average(x: T.Buffer(("n",), "float64"), y: T.Buffer(("n - w + 1",), "float64"), w: T.int64):
    assert 0 < w <= n, "window out of range"
    s = T.float64(0)
    for i in range(w):
        s += x[i]
    y[0] = s / w
    for i in range(w, n):
        s += x[i] - x[i - w]
        y[i - w + 1] = s / w


@T.prim_func
def gauss_solve(a: T.Buffer(("n", "n"), "float64"), b: T.Buffer(("n",), "float64")) -> T.int32:
    for col in range(n):
        piv = col
        for r in range(col + 1, n):
            if abs(a[r, col]) > abs(a[piv, col]):
                piv = r
        if a[piv, col] == 0:
            return 1
        if piv != col:
            for c in range(n):
                a[col, c], a[piv, c] = a[piv, c], a[col, c]
            b[col], b[piv] = b[piv], b[col]
        for r in range(col + 1, n):
            f = a[r, col] / a[col, col]
            for c in range(col, n):
                a[r, c] -= f * a[col, c]
            b[r] -= f * b[col]
    for i in range(n - 1, -1, -1):
        s = b[i]
        for c in range(i + 1, n):
            s -= a[i, c] * b[c]
        b[i] = s / a[i, i]
    return 0


@T.prim_func
def lu(a: T.Buffer(("n", "n"), "float64")):
    for k in range(n):
        for i in range(k + 1, n):
            a[i, k] /= a[k, k]
            for j in range(k + 1, n):
                a[i, j] -= a[i, k] * a[k, j]


@T.prim_func
def top_k(x: T.Buffer(("n",), "float32"), values: T.Buffer(("k",), "float32"), index: T.Buffer(("k",), "int64")):
    for i in range(k):
        values[i] = -T.infinity("float32")
        index[i] = -1
    for i in range(n):
        if x[i] > values[k - 1]:
            j = k - 1
            while j > 0 and values[j - 1] < x[i]:
                values[j] = values[j - 1]
                index[j] = index[j - 1]
                j -= 1
            values[j] = x[i]
            index[j] = i


@T.prim_func
def matmul_blocked(
    A: T.Buffer((128, 128), "float32"), B: T.Buffer((128, 128), "float32"), C: T.Buffer((128, 128), "float32")
):
    for io, jo in T.grid(4, 4):
        for k in range(128):
            for ii in range(TILE):
                for ji in T.vectorized(TILE):
                    with T.block("update"):
                        vi = T.axis.spatial(128, io * TILE + ii)
                        vj = T.axis.spatial(128, jo * TILE + ji)
                        vk = T.axis.reduce(128, k)
                        with T.init():
                            C[vi, vj] = 0.0
                        C[vi, vj] += A[vi, vk] * B[vk, vj]
