"""The passes of launch lowering one by one: what each does alone, what each leaves, and builds for hosts."""

from __future__ import annotations

import pytest

from gristmill.ir.equal import first_difference
from gristmill.ir.expr import CallFunction
from gristmill.ir.functor import walk
from gristmill.ir.module import Extern, Module
from gristmill.ir.printer import print_module
from gristmill.ir.target import Target
from gristmill.ir.verify import verify
from gristmill.passes.manager import Pass, Pipeline, RunOptions
from gristmill.passes.options import parse_passes, print_pass
from gristmill.plugin.artifacts import Capabilities
from gristmill.plugin.protocols import PassContext
from gristmill.testing.ir_samples import every_node
from gristmill.testing.pass_equivalence import check_pass, kernels
from gristmill_launch.annotate_device_regions import AnnotateDeviceRegions
from gristmill_launch.bind_targets import BindTargets
from gristmill_launch.check_launch_limits import CheckLaunchLimits
from gristmill_launch.lower_launches import LowerLaunches
from gristmill_launch.lower_packed_interface import LowerPackedInterface
from gristmill_launch.plugin import gristmill_passes
from gristmill_launch.split_host_device import SplitHostDevice

DEVICE = Target("reference", "", ("small",))


def device_passes() -> list[Pass]:
    return [
        BindTargets(DEVICE),
        AnnotateDeviceRegions(DEVICE),
        SplitHostDevice(),
        LowerLaunches(DEVICE),
        CheckLaunchLimits(DEVICE, threads=1024, grid_x=65535),
    ]


def test_a_loop_over_threads_begins_a_region() -> None:
    check_pass(
        AnnotateDeviceRegions(DEVICE),
        """
        gristmill ir 1

        function @f(x: int32[4])
          symbol "f"
          target "host"
        {
          for k: int64 in 0 +: 2 {
            for t: int64 in 0 +: 2 thread on blockIdx.x {
              for u: int64 in 0 +: 2 thread on threadIdx.x {
                x[t * 2 + u] = int32(k)
              }
            }
          }
        }

        function @g(x: int32[4])
          target "reference"
        {
          for t: int64 in 0 +: 4 thread on threadIdx.x {
            x[t] = 1i32
          }
        }

        function @unreached(x: int32[4]) {
          for t: int64 in 0 +: 4 thread on threadIdx.x {
            x[t] = 1i32
          }
        }
        """,
        """
        gristmill ir 1

        function @f(x: int32[4])
          symbol "f"
          target "host"
        {
          for k: int64 in 0 +: 2 {
            device_region "reference+small" {
              for t: int64 in 0 +: 2 thread on blockIdx.x {
                for u: int64 in 0 +: 2 thread on threadIdx.x {
                  x[t * 2 + u] = int32(k)
                }
              }
            }
          }
        }

        function @g(x: int32[4])
          target "reference"
        {
          for t: int64 in 0 +: 4 thread on threadIdx.x {
            x[t] = 1i32
          }
        }

        function @unreached(x: int32[4]) {
          for t: int64 in 0 +: 4 thread on threadIdx.x {
            x[t] = 1i32
          }
        }
        """,
    )


REGION = """
gristmill ir 1

function @f<n: int64>(x: int32[n])
  symbol "f"
  target "host"
{
  device_region "vulkan:1.2" ("subgroup" = 32) {
    let m: int64 = n * 2
    x[0] = 5i32
    for t: int64 in 0 +: m thread on threadIdx.y {
      if t < n {
        x[t] = 1i32
      }
    }
  }
}
"""


def test_a_region_that_is_there_stays_as_it_is() -> None:
    module = kernels(REGION)
    assert Pipeline.of([AnnotateDeviceRegions(DEVICE)]).run(module) is module


