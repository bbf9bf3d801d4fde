"""What the passes make of kernels for a device: vector accesses, unrolled loops, guards that go and guards that stay."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gristmill.build.generation import Settings, generate
from gristmill.codegen.kernel_records import kernels_of
from gristmill.interp import Executor
from gristmill.ir.expr import Load
from gristmill.ir.functor import walk
from gristmill.ir.module import Function
from gristmill.ir.parser import parse_module
from gristmill.ir.stmt import For, If, LoopKind, Store
from gristmill.ir.target import Target
from gristmill.plugin.registry import Registry
from gristmill.script import parse_source
from gristmill.testing.on_reference import ReferenceBackend

HEAD = "from gristmill.script import tir as T\n\n@T.prim_func\n"


@pytest.fixture(scope="module")
def registry() -> Registry:
    return Registry.installed()


def kernel(text: str, registry: Registry, optimization: int = 3) -> Function:
    """The only kernel of a source, as a code generator for the reference device gets it."""
    module = parse_source(HEAD + text, "kernel.py").module
    settings = Settings("kernels", optimization, hosts=())
    (blob,) = generate(module, Target("reference"), registry, settings).blobs
    (found,) = kernels_of(parse_module(blob.data.decode(), "kernels.gmir"))
    return found


def lanes(function: Function) -> tuple[set[int], set[int]]:
    """The lanes of what is loaded and of what is stored."""
    nodes = list(walk(function.body))
    loaded = {node.dtype.lanes for node in nodes if isinstance(node, Load)}
    return loaded, {node.value.dtype.lanes for node in nodes if isinstance(node, Store)}


def loops(function: Function) -> list[For]:
    return [node for node in walk(function.body) if isinstance(node, For) and node.kind is not LoopKind.THREAD]


def guards(function: Function) -> int:
    return sum(1 for node in walk(function.body) if isinstance(node, If))


def same_on_device(text: str, registry: Registry, *shapes: Any) -> None:
    """The kernel gives on the reference device what the function gives in the executor."""
    module = parse_source(HEAD + text, "kernel.py").module
    random = np.random.default_rng(3)
    args = [random.random(shape).astype(np.float32) if isinstance(shape, tuple) else shape for shape in shapes]
    wanted = [arg.copy() if isinstance(arg, np.ndarray) else arg for arg in args]
    Executor(module).call("f", wanted)
    ReferenceBackend(registry=registry, interpreted=True)(module, "f", args)
    for found, right in zip(args, wanted, strict=True):
        np.testing.assert_array_equal(found, right)


VECTORS = {
    "flat arrays": (
        """def f(x: T.Buffer((1024,), "float32"), y: T.Buffer((1024,), "float32")):
    for b in T.thread_binding(4, "blockIdx.x"):
        for t in T.thread_binding(64, "threadIdx.x"):
            for v in T.vectorized(4):
                y[(b * 64 + t) * 4 + v] = x[(b * 64 + t) * 4 + v] * T.float32(2)
""",
        [(1024,), (1024,)],
        4,
    ),
    "rows of a size that the caller gives, and a scalar for all lanes": (
        """def f(x: T.Buffer(("n", 64), "float32"), y: T.Buffer(("n", 64), "float32"), by: T.float32):
    for b in T.thread_binding(n, "blockIdx.x"):
        for t in T.thread_binding(8, "threadIdx.x"):
            for v in T.vectorized(8):
                y[b, t * 8 + v] = x[b, t * 8 + v] * by + T.float32(v)
""",
        [(5, 64), (5, 64), 3.0],
        8,
    ),
    "through shared memory": (
        """def f(x: T.Buffer((128,), "float32"), y: T.Buffer((128,), "float32")):
    s = T.alloc_buffer((128,), "float32", scope="shared")
    for t in T.thread_binding(64, "threadIdx.x"):
        for v in T.vectorized(2):
            s[t * 2 + v] = x[t * 2 + v]
        T.tvm_storage_sync("shared")
        for v in T.vectorized(2):
            y[t * 2 + v] = s[126 - t * 2 + v]
""",
        [(128,), (128,)],
        2,
    ),
    "a choice of each lane": (
        """def f(x: T.Buffer((64,), "float32")):
    for t in T.thread_binding(16, "threadIdx.x"):
        for v in T.vectorized(4):
            x[t * 4 + v] = T.Select(v % 2 == 0, x[t * 4 + v], T.float32(0) - x[t * 4 + v])
