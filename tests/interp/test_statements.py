"""Statements: loops, names, memory, views, blocks, calls."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from gristmill.interp import ExecutionError, ExecutionOptions, Executor
from gristmill.testing.placed import placed_module


def executor(text: str) -> Executor:
    return Executor(placed_module(text)[0])


def test_loops_evaluate_their_bounds_once() -> None:
    run = executor("""
function @f(a: int64[2], b: int64[10]) -> int64 {
  allocate count: int64[] in local
  count[] = 0
  for i: int64 in a[0] +: a[1] {
    a[0] = 0
    a[1] = 0
    b[i] = i
    count[] = count[] + 1
  }
  return count[]
}
""")
    b = np.full(10, -1)
    assert run.call("f", [np.array([3, 4]), b]).value == 4
    assert b.tolist() == [-1, -1, -1, 3, 4, 5, 6, -1, -1, -1]


def test_loops_with_no_iterations() -> None:
    run = executor("""
function @f(n: int32) -> int32 {
  for i: int32 in 0i32 +: n {
    return 1i32
  }
  return 2i32
}
""")
    assert [run.call("f", [n]).value for n in (0, -3, 1)] == [2, 2, 1]


def test_a_loop_variable_wraps_in_its_type() -> None:
    run = executor("""
function @f(a: int8[4]) {
  for i: int8 in 126i8 +: 4i8 {
    a[int64(i - 126i8)] = i
  }
}
""")
    a = np.zeros(4, np.int8)
    run.call("f", [a])
    assert a.tolist() == [126, 127, -128, -127]


@pytest.mark.parametrize("kind", ["", " unrolled", " parallel"])
def test_loops_of_every_kind(kind: str) -> None:
    run = executor(f"""
function @f<n: int64>(a: float64[n]) {{
  for i: int64 in 0 +: n{kind} {{
    if i % 2 == 1 {{
      continue
    }}
    a[i] = float64(i)
  }}
}}
""")
    a = np.full(7, -1.0)
    run.call("f", [a], ExecutionOptions(shuffle_seed=5))
    assert a.tolist() == [0, -1, 2, -1, 4, -1, 6]


def test_break_continue_and_while() -> None:
    run = executor("""
function @collatz(start: int64) -> int64 {
  allocate x: int64[] in local
  allocate steps: int64[] in local
  x[] = start
  steps[] = 0
  while true {
    if x[] == 1 {
      break
    }
    steps[] = steps[] + 1
    if x[] % 2 == 0 {
      x[] = x[] // 2
      continue
    }
    x[] = x[] * 3 + 1
  }
  return steps[]
}
""")
    assert run.call("collatz", [27]).value == 111


def test_a_function_that_reaches_its_end_returns_zero() -> None:
    run = executor("""
function @f(c: bool) -> float32 {
  if c {
    return 1.5
  }
}
function @g() -> bool {
}
""")
    assert run.call("f", [True]).value == 1.5
    assert run.call("f", [False]).value == 0.0
    assert run.call("g", []).value is False


def test_calls_of_every_result_type_and_recursion() -> None:
    run = executor("""
function @fibonacci(n: int32) -> int32 {
  if n < 2i32 {
    return n
  }
  return @fibonacci(n - 1i32) as int32 + @fibonacci(n - 2i32) as int32
}
function @is_even(n: uint8) -> bool {
  if n == 0u8 {
    return true
  }
  return @is_odd(n - 1u8) as bool
}
function @is_odd(n: uint8) -> bool {
  if n == 0u8 {
    return false
  }
  return @is_even(n - 1u8) as bool
}
function @clear<n: int64>(a: float32[n]) {
  for i: int64 in 0 +: n {
    a[i] = 0.0
  }
}
function @main<n: int64>(a: float32[n], k: int32) -> int32 {
  evaluate @clear(buffer(a))
  if @is_even(200u8) as bool {
    a[0] = 1.0
  }
  return @fibonacci(k) as int32
}
""")
    a = np.ones(3, np.float32)
    assert run.call("main", [a, 15]).value == 610
    assert a.tolist() == [1, 0, 0]


def test_operands_before_a_call_are_read_before_it() -> None:
    run = executor("""
function @set(a: int32[1]) -> int32 {
  a[0] = 10i32
  return 100i32
}
function @f(a: int32[1]) -> int32 {
  return a[0] + @set(buffer(a)) as int32 + a[0]
}
""")
    assert run.call("f", [np.array([1], np.int32)]).value == 111


def test_a_view_sees_the_same_bytes() -> None:
    run = executor("""