def test_a_region_with_other_statements_becomes_a_kernel_for_its_own_target() -> None:
    check_pass(
        SplitHostDevice(),
        REGION,
        """
        gristmill ir 1

        function @f<n: int64>(x: int32[n] data x_data: ptr<int32, global>)
          symbol "f"
          target "host"
        {
          launch @f_kernel(x_data, n) over threadIdx.y = n * 2
        }

        function @f_kernel(x_data: ptr<int32, global>, n: int64)
          symbol "f_kernel"
          convention kernel
          target "vulkan:1.2" ("subgroup" = 32)
          launch (threadIdx.y)
        {
          view x: int32[n] over x_data
          let m: int64 = n * 2
          x[0] = 5i32
          for t: int64 in 0 +: m thread on threadIdx.y {
            if t < n {
              x[t] = 1i32
            }
          }
        }
        """,
    )


def test_kernels_keep_fast_math_and_the_promise_of_no_aliases() -> None:
    text = REGION.replace('  target "host"\n', '  target "host"\n  no_alias\n  fast_math\n')
    kernel = Pipeline.of([SplitHostDevice()]).run(kernels(text)).functions[1]
    assert kernel.facts.no_alias
    assert kernel.facts.fast_math
    # A view that the host makes at an address may lie over an array.
    text = text.replace("{\n  device_region", "{\n  view y: int32[1] from &x[1]\n  device_region").replace(
        "x[0]", "y[0]"
    )
    kernel = Pipeline.of([SplitHostDevice()]).run(kernels(text)).functions[1]
    assert len(kernel.params) == 3
    assert not kernel.facts.no_alias


def test_a_build_for_a_host_changes_nothing() -> None:
    module = kernels(
        """
        @T.prim_func
        def f(x: T.Buffer((4,), "int32")):
            T.func_attr({"target": T.target("vulkan")})
            x[0] = helper(T.int32(4))
            for t in T.thread_binding(4, "threadIdx.x"):
                x[t] = helper(T.int32(t))

        @T.prim_func(private=True)
        def helper(v: T.int32) -> T.int32:
            return v
        """
    )
    passes: list[Pass] = [
        BindTargets(),
        AnnotateDeviceRegions(),
        SplitHostDevice(),
        LowerLaunches(),
        CheckLaunchLimits(),
    ]
    assert Pipeline.of(passes).run(module) is module
    context = PassContext(Target("cpu"), Capabilities())
    made = [entry.make(context) for entry in gristmill_passes()]
    assert made[:5] == passes
    assert made[5] == LowerPackedInterface(1)


def test_a_build_for_a_device_makes_the_passes_for_it() -> None:
    capabilities = Capabilities(is_device=True, max_threads_per_block=1024, max_grid_size=(65535, 0, 0))
    context = PassContext(DEVICE, capabilities, {"device_type": 7})
    made = [entry.make(context) for entry in gristmill_passes()]
    assert made == [*device_passes(), LowerPackedInterface(7)]


def test_passes_are_read_back_from_their_text() -> None:
    context = PassContext(Target("cpu"), Capabilities())
    known = {entry.name: (lambda entry=entry: entry.make(context)) for entry in gristmill_passes()}
    for work in (*device_passes(), BindTargets(), LowerPackedInterface(7)):
        assert parse_passes(print_pass(work), known) == (work,)


def test_calls_between_two_targets_of_one_processor_become_calls_of_c_symbols() -> None:
    check_pass(
        LowerLaunches(DEVICE),
        """
        gristmill ir 1

        function @f(v: int32) -> int32
          symbol "f"
          target "host"
        {
          allocate x: int32[4]
          evaluate @fill(buffer(x), v)
          return @next(v) as int32
        }

        function @fill(x: int32[4], v: int32)
          target "c"
        {
          evaluate @next(v) as int32
        }

        function @next(v: int32) -> int32
          target "c"
        {
          return v + 1i32
        }
        """,
        """
        gristmill ir 1

        extern "fill" from "c"
        extern "next" from "c"

        function @f(v: int32) -> int32
          symbol "f"
          target "host"
        {
          allocate x: int32[4]
          evaluate extern "fill"(&x[0], v)
          return extern "next"(v) as int32
        }

        function @fill(x: int32[4], v: int32)
          symbol "fill"
          target "c"
        {
          evaluate @next(v) as int32
        }

        function @next(v: int32) -> int32
          symbol "next"
          target "c"
        {
          return v + 1i32
        }
        """,
    )


