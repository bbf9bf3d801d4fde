"""Measuring side by side: candidates run in turn, many short rounds, the minimum of each, and their ratio."""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence


def minimum_seconds(
    candidates: Mapping[str, Callable[[], object]],
    rounds: int,
    calls: int = 1,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, float]:
    """The least seconds of one call of each candidate, over ``rounds`` interleaved rounds of ``calls`` calls.

    With ``time.process_time`` as the ``clock`` they are those of all processors together, whoever else uses the machine.
    """
    best = dict.fromkeys(candidates, float("inf"))
    for _ in range(rounds):
        for name, candidate in candidates.items():
            begin = clock()
            for _ in range(calls):
                candidate()
            best[name] = min(best[name], (clock() - begin) / calls)
    return best


def process_seconds(commands: Mapping[str, Sequence[str]], rounds: int) -> dict[str, float]:
    """The least CPU seconds (user and system) of each command as a process of its own, rounds interleaved."""
    best = dict.fromkeys(commands, float("inf"))
    for _ in range(rounds):
        for name, command in commands.items():
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            spent = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
            best[name] = min(best[name], spent)
    return best


def show(title: str, seconds: Mapping[str, float], ours: str, other: str, wanted: str) -> None:
    """Print both figures and their ratio (ours / other), with what is wanted of it."""
    ratio = seconds[ours] / seconds[other]
    figures = ", ".join(f"{name} {value * 1e6:.2f} us" for name, value in seconds.items())
    print(f"{title}: {ours} / {other} = {ratio:.2f} (wanted {wanted})   [{figures}]", flush=True)


PYTHON = sys.executable
