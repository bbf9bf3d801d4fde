"""Modules that a recipe has bound to threads, made ready for the executor."""

from __future__ import annotations

from gristmill.ir.module import Module
from gristmill.passes.hoist_shared_memory import HoistSharedMemory
from gristmill.passes.insert_barriers import InsertBarriers
from gristmill.passes.lower_blocks import LowerBlocks
from gristmill.passes.lower_thread_reductions import LowerThreadReductions
from gristmill.passes.manager import Pass, Pipeline, RunOptions
from gristmill.passes.reuse_shared_memory import ReuseSharedMemory


def runnable(module: Module) -> Module:
    """The module with its reductions over threads, and the barriers they need, made explicit; verified after each pass.

    A block that reduces over threads says what threads do together, which the executor does not run as it is.
    """
    passes: list[Pass] = [LowerThreadReductions(), LowerBlocks(), HoistSharedMemory(), ReuseSharedMemory()]
    return Pipeline.of([*passes, InsertBarriers()]).run(module, RunOptions(verify=True))
