"""Random programs of several kernels give the same with index arithmetic in 32 bits, or are refused before a launch.

Values of int64 stay int64 in these kernels, which the executor runs.
"""

from __future__ import annotations

import copy
from typing import Any

import gristmill.schedule.plugin
import gristmill_launch.plugin
from gristmill.codegen.packed_interface import EXPORT_PREFIX
from gristmill.interp import ExecutionError, Executor
from gristmill.ir.dtype import INT64
from gristmill.ir.functor import walk
from gristmill.ir.module import Module
from gristmill.ir.stmt import For
from gristmill.ir.target import Target
from gristmill.passes.manager import RunOptions
from gristmill.passes.pipeline import build_pipeline
from gristmill.plugin.artifacts import Capabilities
from gristmill.plugin.protocols import PassContext
from gristmill.testing.device_programs import ON_EVERY_DEVICE, random_device_program
from gristmill.testing.programs.comparison import Outcome, compare

PROGRAMS = 40
VERIFIED = 5
REFUSED_AT_MOST = PROGRAMS // 5


def lowered(module: Module, optimization: int, verify: bool) -> Module:
    capabilities = Capabilities(is_device=True, warp_size=4, dtypes=Capabilities().dtypes - {INT64})
    context = PassContext(Target("reference"), capabilities, {"optimization": optimization})
    entries = (*gristmill.schedule.plugin.gristmill_passes(), *gristmill_launch.plugin.gristmill_passes())
    return build_pipeline(context, entries).run(module, RunOptions(verify=verify))


def test_random_programs() -> None:
    refused = narrow = wide = 0
    for seed in range(PROGRAMS):
        program = random_device_program(seed, constructs=ON_EVERY_DEVICE)
        module = lowered(program.module, 0 if seed % 2 else 3, seed % VERIFIED == 0)
        for node in walk(module):
            if isinstance(node, For) and node.thread is not None:
                narrow += node.var.dtype != INT64
                wide += node.var.dtype == INT64
        arguments: list[Any] = program.make_arguments(0)
        given = copy.deepcopy(arguments)
        value = Executor(program.oracle).call(program.function, arguments).value
        try:
            found = Executor(module).call_packed(f"{EXPORT_PREFIX}{program.entry.facts.symbol}", given).value
        except ExecutionError as error:
            if "indices would need more than 32 bits" not in str(error):
                raise
            refused += 1
            continue
        wanted = Outcome(value, arguments)
        assert not compare(program.entry, wanted, Outcome(found, given), program.bounded), f"seed {seed}"
    assert refused <= REFUSED_AT_MOST
    assert narrow > 10 * wide
