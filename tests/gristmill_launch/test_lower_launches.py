"""Launch lowering of functions that call each other: which become kernels, helpers, both; and what stays."""

from __future__ import annotations

import numpy as np
import pytest

from gristmill.ir.module import Module
from gristmill.ir.target import Target
from gristmill.passes.manager import Pipeline, RunOptions
from gristmill.testing.launch_lowering import Case, check_launch_lowering, floats, ints
from gristmill_launch.annotate_device_regions import AnnotateDeviceRegions
from gristmill_launch.bind_targets import BindTargets
from gristmill_launch.lower_launches import LowerLaunches
from gristmill_launch.lower_packed_interface import LowerPackedInterface
from gristmill_launch.split_host_device import SplitHostDevice

DEVICE = Target("reference")
LOWERING = Pipeline.of([BindTargets(DEVICE), AnnotateDeviceRegions(DEVICE), SplitHostDevice(), LowerLaunches(DEVICE)])


def lower(module: Module) -> Module:
    return LOWERING.run(module, RunOptions(verify=True))


CASES = [
    Case(
        "a helper that only the device calls stays a call",
        """
        @T.prim_func
        def f(x: T.Buffer((4,), "int32")):
            for t in T.thread_binding(4, "threadIdx.x"):
                store(x, t)

        @T.prim_func(private=True)
        def store(x: T.Buffer((4,), "int32"), t: T.int64):
            x[t] = value(T.int32(t))

        @T.prim_func(private=True)
        def value(t: T.int32) -> T.int32:
            return t + 42
        """,
        """
        gristmill ir 1

        function @f(x: int32[4] data x_data: ptr<int32, global>)
          symbol "f"
          target "host"
        {
          launch @f_kernel(x_data) over threadIdx.x = 4
        }

        function @f_kernel(x_data: ptr<int32, global>)
          symbol "f_kernel"
          convention kernel
          target "reference"
          launch (threadIdx.x)
        {
          view x: int32[4] over x_data
          for t: int64 in 0 +: 4 thread on threadIdx.x {
            evaluate @store(buffer(x), t)
          }
        }

        function @store(x: int32[4], t: int64)
          target "reference"
        {
          x[t] = @value(int32(t)) as int32
        }

        function @value(t: int32) -> int32
          target "reference"
        {
          return t + 42i32
        }
        """,
        lambda: [[ints(4)]],
    ),
    Case(
        "a helper of host and device becomes two functions",
        """
        @T.prim_func
        def f(x: T.Buffer((4,), "float32"), v: T.float32):
            square: T.let[T.float32] = square_of(v)
            for t in T.thread_binding(4, "threadIdx.x"):
                x[t] = square_of(x[t]) + square

        @T.prim_func(private=True)
        def square_of(v: T.float32) -> T.float32:
            return v * v
        """,
        """
        gristmill ir 1

        function @f(x: float32[4] data x_data: ptr<float32, global>, v: float32)
          symbol "f"
          target "host"
        {
          let square: float32 = @square_of_host(v) as float32
          launch @f_kernel(x_data, square) over threadIdx.x = 4
        }

        function @f_kernel(x_data: ptr<float32, global>, square: float32)
          symbol "f_kernel"
          convention kernel
          target "reference"
          launch (threadIdx.x)
        {
          view x: float32[4] over x_data
          for t: int64 in 0 +: 4 thread on threadIdx.x {
            x[t] = @square_of(x[t]) as float32 + square
          }
        }

        function @square_of(v: float32) -> float32
          target "reference"
        {
          return v * v
        }

        function @square_of_host(v: float32) -> float32
          target "host"
        {
          return v * v
        }
        """,
        lambda: [[floats(4), 3.0]],
    ),
    Case(
        "a public function that the device calls too keeps its symbol on the host",
        """
        @T.prim_func
        def f(x: T.Buffer((4,), "float32")):
            for t in T.thread_binding(4, "threadIdx.x"):
                x[t] = half(x[t])

        @T.prim_func
        def half(v: T.float32) -> T.float32:
            return v / T.float32(2)
        """,
        """
        gristmill ir 1

        function @f(x: float32[4] data x_data: ptr<float32, global>)
          symbol "f"
          target "host"
        {
          launch @f_kernel(x_data) over threadIdx.x = 4
        }

        function @f_kernel(x_data: ptr<float32, global>)
          symbol "f_kernel"
          convention kernel
          target "reference"
          launch (threadIdx.x)
        {
          view x: float32[4] over x_data
          for t: int64 in 0 +: 4 thread on threadIdx.x {
            x[t] = @half(x[t]) as float32
          }
        }

        function @half(v: float32) -> float32
          target "reference"
        {
          return v / 2.0
        }

        function @half_host(v: float32) -> float32
          symbol "half"
          target "host"
        {
          return v / 2.0
        }
        """,
        lambda: [[floats(4)]],
    ),
    Case(
        "a call in an extent is made by the host",
        """
        @T.prim_func
        def f(x: T.Buffer(("n",), "int32")):
            for b in T.thread_binding(blocks(n), "blockIdx.x"):
                for t in T.thread_binding(4, "threadIdx.x"):
                    if b * 4 + t < n:
                        x[b * 4 + t] = T.int32(blocks(b))

        @T.prim_func(private=True)
        def blocks(n: T.int64) -> T.int64:
            return (n + 3) // 4
        """,
        """
        gristmill ir 1

        function @f<n: int64>(x: int32[n] data x_data: ptr<int32, global>)
          symbol "f"
          target "host"
        {
          let b_extent: int64 = @blocks_host(n) as int64
          launch @f_kernel(x_data, n, b_extent) over blockIdx.x = b_extent, threadIdx.x = 4
        }

        function @f_kernel(x_data: ptr<int32, global>, n: int64, b_extent: int64)
          symbol "f_kernel"
          convention kernel
          target "reference"
          launch (blockIdx.x, threadIdx.x)
        {
          view x: int32[n] over x_data
          for b: int64 in 0 +: b_extent thread on blockIdx.x {
            for t: int64 in 0 +: 4 thread on threadIdx.x {
              if b * 4 + t < n {
                x[b * 4 + t] = int32(@blocks(b) as int64)
              }
            }
          }
        }

        function @blocks(n: int64) -> int64
          target "reference"
        {
          return (n + 3) // 4
        }

        function @blocks_host(n: int64) -> int64
          target "host"
        {
          return (n + 3) // 4
        }
        """,
        lambda: [[ints(n)] for n in (0, 1, 9)],
    ),
    Case(
        "a function for the device that the host calls is a kernel",
        """
        @T.prim_func
        def f(x: T.Buffer(("n", 2), "float32"), v: T.float32):
            fill(x, v + T.float32(1), n * 2)
            fill(x, v, n)

        @T.prim_func(private=True)
        def fill(x: T.Buffer(("m", 2), "float32"), value: T.float32, count: T.int64):
            T.func_attr({"target": T.target("reference")})
            for t in T.thread_binding(count, "threadIdx.x"):
                x[t // 2, t % 2] = value
        """,
        """
        gristmill ir 1

        function @f<n: int64>(x: float32[n, 2], v: float32)
          symbol "f"
          target "host"
        {
          evaluate @fill_host(buffer(x), v + 1.0, n * 2)
          evaluate @fill_host(buffer(x), v, n)
        }

        function @fill_host<m: int64>(x: float32[m, 2] data x_data: ptr<float32, global>, value: float32, count: int64)
          target "host"
        {
          launch @fill(x_data, value, count, m) over threadIdx.x = count
        }

        function @fill(x_data: ptr<float32, global>, value: float32, count: int64, m: int64)
          symbol "fill"
          convention kernel
          target "reference"
          launch (threadIdx.x)
        {
          view x: float32[m, 2] over x_data
          for t: int64 in 0 +: count thread on threadIdx.x {
            x[t // 2, t % 2] = value
          }
        }
        """,
        lambda: [[np.zeros((n, 2), np.float32), 1.0] for n in (0, 1, 3)],
    ),
    Case(
        "a function for the device that host and device call is a kernel and a helper",
        """
        @T.prim_func
        def f(x: T.Buffer((4,), "int32")):
            add(x, 1)
            for t in T.thread_binding(1, "threadIdx.x"):
                add(x, 2)

        @T.prim_func(private=True)
        def add(x: T.Buffer((4,), "int32"), value: T.int32):
            T.func_attr({"target": T.target("reference")})
            x[1] = x[1] + value
        """,
        """
        gristmill ir 1

        function @f(x: int32[4] data x_data: ptr<int32, global>)
          symbol "f"
          target "host"
        {
          evaluate @add_host(buffer(x), 1i32)
          launch @f_kernel(x_data) over threadIdx.x = 1
        }

        function @f_kernel(x_data: ptr<int32, global>)
          symbol "f_kernel"
          convention kernel
          target "reference"
          launch (threadIdx.x)
        {
          view x: int32[4] over x_data
          for t: int64 in 0 +: 1 thread on threadIdx.x {
            evaluate @add(buffer(x), 2i32)
          }
        }

        function @add_host(x: int32[4] data x_data: ptr<int32, global>, value: int32)
          target "host"
        {
          launch @add_kernel(x_data, value)
        }

        function @add(x: int32[4], value: int32)
          target "reference"
        {
          x[1] = x[1] + value
        }

        function @add_kernel(x_data: ptr<int32, global>, value: int32)
          symbol "add_kernel"
          convention kernel
          target "reference"
          launch ()
        {
          view x: int32[4] over x_data
          x[1] = x[1] + value
        }
        """,
        lambda: [[ints(4)]],
    ),
    Case(
        "a private function of the host may launch",
        """
        @T.prim_func
        def f(x: T.Buffer(("n",), "int32")):
            again(x, 2)
            if n > 2:
                again(x, 3)

        @T.prim_func(private=True)
        def again(x: T.Buffer(("n",), "int32"), times: T.int32):
            for k in range(times):
                for t in T.thread_binding(n, "threadIdx.x"):
                    x[t] = x[t] + T.int32(k)
        """,
        """
        gristmill ir 1

        function @f<n: int64>(x: int32[n])
          symbol "f"
          target "host"
        {
          evaluate @again(buffer(x), 2i32)
          if n > 2 {
            evaluate @again(buffer(x), 3i32)
          }
        }

        function @again<n: int64>(x: int32[n] data x_data: ptr<int32, global>, times: int32)
          target "host"
        {
          for k: int64 in 0 +: int64(times) {
            launch @again_kernel(x_data, n, k) over threadIdx.x = n
          }
        }

        function @again_kernel(x_data: ptr<int32, global>, n: int64, k: int64)
          symbol "again_kernel"
          convention kernel
          target "reference"
          launch (threadIdx.x)
        {
          view x: int32[n] over x_data
          for t: int64 in 0 +: n thread on threadIdx.x {
            x[t] = x[t] + int32(k)
          }
        }
        """,
        lambda: [[ints(n)] for n in (0, 1, 3)],
    ),
    Case(
        "helpers that nothing calls are left alone",
        """
        @T.prim_func
        def f(x: T.Buffer((4,), "int32")):
            for t in T.thread_binding(4, "threadIdx.x"):
                x[t] = T.int32(t)

        @T.prim_func(private=True)
        def unused(v: T.int32) -> T.int32:
            return v
        """,
        """
        gristmill ir 1

        function @f(x: int32[4] data x_data: ptr<int32, global>)
          symbol "f"
          target "host"
        {
          launch @f_kernel(x_data) over threadIdx.x = 4
        }

        function @f_kernel(x_data: ptr<int32, global>)
          symbol "f_kernel"
          convention kernel
          target "reference"
          launch (threadIdx.x)
        {
          view x: int32[4] over x_data
          for t: int64 in 0 +: 4 thread on threadIdx.x {
            x[t] = int32(t)
          }
        }

        function @unused(v: int32) -> int32 {
          return v
        }
        """,
        lambda: [[ints(4)]],
    ),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_lowering(case: Case) -> None:
    check_launch_lowering(lower, LowerPackedInterface(), case.before, case.expected, case.calls())
