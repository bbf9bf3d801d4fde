"""Launches over the limits of a target: refused when they are built, where the program itself says how large they are."""

from __future__ import annotations

import pytest

from gristmill.errors import Diagnostic, UserError
from gristmill.ir.module import Module
from gristmill.ir.target import Target
from gristmill.passes.hoist_shared_memory import HoistSharedMemory
from gristmill.passes.manager import Pipeline, RunOptions
from gristmill.plugin.artifacts import Capabilities
from gristmill.testing.pass_equivalence import kernels
from gristmill_launch.annotate_device_regions import AnnotateDeviceRegions
from gristmill_launch.bind_targets import BindTargets
from gristmill_launch.check_launch_limits import CheckLaunchLimits
from gristmill_launch.lower_launches import LowerLaunches
from gristmill_launch.split_host_device import SplitHostDevice

DEVICE = Target("reference")
LIMITS = Capabilities(
    is_device=True,
    max_threads_per_block=256,
    max_block_size=(256, 128, 64),
    max_grid_size=(65535, 1000, 100),
    max_shared_memory=16384,
)
AXES = {
    "blockIdx.x": (65535, "blocks"),
    "blockIdx.y": (1000, "blocks"),
    "blockIdx.z": (100, "blocks"),
    "threadIdx.x": (256, "threads of a block"),
    "threadIdx.y": (128, "threads of a block"),
    "threadIdx.z": (64, "threads of a block"),
}


def lowered(text: str, limits: Capabilities = LIMITS) -> Module:
    passes = Pipeline.of(
        [
            HoistSharedMemory(),
            BindTargets(DEVICE),
            AnnotateDeviceRegions(DEVICE),
            SplitHostDevice(),
            LowerLaunches(DEVICE),
            CheckLaunchLimits.of(DEVICE, limits),
        ]
    )
    return passes.run(kernels(text), RunOptions(verify=True))


def refused(text: str) -> tuple[Diagnostic, str]:
    """The diagnostic, and the text at its place."""
    with pytest.raises(UserError) as caught:
        lowered(text)
    (found,) = caught.value.diagnostics
    assert found.code == "GM0683"
    assert found.place is not None
    lines = ("from gristmill.script import tir as T\n" + text.strip()).split("\n")
    return found, lines[found.place.line - 1][found.place.column - 1 : found.place.end_column - 1]


def loops(**extents: object) -> str:
    text = '@T.prim_func\ndef f(x: T.Buffer((1,), "int32"), n: T.int64):\n'
    for depth, (name, extent) in enumerate(extents.items()):
        axis = name.replace("_", ".").replace("Idx", "Idx")
        text += "    " * (depth + 1) + f'for {name} in T.thread_binding({extent}, "{axis}"):\n'
    return text + "    " * (len(extents) + 1) + "if n == 1:\n" + "    " * (len(extents) + 2) + "x[0] = 1\n"


@pytest.mark.parametrize("axis", AXES)
def test_a_constant_extent_over_the_limit_of_its_axis(axis: str) -> None:
    limit, unit = AXES[axis]
    name = axis.replace(".", "_")
    lowered(loops(**{name: limit}))
    found, at = refused(loops(**{name: limit + 1}))
    assert at == str(limit + 1)
    assert found.message == (
        f"`{axis}` in the kernel `f_kernel` takes {limit + 1} {unit}, and target `reference` has {limit}"
    )
    assert "split this loop" in found.hint


def test_a_block_of_too_many_threads() -> None:
    lowered(loops(threadIdx_x=16, threadIdx_y=16))
    found, at = refused(loops(threadIdx_x=16, threadIdx_y=17))
    assert at == "17"
    assert found.message == (
        "the kernel `f_kernel` takes 272 threads of a block (16 x 17 along `threadIdx.x` and `threadIdx.y`), "
        "and target `reference` has 256"
    )
    assert "blockIdx.x" in found.hint
    assert "`max_threads_per_block`" in found.hint


def test_along_one_axis_the_threads_of_a_block_are_named_with_it() -> None:
    text = loops(threadIdx_x=200)
    with pytest.raises(UserError, match=r"takes 200 threads of a block, and target `reference` has 100"):
        lowered(text, Capabilities(is_device=True, max_threads_per_block=100))


@pytest.mark.parametrize(
    "extents", [{"threadIdx_x": "n"}, {"threadIdx_x": 1000, "blockIdx_x": 0}, {"threadIdx_x": "n * 1000"}]
)
def test_what_only_the_launch_knows_is_left_to_it(extents: dict[str, object]) -> None:
    lowered(loops(**extents))


def test_without_a_limit_nothing_is_refused() -> None:
    lowered(loops(threadIdx_x=10**6, blockIdx_z=10**6), Capabilities(is_device=True))


SHARED = """
@T.prim_func
def f(x: T.Buffer((64,), "int32"), n: T.int64):
    for t in T.thread_binding(64, "threadIdx.x"):
        a = T.alloc_buffer(({a},), "int32", scope="{scope}")
        b = T.alloc_buffer((1024,), "int32", scope="shared")
        a[t] = x[t]
        b[t] = x[t]
        T.syncthreads()
        x[t] = a[63 - t] + b[63 - t]
"""


@pytest.mark.parametrize("scope", ["shared", "shared.dyn"])
def test_constant_shared_memory_over_the_limit(scope: str) -> None:
    lowered(SHARED.format(a=3072, scope=scope))
    found, at = refused(SHARED.format(a=3073, scope=scope))
    assert at.startswith("T.alloc_buffer((3073,)")
    assert (
        found.message
        == "the shared memory of the kernel `f_kernel` takes 16388 bytes, and target `reference` has 16384"
    )
    assert found.label == "12292 bytes"
    assert "`b` has 4096 of them" in found.hint


@pytest.mark.parametrize("size", [2**62, 2**63 - 1])
def test_sizes_whose_bytes_wrap_are_over_every_limit(size: int) -> None:
    found, _ = refused(SHARED.format(a=size, scope="shared.dyn"))
    assert "9223372036854" in found.message


def test_a_size_that_only_the_launch_knows_is_left_to_it() -> None:
    lowered(SHARED.format(a="n * 4096", scope="shared.dyn"))
