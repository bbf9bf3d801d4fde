"""Seeded random programs of several kernels (1,000, unless --programs says otherwise) give, split and lowered, what the
unsplit program gives.

The reference executor runs both: host code with its launches through the packed interface, and what the author wrote.
Optional passes are on for one program and off for the next. A failure prints the seed and the smallest program found
that still fails.
"""

from __future__ import annotations

from dataclasses import dataclass
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
    count_device_constructs,
    random_device_program,
    required_device_constructs,
)
from gristmill.testing.programs import differential

PROGRAMS = 1000
# The verifier runs between all passes for one program in so many; it takes longer than all else together.
VERIFIED = 5


@dataclass(frozen=True)
class Lowered:
    """A back end: all passes of a build for a device, and then the executor."""

    optimization: int
    verify: bool = False

    def __call__(self, module: Module, function: str, args: list[Any]) -> Any:
        options = {"optimization": self.optimization}
        context = PassContext(Target("reference"), Capabilities(is_device=True), options)
        entries = (*gristmill.schedule.plugin.gristmill_passes(), *gristmill_launch.plugin.gristmill_passes())
        lowered = build_pipeline(context, entries).run(module, RunOptions(verify=self.verify))
        entry = module.get(function)
        assert entry is not None
        return Executor(lowered).call_packed(f"{EXPORT_PREFIX}{entry.facts.symbol}", args).value


def test_lowered_programs_give_what_they_gave(seeds: range) -> None:
    for seed in seeds:
        # The reference device's test turns them the other way round.
        optimization = 0 if seed % 2 else 3
        backend = Lowered(optimization, verify=seed % VERIFIED == 0)
        report = differential([seed], backend, make=random_device_program, count=count_device_constructs)
        assert not report.failures, f"optimization {optimization}:\n{report.failures[0]}"


def test_every_construct_of_devices_occurs() -> None:
    found = count_device_constructs(random_device_program(seed).module for seed in range(PROGRAMS))
    for name, count in sorted(found.items()):
        print(f"{count:8} {name}")
    assert [name for name in required_device_constructs() if not found[name]] == []
