"""Atomic operations on the executor: what they leave and give, and which accesses race with them."""

from __future__ import annotations

import numpy as np
import pytest

from gristmill.interp import ExecutionError, ExecutionOptions, Executor
from gristmill.testing.placed import placed_module

BODY = {
    "atomic_add": lambda old, b: old + b,
    "atomic_min": np.minimum,
    "atomic_max": np.maximum,
    "atomic_and": np.bitwise_and,
    "atomic_or": np.bitwise_or,
    "atomic_xor": np.bitwise_xor,
    "atomic_exchange": lambda old, b: b,
}


def code_of(text: str, name: str, args: list):
    module, texts = placed_module(text)
    with pytest.raises(ExecutionError) as caught:
        Executor(module).call(name, args)
    found = caught.value.diagnostics[0]
    return found, texts.get(found.place), [texts.get(note.place) for note in found.notes if note.place]


@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64", "uint64"])
@pytest.mark.parametrize("name", sorted(BODY))
def test_each_gives_the_old_value_and_leaves_the_new(name: str, dtype: str) -> None:
    text = f"""
function @f(x: {dtype}[8], y: {dtype}[8], out: {dtype}[8]) {{
  for i: int64 in 0 +: 8 {{
    let old: {dtype} = {name}(&x[i], y[i])
    out[i] = old
  }}
}}
"""
    random = np.random.default_rng(3)
    info = np.iinfo(dtype)
    x, y = (random.integers(info.min, info.max, 8, dtype, endpoint=True) for _ in range(2))
    before, out = x.copy(), np.zeros(8, dtype)
    with np.errstate(over="ignore"):
        expected = BODY[name](x, y)
    Executor(placed_module(text)[0]).call("f", [x, y, out])
    assert np.array_equal(out, before)
    assert np.array_equal(x, expected)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_floats_are_added_rounded_and_exchanged(dtype: str) -> None:
    text = f"""
function @f(x: {dtype}[2], out: {dtype}[3]) {{
  let sum: {dtype} = atomic_add(&x[0], x[1])
  out[0] = sum
  let last: {dtype} = atomic_exchange(&x[1], sum)
  out[1] = last
  let now: {dtype} = atomic_load(&x[0])
  out[2] = now
  evaluate atomic_store(&x[1], now)
}}
"""
    x, out = np.array([1.0, 1e-9], dtype), np.zeros(3, dtype)
    total = x[0] + x[1]
    Executor(placed_module(text)[0]).call("f", [x, out])
    assert out.tolist() == [1.0, np.array(1e-9, dtype), total]
    assert x.tolist() == [total, total]


def test_compare_and_exchange_stores_where_the_expected_is() -> None:
    text = """
function @f(x: int32[2], out: int32[2]) {
  for i: int64 in 0 +: 2 {
    let old: int32 = atomic_compare_exchange(&x[i], 5i32, 9i32)
    out[i] = old
  }
}
"""
    x, out = np.array([5, 6], np.int32), np.zeros(2, np.int32)
    Executor(placed_module(text)[0]).call("f", [x, out])
    assert x.tolist() == [9, 6]
    assert out.tolist() == [5, 6]


HISTOGRAM = """
function @histogram(x: int32[4, 64], counts: int32[8]) {
  for b: int64 in 0 +: 4 thread on blockIdx.x {
    allocate s: int32[8] in shared
    for t: int64 in 0 +: 64 thread on threadIdx.x {
      if t < 8 {
        s[t] = 0i32
      }
      barrier shared
      evaluate atomic_add(&s[x[b, t]], 1i32)
      barrier shared
      if t < 8 {
        evaluate atomic_add(&counts[t], s[t])
      }
    }
  }
}
"""


