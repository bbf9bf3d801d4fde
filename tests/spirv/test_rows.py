"""rows.toml: every rule of the table of SPIR-V is there, and names tests that there are."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from gristmill.testing.named_tests import fault_of

TESTS = Path(__file__).parent.parent
ROWS: dict[str, dict[str, Any]] = tomllib.loads(Path(__file__).with_name("rows.toml").read_text(encoding="utf-8"))

REQUIRED = (
    *(f"S{number}" for number in range(1, 26)),
    *(f"D1.{number}" for number in (6, 7, 8, 10, 11, 12, 14, 15, 31, 32)),
)


def test_every_row_is_there() -> None:
    assert list(ROWS) == list(REQUIRED)


@pytest.mark.parametrize("row", ROWS)
def test_a_row_names_tests_that_there_are(row: str) -> None:
    found = ROWS[row]
    assert set(found) <= {"what", "differs", "absent", "tests"}
    assert found["what"]
    assert [fault for fault in (fault_of(test, TESTS) for test in found["tests"]) if fault] == []
    assert len(set(found["tests"])) == len(found["tests"])
    # Only what there is not in Gristmill has no test.
    assert found["tests"] or found["absent"]
