"""Testing barriers: how many code has, the code without one of them, and whether threads then race.

A barrier is needed if without it the reference executor reports a race, or the read of what another thread is still to
write.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from gristmill.interp import ExecutionError, ExecutionOptions, Executor
from gristmill.ir.functor import Mutator, walk
from gristmill.ir.module import Module
from gristmill.ir.stmt import Barrier, BarrierScope, Seq

RACES = frozenset(("GM0502", "GM0504"))
"""Codes of the reports that a missing barrier gives: uninitialised memory, a race."""


def barrier_scopes(module: Module) -> list[BarrierScope]:
    """The scopes of all barriers, in the order of the text."""
    return [node.scope for node in walk(module) if isinstance(node, Barrier)]


def without_barrier(module: Module, number: int) -> Module:
    """The module without its barrier of that number (from 0, in the order of the text)."""
    found: Module = _Removing(number).visit(module)
    return found


class _Removing(Mutator):
    def __init__(self, number: int) -> None:
        super().__init__()
        self.left = number

    def visit_Barrier(self, node: Barrier) -> Any:
        self.left -= 1
        return node if self.left != -1 else Seq(())


def report_of(module: Module, function: str, args: Sequence[object], seeds: Sequence[int | None] = (None,)) -> str:
    """The code of what the executor reports of a call, in any of the orders of threads; empty if it reports nothing."""
    for seed in seeds:
        try:
            Executor(module).call(function, copy.deepcopy(list(args)), ExecutionOptions(shuffle_seed=seed))
        except ExecutionError as error:
            return error.code
    return ""


def needless_barriers(module: Module, function: str, args: Sequence[object]) -> list[int]:
    """The numbers of the barriers without which a call reports nothing, in any of three orders of threads."""
    return [
        number
        for number in range(len(barrier_scopes(module)))
        if report_of(without_barrier(module, number), function, args, (None, 1, 2)) not in RACES
    ]
