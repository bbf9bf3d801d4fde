"""Devices with the validation layer on, for each way that arguments reach a kernel, and packs for them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import gristmill
from gristmill.runtime.loaded_pack import LoadedPack
from gristmill_vulkan.device import VulkanDevice
from gristmill_vulkan.instance import Instance
from gristmill_vulkan.physical import PhysicalDevice
from gristmill_vulkan.runtime import VulkanRuntime

KERNELS = Path(__file__).with_name("kernels") / "launches.py"
TARGETS = {
    "push": '{ kind = "vulkan" }',
    "uniform": '{ kind = "vulkan", max_push_constants_size = 8 }',
    "address": '{ kind = "vulkan", version = "1.2", address = true }',
    "address_block": '{ kind = "vulkan", version = "1.2", address = true, max_push_constants_size = 8 }',
}
"""Targets by how their kernels get their arguments, as their records say it; blocks of more than 8 bytes for the second
and the last."""
SETS = "VK_KHR_push_descriptor"


@dataclass(frozen=True)
class Way:
    """How arguments reach kernels: the form of the code, what of the device is switched off, and who records."""

    arguments: str
    without: frozenset[str] = frozenset()
    is_native: bool = True
    """Whether launches are recorded by native support code; with descriptor sets they never are."""


WAYS = {
    "push descriptors": Way("push"),
    "push descriptors, in Python": Way("push", is_native=False),
    "descriptor sets": Way("push", frozenset([SETS])),
    "issued addresses": Way("push", frozenset(["address"])),
    "uniform buffer": Way("uniform"),
    "uniform buffer, in Python": Way("uniform", is_native=False),
    "uniform buffer in sets": Way("uniform", frozenset([SETS, "address"])),
    "addresses": Way("address"),
    "addresses, in Python": Way("address", is_native=False),
    "addresses of blocks": Way("address_block"),
    "addresses of blocks, in Python": Way("address_block", is_native=False),
    "staging copies": Way("push", frozenset(["mapped_arrays"])),
    "staging copies, addresses": Way("address", frozenset(["mapped_arrays"])),
}


@dataclass(frozen=True)
class Driver:
    """The instance with the validation layer, and the first device."""

    instance: Instance
    physical: PhysicalDevice

    def open(self, without: frozenset[str] = frozenset(), **options: int) -> VulkanDevice:
        return VulkanDevice("vulkan:0", self.instance, self.physical, without, **options)


@pytest.fixture(scope="module")
def validation(vulkan_validation: str) -> Iterator[None]:
    """Devices that tests make are watched by Vulkan's validation layer."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRISTMILL_VULKAN_VALIDATION", vulkan_validation)
        yield


@pytest.fixture(scope="session")
def driver(vulkan_validation: str) -> Iterator[Driver]:
    """One for all tests of a process: the layer is slow to load. What it says is an error where devices report it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRISTMILL_VULKAN_VALIDATION", vulkan_validation)
        instance, devices = VulkanRuntime().opened()
    yield Driver(instance, devices[0])
    assert not instance.messages


@pytest.fixture(scope="session")
def packs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The kernels of kernels/launches.py, built for each form of arguments; as ``few_push`` only two of them."""
    folder = tmp_path_factory.mktemp("vulkan")
    (folder / "kernels.py").write_text(KERNELS.read_text())
    few = 'functions = ["saxpy", "with_temporary"]'
    targets = "\n".join(f"{name} = {target}" for name, target in TARGETS.items())
    modules = "\n".join(
        f'[[module]]\nname = "{prefix}{name}"\nsource = "kernels.py"\ntargets = ["{name}"]\n{functions}'
        for name in TARGETS
        for prefix, functions in (("", ""), ("few_", few))
    )
    modules += (
        '\n[[module]]\nname = "few_double"\nsource = "kernels.py"\ntargets = ["push"]\nfunctions = ["double"]'
        '\n[[module]]\nname = "with_cpu"\nsource = "kernels.py"\ntargets = ["push", "cpu"]\nfunctions = ["double"]'
    )
    targets += '\ncpu = "cpu"'
    (folder / "kernels.toml").write_text(f'schema = 1\n[project]\nname = "p"\n[targets]\n{targets}\n{modules}\n')
    gristmill.build(folder / "kernels.toml")
    return {path.stem: path for path in (folder / "build/kernels").glob("*.kpack")}


@dataclass(frozen=True)
class Ready:
    """A device, and the kernels on it."""

    device: VulkanDevice
    pack: LoadedPack
    way: Way


@pytest.fixture(scope="module", params=WAYS)
def ready(request: pytest.FixtureRequest, driver: Driver, packs: dict[str, Path]) -> Iterator[Ready]:
    """Each way in turn."""
    way = WAYS[request.param]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRISTMILL_NATIVE", str(int(way.is_native)))
        device = driver.open(way.without)
    yield Ready(device, gristmill.load(packs[way.arguments], device=device), way)
    device.synchronize()
    device.close()


@pytest.fixture
def gpu(driver: Driver) -> Iterator[VulkanDevice]:
    """A device of its own for one test."""
    device = driver.open()
    yield device
    device.close()
    driver.instance.report()
