"""Kernels through the whole pipeline: LLVM gives what the reference executor gives for the code before any pass."""

from __future__ import annotations

import numpy as np
import pytest

from gristmill.interp import execute
from gristmill.ir.target import parse_target
from gristmill.ir.verify import check
from gristmill.passes.manager import RunOptions
from gristmill.passes.pipeline import build_pipeline
from gristmill.plugin.protocols import PassContext
from gristmill.plugin.registry import Registry
from gristmill.script import parse_source
from gristmill_llvm.cpu import CPU

HEADER = "from gristmill.script import tir as T\n\n"
SEED = 977

KERNELS = {
    "stencil": (
        """
@T.prim_func
def f(a: T.Buffer(("h", "w"), "float32"), b: T.Buffer(("h", "w"), "float32")):
    for y in range(1, h - 1):
        for x in range(1, w - 1):
            b[y, x] = (a[y - 1, x] + a[y + 1, x] + a[y, x - 1] + a[y, x + 1]) * T.float32(0.25) - a[y, x]
""",
        [("float32", (9, 13)), ("float32", (9, 13))],
    ),
    "histogram": (
        """
@T.prim_func
def f(a: T.Buffer(("n",), "uint8"), counts: T.Buffer((256,), "int32")):
    for i in range(256):
        counts[i] = 0
    for i in range(n):
        counts[a[i]] = counts[a[i]] + 1
""",
        [("uint8", (500,)), ("int32", (256,))],
    ),
    "integer corners": (
        """
@T.prim_func
def f(a: T.Buffer(("n",), "int32"), b: T.Buffer(("n",), "int32"), c: T.Buffer(("n", 6), "int32")):
    for i in range(n):
        c[i, 0] = a[i] // b[i]
        c[i, 1] = a[i] % b[i]
        c[i, 2] = T.truncdiv(a[i], b[i])
        c[i, 3] = a[i] << b[i]
        c[i, 4] = a[i] >> b[i]
        c[i, 5] = T.min(a[i], b[i]) * T.max(a[i], b[i])
""",
        [("int32", (200,)), ("int32", (200,)), ("int32", (200, 6))],
    ),
    "mixed casts": (
        """
@T.prim_func
def f(a: T.Buffer(("n",), "float64"), b: T.Buffer(("n", 4), "int64")):
    for i in range(n):
        b[i, 0] = T.Cast("int64", T.Cast("uint8", a[i]))
        b[i, 1] = T.Cast("int64", T.Cast("int32", T.Cast("float32", a[i])))
        b[i, 2] = T.Cast("int64", a[i])
        b[i, 3] = T.Cast("int64", T.Cast("int8", T.Cast("int64", a[i])))
""",
        [("float64", (300,)), ("int64", (300, 4))],
    ),
    "helper with early return": (
        """
@T.prim_func(private=True)
def clamp(x: T.float32) -> T.float32:
    if x < T.float32(0):
        return T.float32(0)
    if x > T.float32(1):
        return T.float32(1)
    return x

@T.prim_func
def f(a: T.Buffer(("n",), "float32"), b: T.Buffer(("n",), "float32")):
    for i in range(n):
        b[i] = clamp(a[i] * T.float32(2))
""",
        [("float32", (100,)), ("float32", (100,))],
    ),
    "while, break and continue": (
        """
@T.prim_func
def f(a: T.Buffer(("n",), "int64"), b: T.Buffer(("n",), "int64")):
    for i in range(n):
        if a[i] < 0:
            b[i] = -1
            continue
        x = a[i] % 1000 + 1
        steps = T.int64(0)
        while x != 1:
            if steps > 100:
                break
            if x % 2 == 0:
                x = x // 2
            else:
                x = x * 3 + 1
            steps = steps + 1
        b[i] = steps
""",
        [("int64", (64,)), ("int64", (64,))],
    ),
    "row softmax with a temporary": (
        """
@T.prim_func
def f(a: T.Buffer(("m", "n"), "float32"), b: T.Buffer(("m", "n"), "float32")):
    row = T.alloc_buffer((n,), "float32")
    for i in range(m):
        top = a[i, 0]
        for j in range(n):
            top = T.max(top, a[i, j])
        total = T.float32(0)
        for j in range(n):
            row[j] = a[i, j] - top
            total = total + row[j]
        for j in range(n):
            b[i, j] = row[j] + total
""",
        [("float32", (7, 33)), ("float32", (7, 33))],
    ),
    "vectorized and unrolled loops": (
        """
@T.prim_func
def f(a: T.Buffer((64,), "float32"), b: T.Buffer((64,), "float32")):
    for i in T.serial(4):
        for j in T.vectorized(16):
            b[i * 16 + j] = a[i * 16 + j] * T.float32(3) + b[i * 16 + j]
    for i in T.unroll(4):
        b[i] = b[i] + a[63 - i]
    for i in T.parallel(64):
        b[i] = b[i] - T.float32(1)
""",
        [("float32", (64,)), ("float32", (64,))],
    ),
    # Inlined into the packed interface, which is left unoptimised, this code stopped LLVM 22 by an assertion.
    "a quotient of vectors of bytes": (
        """
@T.prim_func
def f(q: T.Buffer((8,), "uint8"), k: T.Buffer((8,), "int32")):
    for i in T.vectorized(8):
        q[i] = T.Cast("uint8", k[i]) * q[i] // T.uint8(3)
""",
        [("uint8", (8,)), ("int32", (8,))],
    ),
    "sums of products of bytes": (
        """
@T.prim_func
def f(a: T.Buffer(("n",), "int32"), b: T.Buffer(("n",), "int32"), c: T.Buffer(("n",), "int32"),
      u: T.Buffer(("n",), "uint32")):
    for i in range(n):
        c[i] = T.dp4a(a[i], b[i], c[i])
    for i in T.vectorized(8):
        u[i] = T.dp4a(u[i], u[i], u[i])
    for i in range(n):
        c[i] = T.dp4a(a[i], u[i], c[i])
    for i in T.vectorized(8):
        c[i] = T.dp4a(u[i], b[i], c[i])
""",
        [("int32", (50,)), ("int32", (50,)), ("int32", (50,)), ("uint32", (50,))],
    ),
    "bools": (
        """
@T.prim_func
def f(a: T.Buffer(("n",), "float32"), b: T.Buffer(("n",), "bool"), c: T.Buffer(("n",), "bool")):
    for i in range(n):
        c[i] = (a[i] > T.float32(0) and b[i]) or not b[i]
""",
        [("float32", (50,)), ("bool", (50,)), ("bool", (50,))],
    ),
}


