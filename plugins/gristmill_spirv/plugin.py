"""The plugin: the target kind ``vulkan`` and its code generator. Importing it imports none of the generator's parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gristmill.plugin.hookspecs import hookimpl
from gristmill.plugin.protocols import TargetKind

GRISTMILL_API_VERSION = 1


@hookimpl
def gristmill_targets() -> Sequence[TargetKind]:
    """The target kind ``vulkan``."""
    from gristmill_spirv.target import target_kind

    return [target_kind()]


@hookimpl
def gristmill_code_generators() -> Sequence[type[Any]]:
    """The generator ``spirv``."""
    from gristmill_spirv.generator import SPIRVGenerator

    return [SPIRVGenerator]
