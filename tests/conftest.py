"""Options of the whole suite."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--programs", type=int, default=1000, metavar="N", help="how many random programs to compare (default: 1000)"
    )
