"""Shards of seeds, so that several processes share the random programs of a test."""

from __future__ import annotations

import pytest

SHARD = 50


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give a test with the argument ``seeds`` the seeds of --programs programs, some at a time."""
    if "seeds" in metafunc.fixturenames:
        count = metafunc.config.getoption("programs")
        shards = [range(first, min(first + SHARD, count)) for first in range(0, count, SHARD)]
        metafunc.parametrize("seeds", shards, ids=lambda seeds: f"{seeds.start}-{seeds.stop - 1}")
