"""What kernels gain whose indices are computed in 32 bits, and what two kernels in place of one cost.

``code``: for the modules of the example projects, the instructions of their SPIR-V, those of them with results of 64 bits
that are no constants, the bytes of device and of host code, and the processor's milliseconds that a build takes. ``runs``:
the milliseconds of processors that some kernels take on a device that is one, the least of several rounds.

    python benchmarks/index_widths.py [--device vulkan:0] [--only code|runs]
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import tomli

from gristmill.build.generation import Settings, generate
from gristmill.ir.module import Module
from gristmill.ir.target import parse_target
from gristmill.passes.index_widths import BOTH, NARROW, WIDE
from gristmill.plugin.artifacts import Blob
from gristmill.plugin.registry import Registry
from gristmill.runtime import Runtimes
from gristmill.script import parse_source
from gristmill.script.parsing import parse_file
from gristmill.testing.example_project import example_project
from gristmill.testing.on_device import DeviceBackend
from gristmill.testing.spirv_tools import disassembly

TARGETS = ("vulkan", "vulkan:1.2+address")
ROUNDS = 15
KERNELS = """from gristmill.script import tir as T

@T.prim_func
def saxpy(x: T.Buffer(("n",), "float32"), y: T.Buffer(("n",), "float32")):
    for i in range(n):
        y[i] = x[i] * T.float32(2) + y[i]

@T.prim_func
def stencil(x: T.Buffer(("h", "w"), "float32"), y: T.Buffer(("h", "w"), "float32")):
    for i, j in T.grid(h, w):
        up, down = T.max(i - 1, 0), T.min(i + 1, h - 1)
        left, right = T.max(j - 1, 0), T.min(j + 1, w - 1)
        y[i, j] = x[up, j] + x[down, j] + x[i, left] + x[i, right] - T.float32(4) * x[i, j]

@T.prim_func
def matmul(a: T.Buffer(("m", "k"), "float32"), b: T.Buffer(("k", "n"), "float32"), c: T.Buffer(("m", "n"), "float32")):
    for i, j in T.grid(m, n):
        total = T.float32(0)
        for l in range(k):
            total = total + a[i, l] * b[l, j]
        c[i, j] = total

@T.prim_func
def rearrange(x: T.Buffer(("n",), "float32"), y: T.Buffer(("n",), "float32"), p: T.int64, q: T.int64):
    for i in range(n):
        y[i] = x[(i // (p * q) * q + i % q) * p + i // q % p]
"""
SIDE = 1024
"""Of square arrays; the product of matrices has a quarter of it."""


def modules() -> Iterator[tuple[str, Module]]:
    for project in ("imagekit", "blockkit"):
        root = example_project(project)
        for module in tomli.loads((root / "kernels.toml").read_text())["module"]:
            yield module["name"], parse_file(root / module["source"], root=root).module


def wide_instructions(lines: list[str]) -> int:
    """Instructions of a disassembled module whose results are integers of 64 bits, constants left out."""
    types = {line.split()[0] for line in lines if re.search(r"= OpTypeInt 64 ", line)}
    results = [re.search(r"= (Op\w+) (%\w+)", line) for line in lines]
    return sum(
        1 for found in results if found and found[2] in types and not found[1].startswith(("OpConstant", "OpType"))
    )


def parts(blob: Blob) -> Iterator[bytes]:
    for record in blob.kernels:
        start, size = int(record.extra["code_start"]), int(record.extra["code_bytes"])
        yield blob.data[start : start + size]


def show_code() -> None:
    registry = Registry.installed()
    print(
        "target", "indices", "kernels", "instructions", "of 64 bits", "device bytes", "host bytes", "build ms", sep="\t"
    )
    for text in TARGETS:
        kind = registry.target_kind("vulkan")
        target = kind.resolve(parse_target(text))
        for width in (WIDE, NARROW, BOTH):
            totals = np.zeros(6)
            for name, module in modules():
                begin = time.process_time()
                blobs = generate(module, target, registry, Settings(name, indices=width, hosts=("x86-64-v2",))).blobs
                took = (time.process_time() - begin) * 1e3
                (device,) = [blob for blob in blobs if blob.kind == "spirv"]
                host = sum(len(blob.data) for blob in blobs if blob is not device)
                texts = [disassembly(part) for part in parts(device)]
                wide = sum(map(wide_instructions, texts))
                totals += [len(texts), sum(map(len, texts)), wide, len(device.data), host, took]
            print(text, width, *(round(total) for total in totals), sep="\t", flush=True)


def show_runs(device: str) -> None:
    opened = Runtimes(Registry.installed()).device(device)
    names = ("saxpy", "stencil", "matmul", "rearrange")
    module = parse_source(KERNELS, "index_widths.py", functions=names).module
    print("target", "indices", *names, sep="\t")
    for text in TARGETS:
        launches: dict[tuple[str, str], Callable[[], object]] = {}
        for width in (WIDE, NARROW, BOTH):
            backend = DeviceBackend(text, opened, indices=width, verify=False)
            pack, gpu = backend.pack(module), backend.device
            square = [gpu.array(np.ones((SIDE, SIDE), np.float32)) for _ in range(2)]
            small = [gpu.array(np.ones((SIDE // 4, SIDE // 4), np.float32)) for _ in range(3)]
            flat = [gpu.array(np.ones(SIDE * SIDE, np.float32)) for _ in range(2)]
            arguments = {"saxpy": flat, "stencil": square, "matmul": small, "rearrange": [*flat, 16, 32]}
            launches |= {(width, name): partial(pack[name], *arguments[name]) for name in names}
        took = {each: [milliseconds(gpu, launch)] for each, launch in launches.items()}
        for _ in range(ROUNDS):
            # In turns, since other work of the machine comes and goes.
            for each, launch in launches.items():
                took[each].append(milliseconds(gpu, launch))
        for width in (WIDE, NARROW, BOTH):
            # The first launch builds the pipeline.
            print(text, width, *(f"{min(took[width, name][1:]):.2f}" for name in names), sep="\t", flush=True)


def milliseconds(gpu: Any, launch: Callable[[], object]) -> float:
    begin = time.process_time()
    launch()
    gpu.synchronize()
    return (time.process_time() - begin) * 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="vulkan:0")
    parser.add_argument("--only", choices=("code", "runs"))
    options = parser.parse_args()
    if options.only != "runs":
        show_code()
    if options.only != "code":
        show_runs(options.device)


if __name__ == "__main__":
    main()
