"""Launches: threads of blocks, shared memory, barriers, and kernels after lowering."""

from __future__ import annotations

import numpy as np
import pytest

from gristmill.interp import ExecutionError, ExecutionOptions, Executor
from gristmill.ir.parser import parse_module
from gristmill.ir.stmt import ThreadAxis
from gristmill.testing.placed import placed_module

REDUCTION = """
function @sums(x: float32[4, 64], out: float32[4]) {
  for b: int64 in 0 +: 4 thread on blockIdx.x {
    allocate s: float32[64] in shared
    for t: int64 in 0 +: 64 thread on threadIdx.x {
      s[t] = x[b, t]
      barrier shared
      allocate step: int64[] in local
      step[] = 32
      while step[] > 0 {
        if t < step[] {
          s[t] = s[t] + s[t + step[]]
        }
        barrier shared
        step[] = step[] // 2
      }
      if t == 0 {
        out[b] = s[0]
      }
    }
  }
}
"""


def code_of(text: str, name: str, args: list, options: ExecutionOptions | None = None):
    module, texts = placed_module(text)
    with pytest.raises(ExecutionError) as caught:
        Executor(module).call(name, args, options)
    found = caught.value.diagnostics[0]
    return found, texts.get(found.place), [texts.get(note.place) for note in found.notes if note.place]


@pytest.mark.parametrize("seed", [None, 1, 2])
def test_a_block_reduction_with_barriers(seed: int | None) -> None:
    x = np.random.default_rng(0).integers(0, 100, (4, 64)).astype(np.float32)
    out = np.zeros(4, np.float32)
    Executor(placed_module(REDUCTION)[0]).call("sums", [x, out], ExecutionOptions(shuffle_seed=seed))
    assert np.array_equal(out, x.sum(1))


def test_without_its_second_barrier_it_races() -> None:
    pieces = REDUCTION.split("barrier shared\n")
    text = pieces[0] + "barrier shared\n" + pieces[1] + pieces[2]
    args = [np.ones((4, 64), np.float32), np.zeros(4, np.float32)]
    found, at, notes = code_of(text, "sums", args)
    assert found.code == "GM0504"
    assert "threadIdx.x" in found.message
    assert "`s`" in found.message
    assert at is not None
    assert at.startswith("s[")
    assert notes
    assert notes[0] is not None
    assert notes[0].startswith("s[")


def test_without_its_first_barrier_it_reads_what_is_still_to_be_written() -> None:
    pieces = REDUCTION.split("barrier shared\n")
    text = pieces[0] + pieces[1] + "barrier shared\n" + pieces[2]
    found, at, _ = code_of(text, "sums", [np.ones((4, 64), np.float32), np.zeros(4, np.float32)])
    assert found.code == "GM0502"
    assert "barrier" in found.hint
    assert at == "s[t + step[]]"


def test_a_race_in_global_memory_between_blocks() -> None:
    text = """
function @f(x: int32[8], out: int32[1]) {
  for b: int64 in 0 +: 8 thread on blockIdx.x {
    out[0] = x[b]
  }
}
"""
    found, at, _ = code_of(text, "f", [np.arange(8, dtype=np.int32), np.zeros(1, np.int32)])
    assert found.code == "GM0504"
    assert "blockIdx.x = 0" in found.message
    assert "blockIdx.x = 1" in found.message
    assert at == "out[0] = x[b]"


def test_a_barrier_for_shared_memory_does_not_order_global_memory() -> None:
    text = """
function @f(x: int32[8], y: int32[8]) {
  for t: int64 in 0 +: 8 thread on threadIdx.x {
    x[t] = int32(t)
    barrier SCOPE
    y[t] = x[7 - t]
  }
}
"""
    x, y = np.zeros(8, np.int32), np.zeros(8, np.int32)
    found, at, notes = code_of(text.replace("SCOPE", "shared"), "f", [x, y])
    assert found.code == "GM0504"
    assert at == "x[7 - t]"
    assert notes == ["x[t] = int32(t)"]
    Executor(placed_module(text.replace("SCOPE", "global"))[0]).call("f", [x, y])
    assert y.tolist() == [7, 6, 5, 4, 3, 2, 1, 0]


def test_a_barrier_that_some_threads_do_not_reach() -> None:
    text = """
function @f() {
  for t: int64 in 0 +: 8 thread on threadIdx.x {
    if t < 6 {
      barrier shared
    }
  }
}
"""
    found, at, _ = code_of(text, "f", [])
    assert found.code == "GM0503"
    assert at == "barrier shared"
    assert "6 of 8 threads" in found.message
    assert any("2 of 8 threads, (threadIdx.x = 6)" in note.message for note in found.notes)


