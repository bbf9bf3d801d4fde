"""Control flow, functions, and memory of kernels give on a Vulkan device what they give in the executor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gristmill.interp import Executor
from gristmill.testing.programs.comparison import bits

TARGETS = ("vulkan+float64", "vulkan:1.2+address+float64")
HEAD = '@T.prim_func\ndef f(x: T.Buffer((64,), "int64"), y: T.Buffer((64,), "int64")):\n'
PLAIN = HEAD + "    for i in range(64):\n"
BLOCK = HEAD + '    for i in T.thread_binding(64, thread="threadIdx.x"):\n'


def body(start: str, *lines: str) -> str:
    return start + "".join(f"        {line}\n" for line in lines)


CASES = {
    "an early return": body(PLAIN, "if x[i] < 0:", "    return", "y[i] = x[i]"),
    "an early return of some threads only": body(BLOCK, "if x[i] % 3 == 1:", "    return", "y[i] = x[i] + 1"),
    "both ways of a condition return": body(
        BLOCK, "if x[i] < 0:", "    y[i] = 1", "    return", "else:", "    y[i] = 2", "    return", "y[i] = 3"
    ),
    "a return in a loop": body(
        BLOCK, "for k in range(10):", "    if x[i] + k > 12:", "        return", "    y[i] = k", "y[i] = 99"
    ),
    "a return in a loop in a loop": body(
        BLOCK,
        "for j in range(4):",
        "    for k in range(4):",
        "        y[i] = y[i] + j * k",
        "        if j * k > x[i]:",
        "            return",
        "    y[i] = y[i] + 100",
        "y[i] = y[i] + 1000",
    ),
    "a loop that always breaks": body(BLOCK, "for k in range(10):", "    y[i] = y[i] + k + 1", "    break"),
    "a loop that always returns": body(BLOCK, "for k in range(x[i]):", "    y[i] = 7", "    return", "y[i] = 5"),
    "a while that always returns": body(BLOCK, "while x[i] > 3:", "    y[i] = 7", "    return", "y[i] = 5"),
    "break and continue": body(
        BLOCK,
        "total = T.int64(0)",
        "for k in range(20):",
        "    if k % 3 == x[i] % 3:",
        "        continue",
        "    if k > x[i]:",
        "        break",
        "    total += k",
        "y[i] = total",
    ),
    "break in nested conditions of a while": body(
        BLOCK,
        "n = x[i]",
        "while n < 40:",
        "    if n % 2 == 0:",
        "        if n % 3 == 0:",
        "            if n % 5 == 0:",
        "                break",
        "            else:",
        "                n += 4",
        "                continue",
        "        n += 1",
        "    else:",
        "        n += 3",
        "y[i] = n",
    ),
    "both ways of a condition leave the loop": body(
        BLOCK,
        "n = T.int64(0)",
        "for k in range(9):",
        "    n += k",
        "    if n > x[i]:",
        "        break",
        "    else:",
        "        continue",
        "y[i] = n",
    ),
    "while with a condition that looks things up": body(
        BLOCK, "k = T.int64(0)", "while k < 64 and x[k] != i:", "    k += 1", "y[i] = k"
    ),
    "an inner loop whose extent depends on an outer one": body(
        BLOCK, "for j in range(x[i] % 7):", "    for k in range(j, j + 3):", "        y[i] = y[i] * 3 + k"
    ),
    "continue in a loop over threads": body(BLOCK, "if x[i] > 5:", "    continue", "y[i] = 11"),
    "a choice in a condition in a loop": body(
        BLOCK,
        "for k in range(5):",
        "    if (x[i] if x[i] > k else k) > 3 and (k == 0 or y[i] // k < 9):",
        "        y[i] = y[i] + (x[(i + k) % 64] if k > 1 else -k)",
    ),
    "local memory": body(
        BLOCK,
        'seen = T.alloc_buffer((8,), "int64", scope="local")',
        "for k in range(8):",
        "    seen[k] = x[i] * k",
        "for k in range(8):",
        "    y[i] = y[i] + seen[(k + i) % 8] * (k + 1)",
    ),
    "shared memory and barriers": body(
        BLOCK,
        'tile = T.alloc_buffer((64,), "int64", scope="shared")',
        "tile[i] = x[i]",
        'T.tvm_storage_sync("shared")',
        "for k in range(3):",
        "    value = tile[(i * 7 + k) % 64]",
        '    T.tvm_storage_sync("shared")',
        "    tile[i] = value + k",
        '    T.tvm_storage_sync("shared")',
        "y[i] = tile[63 - i]",
    ),
    "sibling loops over the threads": HEAD
    + """    for b in T.thread_binding(1, thread="blockIdx.x"):
        for i in T.thread_binding(64, thread="threadIdx.x"):
            if x[0] > 100:
                y[i] = 1
        for k in T.thread_binding(64, thread="threadIdx.x"):
            y[k] = y[k] + k