function @f(a: float32[2] data d: ptr<float32, global>, b: uint8[8], c: uint16[3]) {
  view bytes: uint8[8] over d
  for i: int64 in 0 +: 8 {
    b[i] = bytes[i]
  }
  bytes[3] = 64u8
  view halves: uint16[3] offset 1 over d
  for j: int64 in 0 +: 3 {
    c[j] = halves[j]
  }
}
""")
    a = np.array([1.0, -2.0], np.float32)
    b, c = np.zeros(8, np.uint8), np.zeros(3, np.uint16)
    before = a.copy()
    run.call("f", [a, b, c])
    assert b.tolist() == list(before.tobytes())
    assert a[0] == 4.0
    assert c.tolist() == a.view(np.uint16)[1:].tolist()


def test_views_with_strides_and_pointers() -> None:
    run = executor("""
function @f(a: int32[12], b: int32[6]) {
  view t: int32[3, 2] strides [1, 3] from &a[2]
  for i: int64 in 0 +: 3 {
    for j: int64 in 0 +: 2 {
      b[i * 2 + j] = t[i, j]
    }
  }
  view back: int32[4] strides [-1] offset 3 from &a[0]
  back[0] = 30i32
  back[3] = 33i32
  let p: ptr<int32, global> = &back[1]
  view one: int32[] from p
  one[] = 31i32
}
""")
    a = np.arange(12, dtype=np.int32)
    b = np.zeros(6, np.int32)
    run.call("f", [a, b])
    assert b.tolist() == [2, 5, 3, 6, 4, 7]
    assert a[:4].tolist() == [33, 1, 31, 30]


def test_strided_and_reversed_arrays_where_the_buffer_says_so() -> None:
    run = executor("""
function @f<n: int64, m: int64, s: int64, t: int64>(a: int32[n, m] strides [s, t], b: int32[n, m]) {
  for i: int64 in 0 +: n {
    for j: int64 in 0 +: m {
      b[i, j] = a[i, j]
      a[i, j] = -1i32
    }
  }
}
""")
    whole = np.arange(48, dtype=np.int32).reshape(6, 8)
    part = whole[::2, ::-2]
    expected = part.copy()
    b = np.empty((3, 4), np.int32)
    run.call("f", [part, b])
    assert np.array_equal(b, expected)
    assert (part == -1).all()
    assert (whole == -1).sum() == 12
    turned = np.arange(6, dtype=np.int32).reshape(2, 3).T
    b = np.empty((3, 2), np.int32)
    run.call("f", [turned.copy().T.T, b])
    assert np.array_equal(b, turned)


def test_arrays_that_overlap_are_one_memory() -> None:
    run = executor("""
function @f(a: int32[4], b: int32[4]) -> int32 {
  a[2] = 7i32
  return b[1]
}
""")
    whole = np.arange(5, dtype=np.int32)
    assert run.call("f", [whole[:4], whole[1:]]).value == 7


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16], ids=["float16", "bfloat16"])
def test_half_arithmetic_rounds_each_operation(dtype: type) -> None:
    name = np.dtype(dtype).name
    run = executor(f"""
function @f<n: int64>(a: {name}[n], b: {name}[n], c: {name}[n]) {{
  for i: int64 in 0 +: n {{
    c[i] = a[i] * b[i] + a[i]
  }}
}}
""")
    rng = np.random.default_rng(1)
    a, b = (rng.normal(size=200).astype(dtype) for _ in range(2))
    c = np.zeros(200, dtype)
    run.call("f", [a, b, c])
    assert np.array_equal(c.view(np.uint16), (a * b + a).view(np.uint16))


def test_local_memory_is_new_each_time() -> None:
    run = executor("""
function @f() -> int32 {
  for i: int64 in 0 +: 2 {
    allocate t: int32[4] in local
    if i == 1 {
      return t[0]
    }
    t[0] = 5i32
  }
  return 0i32
}
""")
    with pytest.raises(ExecutionError) as caught:
        run.call("f", [])
    assert caught.value.code == "GM0502"


def test_blocks_run_init_where_reductions_begin() -> None:
    run = executor("""
