"""The lowered kernels of the example projects: their text as people have read it, and each of their barriers needed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tomli

from gristmill.ir.module import CallingConvention, Module
from gristmill.ir.parser import parse_module
from gristmill.ir.target import Target
from gristmill.plugin.registry import Registry
from gristmill.script.parsing import parse_file
from gristmill.testing.barriers import barrier_scopes, needless_barriers, report_of
from gristmill.testing.example_project import example_project, import_from
from gristmill.testing.golden import GoldenFiles
from gristmill.testing.listings import listing_of, lowered_for_device

FOLDER = Path(__file__).parent.parent / "golden"


def sources(project: str) -> dict[str, Path]:
    """The kernel sources of a project by the names of its modules."""
    root = example_project(project)
    manifest = tomli.loads((root / "kernels.toml").read_text())
    return {module["name"]: root / module["source"] for module in manifest["module"]}


@cache
def lowered(project: str, name: str) -> Module:
    module = parse_file(sources(project)[name], root=example_project(project)).module
    return lowered_for_device(module, Target("reference"), Registry.installed())


MODULES = [(project, name) for project in ("imagekit", "blockkit") for name in sources(project)]


def arguments(project: str) -> dict[tuple[str, str], Sequence[Any]]:
    """Small arguments for each kernel of a project, of sizes that are no multiples of blocks."""
    checks = import_from(example_project(project), "checks", project)
    picture = np.random.default_rng(1).integers(0, 255, (5, 9, 4), np.uint8)
    cases = checks.cases(17, 35, 18, 1300) if project == "blockkit" else checks.cases(picture, count=600, extent=18)
    return {(case.module, case.function): case.arguments for case in cases}


KERNELS = [(project, *kernel) for project in ("imagekit", "blockkit") for kernel in arguments(project)]


@pytest.mark.parametrize(("project", "name"), MODULES)
def test_texts_are_those_that_people_have_read(project: str, name: str, golden: GoldenFiles) -> None:
    module = lowered(project, name)
    functions = [one for one in module.public if one.facts.convention is CallingConvention.PLAIN]
    files = {f"{function.name}.gmir" for function in functions}
    for file in sorted(files):
        golden.check(FOLDER / project / name / file, listing_of(module, file.removesuffix(".gmir")))
    golden.check_folder(FOLDER / project / name, files)


def test_no_other_texts_are_kept() -> None:
    assert sorted(path.relative_to(FOLDER).parts for path in FOLDER.glob("*/*")) == sorted(MODULES)


def golden_listing(project: str, name: str, function: str) -> str:
    return (FOLDER / project / name / f"{function}.gmir").read_text(encoding="utf-8")


def stated(text: str) -> tuple[int, list[int]]:
    """How many barriers the first line of a listing says that there are, and how many it says of each launch."""
    counts = [
        0 if found == "no" else int(found) for found in re.findall(r"^;.*?(\d+|no) barriers?$", text, re.MULTILINE)
    ]
    return counts[0], counts[1:]


@pytest.mark.parametrize(("project", "name", "function"), KERNELS)
def test_headers_state_how_many_barriers_there_are(project: str, name: str, function: str) -> None:
    text = golden_listing(project, name, function)
    whole, each = stated(text)
    assert whole == sum(each) == len(barrier_scopes(parse_module(text, f"{function}.gmir")))


@pytest.mark.parametrize(
    ("name", "function", "count"),
    [
        ("tiles", "saxpy", 0),
        ("tiles", "matmul", 2),
        ("tiles", "transpose", 1),
        ("tiles", "blur", 2),
        ("tiles", "heat", 1),
        ("tiles", "reverse_runs", 1),
        # A tree of seven steps in each of two kernels.
        ("collectives", "total", 14),
        # Two trees of seven steps, one before each result is read, and one before the memory is written again.
        ("collectives", "softmax", 17),
        ("collectives", "prefix_sum", 1),
        ("collectives", "histogram", 2),
    ],
)
def test_blocks_of_threads_wait_no_more_often_than_one_would_write_by_hand(
    name: str, function: str, count: int
) -> None:
    assert stated(golden_listing("blockkit", name, function))[0] == count


@pytest.mark.parametrize(("project", "name", "function"), KERNELS)
def test_without_any_one_barrier_the_executor_reports_a_race(project: str, name: str, function: str) -> None:
    module = parse_module(golden_listing(project, name, function), f"{function}.gmir")
    given = arguments(project)[name, function]
    assert report_of(module, function, given, (None, 1, 2)) == ""
    assert needless_barriers(module, function, given) == []