def arguments(shapes):
    random = np.random.default_rng(SEED)
    made = []
    for dtype, shape in shapes:
        kind = np.dtype(dtype)
        if kind.kind == "f":
            values = (random.standard_normal(shape) * 10.0 ** random.integers(-2, 12, shape)).astype(kind)
            values.reshape(-1)[:3] = [np.inf, -np.inf, 0]
        elif kind.kind == "b":
            values = random.random(shape) < 0.5
        else:
            info = np.iinfo(kind)
            values = random.integers(info.min, info.max, shape, dtype=kind, endpoint=True)
            small = random.random(shape) < 0.5
            values = np.where(small, (values % kind.type(40)) - kind.type(3 if info.min else 0), values).astype(kind)
            values.reshape(-1)[:2] = [info.min, info.max]
        made.append(values)
    return made


@pytest.fixture(scope="module")
def entries():
    return Registry.installed().pass_entries()


@pytest.mark.parametrize("optimization", [0, 3])
@pytest.mark.parametrize("name", KERNELS)
def test_kernel(compile_module, entries, name, optimization):
    text, shapes = KERNELS[name]
    module = parse_source(HEADER + text, "kernel.py").module
    check(module)
    target = CPU.resolve(parse_target("cpu:x86-64-v3"))
    context = PassContext(target, CPU.capabilities(target), {"optimization": optimization, "fast_math": False})
    lowered = build_pipeline(context, entries).run(module, RunOptions())
    check(lowered)
    given, expected = arguments(shapes), arguments(shapes)
    with np.errstate(all="ignore"):
        execute(module, "f", expected)
    compiled = compile_module(lowered.functions, optimization=optimization)
    compiled.packed("f")(*given)
    for place, (found, wanted) in enumerate(zip(given, expected, strict=True)):
        np.testing.assert_array_equal(found, wanted, err_msg=f"argument {place}, seed {SEED}")
