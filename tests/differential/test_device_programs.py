"""Seeded random programs of several kernels (1,000, unless --programs says otherwise) give, split and lowered, what the
unsplit program gives.

The reference executor runs both: host code with its launches through the packed interface, and what the author wrote.
Optional passes are on for one program and off for the next. A failure prints the seed and the smallest program found
that still fails.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import gristmill.schedule.plugin
import gristmill_launch.plugin
from gristmill.codegen.packed_interface import EXPORT_PREFIX
from gristmill.interp import Executor
from gristmill.ir.module import Module
from gristmill.ir.target import Target
from gristmill.passes.manager import RunOptions
from gristmill.passes.pipeline import build_pipeline
from gristmill.plugin.artifacts import Capabilities
from gristmill.plugin.protocols import PassContext
from gristmill.testing.device_programs import (
    DEVICE_CONSTRUCTS,
    ON_EVERY_DEVICE,
    RandomDeviceProgram,
    count_device_constructs,
    random_device_program,
    required_device_constructs,
)
from gristmill.testing.programs import differential

PROGRAMS = 1000
# The verifier runs between all passes for one program in so many; it takes longer than all else together.
VERIFIED = 5
# Every third program is for a device whose threads exchange values.
EXCHANGING = 3


def maker(exchanges: bool) -> Callable[[int], RandomDeviceProgram]:
    return partial(random_device_program, constructs=DEVICE_CONSTRUCTS if exchanges else ON_EVERY_DEVICE)


@dataclass(frozen=True)
class Lowered:
    """A back end: all passes of a build for a device, and then the executor."""

    optimization: int
    verify: bool = False
    exchanges: bool = False

    def __call__(self, module: Module, function: str, args: list[Any]) -> Any:
        options = {"optimization": self.optimization}
        # Warps of four threads: then blocks of these programs have more than one.
        capabilities = Capabilities(is_device=True, warp_size=4, warp_shuffles=self.exchanges)
        context = PassContext(Target("reference"), capabilities, options)
        entries = (*gristmill.schedule.plugin.gristmill_passes(), *gristmill_launch.plugin.gristmill_passes())
        lowered = build_pipeline(context, entries).run(module, RunOptions(verify=self.verify))
        entry = module.get(function)
        assert entry is not None
        return Executor(lowered).call_packed(f"{EXPORT_PREFIX}{entry.facts.symbol}", args).value


def test_lowered_programs_give_what_they_gave(seeds: range) -> None:
    for seed in seeds:
        # The reference device's test turns them the other way round.
        optimization = 0 if seed % 2 else 3
        exchanges = seed % EXCHANGING == 0
        backend = Lowered(optimization, seed % VERIFIED == 0, exchanges)
        report = differential([seed], backend, make=maker(exchanges), count=count_device_constructs)
        told = f"optimization {optimization}{', with exchanges' if exchanges else ''}"
        assert not report.failures, f"{told}:\n{report.failures[0]}"


def test_every_construct_of_devices_occurs() -> None:
    found = count_device_constructs(maker(seed % EXCHANGING == 0)(seed).module for seed in range(PROGRAMS))
    for name, count in sorted(found.items()):
        print(f"{count:8} {name}")
    assert [name for name in required_device_constructs(exchanges=True) if not found[name]] == []