""",
        [(64,)],
        4,
    ),
    "a guard around all lanes": (
        """def f(x: T.Buffer(("n", 4), "float32")):
    for b in T.thread_binding((n + 7) // 8, "blockIdx.x"):
        for t in T.thread_binding(8, "threadIdx.x"):
            if b * 8 + t < n:
                for v in T.vectorized(4):
                    x[b * 8 + t, v] = x[b * 8 + t, v] + T.float32(1)
""",
        [(13, 4)],
        4,
    ),
}


@pytest.mark.parametrize(("text", "shapes", "width"), VECTORS.values(), ids=VECTORS)
@pytest.mark.parametrize("optimization", [0, 3])
def test_vectorized_loops_are_vector_accesses(
    registry: Registry, text: str, shapes: list[Any], width: int, optimization: int
) -> None:
    found = kernel(text, registry, optimization)
    assert lanes(found) == ({width}, {width})
    assert not loops(found)
    same_on_device(text, registry, *shapes)


def test_lanes_that_branch_run_one_after_the_other(registry: Registry) -> None:
    """There is no vector form where each lane decides whether it writes."""
    text = """def f(x: T.Buffer((10,), "float32")):
    for t in T.thread_binding(3, "threadIdx.x"):
        for v in T.vectorized(4):
            if t * 4 + v < 10:
                x[t * 4 + v] = x[t * 4 + v] * T.float32(2)
"""
    found = kernel(text, registry)
    assert lanes(found) == ({1}, {1})
    assert guards(found) == 1
    same_on_device(text, registry, (10,))


def test_unrolled_loops_are_their_bodies(registry: Registry) -> None:
    text = """def f(x: T.Buffer((1024,), "float32"), y: T.Buffer((1024,), "float32")):
    for b in T.thread_binding(4, "blockIdx.x"):
        for t in T.thread_binding(64, "threadIdx.x"):
            for v in T.unroll(4):
                y[(b * 4 + v) * 64 + t] = x[(b * 4 + v) * 64 + t] * T.float32(v + 2)
"""
    found = kernel(text, registry)
    assert not loops(found)
    assert sum(1 for node in walk(found.body) if isinstance(node, Store)) == 4
    same_on_device(text, registry, (1024,), (1024,))
    plain = kernel(text, registry, optimization=0)
    assert [loop.kind for loop in loops(plain)] == [LoopKind.UNROLLED]


def test_a_loop_too_long_to_unroll_is_left_to_the_code_generator(registry: Registry) -> None:
    text = """def f(x: T.Buffer((64, 1000), "float32")):
    for t in T.thread_binding(64, "threadIdx.x"):
        for v in T.unroll(1000):
            x[t, v] = T.float32(1)
"""
    assert [loop.kind for loop in loops(kernel(text, registry))] == [LoopKind.UNROLLED]


GUARDS = {
    "blocks that fit": ("1024", "4", "256", "b * 256 + t < 1024", 0),
    "the last block is too long": ("1000", "4", "256", "b * 256 + t < 1000", 1),
    "one element too few": ("1023", "4", "256", "b * 256 + t < 1023", 1),
    "one block too many": ("1024", "5", "256", "b * 256 + t < 1024", 1),
    "the other way round": ("1024", "4", "256", "not (b * 256 + t >= 1024)", 0),
    "and from below": ("1024", "4", "256", "0 <= b * 256 + t and b * 256 + t <= 1023", 0),
    "one half is needed": ("1000", "4", "256", "b * 256 + t >= 0 and b * 256 + t < 1000", 1),
    "one block an element": ('"n"', "n", "1", "b + t < n", 0),
    "one thread an element": ('"n"', "1", "n", "b + t < n", 0),
    "blocks of a size that the caller gives, rounded up": ('"n"', "(n + 255) // 256", "256", "b * 256 + t < n", 1),
    "blocks of a size that the caller gives, rounded down": ('"n"', "n // 128", "128", "b * 128 + t < n", 0),
    "rounded down, and one more": ('"n"', "n // 128 + 1", "128", "b * 128 + t < n", 1),
}


@pytest.mark.parametrize(("size", "blocks", "threads", "guard", "left"), GUARDS.values(), ids=GUARDS)
def test_guards_that_always_hold_go_and_others_stay(
    registry: Registry, size: str, blocks: str, threads: str, guard: str, left: int
) -> None:
    index = "b + t" if "b + t" in guard else f"b * {threads} + t"
    text = f"""def f(x: T.Buffer(({size},), "float32")):
    for b in T.thread_binding({blocks}, "blockIdx.x"):
        for t in T.thread_binding({threads}, "threadIdx.x"):
            if {guard}:
                x[{index}] = x[{index}] + T.float32(1)
"""
    assert guards(kernel(text, registry)) == left
    assert guards(kernel(text, registry, optimization=0)) == 1
    for count in [int(size)] if size.isdigit() else [0, 1, 127, 128, 300]:
        same_on_device(text, registry, (count,))
