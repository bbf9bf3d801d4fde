"""A plugin of pytest: the fixture ``golden`` and the option ``--renew-golden``.

A project's conftest.py takes it with ``pytest_plugins = ["gristmill.testing.golden_fixture"]``.
"""

from __future__ import annotations

import pytest

from gristmill.testing.golden import OPTION, GoldenFiles


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(OPTION, action="store_true", help="write golden files anew instead of comparing with them")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> GoldenFiles:
    """Compares texts with golden files, or renews these if the option says so."""
    file = request.node.nodeid.partition("::")[0]
    return GoldenFiles(bool(request.config.getoption(OPTION)), f"pytest {file} {OPTION}")
