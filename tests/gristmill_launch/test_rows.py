"""rows.toml: every row of the table of behaviours is there, and names tests that there are."""

from __future__ import annotations

import tomllib
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from gristmill.testing import named_tests

fault_of = partial(named_tests.fault_of, folder=Path(__file__).parent.parent)
ROWS: dict[str, dict[str, Any]] = tomllib.loads(Path(__file__).with_name("rows.toml").read_text(encoding="utf-8"))

REQUIRED = (
    *(f"L{number}" for number in range(1, 25)),
    *(f"H{number}" for number in range(1, 12)),
    "B1",
    *(f"P{number}" for number in range(1, 14)),
    *(f"K{number}" for number in range(1, 13)),
    *(f"D1.{number}" for number in (*range(1, 5), *range(16, 23), 26, 27, 28, 32)),
)


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
