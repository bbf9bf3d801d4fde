"""Launches that cannot be: each is refused with its code, at the user's text, with what to write instead."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import gristmill
from gristmill.errors import InternalError, UserError
from gristmill.interp import ExecutionError, Executor
from gristmill.ir.module import Module
from gristmill.ir.parser import parse_module
from gristmill.ir.target import Target
from gristmill.ir.verify import verify
from gristmill.passes.manager import Pipeline, RunOptions
from gristmill.script import parse_source
from gristmill.testing.marked_errors import check_marked
from gristmill.testing.pass_equivalence import kernels
from gristmill_launch.annotate_device_regions import AnnotateDeviceRegions
from gristmill_launch.bind_targets import BindTargets
from gristmill_launch.lower_launches import LowerLaunches
from gristmill_launch.split_host_device import SplitHostDevice

DEVICE = Target("reference")
LOWERING = Pipeline.of([BindTargets(DEVICE), AnnotateDeviceRegions(DEVICE), SplitHostDevice(), LowerLaunches(DEVICE)])
HEAD = "from gristmill.script import tir as T\n\n"
EXPLAIN = Path(gristmill.__file__).parent / "explain"


def lower(module: Module) -> Module:
    return LOWERING.run(module, RunOptions(verify=True))


MARKED = {
    "contradicting extents": """
@T.prim_func
def f(x: T.Buffer((64,), "float32"), y: T.Buffer((32,), "float32")):
    for b in T.thread_binding(1, "blockIdx.x"):
        for t in T.thread_binding(64, "threadIdx.x"):
            x[t] = x[t] * 2
        for t in T.thread_binding(32, "threadIdx.x"):
                                  ^^ GM0652 use one extent
            y[t] = y[t] * 2
""",
    "contradicting extents of a size": """
@T.prim_func
def f(x: T.Buffer(("n",), "float32")):
    for b in T.thread_binding(1, "blockIdx.x"):
        for t in T.thread_binding(n, "threadIdx.x"):
            x[t] = x[t] * 2
        for t in T.thread_binding(n - 1, "threadIdx.x"):
                                  ^^^^^ GM0652 use one extent
            x[t] = x[t] * 2
""",
    "an extent that depends on another thread": """
@T.prim_func
def f(x: T.Buffer((8, 8), "float32")):
    for b in T.thread_binding(8, "blockIdx.x"):
        last: T.let[T.int64] = b + 1
        for t in T.thread_binding(last, "threadIdx.x"):
            x[b, t] = T.float32(1)
            ^^^^^^^^^^^^^^^^^^^^^^ GM0653 7:9- use sizes
""",
    "an extent that the launch computes": """
@T.prim_func
def f(x: T.Buffer((8, 8), "float32")):
    for b in T.thread_binding(8, "blockIdx.x"):
        count = T.int64(1)
        count = count + 1
        for t in T.thread_binding(count, "threadIdx.x"):
                                  ^^^^^ GM0653 use sizes
            x[b, t] = T.float32(1)
""",
    "an extent that reads an array": """
@T.prim_func
def f(count: T.Buffer((1,), "int64"), x: T.Buffer((64,), "float32")):
    for t in T.thread_binding(count[0], "threadIdx.x"):
                              ^^^^^^^^ GM0654 scalar parameter
        x[t] = T.float32(1)
""",
    "an extent that reads an array through a binding": """
@T.prim_func
def f(count: T.Buffer((1,), "int64"), x: T.Buffer((64,), "float32")):
    for b in T.thread_binding(1, "blockIdx.x"):
        n: T.let[T.int64] = count[0] + 1
        for t in T.thread_binding(n, "threadIdx.x"):
            x[t] = T.float32(1)
            ^^^^^^^^^^^^^^^^^^^ GM0654 7:9- scalar parameter
""",
    "an extent that reads an array through a call": """
@T.prim_func
def f(count: T.Buffer((1,), "int64"), x: T.Buffer((64,), "float32")):
    for t in T.thread_binding(first(count), "threadIdx.x"):
                              ^^^^^^^^^^^^ GM0654 scalar parameter
        x[t] = T.float32(1)

@T.prim_func(private=True)
def first(count: T.Buffer((1,), "int64")) -> T.int64:
    return count[0]
