"""Atomic operations on Vulkan: in every kind of memory, form of arguments and memory model, as the executor has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gristmill.errors import GristmillError, Unsupported
from gristmill.interp import Executor
from gristmill.testing.programs.comparison import bits

INT64 = "+atomic_int64+atomic_shared_int64"
TARGETS = ["vulkan:1.2+float64" + INT64, "vulkan:1.2+address+float64" + INT64]
INTEGERS = ("add", "sub", "min", "max", "and", "or", "xor", "exchange")
FLOAT_SUMS = "vulkan:1.2+address+atomic_float32_add"
FLOATS = ("add", "sub", "exchange")


def run_both(module: Any, run: Callable[..., Any], given: list[Any]) -> list[Any]:
    """The arrays that the device leaves, which are those that the executor leaves."""
    expected = [array.copy() for array in given]
    with np.errstate(all="ignore"):
        Executor(module).call("f", expected)
    run(module, "f", given)
    for found, wanted in zip(given, expected, strict=True):
        np.testing.assert_array_equal(bits(found), bits(wanted))
    return given


def own_elements(dtype: str, scope: str) -> str:
    """A kernel of which each thread works on elements of its own, so that all that it gives is certain."""
    names = FLOATS if dtype.startswith("float") else INTEGERS
    at = "x[{p}, i]" if scope == "global" else "s[{p} * 64 + i]"
    lines = ["for i in T.thread_binding(64, thread='threadIdx.x'):"]
    if scope != "global":
        shape = "(640,)" if scope == "shared" else "(n * 10,)"
        lines.append(f"    s = T.alloc_buffer({shape}, '{dtype}', scope='{scope}')")
        lines += ["    for p in range(10):", "        s[p * 64 + i] = x[p, i]"]
    for place, name in enumerate(names):
        lines.append(f"    out[{place}, i] = T.atomic_{name}({at.format(p=place)}, y[i])")
    if dtype not in ("float32", "float64"):
        lines.append(f"    out[8, i] = T.atomic_compare_exchange({at.format(p=8)}, y[i], y[i] + 1)")
    lines.append(f"    out[9, i] = T.atomic_load({at.format(p=9)})")
    lines.append(f"    T.atomic_store({at.format(p=9)}, y[i])")
    if scope != "global":
        lines += ["    for p in range(10):", "        x[p, i] = s[p * 64 + i]"]
    head = (
        f'@T.prim_func\ndef f(x: T.Buffer((10, "n"), "{dtype}"), y: T.Buffer(("n",), "{dtype}"),\n'
        f'      out: T.Buffer((10, "n"), "{dtype}")):\n'
    )
    return head + "\n".join(f"    {line}" for line in lines) + "\n"


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("scope", ["global", "shared", "shared.dyn"])
@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64", "uint64", "float32", "float64"])
def test_each_operation_on_elements_of_one_thread(
    dtype: str, scope: str, target: str, parsed: Callable[..., Any], on_vulkan: Callable[..., Any]
) -> None:
    module = parsed(own_elements(dtype, scope))
    random, kind = np.random.default_rng(11), np.dtype(dtype)
    if kind.kind == "f":
        x, y = random.uniform(-9, 9, (10, 64)).astype(kind), random.uniform(-9, 9, 64).astype(kind)
    else:
        info = np.iinfo(kind)
        x, y = (random.integers(info.min, info.max, shape, kind, endpoint=True) for shape in ((10, 64), 64))
        y[::3] = x[8, ::3]
    given = [x, y, np.zeros((10, 64), kind)]
    if scope == "shared.dyn" and kind.itemsize == 8:
        with pytest.raises(Unsupported, match="laid out in words"):
            on_vulkan(target)(module, "f", given)
        return
    run_both(module, on_vulkan(target), given)


HISTOGRAM = """
@T.prim_func
def f(x: T.Buffer((40, 64), "uint8"), counts: T.Buffer((16,), "int32")):
    for b in T.thread_binding(40, thread="blockIdx.x"):
        for t in T.thread_binding(64, thread="threadIdx.x"):
            s = T.alloc_buffer((16,), "int32", scope="shared")
            if t < 16:
                s[t] = 0
            T.tvm_storage_sync("shared")
            T.atomic_add(s[x[b, t] % 16], 1)
            T.tvm_storage_sync("shared")
            if t < 16:
                T.atomic_add(counts[t], s[t])
"""


@pytest.mark.parametrize("target", ["vulkan", *TARGETS])
def test_threads_and_blocks_lose_nothing(
    target: str, parsed: Callable[..., Any], on_vulkan: Callable[..., Any]
) -> None:
    x = np.random.default_rng(5).integers(0, 256, (40, 64), np.uint8)
    found = run_both(parsed(HISTOGRAM), on_vulkan(target), [x, np.zeros(16, np.int32)])
    assert np.array_equal(found[1], np.bincount(x.ravel() % 16, minlength=16))


@pytest.mark.parametrize("target", ["vulkan", TARGETS[1], FLOAT_SUMS])
def test_sums_of_floats_that_all_threads_come_to(
    target: str, parsed: Callable[..., Any], on_vulkan: Callable[..., Any]
) -> None:
    source = """
