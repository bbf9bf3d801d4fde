"""The runtime ``cpu``: one device, the processor, for shared objects made for it."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from gristmill.codegen.context_table import DEVICE_CODE, DEVICE_KIND, KERNELS
from gristmill.errors import MissingError
from gristmill.plugin.artifacts import Scalar
from gristmill.plugin.protocols import DeviceDescription, Probe
from gristmill_cpu.processor import ELF_MACHINES, Processor, this_processor

if TYPE_CHECKING:
    from gristmill_cpu.device import CpuDevice

# What a code may require; "externs" is for people, who read there which C functions it calls.
_REQUIREMENTS = frozenset(("cpu_features", "externs", DEVICE_CODE, DEVICE_KIND, KERNELS))
_LEVEL = re.compile(r"x86-64-v(\d)")


class CpuRuntime:
    """Loads blobs of kind ``elf-shared`` whose host is this machine."""

    name: ClassVar[str] = "cpu"
    blob_kinds: ClassVar[tuple[str, ...]] = ("elf-shared",)

    def __init__(self, processor: Processor | None = None) -> None:
        """``processor`` stands in for this machine's, in tests."""
        self._processor = processor

    @property
    def processor(self) -> Processor:
        if self._processor is None:
            self._processor = this_processor()
        return self._processor

    def probe(self) -> Probe:
        """The processor, if CPU code can be made and loaded for it."""
        if sys.platform != "linux":
            return Probe(reason=f"compiled CPU code is for Linux, and this is {sys.platform}")
        machine = os.uname().machine if self._processor is None else self._processor.machine
        if machine not in ELF_MACHINES:
            return Probe(reason=f"there is no CPU code for {machine}; there is for {', '.join(ELF_MACHINES)}")
        found = self.processor
        properties: dict[str, Scalar] = {
            "machine": found.machine,
            "cores": found.cores,
            "features": ",".join(sorted(found.flags)),
        }
        return Probe((DeviceDescription(0, found.name, properties),))

    def open(self, index: int) -> CpuDevice:
        """The processor. Raises MissingError (GM0905) for another number."""
        if index != 0 or not self.probe().devices:
            raise MissingError("GM0905", f"there is no device cpu:{index}", self.probe().reason or "there is cpu:0")
        from gristmill_cpu.device import CpuDevice

        return CpuDevice(self.processor)

    def refusal(self, kind: str, target: str, host: str, requirements: Mapping[str, Scalar]) -> str:
        """Another machine, or features that this processor lacks, by name."""
        if kind not in self.blob_kinds:
            return f"the cpu runtime does not take code of kind {kind}"
        if host != self.processor.host:
            return f"it is for {host or 'an unnamed host'}, and this machine is {self.processor.host}"
        if unknown := sorted(requirements.keys() - _REQUIREMENTS):
            return f"it requires {', '.join(unknown)}, which this version of the cpu runtime does not know"
        features = [name for name in str(requirements.get("cpu_features", "")).split(",") if name]
        if lacking := self.processor.lacking(features):
            return f"this processor lacks {', '.join(lacking)}"
        return ""

    def preference(self, target: str) -> int:
        """The higher level first; of one level, the one with more features named."""
        arch = target.partition(":")[2]
        level = _LEVEL.match(arch)
        return (int(level[1]) if level else 0) * 1000 + arch.count("+")