""",
    "a size of shared memory that reads an array": """
@T.prim_func
def f(count: T.Buffer((1,), "int64"), x: T.Buffer((64,), "float32")):
    for t in T.thread_binding(64, "threadIdx.x"):
        n: T.let[T.int64] = count[0]
        s = T.alloc_buffer((n,), "float32", scope="shared.dyn")
            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ GM0654 scalar parameter
        s[0] = x[t]
        x[t] = s[0]
""",
    "a thread that returns a value": """
@T.prim_func
def f(x: T.Buffer((64,), "float32")) -> T.int64:
    for t in T.thread_binding(64, "threadIdx.x"):
        if x[t] > 0:
            return t
            ^^^^^^^^ GM0655 store the value
    return -1
""",
    "a local array that the host fills": """
@T.prim_func
def f(x: T.Buffer((4,), "float32")):
    weights = T.alloc_local((4,), "float32")
    weights[0] = T.float32(2)
    ^^^^^^^^^^ GM0656 inside of the launch
    for t in T.thread_binding(4, "threadIdx.x"):
        x[t] = x[t] * weights[0]
""",
    "two dynamic allocations": """
@T.prim_func
def f(x: T.Buffer((4,), "float32")):
    for t in T.thread_binding(4, "threadIdx.x"):
        a = T.alloc_buffer((4,), "float32", scope="shared.dyn")
        b = T.alloc_buffer((4,), "float32", scope="shared.dyn")
            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ GM0657 one allocation
        a[t] = x[t]
        b[t] = a[t]
""",
    "a function of the host called by the device": """
@T.prim_func
def f(x: T.Buffer((4,), "float32")):
    for t in T.thread_binding(4, "threadIdx.x"):
        x[t] = half(x[t])
               ^^^^^^^^^^ GM0658 leave the target out

@T.prim_func(private=True)
def half(v: T.float32) -> T.float32:
    T.func_attr({"target": T.target("cpu")})
    return v / 2
""",
    "a function of another device": """
@T.prim_func
def f(x: T.Buffer((4,), "float32")):
    half(x)
    ^^^^^^^ GM0658 leave the target out

@T.prim_func(private=True)
def half(x: T.Buffer((4,), "float32")):
    T.func_attr({"target": T.target("vulkan")})
    x[0] = T.float32(1)
""",
    "a result from the device": """
@T.prim_func
def f(v: T.float32) -> T.float32:
    return half(v)
           ^^^^^^^ GM0658 store results to an array

@T.prim_func(private=True)
def half(v: T.float32) -> T.float32:
    T.func_attr({"target": T.target("reference")})
    return v / 2
""",
    "the host reads an array": """
@T.prim_func
def f(x: T.Buffer(("n",), "float32")):
    by: T.let[T.float32] = x[0]
                           ^^^^ GM0659 a loop over threads
    for t in T.thread_binding(n, "threadIdx.x"):
        x[t] = x[t] * by
""",
    "the host decides by an array": """
@T.prim_func
def f(x: T.Buffer(("n",), "float32")):
    if x[0] > 0:
       ^^^^ GM0659 a loop over threads
        for t in T.thread_binding(n, "threadIdx.x"):
            x[t] = x[t] * 2
""",
    "the host writes a temporary of the device": """
@T.prim_func
def f(x: T.Buffer(("n",), "float32")):
    total = T.alloc_buffer((1,), "float32")
    total[0] = T.float32(0)
    ^^^^^^^^ GM0659 a loop over threads
    for t in T.thread_binding(n, "threadIdx.x"):
        x[t] = x[t] * total[0]
""",
    "a helper of the host writes an array": """
@T.prim_func
def f(x: T.Buffer((4,), "float32")):
    clear(x)

@T.prim_func(private=True)
def clear(y: T.Buffer((4,), "float32")):
    z = T.decl_buffer((2,), "float32", data=T.address_of(y[1]))
    z[0] = T.float32(0)
    ^^^^ GM0659 a loop over threads
""",
    "an array handed to a registered function": """
@T.prim_func
def f(x: T.Buffer(("n",), "float32")):
    for t in T.thread_binding(n, "threadIdx.x"):
        x[t] = x[t] * 2
    T.evaluate(T.call_packed("kit.log", n, x))
                                           ^ GM0666 a loop over threads
