"""The sum of products of bytes: NumPy's result by the executor's operation, and by the function that stands for it."""

import numpy as np
import pytest

from gristmill.arith.simplify import simplify
from gristmill.interp import execute
from gristmill.ir.build import call, const, constant_value
from gristmill.ir.dtype import INT32, UINT32
from gristmill.ir.module import Module
from gristmill.ir.verify import check
from gristmill.mathlib import function_for
from gristmill.passes.lower_mathematics import LowerMathematics
from gristmill.passes.manager import Pipeline, RunOptions
from gristmill.script import parse_source

TEXT = """from gristmill.script import tir as T

@T.prim_func
def f(x: T.Buffer((400,), "{byte}"), y: T.Buffer((400,), "{byte}"), c: T.Buffer((100,), "{word}"),
      out: T.Buffer((100,), "{word}")):
    for i in range(100):
        out[i] = T.dp4a(x[i * 4 : i * 4 + 4], y[i * 4 : i * 4 + 4], c[i])
"""


def arrays(byte: str, word: str) -> list[np.ndarray]:
    random = np.random.default_rng(9)
    small, large = np.iinfo(byte), np.iinfo(word)
    x, y = (random.integers(small.min, small.max, 400, byte, endpoint=True) for _ in range(2))
    x[:8], y[:8] = small.min, small.min
    c = random.integers(large.min, large.max, 100, word, endpoint=True)
    c[:2] = large.min, large.max
    return [x, y, c, np.zeros(100, word)]


@pytest.mark.parametrize(("byte", "word"), [("int8", "int32"), ("uint8", "uint32")])
@pytest.mark.parametrize("is_lowered", [False, True])
def test_it_is_the_sum_that_numpy_makes(byte: str, word: str, is_lowered: bool) -> None:
    module = parse_source(TEXT.format(byte=byte, word=word), "kernel.py").module
    check(module)
    if is_lowered:
        module = Pipeline.of([LowerMathematics()]).run(module, RunOptions(verify=True))
        assert "dot4(" not in repr(module.functions[0].body).replace("math_dot4", "")
    x, y, c, out = arrays(byte, word)
    execute(module, "f", [x, y, c, out])
    products = x.astype(np.int64).reshape(100, 4) * y.astype(np.int64).reshape(100, 4)
    np.testing.assert_array_equal(out, (products.sum(1) + c.astype(np.int64)).astype(np.uint64).astype(word))


CORNERS = (0, 1, 127, 128, 129, 254, 255)
WORDS = [one | other << 8 | one << 16 | (255 - other) << 24 for one in CORNERS for other in CORNERS]
MIXED = """from gristmill.script import tir as T

@T.prim_func
def f(x: T.Buffer(("n", 4), "int8"), y: T.Buffer(("n", 4), "uint8"), c: T.Buffer(("n",), "int32"),
      out: T.Buffer(("n",), "int32")):
    for i in range(n):
        out[i] = T.dp4a(x[i, 0:4], y[i, 0:4], c[i])
"""


@pytest.mark.parametrize("is_lowered", [False, True])
def test_signed_by_unsigned_bytes(is_lowered: bool) -> None:
    module = parse_source(MIXED, "kernel.py").module
    check(module)
    if is_lowered:
        module = Pipeline.of([LowerMathematics()]).run(module, RunOptions(verify=True))
        assert "dot4_mixed(" not in repr(module.functions[0].body).replace("math_dot4_mixed", "")
    words = np.array(WORDS, np.uint32)
    x, y = np.repeat(words, len(words)).view(np.int8), np.tile(words, len(words)).view(np.uint8)
    x, y = x.reshape(-1, 4), y.reshape(-1, 4)
    c = np.random.default_rng(3).integers(-(1 << 31), (1 << 31) - 1, len(x), np.int32, endpoint=True)
    out = np.zeros(len(x), np.int32)
    execute(module, "f", [x, y, c, out])
    exact = (x.astype(np.int64) * y.astype(np.int64)).sum(1) + c
    np.testing.assert_array_equal(out, exact.astype(np.uint64).astype(np.int32))


@pytest.mark.parametrize("name", ["dot4", "dot4_mixed"])
@pytest.mark.parametrize("dtype", [INT32, UINT32, INT32.with_lanes(4)], ids=str)
def test_the_function_is_valid(name: str, dtype: object) -> None:
    found = function_for(name, dtype)  # type: ignore[arg-type]
    assert found is not None
    check(Module((found,)))


def test_constants_are_folded() -> None:
    signed = call("dot4", const(-1, INT32), const(0x01020304, INT32), const(7, INT32))
    unsigned = call("dot4", const(0xFFFFFFFF, UINT32), const(0x01020304, UINT32), const(7, UINT32))
    assert constant_value(simplify(signed)) == 7 - 10
    assert constant_value(simplify(unsigned)) == 7 + 255 * 10
    for dtype in (INT32, UINT32):
        mixed = call(
            "dot4_mixed", const(dtype.wrap(0x80FF7F01), dtype), const(dtype.wrap(0xFF80FF01), dtype), const(7, dtype)
        )
        total = -128 * 255 - 1 * 128 + 127 * 255 + 1 + 7
        assert constant_value(simplify(mixed)) == dtype.wrap(total)
