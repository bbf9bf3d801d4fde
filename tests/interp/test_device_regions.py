"""A device region runs its body as one launch: what stands in it, threads and memory of its own, early ends."""

from __future__ import annotations

import numpy as np
import pytest

from gristmill.interp import ExecutionError, Executor
from gristmill.ir.module import Module
from gristmill.ir.verify import verify
from gristmill.testing.pass_equivalence import kernels


def module_of(body: str) -> Module:
    found = kernels("gristmill ir 1\n\n" + body)
    assert not verify(found)
    return found


def test_a_region_in_a_loop_of_the_host_is_a_launch_each_time():
    module = module_of("""
function @f<n: int64>(x: int32[n], y: int32[n]) {
  allocate s: int32[4] in shared
  for i: int64 in 0 +: 3 {
    device_region "reference" {
      let size: int64 = n + 3
      for b: int64 in 0 +: size // 4 thread on blockIdx.x {
        for t: int64 in 0 +: 4 thread on threadIdx.x {
          if b * 4 + t >= n {
            return
          }
          s[t] = x[b * 4 + t]
          barrier shared
          y[b * 4 + t] = s[0] + int32(i)
        }
      }
    }
    device_region "reference" {
      x[0] = x[0] + 10i32
    }
  }
}
""")
    x, y = np.arange(10, dtype=np.int32), np.zeros(10, np.int32)
    Executor(module).call("f", [x, y])
    assert x.tolist() == [30, *range(1, 10)]
    assert y.tolist() == [22, 22, 22, 22, 6, 6, 6, 6, 10, 10]


def test_a_zero_extent_launches_nothing():
    module = module_of("""
function @f<n: int64>(x: int32[n], y: int32[1]) {
  device_region "reference" {
    y[0] = 1i32
    for t: int64 in 0 +: n thread on threadIdx.x {
      x[t] = 1i32
    }
  }
}
""")
    y = np.zeros(1, np.int32)
    Executor(module).call("f", [np.zeros(0, np.int32), y])
    assert y.tolist() == [0]
    Executor(module).call("f", [np.zeros(2, np.int32), y])
    assert y.tolist() == [1]


@pytest.mark.parametrize(
    "extent",
    ["let size: int64 = 2 + b", "allocate cell: int64[] in local\n      cell[] = 3\n      let size: int64 = cell[]"],
)
def test_an_extent_that_only_the_launch_knows_is_refused(extent: str):
    module = module_of(f"""
function @f(y: int32[8]) {{
  device_region "reference" {{
    for b: int64 in 0 +: 2 thread on blockIdx.x {{
      {extent}
      for t: int64 in 0 +: size thread on threadIdx.x {{
        y[t] = 1i32
      }}
    }}
  }}
}}
""")
    with pytest.raises(ExecutionError) as caught:
        Executor(module).call("f", [np.zeros(8, np.int32)])
    assert caught.value.diagnostics[0].code == "GM0515"


def test_a_region_in_a_vectorized_loop_is_refused():
    module = module_of("""
function @f(y: int32[4]) {
  for i: int64 in 0 +: 4 vectorized {
    device_region "reference" {
      y[i] = 1i32
    }
  }
}
""")
    with pytest.raises(ExecutionError) as caught:
        Executor(module).call("f", [np.zeros(4, np.int32)])
    assert caught.value.diagnostics[0].code == "GM0515"


def test_each_thread_has_a_copy_of_a_scalar_of_the_host():
    module = module_of("""
function @f<n: int64>(x: int64[n], out: int64[1]) {
  allocate step: int64[] in local
  step[] = 1
  while step[] < 20 {
    for t: int64 in 0 +: n thread on threadIdx.x {
      x[t] = x[t] + step[]
      step[] = step[] + t
      x[t] = x[t] * step[]
    }
    step[] = step[] * 10
  }
  for u: int64 in 0 +: 1 thread on threadIdx.x {
    out[u] = step[]
  }
}
""")
    x, out = np.zeros(3, np.int64), np.zeros(1, np.int64)
    Executor(module).call("f", [x, out])
    assert x.tolist() == [(t * 0 + 1 * (1 + t) + 10) * (10 + t) for t in range(3)]
    assert out.tolist() == [100]