""",
    "a temporary of the device handed to a registered function by a helper": """
@T.prim_func
def f(x: T.Buffer(("n",), "float32")):
    middle = T.alloc_buffer((n,), "float32")
    for t in T.thread_binding(n, "threadIdx.x"):
        middle[t] = x[t] * 2
    log(middle)

@T.prim_func(private=True)
def log(y: T.Buffer(("n",), "float32")):
    half = T.decl_buffer((n // 2,), "float32", data=y.data)
    T.evaluate(T.call_packed("kit.log", half))
                                        ^^^^ GM0666 a loop over threads
""",
    "a kernel that calls a registered function": """
@T.prim_func
def f(x: T.Buffer((4,), "float32")):
    for t in T.thread_binding(4, "threadIdx.x"):
        told(x, t)

@T.prim_func(private=True)
def told(x: T.Buffer((4,), "float32"), t: T.int64):
    T.evaluate(T.call_packed("kit.log", t))
               ^^^^^^^^^^^^^^^^^^^^^^^^^^^ GM0667 outside of the loops over threads
    x[t] = x[t] * 2
""",
    "a cooperative launch as a launch parameter": """
@T.prim_func
def f(x: T.Buffer((4,), "float32")):
    T.func_attr({"kernel_launch_params": ["threadIdx.x", "tir.use_cooperative_launch"]})
                                                         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^ GM0237 parameters are blockIdx.x
    for t in T.thread_binding(4, "threadIdx.x"):
        x[t] = x[t] * 2
""",
    "a cooperative launch as an attribute": """
@T.prim_func
def f(x: T.Buffer((4,), "float32")):
    T.func_attr({"tirx.use_cooperative_launch": 1})
                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ GM0236 attributes are
    for t in T.thread_binding(4, "threadIdx.x"):
        x[t] = x[t] * 2
""",
    "a size of dynamic memory as an attribute of the function": """
@T.prim_func
def f(x: T.Buffer((4,), "float32")):
    T.func_attr({"tirx.dyn_smem_bytes": 1024})
                 ^^^^^^^^^^^^^^^^^^^^^ GM0236 attributes are
    for t in T.thread_binding(4, "threadIdx.x"):
        x[t] = x[t] * 2
""",
    "a size of dynamic memory as an attribute of a statement": """
@T.prim_func
def f(x: T.Buffer((4,), "float32")):
    for t in T.thread_binding(4, "threadIdx.x"):
        with T.attr(0, "tirx.dyn_smem_bytes", 1024):
                       ^^^^^^^^^^^^^^^^^^^^^ GM0341 "thread_extent"
            x[t] = x[t] * 2
""",
    "dynamic memory that is not the last parameter": """
@T.prim_func
def f(x: T.Buffer((4,), "float32")):
    T.func_attr({"calling_conv": 2, "kernel_launch_params": ["tir.use_dyn_shared_memory", "threadIdx.x"]})
                                                             ^^^^^^^^^^^^^^^^^^^^^^^^^^^ GM0237 move it to the end
    for t in T.thread_binding(4, "threadIdx.x"):
        x[t] = x[t] * 2
""",
    "threads that there are not": """
@T.prim_func
def f(x: T.Buffer((4,), "float32")):
    for t in T.thread_binding(4, "vthread"):
                                 ^^^^^^^^^ GM0317 did you mean
        x[t] = x[t] * 2
""",
    "threads without a name": """
@T.prim_func
def f(x: T.Buffer((4,), "float32")):
    for t in T.thread_binding(4, ""):
                                 ^^ GM0317 axes are blockIdx.x
        x[t] = x[t] * 2
""",
    "memory that there is not": """
@T.prim_func
def f(x: T.Buffer((4,), "float32")):
    s = T.alloc_buffer((4,), "float32", scope="texture")
                                              ^^^^^^^^^ GM0230 scopes are global, shared, shared.dyn, warp, local
    for t in T.thread_binding(4, "threadIdx.x"):
        x[t] = x[t] * 2
""",
    "a function that there is not": """
@T.prim_func
def f(x: T.Buffer((4,), "float32")):
    for t in T.thread_binding(4, "threadIdx.x"):
        store(x, t)
        ^^^^^ GM0245 define `store` in this file
""",
    "one argument too many": """
@T.prim_func
def f(x: T.Buffer((4,), "float32")):
    fill(x, 1)
            ^ GM0298 its signature is `fill(x: Buffer((4,), float32))`

@T.prim_func(private=True)
def fill(x: T.Buffer((4,), "float32")):
    T.func_attr({"target": T.target("reference")})
    for t in T.thread_binding(4, "threadIdx.x"):
        x[t] = x[t] * 2
""",
    "a parallel loop that returns": """
@T.prim_func
def f(x: T.Buffer((4,), "float32")) -> T.int64:
    for t in T.parallel(4):
        return t
        ^^^^^^^^ GM0315 use a serial loop
""",
    "a name that no argument gives": """
@T.prim_func
def f(x: T.Buffer((4,), "float32")):
    for t in T.thread_binding(m, "threadIdx.x"):
                              ^ GM0245 make it a parameter
        x[t] = x[t] * 2
""",
    "a launch parameter without a loop": """
@T.prim_func
def f(x: T.Buffer((4,), "float32")):
    T.func_attr({"calling_conv": 2, "kernel_launch_params": ["threadIdx.x", "threadIdx.y"]})
    for t in T.thread_binding(4, "threadIdx.x"):
        x[t] = x[t] * 2
        ^^^^^^^^^^^^^^^ GM0669 4:1- leave calling_conv and kernel_launch_params out
""",
    "a loop without a launch parameter": """
@T.prim_func
def f(x: T.Buffer((4, 4), "float32")):
    T.func_attr({"calling_conv": 2, "kernel_launch_params": ["threadIdx.x"]})
    for t in T.thread_binding(4, "threadIdx.x"):
        for u in T.thread_binding(4, "threadIdx.y"):
            x[t, u] = x[t, u] * 2
            ^^^^^^^^^^^^^^^^^^^^^ GM0669 7:9- leave calling_conv and kernel_launch_params out
""",
    "a launch parameter for dynamic memory that there is not": """
@T.prim_func
def f(x: T.Buffer((4,), "float32")):
    T.func_attr({"calling_conv": 2, "kernel_launch_params": ["threadIdx.x", "tir.use_dyn_shared_memory"]})
    for t in T.thread_binding(4, "threadIdx.x"):
        x[t] = x[t] * 2
        ^^^^^^^^^^^^^^^ GM0669 4:1- leave calling_conv and kernel_launch_params out
""",
    "dynamic memory without a launch parameter": """
@T.prim_func
def f(x: T.Buffer((4,), "float32")):
    T.func_attr({"calling_conv": 2, "kernel_launch_params": ["threadIdx.x"]})
    for t in T.thread_binding(4, "threadIdx.x"):
        s = T.alloc_buffer((4,), "float32", scope="shared.dyn")
            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ GM0669 leave calling_conv and kernel_launch_params out
        s[t] = x[t]
        x[t] = s[t]
""",
    "a launch parameter twice": """
@T.prim_func
def f(x: T.Buffer((4,), "float32")):
    T.func_attr({"calling_conv": 2, "kernel_launch_params": ["threadIdx.x", "threadIdx.x"]})
    for t in T.thread_binding(4, "threadIdx.x"):
        x[t] = x[t] * 2
        ^^^^^^^^^^^^^^^ GM0669 4:1- leave calling_conv and kernel_launch_params out
""",
    "a kernel that is called": """
@T.prim_func
def f(x: T.Buffer((4,), "float32")):
    double(x)
    ^^^^^^^^^ GM0658 state the device as its target

@T.prim_func
def double(x: T.Buffer((4,), "float32")):
    T.func_attr({"calling_conv": 2, "kernel_launch_params": ["threadIdx.x"]})
    for t in T.thread_binding(4, "threadIdx.x"):
        x[t] = x[t] * 2
""",
    "a helper with threads of its own": """
@T.prim_func
def f(x: T.Buffer((4, 64), "float32")):
    for b in T.thread_binding(4, "blockIdx.x"):
        row(x, b)

@T.prim_func(private=True)
def row(x: T.Buffer((4, 64), "float32"), b: T.int64):
    for t in T.thread_binding(64, "threadIdx.x"):
        x[b, t] = x[b, t] * 2
        ^^^^^^^^^^^^^^^^^^^^^ GM0670 10:5- into the function that launches
""",
    "a launch in a vectorized loop": """
@T.prim_func
def f(x: T.Buffer((4, 64), "float32")):
    for row in T.vectorized(4):
        for t in T.thread_binding(64, "threadIdx.x"):
            x[row, t] = T.float32(1)
            ^^^^^^^^^^^^^^^^^^^^^^^^ GM0646 6:9- serial
""",
    "recursion on the device": """
@T.prim_func
def f(x: T.Buffer((4,), "int64")):
    for t in T.thread_binding(4, "threadIdx.x"):
        x[t] = down(t)
               ^^^^^^^ GM0442 use a loop

@T.prim_func(private=True)
def down(k: T.int64) -> T.int64:
    if k > 0:
        return down(k - 1)
    return k
""",
}


@pytest.mark.parametrize("text", MARKED.values(), ids=MARKED)
def test_it_is_refused_at_its_place(text: str) -> None:
    check_marked(HEAD + text.lstrip("\n"), lambda plain: LOWERING.run(parse_source(plain, "kernel.py").module))


def test_the_address_of_an_array_given_to_a_c_function_is_refused() -> None:
    text = (
        HEAD
        + """@T.prim_func
def f(x: T.Buffer(("n",), "float32")):
    for t in T.thread_binding(n, "threadIdx.x"):
        x[t] = x[t] * 2
    T.evaluate(T.call_extern("int32", "report", T.address_of(x[1])))
"""
    )
    module = parse_source(text, "kernel.py", externs={"report": "libkit.so"}).module
    with pytest.raises(UserError) as caught:
        lower(module)
    (found,) = caught.value.diagnostics
    assert found.code == "GM0666"
    assert found.message == (
        "code of the host hands `x`, which is memory of the device, to the C function `report` in `f`"
    )
    assert found.place is not None
    assert (found.place.line, found.place.column) == (7, 49)


def test_a_kernel_that_calls_a_c_function_is_refused() -> None:
    text = (
        HEAD
        + """@T.prim_func
def f(x: T.Buffer(("n",), "float32")):
    for t in T.thread_binding(n, "threadIdx.x"):
        x[t] = T.call_extern("float32", "cbrtf", x[t])
"""
    )
    module = parse_source(text, "kernel.py", externs={"cbrtf": "libm.so.6"}).module
    with pytest.raises(UserError) as caught:
        LOWERING.run(module)
    (found,) = caught.value.diagnostics
    assert found.code == "GM0667"
    assert found.message == "code of the device calls the C function `cbrtf`, which the host has, in `f_kernel`"
    assert found.place is not None
    assert (found.place.line, found.place.column) == (6, 16)


def test_memory_of_the_host_may_be_handed_out() -> None:
    module = kernels("""
        @T.prim_func
        def f(x: T.Buffer(("n",), "float32")):
            sizes = T.alloc_buffer((1,), "int64")
            sizes[0] = n
            T.evaluate(T.call_packed("kit.log", sizes, n))
            for t in T.thread_binding(n, "threadIdx.x"):
                x[t] = x[t] * 2
        """)
    lower(module)


def test_both_places_of_contradicting_extents_are_shown() -> None:
    text = MARKED["contradicting extents"]
    plain = HEAD + "\n".join(line for line in text.strip().split("\n") if "^" not in line) + "\n"
    with pytest.raises(UserError) as caught:
        lower(parse_source(plain, "kernel.py").module)
    found = caught.value.diagnostics[0]
    assert found.message == "loops over `threadIdx.x` in one launch have the extents 64 and 32; they must be equal"
    assert found.label == "extent 32 here"
    (note,) = found.notes
    assert note.message == "extent 64 here"
    assert found.place is not None
    assert note.place is not None
    assert (note.place.line, found.place.line) == (6, 8)


def test_unequal_extents_that_only_a_call_shows_raise_before_the_launch() -> None:
    module = kernels("""
        @T.prim_func
        def f(x: T.Buffer(("n",), "int32"), y: T.Buffer(("m",), "int32")):
            for b in T.thread_binding(1, "blockIdx.x"):
                for t in T.thread_binding(n, "threadIdx.x"):
                    x[t] = 1
                for t in T.thread_binding(m, "threadIdx.x"):
                    y[t] = 1
        """)
    x, y = np.zeros(3, np.int32), np.zeros(4, np.int32)
    with pytest.raises(ExecutionError, match="extents 3 and 4"):
        Executor(module).call("f", [x, y])
    with pytest.raises(ExecutionError, match=r"loops over threadIdx.x in one launch have the extents 3 and 4"):
        Executor(lower(module)).call("f", [x, y])
    assert not x.any()


PYTHON_PAGES = [
    "GM0646",
    "GM0652",
    "GM0653",
    "GM0654",
    "GM0655",
    "GM0656",
    "GM0658",
    "GM0659",
    "GM0666",
    "GM0667",
    "GM0669",
    "GM0670",
]


@pytest.mark.parametrize("code", PYTHON_PAGES)
def test_the_examples_of_the_pages_do_what_the_pages_say(code: str) -> None:
    wrong, right = re.findall(r"```python\n(.*?)```", (EXPLAIN / f"{code}.md").read_text(), re.DOTALL)
    with pytest.raises(UserError) as caught:
        LOWERING.run(kernels(wrong))
    assert [found.code for found in caught.value.diagnostics] == [code]
    lower(kernels(right))


def test_the_examples_of_dynamic_shared_memory() -> None:
    def launch(lines: str) -> Module:
        body = lines.replace("\n", "\n    ")
        return kernels(f"""
gristmill ir 1

function @f<n: int64>(x: float32[n])
  symbol "f"
{{
  for t: int64 in 0 +: n thread on threadIdx.x {{
    {body}
    a[t] = x[t]
    b[t] = int32(a[t])
    x[t] = float32(b[t])
  }}
}}
""")

    wrong, right = re.findall(r"```text\n(.*?)```", (EXPLAIN / "GM0657.md").read_text(), re.DOTALL)
    with pytest.raises(UserError) as caught:
        lower(launch(wrong))
    assert caught.value.code == "GM0657"
    lower(launch(right))


IR = {
    "GM0421": 'function @f()\n  symbol "f"\n  target "host"\n{\n  evaluate @missing()\n}',
    "GM0422": 'function @f()\n  symbol "f"\n  target "host"\n{\n  evaluate @k(1i32)\n}\n\n'
    'function @k()\n  target "reference"\n{\n}',
    "GM0433": 'function @f()\n  symbol "f"\n{\n  for t: int64 in 0 +: 4 thread {\n  }\n}',
}


@pytest.mark.parametrize("code", IR)
def test_what_the_verifier_refuses_before(code: str) -> None:
    module = parse_module(f"gristmill ir 1\n\n{IR[code]}\n")
    assert [found.code for found in verify(module)] == [code]


def test_a_region_that_the_device_would_launch() -> None:
    module = kernels("""
gristmill ir 1

function @f(x: int32[4])
  symbol "f"
{
  for t: int64 in 0 +: 4 thread on threadIdx.x {
    evaluate @g(buffer(x))
  }
}

function @g(x: int32[4]) {
  device_region "reference" {
    x[0] = 1i32
  }
}
""")
    with pytest.raises(UserError) as caught:
        LOWERING.run(module)
    assert caught.value.code == "GM0449"


def test_public_functions_must_be_bound_before_regions_are_made() -> None:
    with pytest.raises(InternalError, match="`f` is bound to no target"):
        Pipeline.of([AnnotateDeviceRegions(DEVICE)]).run(kernels('gristmill ir 1\n\nfunction @f()\n  symbol "f"\n{\n}'))


def test_called_functions_must_be_bound_before_launches_are_lowered() -> None:
    text = (
        'gristmill ir 1\n\nfunction @f()\n  symbol "f"\n  target "host"\n{\n  evaluate @g()\n}\n\nfunction @g() {\n}\n'
    )
    with pytest.raises(InternalError, match="`g` is bound to no target"):
        Pipeline.of([LowerLaunches(DEVICE)]).run(kernels(text))
