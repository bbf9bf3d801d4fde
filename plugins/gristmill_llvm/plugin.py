"""The plugin: the CPU target kind and its code generator. Importing it imports neither llvmlite nor the generator's parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gristmill.plugin.hookspecs import hookimpl
from gristmill.plugin.protocols import TargetKind

GRISTMILL_API_VERSION = 1


@hookimpl
def gristmill_targets() -> Sequence[TargetKind]:
    """The target kind ``cpu``."""
    from gristmill_llvm.cpu import CPU

    return [CPU]


@hookimpl
def gristmill_code_generators() -> Sequence[type[Any]]:
    """The generator ``llvm``."""
    from gristmill_llvm.generator import LLVMGenerator

    return [LLVMGenerator]
