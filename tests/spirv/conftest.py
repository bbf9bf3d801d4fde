"""Modules built for Vulkan and run on the first Vulkan device; SPIR-V of single kernels, checked by spirv-val."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache

import pytest

import gristmill.schedule.plugin
import gristmill_launch.plugin
from gristmill import devices
from gristmill.codegen.kernel_records import kernel_record, kernels_of
from gristmill.ir.module import Module
from gristmill.ir.target import Target, parse_target
from gristmill.passes.index_widths import WIDE
from gristmill.passes.manager import RunOptions
from gristmill.passes.part_by_target import part_by_target
from gristmill.passes.pipeline import build_pipeline
from gristmill.plugin.protocols import PassContext
from gristmill.script import parse_source
from gristmill.testing.on_device import DeviceBackend
from gristmill.testing.spirv_tools import disassembly, refusals
from gristmill_spirv.kernels import WrittenKernel, write_kernel
from gristmill_spirv.target import capabilities, profile_of, resolve

HEAD = "from gristmill.script import tir as T\n\n"


@pytest.fixture(scope="module", autouse=True)
def validation(vulkan_validation: str) -> Iterator[None]:
    """Devices that tests make are watched by Vulkan's validation layer."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRISTMILL_VULKAN_VALIDATION", vulkan_validation)
        yield


@pytest.fixture(scope="session")
def subgroup_size() -> int:
    """How many threads the subgroups of the first Vulkan device have."""
    (row,) = [row for row in devices() if row.name == "vulkan:0"]
    return int(row.properties["subgroup_size"])


@pytest.fixture(scope="session")
def on_vulkan(pytestconfig: pytest.Config) -> Callable[..., DeviceBackend]:
    """The back end of a target, as ``on_vulkan("vulkan:1.2+address")``, on the first Vulkan device.

    ``--vulkan-arguments`` says how arguments reach kernels of targets that leave it open.
    """
    arguments = pytestconfig.getoption("--vulkan-arguments")

    @cache
    def made(target: str = "vulkan+float64", optimization: int = 3, **options: int) -> DeviceBackend:
        named = parse_target(target)
        if arguments in ("address", "address_block") and not {"address", "no-int64"} & set(named.features):
            version = named.arch if named.arch not in ("", "1.1") else "1.2"
            named = replace(named, arch=version, features=(*named.features, "address"))
        if arguments in ("uniform", "address_block"):
            options.setdefault("max_push_constants_size", 8)
        named = replace(named, options=(*named.options, *options.items()))
        # One kernel for each launch, with all of the integers that its author wrote.
        return DeviceBackend(named, "vulkan:0", optimization=optimization, verify=False, indices=WIDE)

    return made


@pytest.fixture(scope="session")
def parsed() -> Callable[[str], Module]:
    """The module of a source, which need not import ``T``."""
    return lambda source: parse_source(HEAD + source, "kernel.py").module


def _lowered(module: Module, target: Target | str, optimization: int = 3) -> tuple[Module, Target]:
    resolved = resolve(parse_target(target) if isinstance(target, str) else target)
    context = PassContext(resolved, capabilities(resolved), {"optimization": optimization, "indices": WIDE})
    entries = (*gristmill.schedule.plugin.gristmill_passes(), *gristmill_launch.plugin.gristmill_passes())
    return part_by_target(build_pipeline(context, entries).run(module, RunOptions())).device, resolved


@pytest.fixture(scope="session")
def lowered() -> Callable[..., tuple[Module, Target]]:
    """The device module of a module for a target, and the resolved target."""
    return _lowered


@pytest.fixture
def written() -> Callable[..., WrittenKernel]:
    """The first kernel of a module as SPIR-V for a target, once every validator has found all its kernels valid."""

    def write(module: Module, target: Target | str = "vulkan+float64", optimization: int = 3) -> WrittenKernel:
        device, resolved = _lowered(module, target, optimization)
        found = [
            write_kernel(device, kernel, profile_of(resolved), kernel_record(kernel, device).block)
            for kernel in kernels_of(device)
        ]
        for each in found:
            assert not refusals(each.data, resolved.arch)
        return found[0]

    return write


@pytest.fixture(scope="session")
def disassembled() -> Callable[[bytes], list[str]]:
    """The instructions of a module, as spirv-dis writes them, one a line, with single spaces."""
    return disassembly