function @f(a: float32[4, 8], c: float32[4]) {
  for i: int64 in 0 +: 4 {
    for k: int64 in 0 +: 8 {
      block "sum"
        where i < 3
        axis vi: int64 spatial in 0 +: 4 = i
        axis vk: int64 reduce in 0 +: 8 = k
        match row: float32[8] = a[vi +: 1, 0 +: 8]
        init {
          c[vi] = 0.0
        }
      {
        c[vi] = c[vi] + row[vk]
      }
    }
  }
}
""")
    a = np.arange(32, dtype=np.float32).reshape(4, 8)
    c = np.full(4, -1, np.float32)
    run.call("f", [a, c])
    assert c.tolist() == [*a.sum(1)[:3], -1]


def test_a_match_names_sizes_strides_and_offset() -> None:
    run = executor(
        """
function @f(a: int32[4, 6], out: int64[3], b: int32[2]) {
  block "corner"
    match t: int32[2, 3] strides [s, 1] offset o = a[1 +: 2, 2 +: 3]
  {
    t[1, 2] = 77i32
    b[0] = t[0, 0]
    b[1] = t[1, 0]
  }
  out[0] = 0
}
""".replace("strides [s, 1] offset o ", "")
    )
    a = np.arange(24, dtype=np.int32).reshape(4, 6)
    b = np.zeros(2, np.int32)
    run.call("f", [a, np.zeros(3, np.int64), b])
    assert b.tolist() == [8, 14]
    assert a[2, 4] == 77


def test_many_loops_within_each_other() -> None:
    # More than Python allows in one function; the counter and the early return go through the parts.
    depth = 45
    heads = "\n".join(f"for i{n}: int64 in 0 +: {2 if n % 15 == 0 else 1} {{" for n in range(depth))
    run = executor(f"""
function @f(limit: int64) -> int64 {{
  allocate count: int64[] in local
  count[] = 0
{heads}
  count[] = count[] + 1
  if count[] == limit {{
    return 1000 + count[]
  }}
  if count[] % 2 == 0 {{
    continue
  }}
{"}" * 1}
{chr(10).join("}" for _ in range(depth - 1))}
  return count[]
}}
""")
    assert run.call("f", [100]).value == 8
    assert run.call("f", [3]).value == 1003


def test_many_conditions_within_each_other() -> None:
    depth = 120
    heads = "\n".join(f"if x != {n} {{" for n in range(depth))
    run = executor(f"""
function @f(x: int64) -> int64 {{
  for i: int64 in 0 +: 5 {{
    if i == 2 {{
      continue
    }}
{heads}
    if i == x - 1000 {{
      break
    }}
    if x == 500 {{
      return i + 7
    }}
{chr(10).join("}" for _ in range(depth))}
    if i == 4 {{
      return 4
    }}
  }}
  return -1
}}
""")
    assert run.call("f", [50]).value == 4
    assert run.call("f", [1003]).value == -1
    assert run.call("f", [500]).value == 7


def test_reinterpreting_views_of_locals() -> None:
    run = executor("""
function @bits(x: float32) -> int32 {
  allocate t: float32[] in local data p: ptr<float32, local>
  t[] = x
  view i: int32[] in local over p
  return i[]
}
""")
    assert run.call("bits", [1.0]).value == 0x3F800000


def test_calls_out_of_the_module() -> None:
    run = executor("""
extern "triple" from "mine"

function @f<n: int64>(a: float32[n], k: int32) -> int32 {
  evaluate extern "triple"(&a[1], n - 1)
  evaluate packed "show"(buffer(a), "text", k, true)
  return extern "triple"(&a[0], 0) as int32
}
""")
    seen = []

    def triple(data: np.ndarray, count: int) -> int:
        data.view(np.float32)[:count] *= 3
        return count + (1 << 32)

    options = ExecutionOptions(externs={"triple": triple}, packed={"show": lambda *args: seen.append(args)})
    a = np.array([1, 2, 3], np.float32)
    assert run.call("f", [a, 5], options).value == 0
    assert a.tolist() == [1, 6, 9]
    assert seen[0][0].tolist() == [1, 6, 9]
    assert seen[0][1:] == ("text", 5, True)
    with pytest.raises(ExecutionError) as caught:
        run.call("f", [a, 5])
    assert caught.value.code == "GM0518"
    with pytest.raises(ExecutionError) as caught:
        run.call("f", [a, 5], ExecutionOptions(externs={"triple": triple}))
    assert caught.value.code == "GM0518"
