"""Exchanges in blocks of threads along several axes: the threads of a group are in one subgroup however they are numbered."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gristmill.interp import Executor
from gristmill.ir.target import parse_target
from gristmill.plugin.registry import Registry
from gristmill.runtime import Runtimes
from gristmill.script import parse_source
from gristmill.testing.on_device import DeviceBackend

pytestmark = pytest.mark.usefixtures("validation")
SOURCE = """from gristmill.script import tir as T

@T.prim_func(private=True)
def neighbour(value: T.int32) -> T.int32:
    got = T.warp_shuffle_down(value, 1, width=8)
    return got

@T.prim_func
def f(x: T.Buffer(({z}, {y}, {x}), "int32"), out: T.Buffer(({z}, {y}, {x}), "int32"), votes: T.Buffer((4,), "uint64")):
    for b in T.thread_binding(2, thread="blockIdx.x"):
        for tz in T.thread_binding({z}, thread="threadIdx.z"):
            for ty in T.thread_binding({y}, thread="threadIdx.y"):
                for tx in T.thread_binding({x}, thread="threadIdx.x"):
                    got = neighbour(x[tz, ty, tx])
                    vote = T.warp_ballot(x[tz, ty, tx] > 50, width=8)
                    if b == 0:
                        out[tz, ty, tx] = got
                        if tx + ty + tz == 0:
                            votes[0] = vote
"""
SHAPES = [("1", "1", "3"), ("1", "4", "2"), ("3", "3", "3"), ("4", "4", "4"), ("2", "'m'", "4"), ("'n'", "'m'", "'k'")]


@pytest.fixture(scope="module")
def backend() -> DeviceBackend:
    registry = Registry.installed()
    device = Runtimes(registry).device("vulkan:0")
    size = device.properties()["subgroup_size"]
    named = parse_target("vulkan+subgroup_ballot+subgroup_shuffle")
    return DeviceBackend(replace(named, options=(("subgroup_size", size),)), device, registry=registry)


@pytest.mark.parametrize("shape", SHAPES, ids="-".join)
def test_neighbours(backend: DeviceBackend, shape: tuple[str, str, str]) -> None:
    source = SOURCE
    for name, size in zip("xyz", shape, strict=True):
        source = source.replace(f"thread_binding({{{name}}}", f"thread_binding({size.strip(chr(39))}")
        source = source.replace(f"{{{name}}}", size)
    module = parse_source(source, "rows.py").module
    sizes = [{"'n'": 3, "'m'": 5, "'k'": 2}.get(size) or int(size) for size in reversed(shape)]
    x = np.random.default_rng(3).integers(0, 100, sizes, np.int32)
    expected = [x, np.zeros_like(x), np.zeros(4, np.uint64)]
    found = [array.copy() for array in expected]
    Executor(module).call("f", expected)
    backend(module, "f", found)
    np.testing.assert_array_equal(found[1], expected[1])
    np.testing.assert_array_equal(found[2], expected[2])
