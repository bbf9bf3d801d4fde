"""Shards of seeds, so that several processes share the random programs of a test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gristmill.plugin.registry import Registry

SHARD = 50
VULKAN_PROGRAMS = 300
"""Programs on Vulkan devices where --programs says 1,000."""
VULKAN_SHARD = 15
VULKAN_WAYS = 6


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give a test with the argument ``seeds`` the seeds of --programs programs, some at a time.

    One with the arguments ``way`` and ``way_seeds`` gets fewer, and each way of Vulkan seeds of its own.
    """
    count = metafunc.config.getoption("programs")
    if "seeds" in metafunc.fixturenames:
        shards = [range(first, min(first + SHARD, count)) for first in range(0, count, SHARD)]
        metafunc.parametrize("seeds", shards, ids=lambda seeds: f"{seeds.start}-{seeds.stop - 1}")
    if "way_seeds" in metafunc.fixturenames:
        count = -(-count * VULKAN_PROGRAMS // 1000)
        pairs = [
            (way, range(count)[way::VULKAN_WAYS][first : first + VULKAN_SHARD])
            for way in range(VULKAN_WAYS)
            for first in range(0, len(range(count)[way::VULKAN_WAYS]), VULKAN_SHARD)
        ]
        metafunc.parametrize("way, way_seeds", pairs, ids=[f"{way}-{seeds[0]}-{seeds[-1]}" for way, seeds in pairs])


@pytest.fixture(scope="session")
def validated(vulkan_validation: str) -> Iterator[Registry]:
    """The plugins, with Vulkan's validation layer switched on; what it says are warnings, which are errors here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRISTMILL_VULKAN_VALIDATION", vulkan_validation)
        registry = Registry.installed()
        assert registry.runtime("vulkan").probe().devices, registry.runtime("vulkan").probe().reason
        yield registry