""",
    "lanes of vectors": HEAD
    + """    for i in range(16):
        for k in T.vectorized(4):
            y[i * 4 + k] = (x[i * 4 + k] if x[i * 4 + k] > 3 else k) * 2 - k
""",
    "three lanes": HEAD
    + """    for i in range(21):
        for k in T.vectorized(3):
            y[i * 3 + k] = x[i * 3 + k] + k
""",
    "functions with results and early returns": """@T.prim_func(private=True)
def first_over(x: T.Buffer((64,), "int64"), start: T.int64, least: T.int64) -> T.int64:
    for k in range(64):
        if x[(start + k) % 64] > least:
            return k
        if k > 50:
            break
    if least > 5:
        return -1
    return -2

"""
    + body(BLOCK, "y[i] = first_over(x, i, x[i]) + first_over(x, 0, 200) * 100"),
    "functions that write through their arguments": """@T.prim_func(private=True)
def add(to: T.Buffer((64,), "int64"), at: T.int64, what: T.int64):
    if what < 0:
        return
    to[at] = to[at] + what

"""
    + body(
        BLOCK,
        'own = T.alloc_buffer((64,), "int64", scope="local")',
        'tile = T.alloc_buffer((64,), "int64", scope="shared")',
        "own[i % 3] = 1",
        "tile[i] = 2",
        "add(own, i % 3, x[i])",
        "add(tile, i, x[i] * 2)",
        "add(y, i, own[i % 3] + tile[i])",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_it_is_as_the_executor_says(case: str, parsed: Callable[..., Any], on_vulkan: Callable[..., Any]) -> None:
    module = parsed(CASES[case])
    x = np.random.default_rng(3).integers(-2, 20, 64, np.int64)
    expected: list[Any] = [x, np.zeros(64, np.int64)]
    Executor(module).call("f", expected)
    for target in TARGETS:
        given = [x.copy(), np.zeros(64, np.int64)]
        on_vulkan(target)(module, "f", given)
        np.testing.assert_array_equal(given[1], expected[1], err_msg=target)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("optimization", [0, 3])
def test_it_is_valid(case: str, optimization: int, parsed: Callable[..., Any], written: Callable[..., Any]) -> None:
    for target in (*TARGETS, "vulkan:1.3"):
        written(parsed(CASES[case]), target, optimization)


SCALARS = """@T.prim_func
def f(a: T.bool, b: T.int8, c: T.uint8, d: T.int16, e: T.uint16, g: T.int32, h: T.uint32, i: T.int64, j: T.uint64,
      k: T.float16, l: T.bfloat16, m: T.float32, n: T.float64, x: T.Buffer((13,), "float64")):
    x[0] = T.float64(a)
    x[1] = T.float64(b)
    x[2] = T.float64(c)
    x[3] = T.float64(d)
    x[4] = T.float64(e)
    x[5] = T.float64(g)
    x[6] = T.float64(h)
    x[7] = T.float64(i)
    x[8] = T.float64(j)
    x[9] = T.float64(k)
    x[10] = T.float64(l)
    x[11] = T.float64(m)
    x[12] = n
