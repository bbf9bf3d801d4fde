"""Binding plain loops to threads: what the recipe makes of the usual shapes, and equal results for all that it is given."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from gristmill.errors import UserError
from gristmill.interp import ExecutionOptions, execute
from gristmill.ir.functor import walk
from gristmill.ir.module import Module
from gristmill.ir.stmt import For, LoopKind
from gristmill.ir.target import Target
from gristmill.passes.insert_barriers import InsertBarriers
from gristmill.passes.manager import Pipeline, RunOptions
from gristmill.plugin.artifacts import Capabilities
from gristmill.plugin.protocols import PassContext
from gristmill.schedule.bind_loops import BindLoops
from gristmill.testing.bound import runnable
from gristmill.testing.loop_nests import random_loop_nest
from gristmill.testing.pass_equivalence import check_pass, kernels, outcome_of, same_outcome
from gristmill.testing.programs import CONSTRUCTS, random_program

WORK = BindLoops(threads=256)


def bound(source: str | Module, work: BindLoops = WORK) -> Module:
    """The module after the pass, verified."""
    module = kernels(source) if isinstance(source, str) else source
    return Pipeline.of([work]).run(module, RunOptions(verify=True))


def launches(module: Module) -> list[str]:
    """The outermost loops over threads: the axis and the extent of each."""
    found: list[str] = []
    stack: list[object] = list(module.functions)
    while stack:
        node = stack.pop()
        if isinstance(node, For) and node.kind is LoopKind.THREAD:
            found.append(f"{node.thread.value if node.thread else ''} {node.extent!r}")
        elif hasattr(node, "CHILDREN"):
            from gristmill.ir.functor import children

            stack.extend(reversed(list(children(node))))  # type: ignore[arg-type]
    return found


def same(source: str | Module, *arguments: object, work: BindLoops = WORK, name: str = "") -> Module:
    """The bound module, which gave the same as the source for these arguments, whatever the order of its threads."""
    module = kernels(source) if isinstance(source, str) else source
    name = name or module.public[0].name
    result = bound(module, work)
    expected = outcome_of(module, name, arguments)
    ready = runnable(result)
    assert same_outcome(outcome_of(ready, name, arguments), expected)
    shuffled = copy.deepcopy(arguments)
    execute(ready, name, list(shuffled), options=ExecutionOptions(shuffle_seed=7))
    assert same_outcome([a for a in shuffled if isinstance(a, np.ndarray)], expected[1:])
    return result


# Shapes ---------------------------------------------------------------------------------------------------------------


def test_independent_loops_are_fused_and_spread_over_blocks_and_threads() -> None:
    check_pass(
        WORK,
        """
        @T.prim_func
        def f(a: T.Buffer(("h", "w"), "float32"), b: T.Buffer(("h", "w"), "float32")):
            for y, x in T.grid(h, w):
                b[y, x] = a[y, x] * 2.0
            b[0, 0] = 1.0
        """,
        """
        gristmill ir 1

        function @f<h: int64, w: int64>(
          a: float32[h, w] data ap: ptr<float32, global>, b: float32[h, w] data bp: ptr<float32, global>
        )
          symbol "f"
        {
          if disjoint(bp, h * w * 4, ap, h * w * 4) as bool {
            let total: int64 = h * w
            for bx: int64 in 0 +: (total + 255) // 256 thread on blockIdx.x {
              for tx: int64 in 0 +: 256 thread on threadIdx.x independent {
                let number: int64 = bx * 256 + tx
                if number < total {
                  let y: int64 = number // w
                  let x: int64 = number % w
                  b[y, x] = a[y, x] * 2.0
                }
              }
            }
          } else {
            for one: int64 in 0 +: 1 thread on threadIdx.x {
              for y1: int64 in 0 +: h {
                for x1: int64 in 0 +: w {
                  b[y1, x1] = a[y1, x1] * 2.0
                }
              }
            }
          }
          for last: int64 in 0 +: 1 thread on threadIdx.x {
            b[0, 0] = 1.0
          }
        }
        """,
    )


def test_a_constant_multiple_of_the_block_needs_no_guard() -> None:
    check_pass(
        BindLoops(threads=64),
        """
        @T.prim_func
        def f(b: T.Buffer((128,), "float32"), c: T.Buffer((40,), "float32"), d: T.Buffer((100,), "float32")):
            for i in range(128):
                b[i] = 1.0
            for i in range(40):
                c[i] = 1.0
            for i in range(100):
                d[i] = 1.0
        """,
        """
        gristmill ir 1

        function @f(b: float32[128], c: float32[40], d: float32[100])
          symbol "f"
        {
          for bx: int64 in 0 +: 2 thread on blockIdx.x {
            for tx: int64 in 0 +: 64 thread on threadIdx.x independent {
              let i: int64 = bx * 64 + tx
              b[i] = 1.0
            }
          }
          for bx1: int64 in 0 +: 1 thread on blockIdx.x {
            for tx1: int64 in 0 +: 40 thread on threadIdx.x independent {
              let i1: int64 = bx1 * 40 + tx1
              c[i1] = 1.0
            }
          }
          for bx2: int64 in 0 +: 2 thread on blockIdx.x {
            for tx2: int64 in 0 +: 64 thread on threadIdx.x independent {
              let i2: int64 = bx2 * 64 + tx2
              if i2 < 100 {
                d[i2] = 1.0
              }
            }
          }
        }
        """,
    )


def test_iterations_beyond_the_largest_grid_take_strides() -> None:
    source = """
        @T.prim_func
        def f(b: T.Buffer(("n",), "int64")):
            for i in range(n):
                b[i] = i
        """
    check_pass(
        BindLoops(threads=4, blocks=3),
        source,
        """
        gristmill ir 1

        function @f<n: int64>(b: int64[n])
          symbol "f"
        {
          let rounds: int64 = (n + 11) // 12
          for bx: int64 in 0 +: min((n + 3) // 4, 3) thread on blockIdx.x {
            for tx: int64 in 0 +: 4 thread on threadIdx.x independent {
              for stride: int64 in 0 +: rounds {
                let i: int64 = stride * 12 + (bx * 4 + tx)
                if i < n {
                  b[i] = i
                }
              }
            }
          }
        }
        """,
    )
    for size in (0, 1, 4, 11, 12, 13, 50):
        same(source, np.zeros(size, np.int64), work=BindLoops(threads=4, blocks=3))


def test_the_host_keeps_loops_and_branches_around_kernels() -> None:
    source = """
        @T.prim_func
        def f(a: T.Buffer(("n",), "float32"), b: T.Buffer(("n",), "float32"), times: T.int32, clear: T.bool):
            T.func_attr({"noalias": True})
            for t in range(times):
                for i in range(1, n - 1):
                    b[i] = a[i - 1] + a[i + 1]
                for i in range(n):
                    a[i] = b[i]
                a[0] = 0.0
            if clear:
                for i in range(n):
                    b[i] = 0.0
        """
    check_pass(
        WORK,
        source,
        """
        gristmill ir 1

        function @f<n: int64>(a: float32[n], b: float32[n], times: int32, clear: bool)
          symbol "f"
          no_alias
        {
          for t: int64 in 0 +: int64(times) {
            let reach: int64 = max(n - 2, 0)
            for bx: int64 in 0 +: (reach + 255) // 256 thread on blockIdx.x {
              for tx: int64 in 0 +: 256 thread on threadIdx.x independent {
                let number: int64 = bx * 256 + tx
                if number < reach {
                  let i: int64 = number + 1
                  b[i] = a[i - 1] + a[i + 1]
                }
              }
            }
            for bx1: int64 in 0 +: (n + 255) // 256 thread on blockIdx.x {
              for tx1: int64 in 0 +: 256 thread on threadIdx.x independent {
                let i1: int64 = bx1 * 256 + tx1
                if i1 < n {
                  a[i1] = b[i1]
                }
              }
            }
            for tx2: int64 in 0 +: 1 thread on threadIdx.x {
              a[0] = 0.0
            }
          }
          if clear {
            for bx2: int64 in 0 +: (n + 255) // 256 thread on blockIdx.x {
              for tx3: int64 in 0 +: 256 thread on threadIdx.x independent {
                let i2: int64 = bx2 * 256 + tx3
                if i2 < n {
                  b[i2] = 0.0
                }
              }
            }
          }
        }
        """,
    )
    a = np.arange(9, dtype=np.float32)
    same(source, a, a + 1, 3, True)
    same(source, a, a + 1, 0, False)


def test_values_that_device_code_makes_move_to_the_device() -> None:
    source = """
        @T.prim_func
        def f(a: T.Buffer(("n",), "float32"), b: T.Buffer(("n",), "float32")):
            T.func_attr({"noalias": True})
            scale = a[0]
            total = T.float32(0)
            for i in range(n):
                total = total + a[i]
            for i in range(n):
                b[i] = a[i] * scale / total
        """
    check_pass(
        WORK,
        source,
        """
        gristmill ir 1

        function @f<n: int64>(a: float32[n], b: float32[n])
          symbol "f"
          no_alias
        {
          allocate scale: float32[]
          allocate total: float32[]
          for tx: int64 in 0 +: 1 thread on threadIdx.x {
            scale[] = a[0]
            total[] = 0.0
            for i: int64 in 0 +: n {
              total[] = total[] + a[i]
            }
          }
          for bx: int64 in 0 +: (n + 255) // 256 thread on blockIdx.x {
            for tx1: int64 in 0 +: 256 thread on threadIdx.x independent {
              let i1: int64 = bx * 256 + tx1
              if i1 < n {
                b[i1] = a[i1] * scale[] / total[]
              }
            }
          }
        }
        """,
    )
    same(source, np.arange(1, 9, dtype=np.float32), np.zeros(8, np.float32))


def test_scratch_of_one_region_is_memory_of_its_thread() -> None:
    check_pass(
        WORK,
        """
        @T.prim_func
        def f(a: T.Buffer(("n",), "int64"), b: T.Buffer(("n",), "int64")):
            running = T.int64(0)
            for i in range(n):
                running = running + a[i]
                b[i] = running
        """,
        """
        gristmill ir 1

        function @f<n: int64>(a: int64[n], b: int64[n])
          symbol "f"
        {
          for tx: int64 in 0 +: 1 thread on threadIdx.x {
            allocate running: int64[] in local
            running[] = 0
            for i: int64 in 0 +: n {
              running[] = running[] + a[i]
              b[i] = running[]
            }
          }
        }
        """,
    )


def test_a_scalar_of_the_host_goes_in_by_value() -> None:
    source = """
        @T.prim_func
        def f(a: T.Buffer(("n",), "int64"), times: T.int64):
            k = T.int64(1)
            for t in range(times):
                k = k * 3
                for i in range(n):
                    a[i] = a[i] + k
        """
    module = same(source, np.arange(5), 3)
    assert len(launches(module)) == 1
    assert "k_value" in repr(module)


def test_while_loops_over_device_memory_are_one_thread() -> None:
    source = """
        @T.prim_func
        def f(a: T.Buffer((1,), "int64"), steps: T.Buffer((1,), "int64")):
            steps[0] = 0
            while a[0] != 1:
                if a[0] % 2 == 0:
                    a[0] = a[0] // 2
                else:
                    a[0] = a[0] * 3 + 1
                steps[0] = steps[0] + 1
        """
    module = same(source, np.array([27]), np.array([0]))
    assert launches(module) == ["threadIdx.x 1"]


def test_from_a_return_of_the_device_on_one_thread_does_the_rest() -> None:
    source = """
        @T.prim_func
        def f(a: T.Buffer(("n",), "int64"), b: T.Buffer(("n",), "int64"), early: T.bool):
            for i in range(n):
                b[i] = 0
            if early:
                return
            if a[0] < 0:
                return
            for i in range(n):
                if a[i] == 0:
                    break
                b[i] = a[i]
        """
    for first, early in ((-1, False), (1, False), (1, True)):
        module = same(source, np.array([first, 4, 0, 5]), np.ones(4, np.int64), early)
    assert launches(module) == ["blockIdx.x (n + 255) // 256", "threadIdx.x 1"]


def test_asserts_over_scalars_stay_on_the_host() -> None:
    source = """
        @T.prim_func
        def f(a: T.Buffer(("n",), "int64"), k: T.int64):
            assert k > 0, f"k must be positive, got {k}"
            for i in range(n):
                a[i] = k
        """
    module = same(source, np.zeros(3, np.int64), 4)
    assert same_outcome(
        outcome_of(module, "f", [np.zeros(3, np.int64), 0]),
        outcome_of(kernels(source), "f", [np.zeros(3, np.int64), 0]),
    )
    assert launches(module) == ["blockIdx.x (n + 255) // 256"]


def test_asserts_over_elements_are_made_by_one_thread_in_order() -> None:
    source = """
        @T.prim_func
        def f(a: T.Buffer(("n",), "int64"), b: T.Buffer(("n",), "int64")):
            for i in range(n):
                assert a[i] >= 0, f"element {i} is {a[i]}"
                b[i] = a[i]
        """
    module = same(source, np.arange(4), np.zeros(4, np.int64))
    args = [np.array([1, 2, -3, -4]), np.zeros(4, np.int64)]
    assert same_outcome(outcome_of(module, "f", args), outcome_of(kernels(source), "f", args))


def test_spatial_axes_are_the_word_of_the_author_and_reductions_stay_in_a_thread() -> None:
    source = """
        @T.prim_func
        def f(a: T.Buffer(("n", "m"), "int64"), p: T.Buffer(("n",), "int64"), c: T.Buffer(("n",), "int64")):
            T.func_attr({"noalias": True})
            for i, k in T.grid(n, m):
                with T.block("sum"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    with T.init():
                        c[p[vi]] = 0
                    c[p[vi]] = c[p[vi]] + a[vi, vk]
        """
    module = same(source, np.arange(12).reshape(4, 3), np.array([2, 0, 3, 1]), np.zeros(4, np.int64))
    assert launches(module) == ["blockIdx.x (n + 255) // 256"]
    assert sum(isinstance(node, For) and node.kind is LoopKind.SERIAL for node in walk(module)) == 1


def test_without_a_word_scattered_stores_are_one_thread() -> None:
    source = """
        @T.prim_func
        def f(p: T.Buffer(("n",), "int64"), c: T.Buffer(("n",), "int64")):
            for i in range(n):
                c[p[i]] = i
        """
    assert launches(same(source, np.array([1, 1, 0]), np.zeros(3, np.int64))) == ["threadIdx.x 1"]


@pytest.mark.parametrize(
    ("body", "threads"),
    [
        ("for i in T.parallel(n):\n    c[p[i]] = i", True),
        # Parallel is said of one iteration of the loop around, so that loop must stay around.
        ("for t in range(3):\n    for i in T.parallel(n):\n        c[(i + t) % n] = c[(i + t) % n] + i", True),
        ("for i in T.vectorized(16):\n    c[i] = 1", False),
        ("for i in T.unroll(40):\n    c[i] = 1", False),
        ("for i in range(n):\n    c[n - 1 - i] = p[i]", True),
        ("for i in range(n - 1):\n    c[i] = c[i + 1]", False),
        ("for i in range(n):\n    c[0] = c[0] + p[i]", False),
        ("for i in range(16):\n    c[i] = 1", False),
        ("for i in range(n // 4):\n    c[i * 4:i * 4 + 4] = p[i * 4:i * 4 + 4]", True),
        ("for i in range(n // 4):\n    c[i * 3:i * 3 + 4] = p[i * 4:i * 4 + 4]", False),
        ("for i in range(n // 4):\n    for v in T.vectorized(4):\n        c[i * 4 + v] = p[i * 4 + v]", True),
    ],
)
def test_what_many_threads_may_run(body: str, threads: bool) -> None:
    lines = "\n".join("    " + line for line in body.splitlines())
    head = '@T.prim_func\ndef f(p: T.Buffer(("n",), "int64"), c: T.Buffer(("n",), "int64")):\n'
    module = same(head + '    T.func_attr({"noalias": True})\n' + lines, np.arange(40)[::-1].copy(), np.arange(40))
    assert any(found.startswith("blockIdx.x") for found in launches(module)) is threads


def test_loops_in_which_others_wait_are_moved_out() -> None:
    source = """
        @T.prim_func
        def f(a: T.Buffer(("m", "k"), "int64"), b: T.Buffer(("k", "n"), "int64"), c: T.Buffer(("m", "n"), "int64")):
            T.func_attr({"noalias": True})
            for p, i, j in T.grid(k, m, n):
                c[i, j] = c[i, j] + a[i, p] * b[p, j]
        """
    random = np.random.default_rng(0)
    a, b = random.integers(0, 9, (5, 6)), random.integers(0, 9, (6, 7))
    few, many = launches(same(source, a, b, np.zeros((5, 7), np.int64)))
    assert few == "blockIdx.x total"
    assert many == "blockIdx.x (total + 255) // 256"


def test_rows_of_flat_arrays_are_told_apart() -> None:
    source = """
        @T.prim_func
        def f(c: T.Buffer(("h * w",), "int64"), h: T.int64, w: T.int64):
            for y, x in T.grid(h, w):
                c[y * w + x] = y - x
        """
    assert launches(same(source, np.zeros(15, np.int64), 3, 5)) == ["blockIdx.x (total + 255) // 256"]


def test_overlapping_arrays_give_what_the_loops_say() -> None:
    source = """
        @T.prim_func
        def f(a: T.Buffer(("n",), "int64"), b: T.Buffer(("n",), "int64")):
            for i in range(n):
                b[i] = a[i] + 1
        """
    module = bound(source)
    for shift in (-2, -1, 0, 1, 2, 20):
        results = []
        for one in (kernels(source), module):
            memory = np.arange(60)
            execute(one, "f", [memory[20:40], memory[20 + shift : 40 + shift]])
            results.append(memory)
        assert np.array_equal(*results)


def test_sizes_of_zero_launch_nothing() -> None:
    source = """
        @T.prim_func
        def f(a: T.Buffer(("h", "w"), "int64"), start: T.int64):
            for y in range(h):
                for x in range(start, w):
                    a[y, x] = x
        """
    for shape in ((0, 5), (5, 0), (0, 0)):
        same(source, np.zeros(shape, np.int64), 0)
    same(source, np.zeros((2, 3), np.int64), 9)


def test_what_is_bound_already_stays_as_it_is() -> None:
    source = """
        @T.prim_func
        def f(a: T.Buffer(("n",), "int64")):
            for t in range(2):
                for tx in T.thread_binding(n, thread="threadIdx.x"):
                    a[tx] = a[tx] + t
        """
    module = kernels(source)
    assert bound(module) is module


def test_functions_that_threads_call_get_copies_without_launches() -> None:
    source = """
        @T.prim_func
        def fill(a: T.Buffer(("n",), "int64"), k: T.int64):
            for i in range(n):
                a[i] = k

        @T.prim_func
        def twice(a: T.Buffer(("n",), "int64")):
            fill(a, 1)
            if a[0] > 0:
                fill(a, 4)
        """
    module = same(source, np.zeros(4, np.int64), name="twice")
    assert [function.name for function in module.functions] == ["fill", "twice", "fill_thread"]
    assert [function.name for function in module.public] == ["fill", "twice"]


def test_private_functions_that_the_host_calls_have_kernels_of_their_own() -> None:
    source = """
        @T.prim_func(private=True)
        def smooth(a: T.Buffer(("n",), "int64"), b: T.Buffer(("n",), "int64"), k: T.int64):
            for i in range(1, n - 1):
                b[i] = a[i - 1] + a[i + 1] + k

        @T.prim_func(private=True)
        def twice(a: T.Buffer(("n",), "int64"), b: T.Buffer(("n",), "int64")):
            smooth(a, b, 1)
            smooth(b, a, 2)

        @T.prim_func
        def f(a: T.Buffer(("n",), "int64"), b: T.Buffer(("n",), "int64"), times: T.int64, k: T.Buffer((1,), "int64")):
            for t in range(times):
                twice(a, b)
            if k[0] > 0:
                twice(b, a)
        """
    arguments = [np.arange(6), np.zeros(6, np.int64), 3]
    for flag in (0, 1):
        module = same(source, *arguments, np.array([flag]), name="f")
    assert [function.name for function in module.functions] == ["smooth", "twice", "f", "smooth_thread", "twice_thread"]
    assert launches(module.with_functions(module.functions[:1]))[0].startswith("blockIdx.x")
    assert launches(module.with_functions(module.functions[3:])) == []


def test_arrays_of_the_host_are_filled_by_the_host() -> None:
    source = """
        @T.prim_func
        def fill(a: T.Buffer(("n",), "int64"), k: T.int64):
            for i in range(n):
                a[i] = k

        @T.prim_func
        def f(a: T.Buffer(("n",), "int64")):
            table = T.alloc_buffer((4,), "int64", scope="local")
            fill(table, 3)
            fill(a, table[2])
        """
    same(source, np.zeros(5, np.int64), name="f")


def test_allocations_of_a_block_of_the_host_are_memory_of_the_device() -> None:
    source = """
        @T.prim_func
        def f(a: T.Buffer((64,), "float32"), c: T.Buffer((64,), "float32")):
            T.func_attr({"noalias": True})
            with T.block("root"):
                tmp = T.alloc_buffer((64,), "float32")
                acc = T.alloc_buffer((4,), "float32", scope="local")
                for i in range(64):
                    with T.block("double"):
                        vi = T.axis.spatial(64, i)
                        tmp[vi] = a[vi] * 2.0
                for k in range(4):
                    acc[k] = tmp[k]
                for i in range(64):
                    with T.block("back"):
                        vi = T.axis.spatial(64, i)
                        c[vi] = tmp[63 - vi] + acc[vi % 4]
        """
    module = same(source, np.arange(64, dtype=np.float32), np.zeros(64, np.float32))
    assert launches(module) == ["blockIdx.x 1", "threadIdx.x 1", "blockIdx.x 1"]


def test_tables_that_the_host_would_fill_are_filled_on_the_device() -> None:
    source = """
        @T.prim_func
        def f(a: T.Buffer(("n",), "int32"), c: T.Buffer(("n",), "int32"), k: T.int8):
            table = T.alloc_buffer((8,), "int32", scope="local")
            for i in range(8):
                table[i] = T.int32(i) * T.cast(k, "int32")
            for i in range(n):
                c[i] = table[a[i] % 8]
        """
    module = same(source, np.arange(50, dtype=np.int32), np.zeros(50, np.int32), 3)
    assert "allocate table: int32[8]\n" in repr(module)


# Refusals -------------------------------------------------------------------------------------------------------------


def refusal(source: str) -> str:
    with pytest.raises(UserError) as caught:
        bound(source)
    return str(caught.value)


def test_results_that_only_the_device_knows_are_refused() -> None:
    text = refusal(
        """
        @T.prim_func
        def f(a: T.Buffer(("n",), "int64")) -> T.int64:
            return a[0]
        """
    )
    assert "GM0640" in text
    assert "what `f` returns here is only known on the device" in text


def test_kernels_after_a_return_of_the_device_are_refused() -> None:
    text = refusal(
        """
        @T.prim_func
        def f(a: T.Buffer(("n",), "int64")):
            if a[0] > 0:
                return
            for tx in T.thread_binding(n, thread="threadIdx.x"):
                a[tx] = 1
        """
    )
    assert "GM0640" in text
    assert "whether `f` returns here is only known on the device" in text


def test_recursion_in_threads_is_refused() -> None:
    text = refusal(
        """
        @T.prim_func(private=True)
        def down(n: T.int64) -> T.int64:
            if n <= 0:
                return T.int64(0)
            return down(n - 1) + 1

        @T.prim_func
        def f(a: T.Buffer(("n",), "int64")):
            for i in range(n):
                a[i] = down(a[i])
        """
    )
    assert "GM0641" in text
    assert "`down` calls itself" in text
    assert "threads of a device call it here" in text


def test_a_function_that_threads_call_is_named_as_its_author_named_it() -> None:
    text = refusal(
        """
        @T.prim_func
        def f(x: T.Buffer(("n",), "int32"), k: T.int32):
            for i in range(n):
                x[i] = x[i] + k
            if x[0] < 10:
                f(x, k - 1)
        """
    )
    assert "GM0641" in text
    assert "`f` calls itself" in text
    assert "_thread" not in text
    assert "bind the value" not in text


FACTORIAL = """
        @T.prim_func(private=True)
        def fact(n: T.int64) -> T.int64:
            if n < 2:
                return T.int64(1)
            return n * fact(n - 1)

        @T.prim_func
        def f(x: T.Buffer((4,), "int64"), n: T.int64):
"""


def test_a_value_that_the_host_computes_by_recursion_gets_a_name_before() -> None:
    text = refusal(FACTORIAL + "            x[0] = fact(n)\n")
    assert "GM0641" in text
    assert "bind the value to a name before the loop or the element that it is for, as `value = fact(...)`" in text
    # What the hint says is taken.
    module = kernels(FACTORIAL + "            value = fact(n)\n            x[0] = value\n")
    x = np.zeros(4, np.int64)
    execute(bound(module, BindLoops(8)), "f", [x, 5])
    assert x[0] == 120


# Options --------------------------------------------------------------------------------------------------------------


def test_options_follow_from_the_device() -> None:
    def options(**limits: object) -> BindLoops:
        context = PassContext(Target("any"), Capabilities(**limits))  # type: ignore[arg-type]
        return BindLoops(**BindLoops.values_for(context))

    assert options() == BindLoops()
    assert options(is_device=True) == BindLoops(threads=256, access=16)
    assert options(is_device=True, max_threads_per_block=128, max_grid_size=(65535, 1, 1)) == BindLoops(128, 65535, 16)
    assert options(is_device=True, max_block_size=(64, 1, 1), max_grid_size=((1 << 31) - 1, 1, 1)) == BindLoops(
        64, access=16
    )


def test_other_targets_keep_their_loops() -> None:
    module = kernels('@T.prim_func\ndef f(a: T.Buffer(("n",), "int64")):\n    for i in range(n):\n        a[i] = 1\n')
    assert bound(module, BindLoops()) is module


def test_threads_of_a_nest_need_no_barriers() -> None:
    source = """
        @T.prim_func
        def f(src: T.Buffer(("m", "n"), "float32"), dst: T.Buffer(("n", "m"), "float32")):
            for i0, j0 in T.grid((m + 7) // 8, (n + 7) // 8):
                for i in range(i0 * 8, T.min(m, i0 * 8 + 8)):
                    for j in range(j0 * 8, T.min(n, j0 * 8 + 8)):
                        dst[j, i] = src[i, j]
        """
    module = bound(source)
    assert any(found.startswith("blockIdx.x") for found in launches(module))
    assert Pipeline.of([InsertBarriers()]).run(module) is module


# Random ---------------------------------------------------------------------------------------------------------------


def _in_own_memory(arguments: list[np.ndarray]) -> list[np.ndarray]:
    """The arrays over a copy of the memory that they are slices of, overlapping as they did."""
    base = arguments[0]
    while base.base is not None:
        base = base.base
    memory = base.copy()
    found = []
    for array in arguments:
        start = (array.__array_interface__["data"][0] - base.__array_interface__["data"][0]) // base.itemsize
        found.append(memory[start : start + array.size].reshape(array.shape))
    return found


@pytest.mark.parametrize("case", range(8))
def test_random_nests_give_the_same_in_any_order(case: int) -> None:
    nests = 0
    for seed in range(case * 30, case * 30 + 30):
        source, arguments = random_loop_nest(seed)
        print(f"seed {seed}\n{source}")
        module = kernels(source)
        result = bound(module, BindLoops(threads=(4, 32, 256)[seed % 3], blocks=(0, 2)[seed % 2]))
        nests += sum(found.startswith("blockIdx") for found in launches(result))
        expected, found = _in_own_memory(arguments), _in_own_memory(arguments)
        execute(module, "main", list(expected))
        execute(runnable(result), "main", list(found), options=ExecutionOptions(shuffle_seed=seed))
        assert all(np.array_equal(a, b) for a, b in zip(expected, found, strict=True))
    assert nests > 5


@pytest.mark.parametrize("case", range(2))
def test_random_programs_give_the_same(case: int) -> None:
    run = nests = 0
    for seed in range(case * 80, case * 80 + 80):
        print(f"seed {seed}")
        program = random_program(seed, constructs=CONSTRUCTS - {"recursion"})
        work = BindLoops(threads=(4, 32, 256)[seed % 3], blocks=(0, 2, 3)[seed % 3])
        try:
            module = bound(program.module, work)
        except UserError as refused:
            if "GM0640" in str(refused) and program.entry.returns_value:
                continue
            raise
        run += 1
        nests += sum(found.startswith("blockIdx") for found in launches(module))
        args = program.make_arguments(seed)
        expected = outcome_of(program.module, program.function, args)
        assert same_outcome(outcome_of(runnable(module), program.function, args), expected)
    assert run > 50
    assert nests > 5
