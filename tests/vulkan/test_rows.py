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
    *(f"V{number}" for number in range(1, 12)),
    *(f"X{number}" for number in range(1, 10)),
    *(f"D{number}" for number in range(1, 9)),
    *(f"D2.{number}" for number in (35, 36, 38, 40, 41)),
)


def test_every_row_is_there() -> None:
    assert [row for row in REQUIRED if row not in ROWS] == []
    assert [row for row in ROWS if row not in REQUIRED] == []
    assert list(ROWS) == list(REQUIRED)


@pytest.mark.parametrize("row", ROWS)
def test_a_row_names_tests_that_there_are(row: str) -> None:
    found = ROWS[row]
    assert set(found) <= {"what", "differs", "tests"}
    assert found["what"]
    assert [fault for fault in map(fault_of, found["tests"]) if fault] == []
    assert len(set(found["tests"])) == len(found["tests"])
    assert found["tests"]
