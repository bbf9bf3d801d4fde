"""Options of the whole suite, and the fixture that compares texts with golden files."""

from __future__ import annotations

import os

import pytest

pytest_plugins = ["gristmill.testing.golden_fixture"]


@pytest.fixture(scope="session")
def vulkan_validation() -> str:
    """What GRISTMILL_VULKAN_VALIDATION is set to where tests make Vulkan devices: their messages are errors.

    Where the validation layer cannot be had, GRISTMILL_TEST_VALIDATION=0 runs the tests without; else they fail there.
    """
    return "0" if os.environ.get("GRISTMILL_TEST_VALIDATION") == "0" else "1"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--programs", type=int, default=1000, metavar="N", help="how many random programs to compare (default: 1000)"
    )
    parser.addoption(
        "--vulkan-arguments",
        choices=("push", "sets", "uniform", "address", "address_block"),
        default="push",
        help="how arguments reach kernels in those tests of Vulkan devices that leave it open (default: push)",
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--vulkan-arguments") == "sets":
        # Also for processes that tests start.
        os.environ.setdefault("GRISTMILL_VULKAN_WITHOUT", "VK_KHR_push_descriptor")
