"""Multiply matrices of float16, summed in float32, by operations on tiles: TFLOP/s on a Vulkan device that has them.

    python benchmarks/vulkan_matrices.py [--device vulkan:0] [--size 4096] [--product 16x16x16] [--block 128x128x32]

A block of threads computes 128 x 128 of the result, in steps of 32 along K, whose parts of both factors it copies to shared
memory; each of its four groups of threads holds 64 x 64 of the sums in tiles. The result is compared with NumPy's in a corner.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace

import numpy as np

import gristmill
from gristmill.ir.target import parse_target

KERNEL = """from gristmill.script import tir as T

@T.prim_func
def multiply(a: T.Buffer(("m", "k"), "float16"), b: T.Buffer(("k", "n"), "float16"), c: T.Buffer(("m", "n"), "float32")):
    by = T.launch_thread("blockIdx.y", m // {block_m})
    bx = T.launch_thread("blockIdx.x", n // {block_n})
    t = T.launch_thread("threadIdx.x", {threads})
    a_part = T.alloc_buffer(({block_m}, {block_k}), "float16", scope="shared")
    b_part = T.alloc_buffer(({block_k}, {block_n}), "float16", scope="shared")
    A = T.alloc_buffer(({rows}, {tm}, {tk}), "float16", scope="matrix.a")
    B = T.alloc_buffer(({tk}, {tn}), "float16", scope="matrix.b")
    C = T.alloc_buffer(({rows}, {columns}, {tm}, {tn}), "float32", scope="matrix.accumulator")
    row = t // {width} // 2 * {warp_m}
    column = t // {width} % 2 * {warp_n}
    for i in T.unroll({rows}):
        for j in T.unroll({columns}):
            T.matrix_fill(C[i, j], 0, width={width})
    for step in range(k // {block_k}):
        for e in range({block_m} * {block_k} // {threads}):
            at = e * {threads} + t
            a_part[at // {block_k}, at % {block_k}] = a[by * {block_m} + at // {block_k}, step * {block_k} + at % {block_k}]
        for e in range({block_k} * {block_n} // {threads}):
            at = e * {threads} + t
            b_part[at // {block_n}, at % {block_n}] = b[step * {block_k} + at // {block_n}, bx * {block_n} + at % {block_n}]
        for inner in T.unroll({block_k} // {tk}):
            for i in T.unroll({rows}):
                T.matrix_load(A[i], a_part[row + i * {tm}, inner * {tk}], {block_k}, width={width})
            for j in T.unroll({columns}):
                T.matrix_load(B, b_part[inner * {tk}, column + j * {tn}], {block_n}, width={width})
                for i in T.unroll({rows}):
                    T.matrix_multiply(C[i, j], A[i], B, C[i, j], width={width})
    for i in T.unroll({rows}):
        for j in T.unroll({columns}):
            T.matrix_store(c[by * {block_m} + row + i * {tm}, bx * {block_n} + column + j * {tn}], C[i, j], n, width={width})
"""


def source(product: tuple[int, int, int], width: int, block: tuple[int, int, int] = (128, 128, 32)) -> str:
    """The kernel for tiles of m x n x k, groups of so many threads, and blocks of M x N in steps of K; four groups a block."""
    (tm, tn, tk), (block_m, block_n, block_k) = product, block
    warp_m, warp_n = block_m // 2, block_n // 2
    return KERNEL.format(
        tm=tm, tn=tn, tk=tk, width=width, threads=4 * width, block_m=block_m, block_n=block_n, block_k=block_k,
        warp_m=warp_m, warp_n=warp_n, rows=warp_m // tm, columns=warp_n // tn,
    )  # fmt: skip


def main() -> None:
    """Measure, and print a row."""
    from gristmill.script import parse_source
    from gristmill.testing.on_device import DeviceBackend

    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--device", default="vulkan:0")
    options.add_argument("--size", type=int, default=4096)
    options.add_argument("--product", default="16x16x16")
    options.add_argument("--block", default="128x128x32")
    options.add_argument("--repeats", type=int, default=20)
    chosen = options.parse_args()
    row = next(row for row in gristmill.devices() if row.name == chosen.device)
    listed = str(row.properties.get("matrices", ""))
    if f"{chosen.product}:float16:float32" not in listed.split(","):
        raise SystemExit(f"{row.title} multiplies {listed or 'no tiles of matrices'}")
    width = int(row.properties["subgroup_size"])
    m, n, k = map(int, chosen.product.split("x"))
    block_m, block_n, block_k = map(int, chosen.block.split("x"))
    named = "vulkan:1.3+address+cooperative_matrix+float16+int16+vulkan_memory_model"
    settings = {"matrices": listed, "subgroup_size": width, "max_shared_memory": 32768}
    target = replace(parse_target(named), options=tuple(sorted(settings.items())))
    backend = DeviceBackend(target, chosen.device, verify=False)
    pack = backend.pack(parse_source(source((m, n, k), width, (block_m, block_n, block_k)), "multiply.py").module)
    size, device = chosen.size, backend.device
    numbers = np.random.default_rng(1)
    a, b = (numbers.standard_normal((size, size)).astype(np.float16) for _ in range(2))
    arrays = [device.array(a), device.array(b), device.empty((size, size), "float32")]
    pack.multiply(*arrays)
    found = arrays[2].numpy()[:64, :64]
    wide = a[:64].astype(np.float64), b[:, :64].astype(np.float64)
    gamma = (size + 1) * 2.0**-24
    assert (abs(found - wide[0] @ wide[1]) <= gamma * (abs(wide[0]) @ abs(wide[1]))).all(), "a wrong result"
    begin = time.perf_counter()
    for _ in range(chosen.repeats):
        pack.multiply(*arrays)
    device.synchronize()
    seconds = (time.perf_counter() - begin) / chosen.repeats
    print(
        f"| {row.title} | {size} | {chosen.product} | {seconds * 1e3:.2f} ms | {2 * size**3 / seconds / 1e12:.2f} TFLOP/s |"
    )


if __name__ == "__main__":
    main()
