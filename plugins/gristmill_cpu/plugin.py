"""The plugin: the CPU runtime. Importing it opens nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gristmill.plugin.hookspecs import hookimpl

GRISTMILL_API_VERSION = 1


@hookimpl
def gristmill_runtimes() -> Sequence[type[Any]]:
    """The runtime ``cpu``."""
    from gristmill_cpu.runtime import CpuRuntime

    return [CpuRuntime]
