"""Sums of products of bytes in kernels: each spelling, and what is refused."""

import numpy as np
import pytest

from gristmill.interp.executor import execute
from gristmill.ir.verify import check
from gristmill.script import parse_source
from gristmill.testing.marked_errors import check_marked

HEADER = """from gristmill.script import tir as T

@T.prim_func
def f(x: T.Buffer((8,), "int8"), y: T.Buffer((8,), "int8"), u: T.Buffer((8,), "uint8"), w: T.Buffer((2,), "int32"),
      out: T.Buffer((2,), "int32"), more: T.Buffer((2,), "uint32")):
"""


@pytest.mark.parametrize(
    "value",
    [
        "T.dp4a(x[0:4], y[0:4], 5)",
        "T.dp4a(x[0:4], y[0:4]) + 5",
        "T.dp4a(w[0], y[0:4], c=5)",
        'T.dp4a(T.reinterpret("int32", x[0:4]), T.reinterpret("int32", y[0:4]), 5)',
        'T.call_pure_extern("int32", "__dp4a", x[0:4], y[0:4], 5)',
        'T.call_extern("int32", "__dp4a", x.vload([0], "int8x4"), y[0:4], T.int32(5))',
    ],
)
def test_each_spelling(value: str) -> None:
    module = parse_source(HEADER + f"    out[0] = {value}\n", "kernel.py").module
    check(module)
    x, y = np.array([-128, 127, 3, -1] * 2, np.int8), np.array([-128, -128, 5, 7] * 2, np.int8)
    out = np.zeros(2, np.int32)
    execute(module, "f", [x, y, x.view(np.uint8), x.view(np.int32), out, out.view(np.uint32)])
    assert out[0] == int(np.dot(x[:4].astype(int), y[:4].astype(int))) + 5


def test_unsigned_bytes() -> None:
    module = parse_source(HEADER + "    more[0] = T.dp4a(u[0:4], u[4:8], more[1])\n", "kernel.py").module
    check(module)
    u, more = np.full(8, 255, np.uint8), np.array([0, 3], np.uint32)
    zeros = np.zeros(8, np.int8)
    execute(module, "f", [zeros, zeros, u, np.zeros(2, np.int32), np.zeros(2, np.int32), more])
    assert more[0] == 4 * 255 * 255 + 3


@pytest.mark.parametrize(
    "value",
    [
        "T.dp4a(x[0:4], u[0:4], 5)",
        "T.dp4a(u[0:4], x[0:4], 5)",
        'T.dp4a(w[0], T.reinterpret("uint32", u[0:4])) + 5',
        'T.call_pure_extern("int32", "__dp4a", x[0:4], u[0:4], 5)',
    ],
)
def test_signed_bytes_by_unsigned_ones(value: str) -> None:
    module = parse_source(HEADER + f"    out[0] = {value}\n", "kernel.py").module
    check(module)
    assert "dot4_mixed" in repr(module.functions[0].body)
    x, u = np.array([-128, 127, 3, -1] * 2, np.int8), np.array([255, 128, 0, 200] * 2, np.uint8)
    out = np.zeros(2, np.int32)
    execute(module, "f", [x, x, u, x.view(np.int32), out, out.view(np.uint32)])
    assert out[0] == int(np.dot(x[:4].astype(int), u[:4].astype(int))) + 5


CASES = {
    "bytes of a float": """
    out[0] = T.dp4a(x[0:4], T.float32(1))
                            ^^^^^^^^^^^^ GM0347 load four neighbours
""",
    "a sum of mixed signs that does not fit": """
    out[0] = T.dp4a(x[0:4], u[0:4], more[0])
                                    ^^^^^^^ GM0262 if the loss is meant
""",
    "eight bytes": """
    out[0] = T.dp4a(x[0:8], y[0:8])
                    ^^^^^^ GM0347 load four neighbours
""",
    "one byte": """
    out[0] = T.dp4a(x[0], y[0])
                    ^^^^ GM0347 load four neighbours
""",
    "a sum that does not fit": """
    out[0] = T.dp4a(x[0:4], y[0:4], more[0])
                                    ^^^^^^^ GM0262 if the loss is meant
""",
}


@pytest.mark.parametrize("name", CASES)
def test_mistake(name: str) -> None:
    check_marked(HEADER + CASES[name].lstrip("\n"), lambda text: parse_source(text, "kernel.py"))
