"""Kernel packs: the container file, its manifest, a writer, a strict reader, a full check.

A leaf: imports nothing of Gristmill but ``errors``. Opening a pack needs no other package.
"""

from gristmill.pack.format import (
    CONTAINER_SCHEMA,
    HOST_ABI_VERSION,
    KERNEL_RECORD_VERSION,
    Function,
    Json,
    Manifest,
    Member,
    Parameter,
    Scalar,
    Versions,
)
from gristmill.pack.installed import find_pack
from gristmill.pack.reader import PackReader, open_pack
from gristmill.pack.verify import verify_pack
from gristmill.pack.writer import save, write_pack

__all__ = [
    "CONTAINER_SCHEMA",
    "HOST_ABI_VERSION",
    "KERNEL_RECORD_VERSION",
    "Function",
    "Json",
    "Manifest",
    "Member",
    "PackReader",
    "Parameter",
    "Scalar",
    "Versions",
    "find_pack",
    "open_pack",
    "save",
    "verify_pack",
    "write_pack",
]
