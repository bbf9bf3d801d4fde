"""Running random programs on a back end and on the executor, and comparing."""

from __future__ import annotations

import copy
import traceback
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from gristmill.interp import ExecutionError, Executor
from gristmill.ir.dtype import FLOAT32, FLOAT64, DType
from gristmill.ir.module import Module
from gristmill.testing.programs.comparison import BOUNDED_ULP, Outcome, compare
from gristmill.testing.programs.constructs import count_constructs
from gristmill.testing.programs.generator import CONSTRUCTS, CPU_DTYPES, random_program
from gristmill.testing.programs.program import RandomProgram
from gristmill.testing.programs.shrinking import shrink

Backend = Callable[[Module, str, list[Any]], int | float | bool | None]
"""Runs a function of a module: the arguments are written in place, the result is returned."""

_SHRINKING_ATTEMPTS = 600
_RAISED = "the back end raised"


@dataclass(frozen=True)
class Failure:
    """A program on which the back end and the executor differ; ``program`` is the smallest one found."""

    seed: int
    arguments_seed: int
    differences: tuple[str, ...]
    program: RandomProgram

    def __str__(self) -> str:
        lines = [f"seed {self.seed}, arguments {self.arguments_seed}: {'; '.join(self.differences)}"]
        lines.append(f"; to see it whole: random_program({self.seed}).text()")
        lines.append(self.program.text())
        return "\n".join(lines)


@dataclass
class DifferentialReport:
    """What came of many programs."""

    programs: int = 0
    steps: int = 0
    failures: list[Failure] = field(default_factory=list)
    constructs: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        counts = "\n".join(f"{count:8} {name}" for name, count in sorted(self.constructs.items()))
        failed = "\n\n".join(map(str, self.failures))
        return f"{counts}\n{self.programs} programs, {self.steps} steps, {len(self.failures)} failures\n{failed}"


def differences(
    program: RandomProgram, arguments_seed: int, run_backend: Backend, ulp: float = BOUNDED_ULP
) -> tuple[str, ...] | None:
    """What the back end does otherwise than the executor; None if the executor reports on the program itself."""
    args = program.make_arguments(arguments_seed)
    theirs = copy.deepcopy(args)
    try:
        value = Executor(program.oracle).call(program.function, args).value
    except ExecutionError:
        return None
    try:
        given = run_backend(program.module, program.function, theirs)
    except Exception as error:
        last = traceback.format_exception_only(error)[-1].strip()
        return (f"{_RAISED} {last[:2000]}",)
    return tuple(compare(program.entry, Outcome(value, args), Outcome(given, theirs), program.bounded, ulp))


def differential(
    seeds: Iterable[int],
    run_backend: Backend,
    *,
    dtypes: Sequence[DType] = CPU_DTYPES,
    constructs: Collection[str] = CONSTRUCTS,
    mathematics_in: Collection[DType] = (FLOAT32, FLOAT64),
    argument_seeds: Sequence[int] = (0, 1),
    ulp: float = BOUNDED_ULP,
    shrink_failures: bool = True,
    failures_at_most: int = 5,
    make: Callable[[int], RandomProgram] | None = None,
    count: Callable[[Iterable[Module]], Counter[str]] = count_constructs,
) -> DifferentialReport:
    """Run the programs of the seeds, with each set of arguments; stop after so many failures.

    ``make`` makes the program of a seed, in place of :func:`random_program` with the choices given here; ``count``
    counts what occurs in it.

    Raises ExecutionError if the executor reports on a program: that is a fault of the generator.
    """
    report = DifferentialReport()
    for seed in seeds:
        if make is not None:
            program = make(seed)
        else:
            program = random_program(seed, dtypes=dtypes, constructs=constructs, mathematics_in=mathematics_in)
        report.programs += 1
        report.constructs.update(count([program.module]))
        executor = Executor(program.oracle)
        for arguments_seed in argument_seeds:
            args = program.make_arguments(arguments_seed)
            report.steps += executor.call(program.function, args).steps
            found = differences(program, arguments_seed, run_backend, ulp)
            if not found:
                continue
            if shrink_failures:
                program, found = _shrunk(program, arguments_seed, run_backend, ulp, found)
            report.failures.append(Failure(seed, arguments_seed, found, program))
            break
        if len(report.failures) >= failures_at_most:
            break
    return report


def _shrunk(
    program: RandomProgram, arguments_seed: int, run_backend: Backend, ulp: float, found: tuple[str, ...]
) -> tuple[RandomProgram, tuple[str, ...]]:
    """The smallest failing program found, and its differences: of the same sort, an exception or a wrong value."""
    raised = found[0].startswith(_RAISED)

    def fails(candidate: RandomProgram) -> bool:
        now = differences(candidate, arguments_seed, run_backend, ulp)
        return bool(now) and now is not None and now[0].startswith(_RAISED) == raised

    smallest = shrink(program, fails, _SHRINKING_ATTEMPTS)
    return smallest, differences(smallest, arguments_seed, run_backend, ulp) or found
