"""The plugin: the CPU target kind, its code generator, and native support code. Importing it imports none of their parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gristmill.plugin.hookspecs import hookimpl
from gristmill.plugin.protocols import NativeSupport, TargetKind

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


@hookimpl
def gristmill_native_support() -> Sequence[NativeSupport]:
    """The objects of :mod:`gristmill_llvm.native`."""
    from functools import partial

    from gristmill_llvm.native import objects

    return [
        NativeSupport(name, objects.MACHINES, partial(objects.identity, name), partial(objects.build_support, name))
        for name in sorted(objects.WRITERS)
    ]
