"""Gristmill on a Vulkan device beside numba-vulkan and wgpu: launches, kernels, builds and first results, in one run.

    pip install numba-vulkan==0.1.* wgpu==0.32.*
    python benchmarks/vulkan_peers.py [--device 0] [--rounds 15] [--elements 4194304] [--side 1024] [--cpu] [--table]

Every solution of every problem is checked, then all are run in turn, and the least wall-clock time of each is printed with
the ratio of the others' best to ours; above 1 is faster than they are. With ``--cpu`` the time of kernels is that of all
processors together: of a driver that runs kernels on them, and on a machine that others use too, it can be repeated.
The kernels are in `vulkan_peers_gristmill.py`, `vulkan_peers_numba.py` and `vulkan_peers_wgpu.py`. ``--table`` prints the
table of `docs/performance.md`.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import platform
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from measure import minimum_seconds
from vulkan_peers_first_results import first_results
from vulkan_peers_gristmill import TARGET, Gristmill
from vulkan_peers_numba import NumbaVulkan
from vulkan_peers_wgpu import Wgpu

NAMES = ("gristmill", "numba-vulkan", "wgpu")
LAUNCHES = 200
"""Launches of a trivial kernel that are queued before waiting: few enough for every queue."""


@dataclass(frozen=True)
class Problem:
    """What is computed: the inputs in the order of the kernels' parameters, and what is in ``out`` after one call."""

    title: str
    kernel: str
    inputs: dict[str, np.ndarray]
    out: str
    expected: np.ndarray
    tolerance: float = 1e-5


@dataclass
class Rows:
    """The lines of the table: seconds by the name of each side."""

    found: dict[str, dict[str, float]] = field(default_factory=dict)

    def add(self, title: str, seconds: dict[str, float], how: dict[str, str] | None = None) -> None:
        self.found[title] = seconds
        best = min(seconds[name] for name in NAMES[1:])
        text = ", ".join(f"{name} {shown(seconds[name])}" + (f" ({how[name]})" if how else "") for name in NAMES)
        print(f"{title}: {best / seconds['gristmill']:.2f}x of the best other   [{text}]", flush=True)

    def table(self) -> str:
        lines = ["| | gristmill | numba-vulkan | wgpu | best other / ours |", "| --- | ---: | ---: | ---: | ---: |"]
        for title, seconds in self.found.items():
            ratio = min(seconds[name] for name in NAMES[1:]) / seconds["gristmill"]
            lines.append(f"| {title} | " + " | ".join(shown(seconds[name]) for name in NAMES) + f" | {ratio:.2f} |")
        return "\n".join(lines)


def shown(seconds: float) -> str:
    """A time with three digits."""
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if seconds * factor >= 1 or unit == "us":
            digits = max(0, 2 - len(str(int(seconds * factor))) + 1)
            return f"{seconds * factor:.{digits}f} {unit}"
    raise AssertionError(seconds)


def problems(elements: int, side: int) -> list[Problem]:
    random = np.random.default_rng(4)
    small, line = random.random((2, 64), np.float32), random.random((2, elements), np.float32)
    image, weights = random.random((side, side), np.float32), random.random((3, 3), np.float32)
    a, b = random.random((2, 256, 256), np.float32)
    shares = np.exp(image.astype(np.float64) - image.max(1, keepdims=True))
    stencil, convolution = np.zeros_like(image), np.zeros_like(image)
    stencil[1:-1, 1:-1] = 0.2 * (
        image[1:-1, 1:-1] + image[:-2, 1:-1] + image[2:, 1:-1] + image[1:-1, :-2] + image[1:-1, 2:]
    )
    for p in range(3):
        for q in range(3):
            convolution[1:-1, 1:-1] += weights[p, q] * image[p : side - 2 + p, q : side - 2 + q]
    half, none = np.asarray(np.float32(0.5)), np.zeros_like(image)
    return [
        Problem(
            "trivial kernel", "step", {"x": small[0], "y": small[1], "z": np.zeros(64, np.float32)}, "z", small.sum(0)
        ),
        Problem(
            f"saxpy of {elements}",
            "saxpy",
            {"a": half, "x": line[0], "y": line[1]},
            "y",
            np.float32(0.5) * line[0] + line[1],
        ),
        Problem(
            f"sum of {elements}",
            "sum",
            {"x": line[0], "out": np.zeros(1, np.float32)},
            "out",
            np.array([line[0].sum(dtype=np.float64)]),
            1e-4,
        ),
        Problem(f"stencil of {side}^2", "stencil", {"x": image, "out": none}, "out", stencil),
        Problem(
            f"row softmax of {side}^2",
            "softmax",
            {"x": image, "out": none},
            "out",
            shares / shares.sum(1, keepdims=True),
        ),
        Problem(
            f"3x3 convolution of {side}^2",
            "convolution",
            {"x": image, "weights": weights, "out": none},
            "out",
            convolution,
        ),
        Problem("matmul of 256^3", "matmul", {"a": a, "b": b, "c": np.zeros((256, 256), np.float32)}, "c", a @ b, 1e-4),
    ]