def test_threads_at_different_barriers() -> None:
    text = """
function @f() {
  for t: int64 in 0 +: 8 thread on threadIdx.x {
    if t < 6 {
      barrier shared
    } else {
      barrier global
    }
  }
}
"""
    found, at, notes = code_of(text, "f", [])
    assert found.code == "GM0503"
    assert {at, *notes} == {"barrier shared", "barrier global"}


CALLS = """
function @g() {
  barrier shared
}

function @outer() {
  evaluate @g()
}

function @f(n: int64) {
  for t: int64 in 0 +: 8 thread on threadIdx.x {
    BODY
  }
}
"""


@pytest.mark.parametrize(
    "body",
    [
        "if t < n { evaluate @g() } else { evaluate @g() }",
        "if t < n { evaluate @outer() } else { evaluate @g() }",
        "if t < n { evaluate @outer() } else { evaluate @outer() }",
        "if t < n { evaluate @g() } evaluate @g()",
    ],
)
def test_a_barrier_in_a_function_is_another_one_in_each_call(body: str) -> None:
    lines = body.replace("{ ", "{\n").replace(" }", "\n}").replace("} evaluate", "}\nevaluate")
    text = CALLS.replace("BODY", lines)
    found, at, _ = code_of(text, "f", [3])
    assert found.code == "GM0503"
    assert at == "barrier shared"
    assert any("in another call of the function" in note.message for note in found.notes)
    # All threads go one way.
    for n in (0, 8):
        Executor(placed_module(text)[0]).call("f", [n])


def test_exchanges_in_a_function_are_others_in_each_call() -> None:
    text = """
function @g(x: int32) -> int32 {
  let other: int32 = warp_shuffle(x, 0i32, 8i32)
  return other
}

function @f(n: int64, out: int32[8]) {
  for t: int64 in 0 +: 8 thread on threadIdx.x {
    if t < n {
      out[t] = @g(1i32) as int32
    } else {
      out[t] = @g(2i32) as int32
    }
  }
}
"""
    found, _, _ = code_of(text, "f", [3, np.zeros(8, np.int32)])
    assert found.code == "GM0520"
    out = np.zeros(8, np.int32)
    Executor(placed_module(text)[0]).call("f", [8, out])
    assert out.tolist() == [1] * 8


def test_a_thread_that_returned_is_not_waited_for() -> None:
    text = """
function @f(n: int64, out: int32[8]) {
  for t: int64 in 0 +: 8 thread on threadIdx.x {
    allocate s: int32[8] in shared
    if t >= n {
      return
    }
    s[t] = int32(t)
    barrier shared
    out[t] = s[n - 1 - t]
  }
}
"""
    out = np.full(8, -1, np.int32)
    Executor(placed_module(text)[0]).call("f", [5, out])
    assert out.tolist() == [4, 3, 2, 1, 0, -1, -1, -1]