"""


@pytest.mark.parametrize(
    "target",
    ["vulkan+float64", "vulkan:1.2+address+float64", "uniform"],
)
def test_scalars_of_every_type(target: str, parsed: Callable[..., Any], on_vulkan: Callable[..., Any]) -> None:
    """Thirteen scalars take 72 bytes beside the array's: in push constants, or in a uniform buffer."""
    own = [True, -128, 255, -32768, 65535, -(2**31), 2**32 - 1, -(2**53), 2**53, 0.5, -1.5, 3.25, 1e300]
    module = parsed(SCALARS)
    found = np.zeros(13)
    run = on_vulkan("vulkan+float64", max_push_constants_size=8) if target == "uniform" else on_vulkan(target)
    run(module, "f", [*own, found])
    np.testing.assert_array_equal(found, np.array(own, np.float64))


BOOLS = """@T.prim_func
def f(x: T.Buffer((8,), "bool"), y: T.Buffer((8,), "int32"), z: T.Buffer((8,), "float32"), w: T.Buffer((8,), "bool")):
    for i in range(8):
        y[i] = T.int32(x[i])
        z[i] = T.float32(x[i])
        w[i] = not x[i]
"""


def test_bool_arrays(parsed: Callable[..., Any], on_vulkan: Callable[..., Any]) -> None:
    x = np.array([True, False] * 4)
    given = [x, np.zeros(8, np.int32), np.zeros(8, np.float32), np.zeros(8, bool)]
    on_vulkan()(parsed(BOOLS), "f", given)
    for found in given[1:3]:
        np.testing.assert_array_equal(found, x)
    np.testing.assert_array_equal(given[3], ~x)


HALVES = """@T.prim_func
def f(x: T.Buffer((63,), "float16"), y: T.Buffer((63,), "float16")):
    for i in range(21):
        for k in T.vectorized(3):
            y[i * 3 + k] = x[i * 3 + k] + x[60 - i * 3 + k]
"""


def test_halves_of_three_lanes(parsed: Callable[..., Any], on_vulkan: Callable[..., Any]) -> None:
    module = parsed(HALVES)
    x = np.arange(63, dtype=np.float16)
    expected, given = [x, np.zeros_like(x)], [x, np.zeros_like(x)]
    Executor(module).call("f", expected)
    on_vulkan()(module, "f", given)
    np.testing.assert_array_equal(bits(given[1]), bits(expected[1]))


def nested(depth: int) -> str:
    lines = [f"{'    ' * level}if x[i] > {level % 7 - 3}:" for level in range(depth)]
    return body(BLOCK, *lines, f"{'    ' * depth}y[i] = x[i] + 1")


def many(count: int) -> str:
    return body(BLOCK, *(f"y[i] = y[i] * 3 + x[{k % 64}]" for k in range(count)))


def long_sum(count: int) -> str:
    return body(BLOCK, "y[i] = " + " + ".join(f"x[(i + {k}) % 64]" for k in range(count)))


@pytest.mark.parametrize("make", [nested, many, long_sum])
def test_large_kernels(make: Callable[[int], str], parsed: Callable[..., Any], written: Callable[..., Any]) -> None:
    """60 conditions one in the other, 5,000 statements, a sum of 240 terms."""
    count = {nested: 60, many: 5_000, long_sum: 240}[make]
    found = written(parsed(make(count)), "vulkan", 0)
    assert len(found.data) > 4 * 10 * count


def test_nested_conditions_run(parsed: Callable[..., Any], on_vulkan: Callable[..., Any]) -> None:
    x = np.arange(64, dtype=np.int64) - 3
    given = [x, np.zeros(64, np.int64)]
    on_vulkan("vulkan", optimization=0)(parsed(nested(60)), "f", given)
    np.testing.assert_array_equal(given[1], np.where(x > 3, x + 1, 0))
