"""The plugin: the runtime ``vulkan``. Importing it loads nothing of Vulkan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gristmill.plugin.hookspecs import hookimpl

if TYPE_CHECKING:
    from gristmill.plugin.protocols import Runtime

GRISTMILL_API_VERSION = 1


@hookimpl
def gristmill_runtimes() -> Sequence[type[Runtime]]:
    """The runtime ``vulkan``."""
    from gristmill_vulkan.runtime import VulkanRuntime

    return [VulkanRuntime]
