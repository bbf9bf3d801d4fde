"""The runtime ``vulkan``: the devices of this machine's Vulkan drivers, for blobs of kind ``spirv``."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import ClassVar

from gristmill.errors import GristmillError, MissingError
from gristmill.plugin.artifacts import Scalar
from gristmill.plugin.protocols import DeviceDescription, Probe
from gristmill_vulkan.api import Api
from gristmill_vulkan.device import VulkanDevice, device_properties
from gristmill_vulkan.instance import Instance
from gristmill_vulkan.physical import PhysicalDevice, physical_device
from gristmill_vulkan.requirements import lacking

NAME = "vulkan"
_REQUIREMENTS = frozenset(("spirv", "vulkan", "features", "matrices", "subgroup"))


class VulkanRuntime:
    """Devices in the order discrete, integrated, virtual, CPU, other; of one kind as the driver lists them."""

    name: ClassVar[str] = NAME
    blob_kinds: ClassVar[tuple[str, ...]] = ("spirv",)

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._found: tuple[Instance, tuple[PhysicalDevice, ...]] | None = None
        self._left_out: tuple[str, ...] = ()

    def probe(self) -> Probe:
        """What the drivers list, or why there is none. Never raises."""
        try:
            _, devices = self.opened()
        except GristmillError as error:
            return Probe(reason=_one_line(error))
        except Exception as error:
            return Probe(reason=f"Vulkan could not be asked: {type(error).__name__}: {error}")
        if not devices:
            listed = "; ".join(self._left_out) or "they list none"
            return Probe(
                reason=f"the Vulkan drivers of this machine have no device that computes with Vulkan 1.1: {listed}"
            )
        described = tuple(
            DeviceDescription(number, device.name, device_properties(device)) for number, device in enumerate(devices)
        )
        return Probe(described, "; ".join(self._left_out))

    def opened(self) -> tuple[Instance, tuple[PhysicalDevice, ...]]:
        """The instance, made when first asked for, and the devices in order. Raises MissingError (GM0932), VulkanError."""
        with self._lock:
            if self._found is None:
                from gristmill import knobs

                instance = Instance(Api.load(), knobs.VULKAN_VALIDATION.value())
                try:
                    found = [physical_device(instance.api, handle) for handle in instance.physical_devices()]
                except BaseException:
                    instance.close()
                    raise
                # Sorting is stable: what the driver lists first comes first.
                devices = sorted((each for each in found if not isinstance(each, str)), key=lambda each: each.order)
                self._left_out = tuple(each for each in found if isinstance(each, str))
                self._found = instance, tuple(devices)
            return self._found

    def open(self, index: int) -> VulkanDevice:
        """The device of that number. Raises MissingError (GM0905) if there is none, VulkanError."""
        probe = self.probe()
        if not 0 <= index < len(probe.devices):
            listed = ", ".join(f"{NAME}:{device.index}" for device in probe.devices)
            hint = probe.reason or f"there is {listed}"
            raise MissingError("GM0905", f"there is no device {NAME}:{index}", hint)
        from gristmill import knobs

        instance, devices = self.opened()
        return VulkanDevice(f"{NAME}:{index}", instance, devices[index], frozenset(knobs.VULKAN_WITHOUT.value()))

    def refusal(self, kind: str, target: str, host: str, requirements: Mapping[str, Scalar]) -> str:
        """What no device of this machine has, by name."""
        if kind not in self.blob_kinds:
            return f"the vulkan runtime does not take code of kind {kind}"
        if unknown := sorted(requirements.keys() - _REQUIREMENTS):
            return f"it requires {', '.join(unknown)}, which this version of the vulkan runtime does not know"
        probe = self.probe()
        if not probe.devices:
            return probe.reason
        _, devices = self.opened()
        from gristmill import knobs

        without = frozenset(knobs.VULKAN_WITHOUT.value())
        reasons = [lacking(device, requirements, without) for device in devices]
        return "" if "" in reasons else reasons[0]

    def preference(self, target: str) -> int:
        """The code that uses more of what a device may have; ``no-NAME`` says what it does without."""
        used = target.count("+") - target.count("+no-")
        return used * 16 + int("".join(c for c in target.partition("+")[0] if c.isdigit()) or 0)


def _one_line(error: GristmillError) -> str:
    return str(error).replace("\n", " ")
