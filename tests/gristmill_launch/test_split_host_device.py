"""Launch lowering of one function: its kernels with their parameters, its launches with their extents."""

from __future__ import annotations

import numpy as np
import pytest

from gristmill.ir.module import Module
from gristmill.ir.target import Target
from gristmill.passes.manager import Pipeline, RunOptions
from gristmill.testing.launch_lowering import Case, aligned, check_launch_lowering, floats, ints
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
        "a kernel takes the name of its function, pointers first, then scalars",
        """
        @T.prim_func
        def f(k: T.int8, x: T.Buffer(("n",), "int8"), y: T.Buffer(("n",), "int8")):
            for b in T.thread_binding((n + 3) // 4, "blockIdx.x"):
                for t in T.thread_binding(4, "threadIdx.x"):
                    if b * 4 + t < n:
                        y[b * 4 + t] = x[b * 4 + t] * k
        """,
        """
        gristmill ir 1

        function @f<n: int64>(k: int8, x: int8[n] data x_data: ptr<int8, global>, y: int8[n] data y_data: ptr<int8, global>)
          symbol "f"
          target "host"
        {
          launch @f_kernel(x_data, y_data, k, n) over blockIdx.x = (n + 3) // 4, threadIdx.x = 4
        }

        function @f_kernel(x_data: ptr<int8, global>, y_data: ptr<int8, global>, k: int8, n: int64)
          symbol "f_kernel"
          convention kernel
          target "reference"
          launch (blockIdx.x, threadIdx.x)
        {
          view x: int8[n] over x_data
          view y: int8[n] over y_data
          for b: int64 in 0 +: (n + 3) // 4 thread on blockIdx.x {
            for t: int64 in 0 +: 4 thread on threadIdx.x {
              if b * 4 + t < n {
                y[b * 4 + t] = x[b * 4 + t] * k
              }
            }
          }
        }
        """,
        lambda: [[3, np.arange(n, dtype=np.int8), np.zeros(n, np.int8)] for n in (0, 1, 7, 8)],
    ),
    Case(
        "axes stand in the order of their first appearance",
        """
        @T.prim_func
        def f(x: T.Buffer((4, 3, 2), "int32")):
            for t in T.thread_binding(4, "threadIdx.x"):
                for v in T.thread_binding(3, "blockIdx.y"):
                    for u in T.thread_binding(2, "blockIdx.x"):
                        x[t, v, u] = T.int32(t * 100 + v * 10 + u)
        """,
        """
        gristmill ir 1

        function @f(x: int32[4, 3, 2] data x_data: ptr<int32, global>)
          symbol "f"
          target "host"
        {
          launch @f_kernel(x_data) over threadIdx.x = 4, blockIdx.y = 3, blockIdx.x = 2
        }

        function @f_kernel(x_data: ptr<int32, global>)
          symbol "f_kernel"
          convention kernel
          target "reference"
          launch (threadIdx.x, blockIdx.y, blockIdx.x)
        {
          view x: int32[4, 3, 2] over x_data
          for t: int64 in 0 +: 4 thread on threadIdx.x {
            for v: int64 in 0 +: 3 thread on blockIdx.y {
              for u: int64 in 0 +: 2 thread on blockIdx.x {
                x[t, v, u] = int32(t * 100 + v * 10 + u)
              }
            }
          }
        }
        """,
        lambda: [[np.zeros((4, 3, 2), np.int32)]],
    ),
    Case(
        "equal extents of one axis are one extent",
        """
        @T.prim_func
        def f(x: T.Buffer(("n",), "int32"), y: T.Buffer(("n",), "int32")):
            for b in T.thread_binding(1, "blockIdx.x"):
                for t in T.thread_binding(n + n, "threadIdx.x"):
                    if t < n:
                        x[t] = x[t] + 1
                for u in T.thread_binding(2 * n, "threadIdx.x"):
                    if u < n:
                        y[u] = y[u] + 2
        """,
        """
        gristmill ir 1

        function @f<n: int64>(x: int32[n] data x_data: ptr<int32, global>, y: int32[n] data y_data: ptr<int32, global>)
          symbol "f"
          target "host"
        {
          launch @f_kernel(x_data, y_data, n) over blockIdx.x = 1, threadIdx.x = n * 2
        }

        function @f_kernel(x_data: ptr<int32, global>, y_data: ptr<int32, global>, n: int64)
          symbol "f_kernel"
          convention kernel
          target "reference"
          launch (blockIdx.x, threadIdx.x)
        {
          view x: int32[n] over x_data
          view y: int32[n] over y_data
          for b: int64 in 0 +: 1 thread on blockIdx.x {
            for t: int64 in 0 +: n + n thread on threadIdx.x {
              if t < n {
                x[t] = x[t] + 1i32
              }
            }
            for u: int64 in 0 +: 2 * n thread on threadIdx.x {
              if u < n {
                y[u] = y[u] + 2i32
              }
            }
          }
        }
        """,
        lambda: [[ints(n), ints(n)] for n in (0, 1, 5)],
    ),
    Case(
        "extents of one axis that may differ are compared before the launch",
        """
        @T.prim_func
        def f(x: T.Buffer(("n",), "int8"), y: T.Buffer(("m",), "int8")):
            for b in T.thread_binding(1, "blockIdx.x"):
                for t in T.thread_binding(n, "threadIdx.x"):
                    x[t] = x[t] + 1
                for u in T.thread_binding(m, "threadIdx.x"):
                    y[u] = y[u] + 2
        """,
        """
        gristmill ir 1

        function @f<n: int64, m: int64>(x: int8[n] data x_data: ptr<int8, global>, y: int8[m] data y_data: ptr<int8, global>)
          symbol "f"
          target "host"
        {
          assert n == m, "ValueError", "loops over threadIdx.x in one launch have the extents ", n, " and ", m
          launch @f_kernel(x_data, y_data, n, m) over blockIdx.x = 1, threadIdx.x = n
        }

        function @f_kernel(x_data: ptr<int8, global>, y_data: ptr<int8, global>, n: int64, m: int64)
          symbol "f_kernel"
          convention kernel
          target "reference"
          launch (blockIdx.x, threadIdx.x)
        {
          view x: int8[n] over x_data
          view y: int8[m] over y_data
          for b: int64 in 0 +: 1 thread on blockIdx.x {
            for t: int64 in 0 +: n thread on threadIdx.x {
              x[t] = x[t] + 1i8
            }
            for u: int64 in 0 +: m thread on threadIdx.x {
              y[u] = y[u] + 2i8
            }
          }
        }
        """,
        lambda: [[np.arange(n, dtype=np.int8), np.arange(n, dtype=np.int8)] for n in (0, 1, 5)],
    ),
    Case(
        "the size of dynamic shared memory comes last, in bytes",
        """
        @T.prim_func
        def f(x: T.Buffer(("n",), "int16"), y: T.Buffer(("n",), "int16")):
            for b in T.thread_binding(2, "blockIdx.x"):
                s = T.alloc_buffer((2, n), "int16", scope="shared.dyn")
                for t in T.thread_binding(n, "threadIdx.x"):
                    s[b, t] = x[t]
                    if b == 0:
                        y[t] = s[b, t]
        """,
        """
        gristmill ir 1

        function @f<n: int64>(x: int16[n] data x_data: ptr<int16, global>, y: int16[n] data y_data: ptr<int16, global>)
          symbol "f"
          target "host"
        {
          launch @f_kernel(x_data, y_data, n) over blockIdx.x = 2, threadIdx.x = n shared min(n, 2305843009213693951) * 4
        }

        function @f_kernel(x_data: ptr<int16, global>, y_data: ptr<int16, global>, n: int64)
          symbol "f_kernel"
          convention kernel
          target "reference"
          launch (blockIdx.x, threadIdx.x) dynamic_shared
        {
          view x: int16[n] over x_data
          view y: int16[n] over y_data
          for b: int64 in 0 +: 2 thread on blockIdx.x {
            allocate s: int16[2, n] in shared.dyn
            for t: int64 in 0 +: n thread on threadIdx.x {
              s[b, t] = x[t]
              if b == 0 {
                y[t] = s[b, t]
              }
            }
          }
        }
        """,
        lambda: [[np.arange(n, dtype=np.int16), np.arange(n, dtype=np.int16)] for n in (0, 1, 5)],
    ),
    Case(
        "dynamic shared memory may have a constant size",
        """
        @T.prim_func
        def f(x: T.Buffer((8,), "int16")):
            for t in T.thread_binding(8, "threadIdx.x"):
                s = T.alloc_buffer((8,), "int16", scope="shared.dyn")
                s[t] = x[t]
                x[t] = s[t] + T.int16(1)
        """,
        """
        gristmill ir 1

        function @f(x: int16[8] data x_data: ptr<int16, global>)
          symbol "f"
          target "host"
        {
          launch @f_kernel(x_data) over threadIdx.x = 8 shared 16
        }

        function @f_kernel(x_data: ptr<int16, global>)
          symbol "f_kernel"
          convention kernel
          target "reference"
          launch (threadIdx.x) dynamic_shared
        {
          view x: int16[8] over x_data
          for t: int64 in 0 +: 8 thread on threadIdx.x {
            allocate s: int16[8] in shared.dyn
            s[t] = x[t]
            x[t] = s[t] + 1i16
          }
        }
        """,
        lambda: [[np.arange(8, dtype=np.int16)]],
    ),
    Case(
        "bindings of the launch that an extent uses are put in its place, transitively",
        """
        @T.prim_func
        def f(x: T.Buffer(("n",), "int32"), k: T.int64):
            for b in T.thread_binding(2, "blockIdx.x"):
                v: T.let[T.int64] = n + 1
                w: T.let[T.int64] = v * k
                for t in T.thread_binding(w, "threadIdx.x"):
                    if t < n and b == 0:
                        x[t] = x[t] + T.int32(w)
        """,
        """
        gristmill ir 1

        function @f<n: int64>(x: int32[n] data x_data: ptr<int32, global>, k: int64)
          symbol "f"
          target "host"
        {
          launch @f_kernel(x_data, k, n) over blockIdx.x = 2, threadIdx.x = (n + 1) * k
        }

        function @f_kernel(x_data: ptr<int32, global>, k: int64, n: int64)
          symbol "f_kernel"
          convention kernel
          target "reference"
          launch (blockIdx.x, threadIdx.x)
        {
          view x: int32[n] over x_data
          for b: int64 in 0 +: 2 thread on blockIdx.x {
            let v: int64 = n + 1
            let w: int64 = v * k
            for t: int64 in 0 +: w thread on threadIdx.x {
              if t < n and b == 0 {
                x[t] = x[t] + int32(w)
              }
            }
          }
        }
        """,
        lambda: [[ints(n), k] for n in (0, 1, 5) for k in (0, 2)],
    ),
    Case(
        "a variable that occurs only in an extent is a parameter",
        """
        @T.prim_func
        def f(x: T.Buffer((256,), "int32"), length: T.int32):
            for b in T.thread_binding((length + 127) // 128, "blockIdx.x"):
                for t in T.thread_binding(128, "threadIdx.x"):
                    x[T.int64(b) * 128 + t] = T.int32(t)
        """,
        """
        gristmill ir 1

        function @f(x: int32[256] data x_data: ptr<int32, global>, length: int32)
          symbol "f"
          target "host"
        {
          launch @f_kernel(x_data, length) over blockIdx.x = int64((length + 127i32) // 128i32), threadIdx.x = 128
        }

        function @f_kernel(x_data: ptr<int32, global>, length: int32)
          symbol "f_kernel"
          convention kernel
          target "reference"
          launch (blockIdx.x, threadIdx.x)
        {
          view x: int32[256] over x_data
          for b: int64 in 0 +: int64((length + 127i32) // 128i32) thread on blockIdx.x {
            for t: int64 in 0 +: 128 thread on threadIdx.x {
              x[b * 128 + t] = int32(t)
            }
          }
        }
        """,
        lambda: [[ints(256), length] for length in (0, 1, 128, 129)],
    ),
    Case(
        "an early return ends a thread",
        """
        @T.prim_func
        def f(x: T.Buffer(("n",), "int32")) -> T.int32:
            for b in T.thread_binding((n + 3) // 4, "blockIdx.x"):
                for t in T.thread_binding(4, "threadIdx.x"):
                    if b * 4 + t >= n:
                        return 0
                    x[b * 4 + t] = x[b * 4 + t] + 1
            return T.int32(n)
        """,
        """
        gristmill ir 1

        function @f<n: int64>(x: int32[n] data x_data: ptr<int32, global>) -> int32
          symbol "f"
          target "host"
        {
          launch @f_kernel(x_data, n) over blockIdx.x = (n + 3) // 4, threadIdx.x = 4
          return int32(n)
        }

        function @f_kernel(x_data: ptr<int32, global>, n: int64)
          symbol "f_kernel"
          convention kernel
          target "reference"
          launch (blockIdx.x, threadIdx.x)
        {
          view x: int32[n] over x_data
          for b: int64 in 0 +: (n + 3) // 4 thread on blockIdx.x {
            for t: int64 in 0 +: 4 thread on threadIdx.x {
              if b * 4 + t >= n {
                return
              }
              x[b * 4 + t] = x[b * 4 + t] + 1i32
            }
          }
        }
        """,
        lambda: [[ints(n)] for n in (0, 1, 6)],
    ),
    Case(
        "the exported symbol names the kernel",
        """
        @T.prim_func
        def f(x: T.Buffer((4,), "int32")):
            T.func_attr({"global_symbol": "tuned"})
            for t in T.thread_binding(4, "threadIdx.x"):
                x[t] = x[t] + 1
        """,
        """
        gristmill ir 1

        function @f(x: int32[4] data x_data: ptr<int32, global>)
          symbol "tuned"
          target "host"
        {
          launch @tuned_kernel(x_data) over threadIdx.x = 4
        }

        function @tuned_kernel(x_data: ptr<int32, global>)
          symbol "tuned_kernel"
          convention kernel
          target "reference"
          launch (threadIdx.x)
        {
          view x: int32[4] over x_data
          for t: int64 in 0 +: 4 thread on threadIdx.x {
            x[t] = x[t] + 1i32
          }
        }
        """,
        lambda: [[ints(4)]],
    ),
    Case(
        "kernels have names that no other function has",
        """
        @T.prim_func
        def f(x: T.Buffer((4,), "int32")):
            for t in T.thread_binding(4, "threadIdx.x"):
                x[t] = x[t] + 1
            for t in T.thread_binding(4, "threadIdx.y"):
                x[t] = x[t] * f_kernel(t)
            for t in T.thread_binding(4, "threadIdx.z"):
                x[t] = x[t] - 1

        @T.prim_func(private=True)
        def f_kernel(t: T.int64) -> T.int32:
            return T.int32(t)
        """,
        """
        gristmill ir 1

        function @f(x: int32[4] data x_data: ptr<int32, global>)
          symbol "f"
          target "host"
        {
          launch @f_kernel_1(x_data) over threadIdx.x = 4
          launch @f_kernel_2(x_data) over threadIdx.y = 4
          launch @f_kernel_3(x_data) over threadIdx.z = 4
        }

        function @f_kernel_1(x_data: ptr<int32, global>)
          symbol "f_kernel_1"
          convention kernel
          target "reference"
          launch (threadIdx.x)
        {
          view x: int32[4] over x_data
          for t: int64 in 0 +: 4 thread on threadIdx.x {
            x[t] = x[t] + 1i32
          }
        }

        function @f_kernel_2(x_data: ptr<int32, global>)
          symbol "f_kernel_2"
          convention kernel
          target "reference"
          launch (threadIdx.y)
        {
          view x: int32[4] over x_data
          for t: int64 in 0 +: 4 thread on threadIdx.y {
            x[t] = x[t] * @f_kernel(t) as int32
          }
        }

        function @f_kernel_3(x_data: ptr<int32, global>)
          symbol "f_kernel_3"
          convention kernel
          target "reference"
          launch (threadIdx.z)
        {
          view x: int32[4] over x_data
          for t: int64 in 0 +: 4 thread on threadIdx.z {
            x[t] = x[t] - 1i32
          }
        }

        function @f_kernel(t: int64) -> int32
          target "reference"
        {
          return int32(t)
        }
        """,
        lambda: [[ints(4)]],
    ),
    Case(
        "host loops, conditions and temporaries stand between launches",
        """
        @T.prim_func
        def f(x: T.Buffer(("n",), "float32"), rounds: T.int32, back: T.bool):
            b = T.alloc_buffer((n,), "float32")
            for k in range(rounds):
                for t in T.thread_binding(n, "threadIdx.x"):
                    b[t] = x[t] * T.float32(k)
                if back:
                    for t in T.thread_binding(n, "threadIdx.x"):
                        x[t] = b[t] + T.float32(1)
        """,
        """
        gristmill ir 1

        function @f<n: int64>(x: float32[n] data x_data: ptr<float32, global>, rounds: int32, back: bool)
          symbol "f"
          target "host"
        {
          allocate b: float32[n] data b_data: ptr<float32, global>
          for k: int64 in 0 +: int64(rounds) {
            launch @f_kernel(x_data, b_data, n, k) over threadIdx.x = n
            if back {
              launch @f_kernel_1(x_data, b_data, n) over threadIdx.x = n
            }
          }
        }

        function @f_kernel(x_data: ptr<float32, global>, b_data: ptr<float32, global>, n: int64, k: int64)
          symbol "f_kernel"
          convention kernel
          target "reference"
          launch (threadIdx.x)
        {
          view x: float32[n] over x_data
          view b: float32[n] over b_data
          for t: int64 in 0 +: n thread on threadIdx.x {
            b[t] = x[t] * float32(k)
          }
        }

        function @f_kernel_1(x_data: ptr<float32, global>, b_data: ptr<float32, global>, n: int64)
          symbol "f_kernel_1"
          convention kernel
          target "reference"
          launch (threadIdx.x)
        {
          view x: float32[n] over x_data
          view b: float32[n] over b_data
          for t: int64 in 0 +: n thread on threadIdx.x {
            x[t] = b[t] + 1.0
          }
        }
        """,
        lambda: [[floats(n), rounds, back] for n in (0, 3) for rounds in (0, 2) for back in (True, False)],
    ),
    Case(
        "strides and offsets are kept, also in views that the host declares",
        """
        @T.prim_func
        def f(a: T.handle, n: T.int64, s: T.int64):
            x = T.match_buffer(a, (4, n), "float32", strides=(s, 1), align=64)
            y = T.decl_buffer((2, n), "float32", data=x.data, strides=(s, 1), elem_offset=s)
            for t in T.thread_binding(n, "threadIdx.x"):
                y[1, t] = y[0, t] + x[3, t]
        """,
        """
        gristmill ir 1

        function @f(x: float32[4, n] strides [s, 1] align 64 data x_data: ptr<float32, global>, n: int64, s: int64)
          symbol "f"
          target "host"
        {
          view y: float32[2, n] strides [s, 1] offset s over x_data
          launch @f_kernel(x_data, n, s) over threadIdx.x = n
        }

        function @f_kernel(x_data: ptr<float32, global>, n: int64, s: int64)
          symbol "f_kernel"
          convention kernel
          target "reference"
          launch (threadIdx.x)
        {
          view x: float32[4, n] strides [s, 1] align 64 over x_data
          view y: float32[2, n] strides [s, 1] offset s over x_data
          for t: int64 in 0 +: n thread on threadIdx.x {
            y[1, t] = y[0, t] + x[3, t]
          }
        }
        """,
        lambda: [[aligned(floats(4 * n).reshape(4, n)), n, n] for n in (2, 5)],
    ),
    Case(
        "two buffers over the same memory are one pointer",
        """
        @T.prim_func
        def f(x: T.Buffer((8,), "int32")):
            y = T.decl_buffer((2, 4), "uint32", data=x.data)
            for t in T.thread_binding(4, "threadIdx.x"):
                y[1, t] = T.uint32(x[t] + 1)
        """,
        """
        gristmill ir 1

        function @f(x: int32[8] data x_data: ptr<int32, global>)
          symbol "f"
          target "host"
        {
          view y: uint32[2, 4] over x_data
          launch @f_kernel(x_data) over threadIdx.x = 4
        }

        function @f_kernel(x_data: ptr<int32, global>)
          symbol "f_kernel"
          convention kernel
          target "reference"
          launch (threadIdx.x)
        {
          view x: int32[8] over x_data
          view y: uint32[2, 4] over x_data
          for t: int64 in 0 +: 4 thread on threadIdx.x {
            y[1, t] = uint32(x[t] + 1i32)
          }
        }
        """,
        lambda: [[ints(8)]],
    ),
    Case(
        "shared memory that is declared around a launch is its own",
        """
        @T.prim_func
        def f(x: T.Buffer((2, 4), "int32")):
            s = T.alloc_buffer((4,), "int32", scope="shared")
            for b in T.thread_binding(2, "blockIdx.x"):
                for t in T.thread_binding(4, "threadIdx.x"):
                    s[t] = x[b, t]
                    T.tvm_storage_sync("shared")
                    x[b, t] = s[3 - t]
            for t in T.thread_binding(4, "threadIdx.x"):
                s[t] = x[0, t]
                x[1, t] = s[t]
        """,
        """
        gristmill ir 1

        function @f(x: int32[2, 4] data x_data: ptr<int32, global>)
          symbol "f"
          target "host"
        {
          launch @f_kernel(x_data) over blockIdx.x = 2, threadIdx.x = 4
          launch @f_kernel_1(x_data) over threadIdx.x = 4
        }

        function @f_kernel(x_data: ptr<int32, global>)
          symbol "f_kernel"
          convention kernel
          target "reference"
          launch (blockIdx.x, threadIdx.x)
        {
          view x: int32[2, 4] over x_data
          allocate s: int32[4] in shared
          for b: int64 in 0 +: 2 thread on blockIdx.x {
            for t: int64 in 0 +: 4 thread on threadIdx.x {
              s[t] = x[b, t]
              barrier shared
              x[b, t] = s[3 - t]
            }
          }
        }

        function @f_kernel_1(x_data: ptr<int32, global>)
          symbol "f_kernel_1"
          convention kernel
          target "reference"
          launch (threadIdx.x)
        {
          view x: int32[2, 4] over x_data
          allocate s: int32[4] in shared
          for t: int64 in 0 +: 4 thread on threadIdx.x {
            s[t] = x[0, t]
            x[1, t] = s[t]
          }
        }
        """,
        lambda: [[np.arange(8, dtype=np.int32).reshape(2, 4)]],
    ),
    Case(
        "a local scalar of the host is passed by its value",
        """
        @T.prim_func
        def f(x: T.Buffer(("n",), "int64")):
            step = T.int64(1)
            while step < n:
                for t in T.thread_binding(n, "threadIdx.x"):
                    x[t] = x[t] + step
                step = step * 2
        """,
        """
        gristmill ir 1

        function @f<n: int64>(x: int64[n] data x_data: ptr<int64, global>)
          symbol "f"
          target "host"
        {
          allocate step: int64[] in local
          step[] = 1
          while step[] < n {
            let step_1: int64 = step[]
            launch @f_kernel(x_data, n, step_1) over threadIdx.x = n
            step[] = step[] * 2
          }
        }

        function @f_kernel(x_data: ptr<int64, global>, n: int64, step: int64)
          symbol "f_kernel"
          convention kernel
          target "reference"
          launch (threadIdx.x)
        {
          view x: int64[n] over x_data
          for t: int64 in 0 +: n thread on threadIdx.x {
            x[t] = x[t] + step
          }
        }
        """,
        lambda: [[np.arange(n)] for n in (0, 1, 5)],
    ),
    Case(
        "a thread may change its copy of a local scalar",
        """
        @T.prim_func
        def f(x: T.Buffer(("n",), "int64")):
            step = T.int64(1)
            step = step + n
            for t in T.thread_binding(n, "threadIdx.x"):
                step = step + t
                x[t] = step
        """,
        """
        gristmill ir 1

        function @f<n: int64>(x: int64[n] data x_data: ptr<int64, global>)
          symbol "f"
          target "host"
        {
          allocate step: int64[] in local
          step[] = 1
          step[] = step[] + n
          let step_1: int64 = step[]
          launch @f_kernel(x_data, n, step_1) over threadIdx.x = n
        }

        function @f_kernel(x_data: ptr<int64, global>, n: int64, step: int64)
          symbol "f_kernel"
          convention kernel
          target "reference"
          launch (threadIdx.x)
        {
          view x: int64[n] over x_data
          allocate step_1: int64[] in local
          step_1[] = step
          for t: int64 in 0 +: n thread on threadIdx.x {
            step_1[] = step_1[] + t
            x[t] = step_1[]
          }
        }
        """,
        lambda: [[np.arange(n)] for n in (0, 1, 5)],
    ),
    Case(
        "local memory declared around a launch is each thread's own",
        """
        @T.prim_func
        def f(x: T.Buffer((4,), "int32")):
            own = T.alloc_local((2,), "int32")
            for t in T.thread_binding(4, "threadIdx.x"):
                own[0] = x[t]
                own[1] = own[0] + 1
                x[t] = own[1]
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
          allocate own: int32[2] in local
          for t: int64 in 0 +: 4 thread on threadIdx.x {
            own[0] = x[t]
            own[1] = own[0] + 1i32
            x[t] = own[1]
          }
        }
        """,
        lambda: [[ints(4)]],
    ),
    Case(
        "signed scalars of every width are parameters of their type",
        """
        @T.prim_func
        def f(x: T.Buffer((1,), "float64"), a: T.int8, b: T.int16, c: T.int32, d: T.int64):
            for t in T.thread_binding(1, "threadIdx.x"):
                x[0] = T.float64(a) + T.float64(b) + T.float64(c) + T.float64(d)
        """,
        """
        gristmill ir 1

        function @f(x: float64[1] data x_data: ptr<float64, global>, a: int8, b: int16, c: int32, d: int64)
          symbol "f"
          target "host"
        {
          launch @f_kernel(x_data, a, b, c, d) over threadIdx.x = 1
        }

        function @f_kernel(x_data: ptr<float64, global>, a: int8, b: int16, c: int32, d: int64)
          symbol "f_kernel"
          convention kernel
          target "reference"
          launch (threadIdx.x)
        {
          view x: float64[1] over x_data
          for t: int64 in 0 +: 1 thread on threadIdx.x {
            x[0] = float64(a) + float64(b) + float64(c) + float64(d)
          }
        }
        """,
        lambda: [[np.zeros(1), -128, -32768, -(2**31), -(2**62)]],
    ),
    Case(
        "unsigned scalars and bools are parameters of their type",
        """
        @T.prim_func
        def f(x: T.Buffer((1,), "float64"), e: T.uint8, g: T.uint16, h: T.uint32, i: T.uint64, j: T.bool):
            for t in T.thread_binding(1, "threadIdx.x"):
                x[0] = T.float64(e) + T.float64(g) + T.float64(h) + T.float64(i) + T.float64(j)
        """,
        """
        gristmill ir 1

        function @f(x: float64[1] data x_data: ptr<float64, global>, e: uint8, g: uint16, h: uint32, i: uint64, j: bool)
          symbol "f"
          target "host"
        {
          launch @f_kernel(x_data, e, g, h, i, j) over threadIdx.x = 1
        }

        function @f_kernel(x_data: ptr<float64, global>, e: uint8, g: uint16, h: uint32, i: uint64, j: bool)
          symbol "f_kernel"
          convention kernel
          target "reference"
          launch (threadIdx.x)
        {
          view x: float64[1] over x_data
          for t: int64 in 0 +: 1 thread on threadIdx.x {
            x[0] = float64(e) + float64(g) + float64(h) + float64(i) + float64(j)
          }
        }
        """,
        lambda: [[np.zeros(1), 255, 65535, 2**32 - 1, 2**64 - 1, True]],
    ),
    Case(
        "floats of every width are parameters of their type",
        """
        @T.prim_func
        def f(x: T.Buffer((1,), "float64"), k: T.float16, m: T.float32, o: T.float64, b: T.bfloat16):
            for t in T.thread_binding(1, "threadIdx.x"):
                x[0] = T.float64(k) + T.float64(m) + o + T.float64(b)
        """,
        """
        gristmill ir 1

        function @f(x: float64[1] data x_data: ptr<float64, global>, k: float16, m: float32, o: float64, b: bfloat16)
          symbol "f"
          target "host"
        {
          launch @f_kernel(x_data, k, m, o, b) over threadIdx.x = 1
        }

        function @f_kernel(x_data: ptr<float64, global>, k: float16, m: float32, o: float64, b: bfloat16)
          symbol "f_kernel"
          convention kernel
          target "reference"
          launch (threadIdx.x)
        {
          view x: float64[1] over x_data
          for t: int64 in 0 +: 1 thread on threadIdx.x {
            x[0] = float64(k) + float64(m) + o + float64(b)
          }
        }
        """,
        lambda: [[np.zeros(1), 0.5, 1e30, 1e-300, 3.0]],
    ),
    Case(
        "vectors are passed lane by lane",
        """
        @T.prim_func
        def f(x: T.Buffer((4,), "int32"), a: T.int32):
            v = T.Ramp(a, 2, 4)
            for t in T.thread_binding(1, "threadIdx.x"):
                x[0:4] = v + T.Broadcast(T.int32(1), 4)
        """,
        """
        gristmill ir 1

        function @f(x: int32[4] data x_data: ptr<int32, global>, a: int32)
          symbol "f"
          target "host"
        {
          let v: int32x4 = ramp(a, 2i32, 4)
          launch @f_kernel(x_data, shuffle[0](v), shuffle[1](v), shuffle[2](v), shuffle[3](v)) over threadIdx.x = 1
        }

        function @f_kernel(x_data: ptr<int32, global>, v_0: int32, v_1: int32, v_2: int32, v_3: int32)
          symbol "f_kernel"
          convention kernel
          target "reference"
          launch (threadIdx.x)
        {
          let v: int32x4 = shuffle[0, 1, 2, 3](v_0, v_1, v_2, v_3)
          view x: int32[4] over x_data
          for t: int64 in 0 +: 1 thread on threadIdx.x {
            x[ramp(0, 1, 4)] = v + broadcast(1i32, 4)
          }
        }
        """,
        lambda: [[ints(4), 5]],
    ),
    Case(
        "a function without launches is the host's as it is",
        """
        @T.prim_func
        def f(n: T.int32) -> T.int32:
            total = T.int32(0)
            for k in range(n):
                total = total + T.int32(k)
            return total
        """,
        """
        gristmill ir 1

        function @f(n: int32) -> int32
          symbol "f"
          target "host"
        {
          allocate total: int32[] in local
          total[] = 0i32
          for k: int64 in 0 +: int64(n) {
            total[] = total[] + int32(k)
          }
          return total[]
        }
        """,
        lambda: [[n] for n in (0, 4)],
    ),
    Case(
        "a function without parameters may launch",
        """
        @T.prim_func
        def f() -> T.int32:
            b = T.alloc_buffer((4,), "int32")
            for t in T.thread_binding(4, "threadIdx.x"):
                b[t] = T.int32(t)
            return 7
        """,
        """
        gristmill ir 1

        function @f() -> int32
          symbol "f"
          target "host"
        {
          allocate b: int32[4] data b_data: ptr<int32, global>
          launch @f_kernel(b_data) over threadIdx.x = 4
          return 7i32
        }

        function @f_kernel(b_data: ptr<int32, global>)
          symbol "f_kernel"
          convention kernel
          target "reference"
          launch (threadIdx.x)
        {
          view b: int32[4] over b_data
          for t: int64 in 0 +: 4 thread on threadIdx.x {
            b[t] = int32(t)
          }
        }
        """,
        lambda: [[]],
    ),
    Case(
        "launch_thread and env_thread begin a launch",
        """
        @T.prim_func
        def f(x: T.Buffer(("n",), "int32")):
            b = T.env_thread("blockIdx.x")
            t = T.env_thread("threadIdx.x")
            T.launch_thread(b, (n + 3) // 4)
            T.launch_thread(t, 4)
            if b * 4 + t < n:
                x[b * 4 + t] = T.int32(b)
        """,
        """
        gristmill ir 1

        function @f<n: int64>(x: int32[n] data x_data: ptr<int32, global>)
          symbol "f"
          target "host"
        {
          launch @f_kernel(x_data, n) over blockIdx.x = (n + 3) // 4, threadIdx.x = 4
        }

        function @f_kernel(x_data: ptr<int32, global>, n: int64)
          symbol "f_kernel"
          convention kernel
          target "reference"
          launch (blockIdx.x, threadIdx.x)
        {
          view x: int32[n] over x_data
          for b: int64 in 0 +: (n + 3) // 4 thread on blockIdx.x {
            for t: int64 in 0 +: 4 thread on threadIdx.x {
              if b * 4 + t < n {
                x[b * 4 + t] = int32(b)
              }
            }
          }
        }
        """,
        lambda: [[ints(n)] for n in (0, 1, 6)],
    ),
    Case(
        "a local scalar in an extent has the value that the host gave it",
        """
        @T.prim_func
        def f(x: T.Buffer(("n",), "int64")):
            count = T.int64(0)
            count = count + n
            for t in T.thread_binding(count, "threadIdx.x"):
                count = count * 2
                x[t] = count
        """,
        """
        gristmill ir 1

        function @f<n: int64>(x: int64[n] data x_data: ptr<int64, global>)
          symbol "f"
          target "host"
        {
          allocate count: int64[] in local
          count[] = 0
          count[] = count[] + n
          let count_1: int64 = count[]
          launch @f_kernel(x_data, n, count_1) over threadIdx.x = count_1
        }

        function @f_kernel(x_data: ptr<int64, global>, n: int64, count: int64)
          symbol "f_kernel"
          convention kernel
          target "reference"
          launch (threadIdx.x)
        {
          view x: int64[n] over x_data
          allocate count_1: int64[] in local
          count_1[] = count
          for t: int64 in 0 +: count thread on threadIdx.x {
            count_1[] = count_1[] * 2
            x[t] = count_1[]
          }
        }
        """,
        lambda: [[np.arange(n)] for n in (0, 1, 5)],
    ),
    Case(
        "a loop over threads may stand in one over the same axis",
        """
        @T.prim_func
        def f(x: T.Buffer((4, 4), "int32")):
            for t in T.thread_binding(4, "threadIdx.x"):
                for u in T.thread_binding(4, "threadIdx.x"):
                    x[t, u] = 1
        """,
        """
        gristmill ir 1

        function @f(x: int32[4, 4] data x_data: ptr<int32, global>)
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
          view x: int32[4, 4] over x_data
          for t: int64 in 0 +: 4 thread on threadIdx.x {
            for u: int64 in 0 +: 4 thread on threadIdx.x {
              x[t, u] = 1i32
            }
          }
        }
        """,
        lambda: [[np.zeros((4, 4), np.int32)]],
    ),
    Case(
        "bindings of the launch that the size of dynamic memory uses are put in its place",
        """
        @T.prim_func
        def f(x: T.Buffer((4,), "int32"), n: T.int64):
            for t in T.thread_binding(4, "threadIdx.x"):
                size: T.let[T.int64] = n + 4
                s = T.alloc_buffer((size * 2,), "int32", scope="shared.dyn")
                s[t] = x[t]
                x[t] = s[t] + 1
        """,
        """
        gristmill ir 1

        function @f(x: int32[4] data x_data: ptr<int32, global>, n: int64)
          symbol "f"
          target "host"
        {
          launch @f_kernel(x_data, n) over threadIdx.x = 4 shared max(min(n * 2 + 8, 2305843009213693951), -1) * 4
        }

        function @f_kernel(x_data: ptr<int32, global>, n: int64)
          symbol "f_kernel"
          convention kernel
          target "reference"
          launch (threadIdx.x) dynamic_shared
        {
          view x: int32[4] over x_data
          for t: int64 in 0 +: 4 thread on threadIdx.x {
            let size: int64 = n + 4
            allocate s: int32[size * 2] in shared.dyn
            s[t] = x[t]
            x[t] = s[t] + 1i32
          }
        }
        """,
        lambda: [[ints(4), n] for n in (0, 3)],
    ),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_lowering(case: Case) -> None:
    check_launch_lowering(lower, LowerPackedInterface(), case.before, case.expected, case.calls())
