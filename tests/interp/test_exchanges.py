"""Exchanges between threads: what each lane gets, of every type, and what the executor reports."""

from __future__ import annotations

import numpy as np
import pytest
from ml_dtypes import bfloat16

from gristmill.interp import ExecutionError, ExecutionOptions, Executor
from gristmill.ir.parser import parse_module
from gristmill.ir.verify import check
from gristmill.testing.placed import placed_module

SEEDS = (None, 1, 2)
DTYPES = [
    *(np.bool_, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64),
    *(np.float16, bfloat16, np.float32, np.float64),
]
SHUFFLE = """
gristmill ir 1

function @f(x: {dtype}[{threads}], lanes: int32[{threads}], y: {dtype}[{threads}]) {{
  for t: int64 in 0 +: {threads} thread on threadIdx.x {{
    let found: {dtype} = {operation}(x[t], lanes[t], {width}i32)
    y[t] = found
  }}
}}
"""


def parsed(text: str):
    module = parse_module(text)
    check(module)
    return module


def expected_lane(operation: str, lane: int, operand: int, width: int) -> int:
    return {
        "warp_shuffle": operand & (width - 1),
        "warp_shuffle_xor": lane ^ operand,
        "warp_shuffle_up": lane - operand,
        "warp_shuffle_down": lane + operand,
    }[operation]


def expected(operation: str, x: np.ndarray, lanes: np.ndarray, width: int) -> np.ndarray:
    found = x.copy()
    for thread in range(len(x)):
        start = thread // width * width
        source = expected_lane(operation, thread - start, int(lanes[thread]), width)
        if 0 <= source < min(width, len(x) - start):
            found[thread] = x[start + source]
    return found


def values_of(dtype, count: int) -> np.ndarray:
    source = np.random.default_rng(count)
    if dtype is np.bool_:
        return source.integers(0, 2, count).astype(np.bool_)
    if np.dtype(dtype).kind in "iu":
        limits = np.iinfo(dtype)
        return source.integers(limits.min, limits.max, count, dtype=dtype, endpoint=True)
    return source.standard_normal(count).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: np.dtype(dtype).name)
def test_values_of_every_type(dtype) -> None:
    x, y = values_of(dtype, 37), np.zeros(37, dtype)
    lanes = np.random.default_rng(0).integers(-3, 20, 37).astype(np.int32)
    text = SHUFFLE.format(dtype=np.dtype(dtype).name, threads=37, operation="warp_shuffle_down", width=16)
    Executor(parsed(text)).call("f", [x, lanes, y])
    assert np.array_equal(y, expected("warp_shuffle_down", x, lanes, 16))


@pytest.mark.parametrize("operation", ["warp_shuffle", "warp_shuffle_xor", "warp_shuffle_up", "warp_shuffle_down"])
@pytest.mark.parametrize("threads", [1, 7, 31, 32, 33, 64, 100])
@pytest.mark.parametrize("width", [1, 2, 8, 32, 64])
def test_lanes(operation: str, threads: int, width: int) -> None:
    x = np.arange(threads, dtype=np.int64)
    source = np.random.default_rng(width)
    lanes = source.integers(-70, 70, threads).astype(np.int32)
    lanes[source.integers(0, threads, 3)] = [-(1 << 31), (1 << 31) - 1, width - 1]
    module = parsed(SHUFFLE.format(dtype="int64", threads=threads, operation=operation, width=width))
    for seed in SEEDS:
        y = np.full(threads, -1)
        Executor(module).call("f", [x, lanes, y], ExecutionOptions(shuffle_seed=seed))
        assert np.array_equal(y, expected(operation, x, lanes, width))


VOTES = """
gristmill ir 1

function @f(x: bool[40], bits: uint64[40], any: bool[40], all: bool[40]) {
  for t: int64 in 0 +: 40 thread on threadIdx.x {
    let b: uint64 = warp_ballot(x[t], 16i32) as uint64
    let o: bool = warp_any(x[t], 16i32)
    let a: bool = warp_all(x[t], 16i32)
    bits[t] = b
    any[t] = o
    all[t] = a
  }
}
"""


def test_votes() -> None:
    x = np.zeros(40, np.bool_)
    x[[1, 15, 32, 33, 34, 35, 36, 37, 38, 39]] = True
    bits, some, every = np.zeros(40, np.uint64), np.zeros(40, np.bool_), np.ones(40, np.bool_)
    Executor(parsed(VOTES)).call("f", [x, bits, some, every])
    assert bits.tolist() == [0x8002] * 16 + [0] * 16 + [0xFF] * 8
    assert some.tolist() == [True] * 16 + [False] * 16 + [True] * 8
    assert every.tolist() == [False] * 32 + [True] * 8


AXES = """
gristmill ir 1

function @f(y: int64[2, 3, 2, 4]) {
  for b: int64 in 0 +: 2 thread on blockIdx.x {
    for w: int64 in 0 +: 3 thread on threadIdx.z {
      for v: int64 in 0 +: 2 thread on threadIdx.y {
        for u: int64 in 0 +: 4 thread on threadIdx.x {
          let found: int64 = warp_shuffle_down(b * 100 + w * 8 + v * 4 + u, 3i32, 8i32)
          y[b, w, v, u] = found
        }
      }
    }
  }
}
"""


