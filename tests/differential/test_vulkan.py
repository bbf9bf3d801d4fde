"""Seeded random programs give on a Vulkan device what the executor says, in each way that arguments reach kernels.

Three of four programs are of kernels bound to threads, one is of plain loops. Optional passes are on and off, host functions
compiled and interpreted, kernels in 32 and in 64 bits launched, in turns. Vulkan's validation layer checks all of it, with its
checks of synchronisation, and must say nothing. A failure prints the seed and the smallest program found that still fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import pytest

from gristmill.ir.target import parse_target
from gristmill.plugin.registry import Registry
from gristmill.testing.device_programs import DEVICE_CONSTRUCTS, count_device_constructs
from gristmill.testing.differential_run import INDEX_LIMITS, ON_DEVICES, Choice, Make, choice_of, make_for
from gristmill.testing.on_device import DeviceBackend
from gristmill.testing.programs import count_constructs, differential

SETS = "VK_KHR_push_descriptor"


@dataclass(frozen=True)
class Way:
    """A target whose kernels get their arguments in some form, and what is switched off on the device."""

    target: str
    arguments: str
    pushed: int = 128
    without: str = ""
    asserts: bool = False
    """Whether asserts of kernels are checked."""
    subgroups: bool = False
    """Whether threads exchange values, in subgroups of the size that the device has."""


WAYS = (
    Way("vulkan+float64", "push"),
    Way("vulkan+float64", "uniform", pushed=8),
    Way("vulkan:1.2+address+float64", "address"),
    Way("vulkan:1.2+address+float64", "address_block", pushed=8, asserts=True),
    Way("vulkan+float64", "push", without=SETS),
    Way("vulkan+float64+subgroup_ballot+subgroup_shuffle", "push", subgroups=True),
)
PLAIN = 4
"""Of so many programs one is of plain loops."""

Backends = Callable[[int, Choice], DeviceBackend]


@pytest.fixture(scope="session")
def backends(validated: Registry) -> Iterator[Backends]:
    """The back end of a way and a choice; each way has a device of its own."""
    devices: dict[int, Any] = {}
    made: dict[tuple[int, Choice], DeviceBackend] = {}

    def found(way: int, choice: Choice) -> DeviceBackend:
        if way not in devices:
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("GRISTMILL_VULKAN_WITHOUT", WAYS[way].without)
                devices[way] = validated.runtime("vulkan").open(0)
        if (way, choice) not in made:
            optimization, interpreted, verify, limit = choice
            options = [("max_push_constants_size", WAYS[way].pushed), ("asserts", WAYS[way].asserts)]
            if WAYS[way].subgroups:
                options.append(("subgroup_size", devices[way].properties()["subgroup_size"]))
            target = replace(parse_target(WAYS[way].target), options=tuple(options))
            made[way, choice] = DeviceBackend(
                target,
                devices[way],
                optimization=optimization,
                interpreted=interpreted,
                registry=validated,
                verify=verify,
                index_limit=limit,
            )
        return made[way, choice]

    yield found
    for device in devices.values():
        device.close()


def test_programs_give_what_the_executor_gives(backends: Backends, way: int, way_seeds: range) -> None:
    for seed in way_seeds:
        backend = backends(way, choice_of(seed))
        is_plain = seed % PLAIN == PLAIN - 1
        make = programs(backend, "plain" if is_plain else "device")
        report = differential(
            [seed],
            backend,
            make=make,
            count=count_constructs if is_plain else count_device_constructs,
        )
        told = f"{WAYS[way]}, optimization {choice_of(seed)[0]}, indices of 32 bits up to {choice_of(seed)[3]}"
        assert not report.failures, f"{told}:\n{report.failures[0]}"


@cache
def programs(backend: DeviceBackend, kind: str) -> Make:
    """Programs with all that the target has; barriers of warps want subgroups of a known size."""
    if kind == "plain":
        return make_for(backend, kind, ON_DEVICES)
    has_warps = "subgroup_shuffle" in backend.target.features
    return make_for(backend, kind, DEVICE_CONSTRUCTS if has_warps else DEVICE_CONSTRUCTS - {"warp"})


@pytest.mark.parametrize("way", range(len(WAYS)))
def test_the_ways_are_those_that_are_meant(backends: Backends, vulkan_validation: str, way: int) -> None:
    backend = backends(way, (3, True, False, INDEX_LIMITS[0]))
    assert backend.device.instance.is_validated == (vulkan_validation == "1")
    code = backend.generated(programs(backend, "device")(0).module)
    records = [record for blob in code.blobs if blob.kind == "spirv" for record in blob.kernels]
    forms = {record.extra["arguments"] for record in records}
    # Where little enough is pushed there is no need of a block elsewhere.
    assert WAYS[way].arguments in forms
    assert forms <= {WAYS[way].arguments, WAYS[way].arguments.replace("uniform", "push").replace("_block", "")}
    assert (SETS in backend.device.logical.extensions) == (not WAYS[way].without)