@T.prim_func
def f(total: T.Buffer((1,), "float32"), places: T.Buffer((2560,), "int32"), next: T.Buffer((1,), "int32")):
    for b in T.thread_binding(40, thread="blockIdx.x"):
        for t in T.thread_binding(64, thread="threadIdx.x"):
            s = T.alloc_buffer((1,), "float32", scope="shared")
            if t == 0:
                s[0] = T.float32(0)
            T.tvm_storage_sync("shared")
            T.atomic_add(s[0], 0.5)
            T.tvm_storage_sync("shared")
            if t == 0:
                T.atomic_add(total[0], s[0])
            place = T.atomic_add(next[0], 1)
            places[place] = 1
"""
    # Halves are added without rounding, so that any order gives the same.
    given = [np.zeros(1, np.float32), np.zeros(2560, np.int32), np.zeros(1, np.int32)]
    found = run_both(parsed(source), on_vulkan(target), given)
    assert found[0][0] == 1280
    assert found[1].all()


@pytest.mark.parametrize("target", ["vulkan", "vulkan:1.2+address", "vulkan:1.2+vulkan_memory_model", "vulkan:1.3"])
def test_it_is_valid_with_barriers_over_global_memory(
    target: str, parsed: Callable[..., Any], written: Callable[..., Any], disassembled: Callable[..., Any]
) -> None:
    source = """
@T.prim_func
def f(x: T.Buffer((1,), "int32"), y: T.Buffer((64,), "int32")):
    for t in T.thread_binding(64, thread="threadIdx.x"):
        T.atomic_add(x[0], 1)
        y[t] = x[0]
"""
    lines = disassembled(written(parsed(source), target).data)
    assert any("OpAtomicIAdd" in line for line in lines)
    assert any("OpControlBarrier" in line for line in lines)


def test_loops_that_meet_in_atomic_operations_run_on_many_threads(
    parsed: Callable[..., Any], on_vulkan: Callable[..., Any], written: Callable[..., Any]
) -> None:
    source = """
@T.prim_func
def f(x: T.Buffer(("n",), "uint8"), counts: T.Buffer((256,), "int32")):
    for i in range(n):
        T.atomic_add(counts[x[i]], 1)
"""
    x = np.random.default_rng(6).integers(0, 256, 5000, np.uint8)
    module = parsed(source)
    found = run_both(module, on_vulkan(), [x, np.zeros(256, np.int32)])
    assert np.array_equal(found[1], np.bincount(x, minlength=256))
    (blob,) = [blob for blob in on_vulkan().generated(module).blobs if blob.kind == "spirv"]
    assert any(record.block[0] > 1 for record in blob.kernels)


def test_capabilities_are_those_that_are_used(parsed: Callable[..., Any], written: Callable[..., Any]) -> None:
    target = TARGETS[0]
    assert not {"atomic_int64", "atomic_shared_int64"} & written(parsed(HISTOGRAM), target).features
    assert "atomic_int64" in written(parsed(own_elements("uint64", "global")), target).features
    assert "atomic_shared_int64" in written(parsed(own_elements("float64", "shared")), target).features


SUMS = """
@T.prim_func
def f(total: T.Buffer((40,), "{dtype}"), before: T.Buffer((40, 64), "{dtype}")):
    for b in T.thread_binding(40, thread="blockIdx.x"):
        for t in T.thread_binding(64, thread="threadIdx.x"):
            s = T.alloc_buffer((4,), "{dtype}", scope="{scope}")
            if t < 4:
                s[t] = T.{dtype}(t)
            T.tvm_storage_sync("shared")
            before[b, t] = T.atomic_add(s[t % 4], 0.5)
            T.tvm_storage_sync("shared")
            if t < 4:
                T.atomic_add(total[b % 8], s[t] + before[b, t] * 0)
                {more}
