"""ELF files without a linker: read relocatable objects, link them to a shared object, check a shared object.

A leaf: imports nothing of Gristmill but ``errors``.
"""

from gristmill.objfile.constants import EM_AARCH64, EM_AMDGPU, EM_X86_64, machine_name
from gristmill.objfile.link import link_shared
from gristmill.objfile.reader import ObjectFile, read_object
from gristmill.objfile.summary import ElfSummary, SegmentSummary, check_shared, describe

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
