"""Which loops are independent: for each nest the loops that many threads may run."""

from __future__ import annotations

import pytest

from gristmill.ir.functor import walk
from gristmill.ir.stmt import Bind, For
from gristmill.schedule.independence import Independence
from gristmill.schedule.memory_roots import memory_roots
from gristmill.testing.pass_equivalence import kernels

HEAD = """@T.prim_func
def f(a: T.Buffer(("n", "m"), "int64"), b: T.Buffer(("n",), "int64"), c: T.Buffer(("n * m",), "int64"), k: T.int64,
      d: T.Buffer((4, 1, "n", "m"), "int64"), e: T.Buffer(("l", "n", "m"), "int64")):
"""


def independent(*lines: str) -> list[str]:
    """The names of the independent loops; the nest is all loops down to the first that holds no loop alone."""
    function = kernels(HEAD + "\n".join("    " + line for line in lines)).functions[0]
    loops = [next(node for node in walk(function.body) if isinstance(node, For))]
    while isinstance(loops[-1].body, For):
        loops.append(loops[-1].body)
    binds: list[Bind] = []
    found = Independence(loops, binds, loops[-1].body, memory_roots(function), function.params)
    return [loop.var.name for loop in found.independent()]


@pytest.mark.parametrize(
    ("nest", "loops"),
    [
        # One dimension for each loop.
        (["for y, x in T.grid(n, m):", "    a[y, x] = y + x"], ["y", "x"]),
        (["for y, x in T.grid(n, m):", "    a[n - 1 - y, x] = y"], ["y", "x"]),
        (["for y, x in T.grid(n, m):", "    b[y] = b[y] + x"], ["y"]),
        (["for y, x in T.grid(n, m):", "    a[y, x] = a[y, x] + 1"], ["y", "x"]),
        # What one iteration writes and another one reads.
        (["for i in range(n - 1):", "    b[i] = b[i + 1]"], []),
        (["for i in range(n):", "    b[i // 2] = i"], []),
        (["for i in range(n):", "    b[b[i]] = i"], []),
        (["for y, x in T.grid(n, m):", "    a[y, x] = a[y, 0]"], ["y"]),
        (["for i in range(4):", "    b[i * k] = i"], []),
        # Steps, with room for what lies between.
        (["for i in range(4):", "    for j in range(4):", "        b[i * 4 + j] = 1"], ["i", "j"]),
        (["for i in range(4):", "    for j in range(5):", "        b[i * 4 + j] = 1"], []),
        (["for i in range(4):", "    b[i * 2] = b[i * 2 + 1]"], ["i"]),
        (["for i in range(4):", "    b[i * 2] = b[i * 2 + 2]"], []),
        (["for i in range(4):", "    b[9 - i * 2] = b[8 - i * 2]"], ["i"]),
        # Rows of flat arrays, and tiles that are cut off.
        (["for y, x in T.grid(n, m):", "    c[y * m + x] = 1"], ["y", "x"]),
        (["for y, x in T.grid(n, m):", "    c[x * n + y] = 1"], ["y", "x"]),
        (["for y, x in T.grid(n, m):", "    c[y * n + x] = 1"], []),
        (
            ["for t in range((n + 7) // 8):", "    for i in range(t * 8, T.min(n, t * 8 + 8)):", "        b[i] = 1"],
            ["t", "i"],
        ),
        (
            ["for t in range((n + 7) // 8):", "    for i in range(t * 8, T.min(n, t * 8 + 9)):", "        b[i] = 1"],
            [],
        ),
        # Digits of one number.
        (["for i in range(n * m):", "    a[i // m, i % m] = i"], ["i"]),
        (["for i in range(n * m):", "    a[i % n, i // n] = i"], ["i"]),
        (["for i in range(n * m):", "    a[i % m, i // m] = i"], ["i"]),
        (["for i in range(n * m):", "    a[i // m % n, i % m] = i"], ["i"]),
        (["for i in range(n * m):", "    c[i % m * n + i // m] = i"], ["i"]),
        (["for i in range(n * m):", "    c[i // m * m + i % m] = i"], ["i"]),
        (["for i in range(64):", "    a[i // 8, i % 8] = i"], ["i"]),
        (["for i in range(64):", "    a[i >> 3, i & 7] = i"], ["i"]),
        (["for i in range(64):", "    b[i % 8 * 8 + i // 8] = i"], ["i"]),
        (["for i in range(64):", "    a[T.truncdiv(i, 8), T.truncmod(i, 8)] = i"], ["i"]),
        (["for i in range(64):", "    a[(63 - i) // 8, (63 - i) % 8] = i"], ["i"]),
        (["for i in range(3, 64):", "    a[(i + 5) // 8, (i + 5) % 8] = a[(i + 5) // 8, (i + 5) % 8] + 1"], ["i"]),
        (["for i in range(k):", "    a[i // m, i % m] = i"], ["i"]),
        (["for y, i in T.grid(4, n * m):", "    d[y, i // (n * m), i // m % n, i % m] = i"], ["y", "i"]),
        (["for i in range(k):", "    e[i // (n * m), i // m % n, i % m] = i"], ["i"]),
        (["for i in range(k):", "    e[i // m // n, i // m % n, i % m] = i"], ["i"]),
        (["for i in range(k):", "    e[i // (n * m), i % (n * m) // m, i % m] = i"], ["i"]),
        (["for i, j in T.grid(n, m):", "    a[(i * m + j) // m, (i * m + j) % m] = i"], ["i", "j"]),
        (["for i, j in T.grid(n // 4, m):", "    for s in range(4):", "        a[i * 4 + s, j] = i"], ["i", "j", "s"]),
        # Digits that do not suffice, or are those of different numbers.
        (["for i in range(n * m):", "    a[i // m, i % n] = i"], []),
        (["for i in range(n * m):", "    a[i // m, 0] = i"], []),
        (["for i in range(64):", "    a[i // 8, i % 4] = i"], []),
        (["for i in range(64):", "    a[i // 8 % 4, i % 8] = i"], []),
        (["for i in range(64):", "    b[i % 8 * 4 + i // 8] = i"], []),
        (["for i in range(k):", "    a[i // k, i % k] = i"], []),
        (["for i in range(k):", "    e[i // m % n, i // m % n, i % m] = i"], []),
        (["for i in range(64):", "    a[i // 8, (i + 1) % 8] = i"], []),
        (["for i in range(64):", "    a[i // 8, i % 8] = a[i // 8, (i + 1) % 8]"], []),
        # The word of an author.
        (
            [
                "for y, x in T.grid(n, m):",
                "    with T.block('sum'):",
                "        vy, vx = T.axis.remap('SR', [y, x])",
                "        b[b[vy]] = b[b[vy]] + a[vy, vx]",
            ],
            ["y"],
        ),
    ],
)
def test_loops(nest: list[str], loops: list[str]) -> None:
    assert independent(*nest) == loops


def test_all_written_memory_must_tell_the_iteration() -> None:
    assert independent("for y, x in T.grid(n, m):", "    a[y, x] = 1", "    b[x] = 2") == ["x"]
    assert independent("for y, x in T.grid(n, m):", "    a[y, x] = 1", "    b[0] = 2") == []