def test_threads_count_with_x_fastest() -> None:
    y = np.zeros((2, 3, 2, 4), np.int64)
    Executor(parsed(AXES)).call("f", [y])
    one = [3, 4, 5, 6, 7, 5, 6, 7]
    assert y.reshape(2, 24).tolist() == [[b * 100 + g * 8 + i for g in range(3) for i in one] for b in range(2)]


HELPER = """
gristmill ir 1

function @total(v: int32) -> int32
{
  let far: int32 = warp_shuffle_xor(v, 1i32, 4i32)
  let sum: int32 = v + far
  let farther: int32 = warp_shuffle_xor(sum, 2i32, 4i32)
  return sum + farther
}

function @f(x: int32[10], y: int32[10]) {
  for t: int64 in 0 +: 10 thread on threadIdx.x {
    for k: int64 in 0 +: 2 {
      y[t] = @total(x[t]) as int32
    }
  }
}

function @g(x: int32[10], y: int32[10]) {
  for i: int64 in 0 +: 10 {
    y[i] = @total(x[i]) as int32
  }
}
"""


def test_helpers_exchange_too_and_a_thread_outside_of_launches_is_alone() -> None:
    x, y = np.arange(10, dtype=np.int32), np.zeros(10, np.int32)
    executor = Executor(parsed(HELPER))
    executor.call("f", [x, y])
    assert y.tolist() == [6] * 4 + [22] * 4 + [34] * 2
    executor.call("g", [x, y])
    assert y.tolist() == (x * 4).tolist()


PARTED = """
function @f(x: int32[64], y: int32[64], n: int32) {
  for t: int64 in 0 +: 64 thread on threadIdx.x {
    if int32(t) < n {
      let other: int32 = warp_shuffle_down(x[t], 1i32, 16i32)
      y[t] = other
    }
  }
}
"""


def reported(text: str, args: list):
    module, texts = placed_module(text)
    check(module)
    with pytest.raises(ExecutionError) as caught:
        Executor(module).call("f", args)
    found = caught.value.diagnostics[0]
    return found, texts.get(found.place)


def test_a_group_of_which_only_some_threads_come() -> None:
    args = [np.arange(64, dtype=np.int32), np.zeros(64, np.int32)]
    found, at = reported(PARTED, [*args, 20])
    assert found.code == "GM0520"
    assert found.message == "only 4 of 16 threads of a group come to this `warp_shuffle_down`"
    assert at is not None
    assert "warp_shuffle_down" in at
    assert any("ended without coming" in note.message for note in found.notes)


@pytest.mark.parametrize("n", [0, 16, 48, 64])
def test_whole_groups_may_go_their_own_way(n: int) -> None:
    x, y = np.arange(64, dtype=np.int32), np.full(64, -1, np.int32)
    Executor(placed_module(PARTED)[0]).call("f", [x, y, n])
    assert y.tolist() == [min(t + 1, t // 16 * 16 + 15) if t < n else -1 for t in range(64)]


def test_exchanges_and_barriers_do_not_meet() -> None:
    text = """
function @f(x: int32[32], y: int32[32]) {
  for t: int64 in 0 +: 32 thread on threadIdx.x {
    if t < 5 {
      let other: int32 = warp_shuffle_down(x[t], 1i32, 32i32)
      y[t] = other
    } else {
      barrier shared
    }
  }
}
"""
    found, _ = reported(text, [np.zeros(32, np.int32), np.zeros(32, np.int32)])
    assert found.code == "GM0520"
    assert found.message.startswith("only 5 of 32 threads")


ENDED = """
function @f(x: int32[32], y: int32[32], n: int32) {
  for t: int64 in 0 +: 32 thread on threadIdx.x {
    if int32(t) >= n {
      return
    }
    let some: bool = warp_any(x[t] > 0i32, 32i32)
    let last: bool = warp_all(x[t] > 0i32, 32i32)
    let other: int32 = warp_shuffle_up(x[t], 1i32, 32i32)
    if some and last {
      y[t] = other
    }
    let later: int32 = warp_shuffle_down(x[t], 1i32, 32i32)
    y[t] = y[t] + later
  }
}
"""


def test_threads_that_ended_take_no_part_and_are_not_read() -> None:
    x, y = np.arange(1, 33, dtype=np.int32), np.zeros(32, np.int32)
    found, at = reported(ENDED, [x, y, 9])
    assert found.code == "GM0521"
    assert found.message == "lane 8 reads lane 9 by `warp_shuffle_down`, and the thread there has ended"
    assert at is not None
    assert at.startswith("warp_shuffle_down")
    assert y[:9].tolist() == [1, 1, 2, 3, 4, 5, 6, 7, 8]
    Executor(placed_module(ENDED)[0]).call("f", [x, y, 32])


def test_an_exchange_orders_no_memory() -> None:
    text = """
function @f(x: int32[32], y: int32[32]) {
  for t: int64 in 0 +: 32 thread on threadIdx.x {
    x[t] = int32(t)
    let other: int32 = warp_shuffle_down(x[t], 1i32, 32i32)
    y[t] = other + x[31 - t]
  }
}
"""
    found, _ = reported(text, [np.zeros(32, np.int32), np.zeros(32, np.int32)])
    assert found.code == "GM0504"
