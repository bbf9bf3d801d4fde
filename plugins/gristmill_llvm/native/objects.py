"""The table of support objects, and making one: its IR compiled for the least processor of a machine, and linked."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

from gristmill_llvm.native import vulkan_launch
from gristmill_llvm.native.layout import LAYOUT_SYMBOL
from gristmill_llvm.profile import Profile

WRITERS: Mapping[str, Callable[[str], str]] = MappingProxyType({vulkan_launch.NAME: vulkan_launch.module_text})
"""Support objects by name: each writer gives the LLVM IR for a triple."""

EXPORTS: Mapping[str, tuple[str, ...]] = MappingProxyType({vulkan_launch.NAME: vulkan_launch.EXPORTS})
"""What each object exports, beside its layout."""

_TRIPLES = {"x86_64": "x86_64-unknown-linux-gnu"}
_LEAST_PROCESSOR = {"x86_64": "x86-64"}
_OPTIMIZATION = 2

MACHINES = tuple(_TRIPLES)
"""The machines that there are objects for, as ``uname -m`` names them. All are for Linux."""


def support_text(name: str, machine: str) -> str:
    """The LLVM IR of a support object. Raises KeyError for a name or a machine that there is none for."""
    return WRITERS[name](_TRIPLES[machine])


def build_support(name: str, machine: str) -> bytes:
    """The shared object; the same bytes each time. Raises KeyError as :func:`support_text`."""
    from gristmill.objfile import link_shared
    from gristmill_llvm.machine import compile_text

    profile = Profile(f"native support for {machine}", _TRIPLES[machine], _LEAST_PROCESSOR[machine], (), frozenset())
    compiled = compile_text(support_text(name, machine), profile, _OPTIMIZATION, assembly=False)
    exports = (*EXPORTS[name], LAYOUT_SYMBOL)
    return link_shared([compiled.object_file], exports=exports, allowed_imports=(), soname=f"{name}.so", names=[name])


def identity(name: str, machine: str) -> str:
    """What the bytes of an object depend on, as a digest: its IR, LLVM, and the code that compiles and links it."""
    from importlib.metadata import version

    import gristmill.objfile

    digest = hashlib.sha256()
    for text in (support_text(name, machine), machine, version("llvmlite")):
        digest.update(text.encode() + b"\0")
    # By its path: importing it would take longer than all the rest.
    sources = [Path(__file__), Path(__file__).parent.parent / "machine.py"]
    sources += Path(gristmill.objfile.__file__).parent.glob("*.py")
    for path in sorted(sources):
        digest.update(path.read_bytes() + b"\0")
    return digest.hexdigest()
