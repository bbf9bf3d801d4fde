"""Operations on tiles of matrices: what they compute in each type, and what the executor reports of their use."""

from __future__ import annotations

import re

import numpy as np
import pytest
from ml_dtypes import bfloat16

from gristmill.interp import ExecutionError, ExecutionOptions, Executor
from gristmill.ir.parser import parse_module
from gristmill.ir.verify import check

WIDTH = 8
TYPES = [
    (np.float16, np.float16),
    (np.float16, np.float32),
    (bfloat16, np.float32),
    (np.int8, np.int32),
    (np.uint8, np.uint32),
]
PRODUCT = """
gristmill ir 1

function @f(a: {factor}[8, 12], b: {factor}[12, 4], c: {sum}[8, 4], d: {sum}[8, 4]) {{
  for t: int64 in 0 +: 16 thread on threadIdx.x {{
    allocate A: {factor}[4, 12] in matrix.a
    allocate B: {factor}[12, 4] in matrix.b
    allocate C: {sum}[4, 4] in matrix.accumulator
    evaluate matrix_load(&A[0, 0], &a[t // 8 * 4, 0], 12i32, false, 8i32)
    evaluate matrix_load(&B[0, 0], &b[0, 0], 4i32, false, 8i32)
    evaluate matrix_load(&C[0, 0], &c[t // 8 * 4, 0], 4i32, false, 8i32)
    evaluate matrix_multiply(&C[0, 0], &A[0, 0], &B[0, 0], &C[0, 0], 8i32)
    evaluate matrix_store(&d[t // 8 * 4, 0], &C[0, 0], 4i32, false, 8i32)
  }}
}}
"""
HEAD = """
gristmill ir 1

function @f(x: float32[64], y: float32[64], h: float16[64]) {
  for t: int64 in 0 +: 16 thread on threadIdx.x {
    allocate s: float32[64] in shared
    allocate C: float32[2, 4, 4] in matrix.accumulator
"""
TAIL = "\n  }\n}\n"


def run(text, args, seed=None):
    module = parse_module(text)
    check(module)
    Executor(module, ExecutionOptions(shuffle_seed=seed)).call("f", args)


def run_body(body, seed=None):
    x, y, h = np.arange(64, dtype=np.float32), np.zeros(64, np.float32), np.zeros(64, np.float16)
    run(HEAD + body + TAIL, [x, y, h], seed)
    return x, y


def named(dtype):
    return np.dtype(dtype).name


@pytest.mark.parametrize(("factor", "total"), TYPES, ids=lambda dtype: named(dtype))
@pytest.mark.parametrize("seed", [None, 1])
def test_whole_numbers_multiply_exactly(factor, total, seed):
    source = np.random.default_rng(7)
    low = 0 if factor is np.uint8 else -4
    a, b = (source.integers(low, 5, shape).astype(factor) for shape in ((8, 12), (12, 4)))
    c = source.integers(low, 5, (8, 4)).astype(total)
    d = np.zeros((8, 4), total)
    run(PRODUCT.format(factor=named(factor), sum=named(total)), [a, b, c, d], seed)
    assert (d.astype(np.float64) == a.astype(np.float64) @ b.astype(np.float64) + c.astype(np.float64)).all()


@pytest.mark.parametrize(("factor", "total"), [pair for pair in TYPES if np.dtype(pair[1]).kind == "f"])
def test_sums_of_floats_are_within_the_bound(factor, total):
    source = np.random.default_rng(8)
    a, b = (source.standard_normal(shape).astype(factor) for shape in ((8, 12), (12, 4)))
    c, d = source.standard_normal((8, 4)).astype(total), np.zeros((8, 4), total)
    run(PRODUCT.format(factor=named(factor), sum=named(total)), [a, b, c, d])
    wide = [array.astype(np.float64) for array in (a, b, c)]
    exact = wide[0] @ wide[1] + wide[2]
    unit = np.finfo(total).eps / 2
    gamma = 13 * unit / (1 - 13 * unit)
    bound = gamma * (abs(wide[0]) @ abs(wide[1]) + abs(wide[2]))
    assert (abs(d.astype(np.float64) - exact) <= bound).all()


def test_integers_wrap():
    a, b = np.full((8, 12), -128, np.int8), np.full((12, 4), -128, np.int8)
    c, d = np.full((8, 4), 2**31 - 1, np.int32), np.zeros((8, 4), np.int32)
    run(PRODUCT.format(factor="int8", sum="int32"), [a, b, c, d])
    assert (d == (2**31 - 1 + 12 * 128 * 128) - 2**32).all()


def test_floats_go_to_infinity_and_nan_as_they_do():
    a, b = np.full((8, 12), 60000, np.float16), np.full((12, 4), 60000, np.float16)
    b[0, 1] = np.nan
    c, d = np.zeros((8, 4), np.float16), np.zeros((8, 4), np.float16)
    run(PRODUCT.format(factor="float16", sum="float16"), [a, b, c, d])
    assert np.isinf(d[:, 0]).all()
    assert np.isnan(d[:, 1]).all()


def test_a_fill_keeps_fractions():
    _, y = run_body(
        "evaluate matrix_fill(&C[1, 0, 0], 0.25, 16i32)\nevaluate matrix_store(&y[3], &C[1, 0, 0], 5i32, false, 16i32)"
    )
    for row in range(4):
        assert (y[3 + 5 * row : 7 + 5 * row] == 0.25).all()
        assert y[7 + 5 * row] == 0


