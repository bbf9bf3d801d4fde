"""ELF files without a linker: read relocatable objects, link them to a shared object, check a shared object.

A leaf: imports nothing of Gristmill but ``errors``. What only builds need is imported when it is first asked for: most
processes check an object or two, and link none.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gristmill.objfile.constants import EM_AARCH64, EM_AMDGPU, EM_X86_64, machine_name
from gristmill.objfile.summary import ElfSummary, SegmentSummary, check_shared, describe

if TYPE_CHECKING:
    from gristmill.objfile.link import link_shared
    from gristmill.objfile.reader import ObjectFile, read_object

__all__ = [
    "EM_AARCH64",
    "EM_AMDGPU",
    "EM_X86_64",
    "ElfSummary",
    "ObjectFile",
    "SegmentSummary",
    "check_shared",
    "describe",
    "link_shared",
    "machine_name",
    "read_object",
]
_OF_BUILDS = {
    "ObjectFile": "gristmill.objfile.reader",
    "link_shared": "gristmill.objfile.link",
    "read_object": "gristmill.objfile.reader",
}


def __getattr__(name: str) -> Any:
    """Import a name of builds when it is first asked for (PEP 562)."""
    home = _OF_BUILDS.get(name)
    if home is None:
        raise AttributeError(f"module 'gristmill.objfile' has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(home), name)
    return found
