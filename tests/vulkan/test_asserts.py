"""Asserts of kernels raise when the host next waits, where the target asks for them."""

from __future__ import annotations

import gc
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gristmill import device
from gristmill.errors import UserError
from gristmill.ir.target import parse_target
from gristmill.script import parse_source
from gristmill.testing.on_device import DeviceBackend
from gristmill_vulkan.asserts import assert_texts

SOURCE = """from gristmill.script import tir as T

@T.prim_func(private=True)
def checked(v: T.int32) -> T.int32:
    assert v != 7, ("KeyError", ["seven"])
    return v + 1

@T.prim_func
def f(x: T.Buffer((64,), "int32"), y: T.Buffer((64,), "int32")):
    for b in T.thread_binding(2, thread="blockIdx.x"):
        for t in T.thread_binding(32, thread="threadIdx.x"):
            value = x[b * 32 + t]
            assert value < 40, ("ValueError", ["element ", b * 32 + t, " is ", value, ", too great: ", value > 0])
            y[b * 32 + t] = checked(value)
"""


def backend(**options: bool) -> DeviceBackend:
    target = replace(parse_target("vulkan:1.2+address"), options=tuple(options.items()))
    return DeviceBackend(target, "vulkan:0", verify=False)


@pytest.fixture(scope="module")
def asserting() -> tuple[DeviceBackend, Any]:
    run = backend(asserts=True)
    return run, parse_source(SOURCE, "folder/kernel.py").module


def test_what_failed_is_raised_once(asserting: tuple[DeviceBackend, Any]) -> None:
    run, module = asserting
    x = np.arange(64, dtype=np.int32) % 7
    given = [x.copy(), np.zeros(64, np.int32)]
    run(module, "f", given)
    np.testing.assert_array_equal(given[1], x + 1)
    x[37] = 41
    pack = run.pack(module)
    arrays = run.device.array(x), run.device.empty((64,), "int32")
    pack.f(*arrays)
    with pytest.raises(ValueError, match=r"^element 37 is 41, too great: True") as caught:
        run.device.synchronize()
    (note,) = caught.value.__notes__
    assert "an assert at kernel.py:13 failed in the kernel f_kernel" in note
    assert "blockIdx.x = 1, blockIdx.y = 0, blockIdx.z = 0, threadIdx.x = 5" in note
    run.device.synchronize()
    # The threads have gone on.
    np.testing.assert_array_equal(arrays[1].numpy(), x + 1)


def test_reading_an_array_waits_too_and_negative_values_are_told(asserting: tuple[DeviceBackend, Any]) -> None:
    run, _ = asserting
    source = SOURCE.replace("value < 40", "value > -5")
    pack = run.pack(parse_source(source, "kernel.py").module)
    x = np.full(64, -9, np.int32)
    arrays = run.device.array(x), run.device.empty((64,), "int32")
    pack.f(*arrays)
    with pytest.raises(ValueError, match=r"^element \d+ is -9, too great: False"):
        arrays[1].numpy()


def test_asserts_of_helpers(asserting: tuple[DeviceBackend, Any]) -> None:
    run, module = asserting
    pack = run.pack(module)
    pack.f(run.device.array(np.full(64, 7, np.int32)), run.device.empty((64,), "int32"))
    with pytest.raises(KeyError, match="seven"):
        run.device.synchronize()


def two_failures(run: DeviceBackend) -> set[str]:
    """What two packs say, both launched before the host waits."""
    modules = [parse_source(SOURCE.replace("seven", name), "kernel.py").module for name in ("one", "two")]
    packs = [run.loaded(run.generated(module), module) for module in modules]
    for pack in packs:
        pack.f(run.device.array(np.full(64, 7, np.int32)), run.device.empty((64,), "int32"))
    told = set()
    for _ in packs:
        try:
            run.device.synchronize()
        except KeyError as error:
            told.add(error.args[0])
    return told


def test_kernels_report_for_themselves(asserting: tuple[DeviceBackend, Any]) -> None:
    """Two kernels that fail are two exceptions, and memory goes with the code."""
    run, _ = asserting
    # Code that earlier tests let go may wait for the garbage collector.
    gc.collect()
    run.device.synchronize()
    before = run.device.reports.count
    assert two_failures(run) == {"one", "two"}
    gc.collect()
    run.device.synchronize()
    assert run.device.reports.count == before


def test_the_thread_is_told_also_where_blocks_are_rows_of_subgroups() -> None:
    source = """from gristmill.script import tir as T

@T.prim_func
def f(x: T.Buffer((4, 16), "int32")):
    for a in T.thread_binding(4, thread="threadIdx.y"):
        for b in T.thread_binding(16, thread="threadIdx.x"):
            other = T.warp_shuffle_xor(x[a, b], 1, width=8)
            assert other < 50, "too great"
            x[a, b] = other
"""
    target = "vulkan:1.2+address+subgroup_ballot+subgroup_shuffle"
    size = int(device("vulkan:0").properties()["subgroup_size"])
    named = replace(parse_target(target), options=(("asserts", True), ("subgroup_size", size)))
    run = DeviceBackend(named, "vulkan:0", verify=False)
    x = np.zeros((4, 16), np.int32)
    x[2, 5] = 50
    with pytest.raises(AssertionError, match="too great") as caught:
        run(parse_source(source, "kernel.py").module, "f", [x])
    assert "threadIdx.x = 4, threadIdx.y = 2, threadIdx.z = 0" in caught.value.__notes__[0]


def test_without_the_key_nothing_is_checked() -> None:
    run = backend()
    module = parse_source(SOURCE, "kernel.py").module
    run(module, "f", [np.full(64, 50, np.int32), np.zeros(64, np.int32)])
    (blob,) = [blob for blob in run.generated(module).blobs if blob.kind == "spirv"]
    assert "asserts" not in blob.kernels[0].extra


def test_asserts_need_addresses() -> None:
    with pytest.raises((UserError, ValueError), match="`asserts` needs `address`"):
        DeviceBackend(replace(parse_target("vulkan:1.2"), options=(("asserts", True),)), "vulkan:0")


@pytest.mark.parametrize(
    "data", [5, "[", "{}", "[1]", '[["a", "b", "c"]]', '[["a", ["b", 1], "c"]]', '[["a", [["x"]], ""]]']
)
def test_records_that_tell_of_asserts_otherwise(data: object) -> None:
    with pytest.raises(ValueError, match=r"assert|value|Expecting"):
        assert_texts(data)