def test_lines_may_be_columns():
    _, y = run_body(
        "evaluate matrix_load(&C[0, 0, 0], &x[1], 6i32, true, 16i32)\n"
        "evaluate matrix_store(&y[0], &C[0, 0, 0], 4i32, false, 16i32)"
    )
    assert y[:16].reshape(4, 4).tolist() == [[1 + row + 6 * column for column in range(4)] for row in range(4)]


def test_a_stride_of_zero_repeats_a_line():
    _, y = run_body(
        "evaluate matrix_load(&C[0, 0, 0], &x[1], 0i32, false, 16i32)\n"
        "evaluate matrix_store(&y[0], &C[0, 0, 0], 4i32, false, 16i32)"
    )
    assert y[:16].reshape(4, 4).tolist() == [[1, 2, 3, 4]] * 4


def test_outside_of_launches_a_thread_is_alone():
    text = """
gristmill ir 1

function @f(x: float32[16]) {
  allocate C: float32[4, 4] in matrix.accumulator
  evaluate matrix_fill(&C[0, 0], 2.0, 32i32)
  evaluate matrix_store(&x[0], &C[0, 0], 4i32, false, 32i32)
}
"""
    x = np.zeros(16, np.float32)
    run(text, [x])
    assert (x == 2).all()


def test_tiles_allocated_around_a_launch_are_each_threads_own():
    text = """
gristmill ir 1

function @f(y: float32[32]) {
  allocate C: float32[4, 4] in matrix.accumulator
  for t: int64 in 0 +: 16 thread on threadIdx.x {
    evaluate matrix_fill(&C[0, 0], float32(t // 8), 8i32)
    evaluate matrix_store(&y[t // 8 * 16], &C[0, 0], 4i32, false, 8i32)
  }
}
"""
    for seed in (None, 1, 2):
        y = np.zeros(32, np.float32)
        run(text, [y], seed)
        assert y.tolist() == [0] * 16 + [1] * 16


STORE = "evaluate matrix_store(&s[0], &C[0, 0, 0], 4i32, false, 16i32)"
FILL = "evaluate matrix_fill(&C[0, 0, 0], 1.0, 16i32)"
LOAD = "evaluate matrix_load(&C[0, 0, 0], &s[0], 4i32, false, 16i32)"
BARRIER = "barrier shared"


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (("s[t] = 1.0", LOAD), "(threadIdx.x = 0) writes it and (the group that begins with threadIdx.x = 0) reads it"),
        ((FILL, STORE, "y[t] = s[t]"), "(the group that begins with threadIdx.x = 0) writes it"),
        ((FILL, STORE, LOAD), "writes it and (the group that begins with threadIdx.x = 0) reads it"),
        ((FILL, STORE, STORE), "writes it and (the group that begins with threadIdx.x = 0) writes it"),
        (("s[t] = 1.0", BARRIER, LOAD, "s[t] = 2.0"), "reads it and (threadIdx.x = 0) writes it"),
    ],
)
def test_accesses_without_a_barrier_between_race(lines, words):
    with pytest.raises(ExecutionError, match=re.escape(words)) as caught:
        run_body("\n".join(lines))
    assert caught.value.diagnostics[0].code == "GM0504"
    assert "`s`" in caught.value.diagnostics[0].message


@pytest.mark.parametrize("barrier", ["shared", "warp"])
def test_a_barrier_orders_them(barrier):
    run_body("\n".join((FILL, STORE, f"barrier {barrier}", LOAD, f"barrier {barrier}", STORE)))


@pytest.mark.parametrize(
    ("body", "code", "words"),
    [
        (STORE, "GM0502", "the tile `C` is used, and nothing was loaded into it"),
        (LOAD, "GM0502", "element [0, 0] of the tile that is loaded from `s` was not written before"),
        (f"{FILL}\nevaluate matrix_store(&y[52], &C[0, 0, 0], 4i32, false, 16i32)", "GM0501", "byte 256"),
        (f"{FILL}\nevaluate matrix_store(&y[0], &C[0, 0, 0], 3i32, false, 16i32)", "GM0501", "the stride 3 is less"),
        ("evaluate matrix_load(&C[0, 0, 0], &x[0], -1i32, false, 16i32)", "GM0501", "byte -4"),
        ("evaluate matrix_fill(&C[2 + t // 16, 0, 0], 1.0, 16i32)", "GM0501", "index 2 is out of bounds"),
        ("evaluate matrix_fill(&C[0, 0, 0], float32(t), 16i32)", "GM0524", "lanes 0 and 1"),
        ("evaluate matrix_load(&C[0, 0, 0], &x[t], 4i32, false, 16i32)", "GM0524", "lanes 0 and 1"),
        ("evaluate matrix_fill(&C[0, 0, 0], 1.0, 32i32)", "GM0523", "the block has only 16 threads"),
        ("if t == 3 {\n  return\n}\nevaluate matrix_fill(&C[0, 0, 0], 1.0, 16i32)", "GM0523", "1 have ended"),
        ("if t < 8 {\n  evaluate matrix_fill(&C[0, 0, 0], 1.0, 16i32)\n}", "GM0520", "only 8 of 16"),
    ],
)
def test_what_is_reported(body, code, words):
    with pytest.raises(ExecutionError, match=re.escape(words)) as caught:
        run_body(body)
    assert caught.value.diagnostics[0].code == code


def test_an_array_that_may_not_be_written():
    x, y, h = np.zeros(64, np.float32), np.zeros(64, np.float32), np.zeros(64, np.float16)
    y.flags.writeable = False
    body = f"{FILL}\nevaluate matrix_store(&y[0], &C[0, 0, 0], 4i32, false, 16i32)"
    with pytest.raises(ExecutionError, match="read-only") as caught:
        run(HEAD + body + TAIL, [x, y, h])
    assert caught.value.diagnostics[0].code == "GM0513"
