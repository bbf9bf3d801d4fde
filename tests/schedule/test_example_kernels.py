"""The kernels of the example project, bound to threads: equal results, no race, and many threads where that may be."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from gristmill.interp import ExecutionOptions, Executor
from gristmill.ir.functor import walk
from gristmill.ir.module import Module
from gristmill.ir.stmt import For, ThreadAxis
from gristmill.passes.manager import Pipeline, RunOptions
from gristmill.schedule.bind_loops import BindLoops
from gristmill.script.parsing import parse_file
from gristmill.testing.bound import runnable
from gristmill.testing.example_project import example_project, import_from

ROOT = example_project()
NESTS = {
    "grey": 1,
    "blur_rows": 1,
    "blur_columns": 1,
    "sobel": 1,
    "stencil": 1,
    "posterize": 1,
    "saxpy": 1,
    "transpose": 1,
    "matmul": 1,
    "matmul_tiled": 2,
    "sum": 0,
    "maximum": 0,
    "softmax": 2,
    "prefix_sum": 0,
    "histogram": 1,
}
"""How many nests of each kernel many threads run; softmax has one for few rows and one for many."""


@pytest.fixture(scope="module")
def modules() -> dict[str, tuple[Module, Module]]:
    found = {}
    for name in ("filters", "linear", "reductions"):
        module = parse_file(ROOT / "kernels" / f"{name}.py", root=ROOT).module
        found[name] = module, Pipeline.of([BindLoops(256, 65535)]).run(module, RunOptions(verify=True))
    return found


def test_nests_are_found(modules: dict[str, tuple[Module, Module]]) -> None:
    counts = {
        function.name: sum(isinstance(node, For) and node.thread is ThreadAxis.BLOCK_X for node in walk(function.body))
        for _, bound in modules.values()
        for function in bound.public
    }
    assert counts == NESTS


@pytest.mark.parametrize("size", [(13, 21, 103, 34), (1, 1, 1, 17)])
def test_results_are_those_of_the_loops(
    modules: dict[str, tuple[Module, Module]], size: tuple[int, int, int, int]
) -> None:
    height, width, count, extent = size
    picture = np.random.default_rng(0).integers(0, 255, (height, width, 4), np.uint8)
    for case in import_from(ROOT, "checks").cases(picture, count=count, extent=extent):
        plain, bound = modules[case.module]
        expected, found = copy.deepcopy(list(case.arguments)), copy.deepcopy(list(case.arguments))
        Executor(plain).call(case.function, expected)
        Executor(runnable(bound), ExecutionOptions(shuffle_seed=3)).call(case.function, found)
        for one, other in zip(expected, found, strict=True):
            assert np.array_equal(one, other, equal_nan=True), case.function
