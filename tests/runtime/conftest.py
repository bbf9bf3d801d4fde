"""Packs with code for the null runtime and for one that refuses everything: no plugin and no compiler is needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from types import ModuleType
from typing import Any

import pytest

from gristmill.pack import Function, Manifest, Member, write_pack
from gristmill.plugin.artifacts import KernelArgument, KernelRecord
from gristmill.plugin.hookspecs import hookimpl
from gristmill.plugin.protocols import DeviceDescription, Probe
from gristmill.plugin.registry import Registry
from gristmill.runtime import Runtimes, null
from gristmill.runtime.null import CODE, NullRuntime


class PickyRuntime:
    """Takes ``spirv``, has a device, and refuses by the requirement ``wants``."""

    name = "picky"
    blob_kinds = ("spirv",)

    def probe(self) -> Probe:
        return Probe((DeviceDescription(0, "a picky device"),))

    def open(self, index: int) -> Any:
        raise AssertionError("nothing fits, so nothing is opened")

    def refusal(self, kind: str, target: str, host: str, requirements: Mapping[str, Any]) -> str:
        return f"the device has no {requirements.get('wants', 'heart')}"

    def preference(self, target: str) -> int:
        return 0


class AbsentRuntime(PickyRuntime):
    """Takes ``hsaco`` and has no device."""

    name = "absent"
    blob_kinds = ("hsaco",)

    def probe(self) -> Probe:
        return Probe(reason="no driver is installed")


class BrokenRuntime(PickyRuntime):
    """Breaks the rule that looking for devices never raises."""

    name = "broken"
    blob_kinds = ("metal",)

    def probe(self) -> Probe:
        raise OSError("the driver is on fire")


class SecondRuntime(NullRuntime):
    """As null, with the memory of the CPU, so that one pack has code for two kinds of device."""

    name = "second"
    blob_kinds = ("second",)

    def open(self, index: int) -> Any:
        device = super().open(index)
        device.name, device.device_type = "second:0", 1
        return device


def plugin(*runtimes: type) -> ModuleType:
    module = ModuleType("runtimes_of_tests")
    module.GRISTMILL_API_VERSION = 1  # type: ignore[attr-defined]

    def gristmill_runtimes() -> list[type]:
        return list(runtimes)

    module.gristmill_runtimes = hookimpl(gristmill_runtimes)  # type: ignore[attr-defined]
    return module


@pytest.fixture
def runtimes() -> Runtimes:
    """The null runtime as a plugin, and the others beside it."""
    others = plugin(PickyRuntime, AbsentRuntime, BrokenRuntime, SecondRuntime)
    return Runtimes(Registry.of([null, others]))


MakePack = Callable[..., bytes]


@pytest.fixture
def make_pack() -> MakePack:
    """Make a pack with a code for each (kind, target, requirements) and one text; ``arities`` are its functions."""

    def make(*codes: tuple[str, str, dict[str, Any]], data: bytes = CODE, **arities: int) -> bytes:
        arities = arities or {"nothing": 0, "pair": 2}
        records = [
            KernelRecord(
                name, f"entry_{name}", tuple(KernelArgument(f"a{i}", "buffer", "float32") for i in range(arity))
            )
            for name, arity in arities.items()
        ]
        functions = tuple(Function(name, f"{name}({', '.join('abc'[:arity])})") for name, arity in arities.items())
        blobs, contents = [], {"ir/module.gmir": b"gristmill ir 1\n"}
        for number, (kind, target, requirements) in enumerate(codes or [("null", "null", {})]):
            name = f"code/{number}.bin"
            kernels = tuple(
                {**asdict(record), "arguments": [asdict(a) for a in record.arguments], "axes": [], "block": [0, 0, 0]}
                for record in records
            )
            blobs.append(Member(name, kind, target, "", tuple(r.entry for r in records), requirements, kernels))
            contents[name] = data
        texts = (Member("ir/module.gmir", "ir-text", "null"),)
        return write_pack(Manifest("project", "module", functions, tuple(blobs), texts), contents)

    return make