@pytest.mark.parametrize("seed", [None, 1, 2])
def test_a_histogram_of_blocks(seed: int | None) -> None:
    x = np.random.default_rng(0).integers(0, 8, (4, 64)).astype(np.int32)
    counts = np.zeros(8, np.int32)
    Executor(placed_module(HISTOGRAM)[0]).call("histogram", [x, counts], ExecutionOptions(shuffle_seed=seed))
    assert np.array_equal(counts, np.bincount(x.ravel(), minlength=8))


@pytest.mark.parametrize("barrier", [0, 1])
def test_plain_and_atomic_accesses_race_without_a_barrier(barrier: int) -> None:
    pieces = HISTOGRAM.split("      barrier shared\n")
    text = "      barrier shared\n".join(pieces[: barrier + 1]) + "      barrier shared\n".join(pieces[barrier + 1 :])
    found, at, notes = code_of(text, "histogram", [np.zeros((4, 64), np.int32), np.zeros(8, np.int32)])
    assert found.code == "GM0504"
    assert "atomic" in (found.hint or "")
    assert any("atomic_add(&s" in (text or "") for text in (at, *notes))


def test_threads_of_different_blocks_race_with_plain_writes_only() -> None:
    text = """
function @f(x: int32[1]) {
  for b: int64 in 0 +: 4 thread on blockIdx.x {
    evaluate atomic_add(&x[0], 1i32)
    if b == 3 {
      x[0] = 7i32
    }
  }
}
"""
    found, _, notes = code_of(text, "f", [np.zeros(1, np.int32)])
    assert found.code == "GM0504"
    assert any("atomic_add" in (note or "") for note in notes)


@pytest.mark.parametrize("seed", [None, 4])
def test_iterations_of_parallel_loops_meet_in_atomic_operations(seed: int | None) -> None:
    text = """
function @f(x: int64[100], n: int64[1]) {
  for i: int64 in 0 +: 100 parallel {
    let place: int64 = atomic_add(&n[0], 1i64)
    x[place] = i
  }
}
"""
    x, n = np.zeros(100, np.int64), np.zeros(1, np.int64)
    Executor(placed_module(text)[0]).call("f", [x, n], ExecutionOptions(shuffle_seed=seed))
    assert sorted(x) == list(range(100))
    assert n[0] == 100
    wrong = text.replace("x[place] = i", "x[i] = n[0]")
    found, _, _ = code_of(wrong, "f", [x, n])
    assert found.code == "GM0505"
    assert "atomic" in (found.hint or "")


def test_views_of_other_sizes_see_atomic_operations() -> None:
    text = """
function @f(x: int64[2]) {
  for t: int64 in 0 +: 2 thread on threadIdx.x {
    view halves: int32[4] from &x[0]
    evaluate atomic_add(&x[0], 1i64)
    if t == 1 {
      halves[1] = 3i32
    }
  }
}
"""
    found, _, _ = code_of(text, "f", [np.zeros(2, np.int64)])
    assert found.code == "GM0504"


def test_places_outside_and_elements_never_written_are_reported() -> None:
    text = """
function @f(x: int32[4], i: int32) {
  allocate s: int32[4] in shared
  evaluate atomic_add(&s[i], 1i32)
  x[0] = s[i]
}
"""
    x = np.zeros(4, np.int32)
    assert code_of(text, "f", [x, 4])[0].code == "GM0501"
    assert code_of(text, "f", [x, 3])[0].code == "GM0502"
    stored = text.replace("atomic_add", "atomic_store")
    Executor(placed_module(stored)[0]).call("f", [x, 3])
    assert x[0] == 1


def test_lanes_of_a_vectorized_loop_come_one_after_the_other() -> None:
    text = """
function @f(x: int32[1], out: int32[4]) {
  for i: int64 in 0 +: 4 vectorized {
    let old: int32 = atomic_add(&x[0], 2i32)
    out[i] = old
  }
}
"""
    x, out = np.zeros(1, np.int32), np.zeros(4, np.int32)
    Executor(placed_module(text)[0]).call("f", [x, out])
    assert out.tolist() == [0, 2, 4, 6]
