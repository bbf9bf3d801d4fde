"""Every kernel of the random device programs is valid SPIR-V for every validator, in each form of arguments and version."""

from __future__ import annotations

import pytest

import gristmill.schedule.plugin
import gristmill_launch.plugin
from gristmill.codegen.kernel_records import kernel_record, kernels_of
from gristmill.ir.dtype import SCALARS
from gristmill.ir.module import Module
from gristmill.ir.target import Target
from gristmill.passes.manager import RunOptions
from gristmill.passes.part_by_target import part_by_target
from gristmill.passes.pipeline import build_pipeline
from gristmill.plugin.protocols import PassContext
from gristmill.testing.device_programs import ON_EVERY_DEVICE, random_device_program
from gristmill.testing.spirv_tools import refusals
from gristmill_spirv.kernels import write_kernel
from gristmill_spirv.target import capabilities, profile_of, resolve

PROGRAMS = 20
CONSTRUCTS = ON_EVERY_DEVICE - {"warp", "thread assert"}
VERSIONS = ("1.1", "1.2", "1.3", "1.4")


def device_module(module: Module, target: Target, optimization: int) -> Module:
    """The kernels of a module, lowered for a target."""
    context = PassContext(target, capabilities(target), {"optimization": optimization})
    entries = (*gristmill.schedule.plugin.gristmill_passes(), *gristmill_launch.plugin.gristmill_passes())
    return part_by_target(build_pipeline(context, entries).run(module, RunOptions())).device


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("form", ["push", "uniform", "address"])
def test_random_kernels_are_valid(version: str, form: str) -> None:
    if form == "address" and version == "1.1":
        version = "1.2"
    features = ("float64", *(("address",) if form == "address" else ()))
    pushed = 8 if form == "uniform" else 128
    target = resolve(
        Target("vulkan", version, features, (("max_push_constants_size", pushed), ("max_shared_memory", 32768)))
    )
    profile = profile_of(target)
    checked = 0
    for seed in range(PROGRAMS):
        program = random_device_program(seed, dtypes=SCALARS, constructs=CONSTRUCTS)
        module = device_module(program.module, target, 3 if seed % 2 else 0)
        for kernel in kernels_of(module):
            written = write_kernel(module, kernel, profile, kernel_record(kernel, module).block)
            told = refusals(written.data, version)
            assert not told, f"seed {seed}, {kernel.name}:\n{told}"
            checked += 1
    assert checked >= PROGRAMS