"""
ALL_SUMS = "+atomic_float32_add+atomic_shared_float32_add"


def instructions(found: Any, disassembled: Callable[..., Any]) -> int:
    return sum("OpAtomicFAddEXT" in line for line in disassembled(found.data))


@pytest.mark.parametrize("target", ["vulkan", "vulkan:1.2", "vulkan:1.2+address", "vulkan:1.2+vulkan_memory_model"])
def test_sums_of_float32_by_an_instruction(
    target: str,
    parsed: Callable[..., Any],
    written: Callable[..., Any],
    disassembled: Callable[..., Any],
    on_vulkan: Callable[..., Any],
) -> None:
    """In global and in shared memory, each where the target states it; the results are the same."""
    module = parsed(SUMS.format(dtype="float32", scope="shared", more="pass"))
    features = {"atomic_float32_add", "atomic_shared_float32_add"}
    for stated in (set(), {"atomic_float32_add"}, {"atomic_shared_float32_add"}, features):
        name = "".join(f"+{feature}" for feature in sorted(stated))
        found = written(module, target + name)
        assert found.features & features == stated
        assert instructions(found, disassembled) == len(stated)
    given = [np.zeros(40, np.float32), np.zeros((40, 64), np.float32)]
    expected = [array.copy() for array in given]
    Executor(module).call("f", expected)
    on_vulkan(target + ALL_SUMS)(module, "f", given)
    # Which thread came first differs.
    np.testing.assert_array_equal(given[0], expected[0])
    np.testing.assert_array_equal(np.sort(given[1], 1), np.sort(expected[1], 1))


def test_sums_with_other_operations_on_shared_floats(
    parsed: Callable[..., Any],
    written: Callable[..., Any],
    disassembled: Callable[..., Any],
    on_vulkan: Callable[..., Any],
) -> None:
    """Where they are exchanged too, or their size is the launch's, they lie there as integers, and sums are exchanges."""
    target = f"vulkan:1.2{ALL_SUMS}"
    for scope, more in (("shared", "T.atomic_exchange(s[t], 0.0)"), ("shared.dyn", "pass")):
        module = parsed(SUMS.format(dtype="float32", scope=scope, more=more))
        found = written(module, target)
        assert "atomic_shared_float32_add" not in found.features
        assert instructions(found, disassembled) == 1
        given = [np.zeros(40, np.float32), np.zeros((40, 64), np.float32)]
        expected = [array.copy() for array in given]
        Executor(module).call("f", expected)
        on_vulkan(target)(module, "f", given)
        np.testing.assert_array_equal(given[0], expected[0])


def test_sums_through_a_view_of_shared_integers(
    parsed: Callable[..., Any], on_vulkan: Callable[..., Any], written: Callable[..., Any]
) -> None:
    source = """
@T.prim_func
def f(out: T.Buffer((2,), "float32"), bits: T.Buffer((2,), "int32")):
    for t in T.thread_binding(64, thread="threadIdx.x"):
        s = T.alloc_buffer((2,), "{own}", scope="shared")
        v = T.decl_buffer((2,), "{seen}", data=s.data, scope="shared")
        if t < 2:
            {floats}[t] = T.float32(0)
        T.tvm_storage_sync("shared")
        T.atomic_add({floats}[0], 0.5)
        T.atomic_max({integers}[1], T.int32(t))
        T.tvm_storage_sync("shared")
        if t < 2:
            out[t] = {floats}[t]
            bits[t] = {integers}[t]
"""
    for names in (("int32", "float32", "v", "s"), ("float32", "int32", "s", "v")):
        module = parsed(source.format(**dict(zip(("own", "seen", "floats", "integers"), names, strict=True))))
        assert "atomic_shared_float32_add" not in written(module, f"vulkan:1.2{ALL_SUMS}").features
        given = [np.zeros(2, np.float32), np.zeros(2, np.int32)]
        found = run_both(module, on_vulkan(f"vulkan:1.2{ALL_SUMS}"), given)
        assert found[0][0] == 32
        assert found[1][1] == 63


def test_sums_of_float64_by_an_instruction(
    parsed: Callable[..., Any],
    written: Callable[..., Any],
    disassembled: Callable[..., Any],
    on_vulkan: Callable[..., Any],
) -> None:
    """Which need no atomic operations of 64 bits beside. A device without them refuses the code, and says why."""
    module = parsed(SUMS.format(dtype="float64", scope="shared", more="pass"))
    names = {"atomic_float64_add", "atomic_shared_float64_add"}
    target = "vulkan:1.2+float64" + "".join(f"+{name}" for name in sorted(names))
    found = written(module, target)
    assert names <= found.features
    assert not {"atomic_int64", "atomic_shared_int64"} & found.features
    assert instructions(found, disassembled) == 2
    given = [np.zeros(40), np.zeros((40, 64))]
    with pytest.raises(GristmillError, match="atomic_float64_add"):
        on_vulkan(target)(module, "f", given)


@pytest.mark.parametrize(("scope", "feature"), [("global", "atomic_int64"), ("shared", "atomic_shared_int64")])
def test_what_a_target_does_not_state_is_refused(
    scope: str, feature: str, parsed: Callable[..., Any], written: Callable[..., Any]
) -> None:
    with pytest.raises(Unsupported) as caught:
        written(parsed(own_elements("int64", scope)), "vulkan:1.2")
    found = caught.value.diagnostics[0]
    assert found.code == "GM0680"
    assert f"{feature} = true" in str(caught.value)
    assert "of 64 bits" in found.message
    assert found.place is not None