def test_functions_that_launch_hand_the_context_on() -> None:
    module = kernels(
        """
        @T.prim_func
        def f(x: T.Buffer(("n",), "int32")):
            twice(x)

        @T.prim_func(private=True)
        def twice(x: T.Buffer(("n",), "int32")):
            for k in range(2):
                for t in T.thread_binding(n, "threadIdx.x"):
                    x[t] = x[t] + T.int32(plain(k))

        @T.prim_func(private=True)
        def plain(k: T.int64) -> T.int64:
            return k
        """
    )
    found = Pipeline.of([*device_passes(), LowerPackedInterface()]).run(module, RunOptions(verify=True))
    by_name = {function.name: function for function in found.functions}
    assert [param.name for param in by_name["f"].params] == ["x", "context"]
    assert [param.name for param in by_name["twice"].params] == ["x", "context"]
    assert [param.name for param in by_name["plain"].params] == ["k"]
    text = print_module(found)
    assert "evaluate @twice(buffer(x), context)" in text
    assert "launch @twice_kernel(x_data, n, k) over threadIdx.x = n context context" in text
    assert "evaluate @f(buffer(x), self)" in text
    assert "signature: f(x: Buffer((n,), int32))" in text
    assert Pipeline.of([LowerPackedInterface()]).run(found) is found


def test_functions_beyond_the_reach_of_the_host_are_not_bound() -> None:
    module = kernels(
        'gristmill ir 1\n\nfunction @f()\n  symbol "f"\n{\n}\n\nfunction @a() {\n  evaluate @b()\n}\n\nfunction @b() {\n}\n'
    )
    found = Pipeline.of([BindTargets(DEVICE)]).run(module)
    assert [str(function.facts.target) for function in found.functions] == ["host", "None", "None"]


def test_without_public_functions_those_that_nothing_calls_are_the_hosts() -> None:
    module = kernels("""
gristmill ir 1

function @f() {
  for t: int64 in 0 +: 4 thread on threadIdx.x {
    evaluate @b()
  }
}

function @b() {
}
""")
    found = Pipeline.of([BindTargets(DEVICE)]).run(module)
    assert [str(function.facts.target) for function in found.functions] == ["host", "reference+small"]


def test_a_public_function_is_the_hosts_whatever_target_it_states() -> None:
    module = kernels(
        """
        @T.prim_func
        def f(x: T.Buffer((4,), "int32")):
            T.func_attr({"target": T.target("vulkan")})
            for t in T.thread_binding(4, "threadIdx.x"):
                x[t] = 1
        """
    )
    found = Pipeline.of(device_passes()).run(module)
    assert [str(function.facts.target) for function in found.functions] == ["host", "reference+small"]


def test_every_node_class_goes_through() -> None:
    """What the samples hold is no sensible program; binding and splitting it breaks no rule of the verifier."""
    module = every_node()
    kept = [function for function in module.functions if function.name in ("memory", "control", "regions", "helper")]
    module = Module(tuple(kept), (*module.externs, Extern("more", "acme")))
    assert not verify(module)
    found = Pipeline.of([SplitHostDevice()]).run(module, RunOptions(verify=True))
    names = [function.name for function in found.functions]
    assert names[-4:] == ["regions_kernel", "regions_kernel_1", "regions_kernel_2", "helper"]
    assert first_difference(found.functions[0], module.functions[0]) is None


@pytest.mark.parametrize("depth", [3, 300])
def test_long_chains_of_bindings_in_extents(depth: int) -> None:
    lines = "\n".join(f"    let v{k + 1}: int64 = v{k} + v{k} * {k + 2}" for k in range(depth))
    text = f"""
gristmill ir 1

function @f(x: int32[4], v0: int64)
  symbol "f"
{{
  for b: int64 in 0 +: 1 thread on blockIdx.x {{
{lines}
    for t: int64 in 0 +: v{depth} - v{depth} + 4 thread on threadIdx.x {{
      x[t] = 1i32
    }}
  }}
}}
"""
    found = Pipeline.of(device_passes()).run(kernels(text), RunOptions(verify=True))
    assert sum(1 for _ in walk(found)) < 60 * depth + 2_000
    assert not any(isinstance(node, CallFunction) for node in walk(found))
