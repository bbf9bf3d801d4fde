"""Vectors, vector accesses, and vectorised loops."""

from __future__ import annotations

import numpy as np

from gristmill.interp import Executor
from gristmill.testing.placed import placed_module


def executor(text: str) -> Executor:
    return Executor(placed_module(text)[0])


def test_operations_work_on_every_lane() -> None:
    run = executor("""
function @f(a: int32[4], b: int32[4], c: int32[4], n: int32) {
  let x: int32x4 = a[ramp(0, 1, 4)]
  let y: int32x4 = b[ramp(3, -1, 4)]
  c[ramp(0, 1, 4)] = select(x < y, x / y, x - y) * broadcast(n, 4)
}
""")
    a = np.array([7, -2147483648, 5, 1], np.int32)
    b = np.array([10, 3, 0, 2], np.int32)
    c = np.empty(4, np.int32)
    run.call("f", [a, b, c, 3])
    # b backwards is 2, 0, 3, 10. Lane 1: MIN < 0, and MIN / 0 = 0. Lane 3: 1 < 10, and 1 / 10 = 0.
    assert c.tolist() == [(7 - 2) * 3, 0, (5 - 3) * 3, 0]


def test_lanes_wrap_and_convert() -> None:
    run = executor("""
function @f(c: uint8[4], d: float32[4]) {
  c[ramp(0, 1, 4)] = ramp(250u8, 3u8, 4)
  d[ramp(0, 1, 4)] = float32x4(ramp(-1i8, 2i8, 4))
}
""")
    c, d = np.empty(4, np.uint8), np.empty(4, np.float32)
    run.call("f", [c, d])
    assert c.tolist() == [250, 253, 0, 3]
    assert d.tolist() == [-1, 1, 3, 5]


def test_shuffles() -> None:
    run = executor("""
function @f(c: int32[3]) -> int32 {
  let v: int32x2 = ramp(10i32, 1i32, 2)
  c[ramp(0, 1, 3)] = shuffle[2, 0, 1](v, 7i32)
  return shuffle[1](v)
}
""")
    c = np.empty(3, np.int32)
    assert run.call("f", [c]).value == 11
    assert c.tolist() == [7, 10, 11]


def test_buffers_of_vectors() -> None:
    run = executor("""
function @f(a: float32x4[2], b: float32[8]) {
  allocate t: float32x4[3] in local data t_data: ptr<float32x4, local>
  t[2] = a[1] + broadcast(1.0, 4)
  t[0] = a[0]
  view flat: float32[12] in local over t_data
  for i: int64 in 0 +: 4 {
    b[i] = flat[i + 8]
  }
  b[ramp(4, 1, 4)] = t[0]
  a[0] = t[2]
}
""")
    a = np.arange(8, dtype=np.float32).reshape(2, 4)
    b = np.empty(8, np.float32)
    run.call("f", [a, b])
    assert b.tolist() == [5, 6, 7, 8, 0, 1, 2, 3]
    assert a[0].tolist() == [5, 6, 7, 8]


def test_vector_stores_write_ascending_lanes() -> None:
    run = executor("""
function @f(a: int32[2]) {
  a[ramp(0, 0, 4)] = ramp(1i32, 1i32, 4)
  a[1] = 0i32
}
""")
    a = np.empty(2, np.int32)
    run.call("f", [a])
    assert a[0] == 4


def test_a_vectorized_loop_runs_statement_by_statement() -> None:
    # Serially the value of a[0] would run through; in lock step every lane reads before any lane writes.
    run = executor("""
function @f(a: int32[5]) {
  for i: int64 in 0 +: 4 vectorized {
    a[i + 1] = a[i]
  }
}
""")
    a = np.array([1, 2, 3, 4, 5], np.int32)
    run.call("f", [a])
    assert a.tolist() == [1, 1, 2, 3, 4]


def test_control_in_a_vectorized_loop() -> None:
    run = executor("""
function @f(a: int32[8], b: int32[8], log: int32[1]) {
  for i: int64 in 0 +: 8 vectorized {
    let x: int32 = a[i]
    allocate t: int32[2] in local
    t[0] = x
    if x < 0i32 {
      b[i] = 0i32
      continue
    } else {
      t[0] = t[0] * 2i32
    }
    t[1] = 0i32
    for j: int64 in 0 +: i {
      if j == 5 {
        break
      }
      if j % 2 == 0 {
        continue
      }
      t[1] = t[1] + 1i32
    }
    while t[0] > 10i32 {
      t[0] = t[0] - 7i32
    }
    b[i] = t[0] * 100i32 + t[1]
  }
  log[0] = 1i32
}
""")
    a = np.array([1, -1, 20, 3, -5, 6, 50, 8], np.int32)
    b = np.full(8, 99, np.int32)

    def lane(i: int, x: int) -> int:
        if x < 0:
            return 0
        t0, t1 = 2 * x, sum(1 for j in range(min(i, 5)) if j % 2)
        while t0 > 10:
            t0 -= 7
        return 100 * t0 + t1

    run.call("f", [a, b, np.zeros(1, np.int32)])
    assert b.tolist() == [lane(i, int(x)) for i, x in enumerate(a)]


def test_statements_of_a_vectorized_loop_see_all_lanes_of_those_before() -> None:
    run = executor("""
function @f(a: int32[4], b: int32[4]) {
  for i: int64 in 0 +: 4 vectorized {
    a[i] = int32(i) + 1i32
    b[i] = a[3 - i]
  }
}
""")
    a, b = np.zeros(4, np.int32), np.zeros(4, np.int32)
    run.call("f", [a, b])
    assert b.tolist() == [4, 3, 2, 1]


def test_vectorized_loops_within_each_other() -> None:
    run = executor("""
function @f(a: int32[3, 2]) {
  for i: int64 in 0 +: 3 vectorized {
    let x: int32 = int32(i) * 10i32
    for j: int64 in 0 +: 2 vectorized {
      a[i, j] = x + int32(j)
      a[i, j] = a[i, j] + a[2 - i, 1 - j]
    }
  }
}
""")
    a = np.zeros((3, 2), np.int32)
    run.call("f", [a])
    start = np.array([[10 * i + j for j in range(2)] for i in range(3)])
    assert np.array_equal(a, start + start[::-1, ::-1])


def test_blocks_and_calls_in_a_vectorized_loop() -> None:
    run = executor("""
function @twice(x: int32) -> int32 {
  return x * 2i32
}
function @f(a: int32[4], b: int32[4]) {
  for i: int64 in 0 +: 4 vectorized {
    block "double"
      where i != 2
      axis v: int64 spatial in 0 +: 4 = 3 - i
      init {
        b[v] = 1i32
      }
    {
      b[v] = b[v] + @twice(a[v]) as int32
    }
  }
}
""")
    a, b = np.array([1, 2, 3, 4], np.int32), np.zeros(4, np.int32)
    run.call("f", [a, b])
    assert b.tolist() == [3, 0, 7, 9]