def test_barriers_of_warps() -> None:
    text = """
function @f(out: int32[64]) {
  for t: int64 in 0 +: 64 thread on threadIdx.x {
    allocate s: int32[64] in shared
    for k: int64 in 0 +: t // 32 + 1 {
      s[t] = int32(t)
      barrier warp
      out[t] = s[t // 32 * 32 + (t + 1) % 32]
      barrier warp
    }
  }
}
"""
    out = np.zeros(64, np.int32)
    Executor(placed_module(text)[0]).call("f", [out])
    assert out.tolist() == [t // 32 * 32 + (t + 1) % 32 for t in range(64)]
    # With warps of 16, threads of a warp read what another warp writes.
    found, _, _ = code_of(text, "f", [out], ExecutionOptions(warp_size=16))
    assert found.code == "GM0504"


def test_barriers_in_a_function_that_threads_call() -> None:
    text = """
function @exchange(s: int32[8], t: int64) -> int32 {
  s[t] = int32(t)
  barrier shared
  return s[7 - t]
}
function @f(out: int32[8]) {
  for t: int64 in 0 +: 8 thread on threadIdx.x {
    allocate s: int32[8]  in shared
    out[t] = @exchange(buffer(s), t) as int32
  }
}
"""
    text = text.replace("s: int32[8], t", "s: int32[8] in shared, t")
    out = np.zeros(8, np.int32)
    Executor(placed_module(text)[0]).call("f", [out])
    assert out.tolist() == [7, 6, 5, 4, 3, 2, 1, 0]


def test_shared_and_local_memory_allocated_outside_of_the_threads() -> None:
    text = """
function @f(out: int32[2, 4], mine: int32[2, 4]) {
  allocate s: int32[4] in shared
  allocate own: int32[1] in local
  for b: int64 in 0 +: 2 thread on blockIdx.x {
    own[0] = 0i32
    for t: int64 in 0 +: 4 thread on threadIdx.x {
      s[t] = int32(b * 10 + t)
      own[0] = own[0] + int32(t)
    }
    barrier shared
    for u: int64 in 0 +: 4 thread on threadIdx.x {
      out[b, u] = s[3 - u]
      mine[b, u] = own[0]
    }
  }
}
"""
    out, mine = np.zeros((2, 4), np.int32), np.zeros((2, 4), np.int32)
    Executor(placed_module(text)[0]).call("f", [out, mine])
    assert out.tolist() == [[3, 2, 1, 0], [13, 12, 11, 10]]
    assert mine.tolist() == [[0, 1, 2, 3]] * 2
    # Siblings over one axis are the same threads, and nothing orders them without the barrier.
    found, at, _ = code_of(text.replace("barrier shared", ""), "f", [out, mine])
    assert found.code == "GM0502"
    assert "barrier" in found.hint
    assert at == "s[3 - u]"


def test_each_block_has_its_own_shared_memory() -> None:
    text = """
function @f(out: int32[2]) {
  for b: int64 in 0 +: 2 thread on blockIdx.x {
    allocate s: int32[1] in shared
    if b == 0 {
      s[0] = 5i32
    }
    out[b] = s[0]
  }
}
"""
    found, at, _ = code_of(text, "f", [np.zeros(2, np.int32)])
    assert found.code == "GM0502"
    assert at == "s[0]"
    assert any("blockIdx.x = 1" in note.message for note in found.notes)


def test_what_stands_between_the_loops_is_one_piece_of_work() -> None:
    text = """
function @f(total: int32[3], out: int32[3, 4]) {
  for b: int64 in 0 +: 3 thread on blockIdx.x {
    total[b] = int32(b) * 100i32
    for t: int64 in 0 +: 4 thread on threadIdx.x {
      out[b, t] = total[b] + int32(t)
    }
  }
}
"""
    total, out = np.zeros(3, np.int32), np.zeros((3, 4), np.int32)
    Executor(placed_module(text)[0]).call("f", [total, out])
    assert out.tolist() == [[100 * b + t for t in range(4)] for b in range(3)]
    # Adding up there would be done by every thread: that is a race.
    found, _, _ = code_of(text.replace("int32(b) * 100i32", "total[b] + 1i32"), "f", [total, out])
    assert found.code == "GM0504"
    # And so would be a store after the loop, which threads still read before.
    late = text.replace("    total[b] = int32(b) * 100i32\n", "").replace(
        "int32(t)\n    }", "int32(t)\n    }\n    total[b] = 7i32"
    )
    found, _, _ = code_of(late, "f", [total, out])
    assert found.code == "GM0504"


def test_launches_after_each_other_are_ordered() -> None:
    text = """
function @f(x: int32[4], y: int32[4]) {
  for t: int64 in 0 +: 4 thread on threadIdx.x {
    x[t] = int32(t)
  }
  for u: int64 in 0 +: 4 thread on threadIdx.x {
    y[u] = x[3 - u]
  }
}
"""
    x, y = np.zeros(4, np.int32), np.zeros(4, np.int32)
    Executor(placed_module(text)[0]).call("f", [x, y])
    assert y.tolist() == [3, 2, 1, 0]


def test_axes_in_any_order_and_offsets_of_loops() -> None:
    text = """
function @f(out: int64[2, 3, 4]) {
  for y: int64 in 0 +: 3 thread on threadIdx.y {
    for b: int64 in 10 +: 2 thread on blockIdx.z {
      for x: int64 in 5 +: 4 thread on threadIdx.x {
        out[b - 10, y, x - 5] = b * 100 + y * 10 + x
      }
    }
  }
}
"""
    out = np.zeros((2, 3, 4), np.int64)
    Executor(placed_module(text)[0]).call("f", [out])
    assert out[1, 2, 3] == 1100 + 20 + 8
    assert (out > 0).all()


def test_extents_from_sizes_and_bindings_and_none_at_all() -> None:
    text = """
function @f<n: int64>(out: int32[n]) {
  let half: int64 = n // 2
  for b: int64 in 0 +: half thread on blockIdx.x {
    let two: int64 = half * 2 // max(half, 1)
    for t: int64 in 0 +: two thread on threadIdx.x {
      out[b * 2 + t] = int32(t)
    }
  }
}
"""
    run = Executor(placed_module(text)[0])
    out = np.full(6, -1, np.int32)
    run.call("f", [out])
    assert out.tolist() == [0, 1, 0, 1, 0, 1]
    out = np.full(1, -1, np.int32)
    run.call("f", [out])
    assert out.tolist() == [-1]


def test_unequal_extents_of_one_axis() -> None:
    text = """
function @f(n: int64) {
  for b: int64 in 0 +: 2 thread on blockIdx.x {
    for t: int64 in 0 +: 4 thread on threadIdx.x {
    }
    for u: int64 in 0 +: n thread on threadIdx.x {
    }
  }
}
"""
    Executor(placed_module(text)[0]).call("f", [4])
    found, at, _ = code_of(text, "f", [5])
    assert found.code == "GM0515"
    assert "4 and 5" in found.message
    assert at is not None
    assert at.startswith("for u")


def test_an_extent_that_only_threads_know() -> None:
    text = """
function @f() {
  for b: int64 in 0 +: 2 thread on blockIdx.x {
    for t: int64 in 0 +: b + 1 thread on threadIdx.x {
    }
  }
}
"""
    found, at, _ = code_of(text, "f", [])
    assert found.code == "GM0515"
    assert at is not None
    assert at.startswith("for t")


KERNEL = """
function @scale_kernel<n: int64>(x: float32[n], out: float32[n], factor: float32)
  convention kernel
  launch (blockIdx.x, threadIdx.x) dynamic_shared
{
  allocate s: float32[0] in shared.dyn data sp: ptr<float32, shared.dyn>
  view t: float32[4] in shared.dyn over sp
  for b: int64 in 0 +: (n + 3) // 4 thread on blockIdx.x {
    for i: int64 in 0 +: 4 thread on threadIdx.x {
      if b * 4 + i < n {
        t[i] = x[b * 4 + i] * factor
      } else {
        t[i] = 0.0
      }
      barrier shared
      if b * 4 + i >= n {
        return
      }
      out[b * 4 + i] = t[3 - i]
    }
  }
}
function @host<n: int64>(x: float32[n], out: float32[n]) {
  launch @scale_kernel(buffer(x), buffer(out), 2.0) over blockIdx.x = (n + 3) // 4, threadIdx.x = 4 shared 16
}
"""


def test_a_lowered_kernel() -> None:
    run = Executor(placed_module(KERNEL)[0])
    x, out = np.arange(6, dtype=np.float32), np.zeros(6, np.float32)
    run.call("host", [x, out])
    expected = [6, 4, 2, 0, 0, 0]
    assert out.tolist() == expected
    out[:] = 0
    extents = {ThreadAxis.BLOCK_X: 2, ThreadAxis.THREAD_X: 4}
    run.launch("scale_kernel", [x, out, 2.0], extents, 16)
    assert out.tolist() == expected
    out[:] = -1
    run.launch("scale_kernel", [x, out, 2.0], {**extents, ThreadAxis.BLOCK_X: 0}, 16)
    assert (out == -1).all()


def test_a_kernel_whose_code_is_elsewhere() -> None:
    text = KERNEL[: KERNEL.index("{")] + "  declaration\n{\n}\n" + KERNEL[KERNEL.index("function @host") :]
    module = parse_module("gristmill ir 1\n" + text, "kernel.gmir")
    calls: list[object] = []
    options = ExecutionOptions(launcher=lambda *launch: calls.append(launch))
    x = np.zeros(10, np.float32)
    Executor(module, options).call("host", [x, x])
    Executor(module, options).call("host", [x[:0], x[:0]])
    ((kernel, args, extents, dynamic),) = calls
    assert (kernel, args[2], extents, dynamic) == ("scale_kernel", 2.0, (3, 4), 16)
    Executor(module).call("host", [x[:0], x[:0]])
    with pytest.raises(ExecutionError) as caught:
        Executor(module).call("host", [x, x])
    assert caught.value.code == "GM0518"
    with pytest.raises(ExecutionError) as caught:
        Executor(module).launch("scale_kernel", [x, x, 2.0], {ThreadAxis.BLOCK_X: 3, ThreadAxis.THREAD_X: 4}, 16)
    assert caught.value.code == "GM0512"


def test_a_kernel_that_does_nothing() -> None:
    text = KERNEL[: KERNEL.index("{")] + "{\n}\n" + KERNEL[KERNEL.index("function @host") :]
    x = np.zeros(10, np.float32)
    Executor(parse_module("gristmill ir 1\n" + text, "kernel.gmir")).call("host", [x, x])


def test_a_lowered_kernel_with_too_little_dynamic_shared_memory() -> None:
    found, at, _ = code_of(KERNEL.replace("shared 16", "shared 8"), "host", [np.ones(6, np.float32)] * 2)
    assert found.code == "GM0501"
    assert "8 bytes" in found.message
    assert at == "t[i] = x[b * 4 + i] * factor"


def test_a_launch_that_lacks_an_axis_or_has_another_extent() -> None:
    run = Executor(placed_module(KERNEL)[0])
    args = [np.ones(6, np.float32), np.ones(6, np.float32), 1.0]
    for extents in ({ThreadAxis.BLOCK_X: 2}, {ThreadAxis.BLOCK_X: 2, ThreadAxis.THREAD_X: 8}):
        with pytest.raises(ExecutionError) as caught:
            run.launch("scale_kernel", args, extents, 16)
        assert caught.value.code == "GM0515"


def test_iterations_of_a_parallel_loop_that_race() -> None:
    text = """
function @f<n: int64>(x: int32[n], out: int32[1]) {
  for i: int64 in 0 +: n parallel {
    out[0] = out[0] + x[i]
  }
}
"""
    found, at, notes = code_of(text, "f", [np.ones(4, np.int32), np.zeros(1, np.int32)])
    assert found.code == "GM0505"
    assert "i = 0" in found.message
    assert "i = 1" in found.message
    assert at == "out[0]"
    assert notes == ["out[0] = out[0] + x[i]"]


def test_parallel_loops_in_each_other_and_after_each_other_are_fine() -> None:
    text = """
function @row<m: int64>(x: int32[m], i: int64) {
  for j: int64 in 0 +: m parallel {
    x[j] = x[j] + int32(i * 10 + j)
  }
}
function @f<n: int64, m: int64>(x: int32[n, m], out: int32[n, m]) {
  for i: int64 in 0 +: n parallel {
    allocate t: int32[m] in local
    for j: int64 in 0 +: m parallel {
      t[j] = x[i, j]
    }
    evaluate @row(buffer(t), i)
    for k: int64 in 0 +: m {
      out[i, k] = t[m - 1 - k]
    }
  }
  for a: int64 in 0 +: n parallel {
    x[a, 0] = out[n - 1 - a, 0]
  }
}
"""
    x = np.arange(6, dtype=np.int32).reshape(2, 3)
    expected = (x + np.array([[0, 1, 2], [10, 11, 12]]))[:, ::-1]
    out = np.zeros((2, 3), np.int32)
    Executor(placed_module(text)[0]).call("f", [x, out], ExecutionOptions(shuffle_seed=9))
    assert np.array_equal(out, expected)
    assert x[:, 0].tolist() == expected[::-1, 0].tolist()


def test_races_are_found_through_views_of_other_element_sizes() -> None:
    text = """
function @f(x: uint8[8] data p: ptr<uint8, global>) {
  view w: uint32[2] over p
  for i: int64 in 0 +: 8 parallel {
    if i < 4 {
      x[i] = 1u8
    } else if i == STEP {
      w[1] = 7u32
    }
  }
}
"""
    Executor(placed_module(text.replace("STEP", "5"))[0]).call("f", [np.zeros(8, np.uint8)])
    found, _, _ = code_of(text.replace("STEP", "5").replace("w[1]", "w[0]"), "f", [np.zeros(8, np.uint8)])
    assert found.code == "GM0505"


OVER_THREADS = """
function @total(x: float32[8, EXTENT], out: float32[8]) {
  for b: int64 in 0 +: 8 thread on blockIdx.x {
    for t: int64 in 0 +: EXTENT thread on threadIdx.x {
      let moved: int64 = t + 0
      block "total"
        axis row: int64 spatial in 0 +: 8 = b
        axis i: int64 reduce in 0 +: EXTENT = moved
        init {
          out[row] = 0.0
        }
      {
        out[row] = out[row] + x[row, i]
      }
    }
  }
}
"""


def test_a_block_that_reduces_over_threads_must_run_lowered() -> None:
    args = [np.ones((8, 4), np.float32), np.zeros(8, np.float32)]
    found, at, _ = code_of(OVER_THREADS.replace("EXTENT", "4"), "total", args)
    assert found.code == "GM0522"
    assert "`total` reduces over `threadIdx.x`" in found.message
    assert "how 4 threads" in found.message
    assert at is not None
    assert at.startswith('block "total"')
    assert "`reference:0`" in found.hint


def test_one_thread_alone_reduces_as_a_loop_does() -> None:
    x, out = np.arange(8, dtype=np.float32).reshape(8, 1), np.zeros(8, np.float32)
    Executor(placed_module(OVER_THREADS.replace("EXTENT", "1"))[0]).call("total", [x, out])
    assert np.array_equal(out, x[:, 0])