def checked(side: Any, problem: Problem) -> dict[str, Callable[[], None]]:
    """The solutions of one side, each run once on fresh arrays and compared."""
    for how in side.runs(problem.kernel, problem.inputs, problem.out):
        if how != "read":
            fresh = side.runs(problem.kernel, problem.inputs, problem.out)
            fresh[how]()
            side.wait()
            found = fresh["read"]()
            if not np.allclose(found, problem.expected, rtol=problem.tolerance, atol=1e-6):
                raise SystemExit(f"{side.name}, {problem.title}, {how}: wrong result")
    runs = side.runs(problem.kernel, problem.inputs, problem.out)
    return {how: run for how, run in runs.items() if how != "read"}


def measure_kernel(
    sides: list[Any], problem: Problem, rounds: int, rows: Rows, clock: Callable[[], float] = time.perf_counter
) -> None:
    candidates: dict[str, Callable[[], object]] = {}
    for side in sides:
        for how, run in checked(side, problem).items():

            def whole(run: Callable[[], None] = run, wait: Callable[[], object] = side.wait) -> None:
                run()
                wait()

            whole()
            candidates[f"{side.name}: {how}"] = whole
    seconds = minimum_seconds(candidates, rounds, clock=clock)
    best, ways = {}, {}
    for side in sides:
        own = {name: value for name, value in seconds.items() if name.startswith(f"{side.name}: ")}
        name = min(own, key=own.__getitem__)
        best[side.name], ways[side.name] = own[name], name.partition(": ")[2]
        if side.name == "gristmill" and len(own) > 1:
            print("  " + ", ".join(f"{name} {shown(value)}" for name, value in own.items()))
    rows.add(problem.title, best, ways)


def measure_launches(sides: list[Any], problem: Problem, rounds: int, rows: Rows) -> None:
    runs = {side.name: next(iter(checked(side, problem).values())) for side in sides}
    calls, wholes = dict.fromkeys(runs, float("inf")), dict.fromkeys(runs, float("inf"))
    for _ in range(rounds):
        for side in sides:
            run, wait = runs[side.name], side.wait
            wait()
            begin = time.perf_counter()
            for _ in range(LAUNCHES):
                run()
            called = time.perf_counter()
            wait()
            for _ in range(LAUNCHES // 10):
                began = time.perf_counter()
                run()
                wait()
                wholes[side.name] = min(wholes[side.name], time.perf_counter() - began)
            calls[side.name] = min(calls[side.name], (called - begin) / LAUNCHES)
    rows.add("launch of a trivial kernel, until the call returns", calls)
    rows.add("launch of a trivial kernel, and wait", wholes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--elements", type=int, default=1 << 22, help="of the vectors")
    parser.add_argument("--side", type=int, default=1024, help="of the images")
    parser.add_argument("--only", default="", help="problems whose title has this, and nothing else")
    parser.add_argument("--target", default=TARGET, help="that our kernels are built for")
    parser.add_argument("--cpu", action="store_true", help="count time of processors, of drivers that run on them")
    parser.add_argument("--table", action="store_true")
    given = parser.parse_args()
    rows = Rows()
    with tempfile.TemporaryDirectory() as folder:
        ours = Gristmill(given.device, Path(folder), given.target)
        sides = [ours, NumbaVulkan(given.device), Wgpu(given.device)]
        versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in ("numba-vulkan", "numba", "wgpu"))
        print(
            f"{ours.device.physical.name}; Python {platform.python_version()}; {versions}; {time.strftime('%Y-%m-%d')}"
        )
        trivial, *others = problems(given.elements, given.side)
        if given.only in "launches":
            measure_launches(sides, trivial, given.rounds, rows)
        for problem in others:
            if given.only in problem.title:
                clock = time.process_time if given.cpu else time.perf_counter
                measure_kernel(sides, problem, given.rounds, rows, clock)
    if given.only in "first results":
        for title, seconds in first_results(given.device, max(given.rounds // 3, 1)).items():
            rows.add(title, seconds)
    if given.table:
        print(rows.table())


if __name__ == "__main__":
    main()
