"""rows.toml: every row of the table of behaviours is there, and names tests that there are."""

from __future__ import annotations

import ast
import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).parent.parent
ROWS: dict[str, dict[str, Any]] = tomllib.loads(Path(__file__).with_name("rows.toml").read_text(encoding="utf-8"))

REQUIRED = (
    *(f"L{number}" for number in range(1, 25)),
    *(f"H{number}" for number in range(1, 12)),
    "B1",
    *(f"P{number}" for number in range(1, 14)),
    *(f"K{number}" for number in range(1, 13)),
    *(f"D1.{number}" for number in (*range(1, 5), *range(16, 23), 26, 27, 28, 32)),
)
_TEST = re.compile(r"(?P<file>[a-z_]+/test_[a-z_]+\.py)::(?P<function>test_\w+)(?:\[(?P<case>[^\]]+)\])?")


@cache
def written(file: str) -> tuple[frozenset[str], frozenset[str]]:
    """The test functions of a file, and the texts that stand in it: names of cases among them."""
    tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    texts = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    return frozenset(functions), frozenset(texts)


def fault_of(test: str) -> str:
    """Why a name is no test of this project; empty for one."""
    found = _TEST.fullmatch(test)
    if found is None:
        return f"{test!r} is not of the form folder/test_file.py::test_name[case]"
    if not (TESTS / found["file"]).is_file():
        return f"there is no file {found['file']}"
    functions, texts = written(found["file"])
    if found["function"] not in functions:
        return f"{found['file']} has no test {found['function']}"
    if found["case"] is not None and found["case"] not in texts:
        return f"{found['file']} has no case {found['case']!r}"
    return ""


def test_every_row_is_there() -> None:
    assert [row for row in REQUIRED if row not in ROWS] == []
    assert [row for row in ROWS if row not in REQUIRED] == []
    assert list(ROWS) == list(REQUIRED)


@pytest.mark.parametrize("row", ROWS)
def test_a_row_names_tests_that_there_are(row: str) -> None:
    found = ROWS[row]
    assert set(found) <= {"what", "differs", "waits", "tests"}
    assert found["what"]
    assert [fault for fault in map(fault_of, found["tests"]) if fault] == []
    assert len(set(found["tests"])) == len(found["tests"])
    # Only what needs another back end may have no test yet.
    assert found["tests"] or found["waits"]


def test_names_that_are_no_tests_are_found() -> None:
    here = "gristmill_launch/test_launch_refusals.py"
    assert "is not of the form" in fault_of("test_something")
    assert "no file" in fault_of("gristmill_launch/test_nothing.py::test_a")
    assert "has no test" in fault_of(f"{here}::test_nothing_of_that_name")
    assert "has no case" in fault_of(f"{here}::test_it_is_refused_at_its_place[no such case]")
    assert fault_of(f"{here}::test_it_is_refused_at_its_place[contradicting extents]") == ""
