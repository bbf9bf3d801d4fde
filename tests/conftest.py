"""Options of the whole suite, and the fixture that compares texts with golden files."""

from __future__ import annotations

import pytest

pytest_plugins = ["gristmill.testing.golden_fixture"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--programs", type=int, default=1000, metavar="N", help="how many random programs to compare (default: 1000)"
    )
