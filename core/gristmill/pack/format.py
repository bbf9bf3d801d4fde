"""What a pack says of itself: the manifest as data, its three version numbers, and the numbers of the container.

A pack (``NAME.kpack``) is a ZIP file of a strict profile: ``manifest.json`` first, at offset 0; then every member in the
order of its name; all stored, not compressed; each member's bytes aligned by an extra field; all dates 1980-01-01, all
modes 0644; then the central directory, with nothing before, between or after. So every ZIP tool reads it, and the
loader reads only the manifest, and of the members those that are asked for. No ZIP64: a pack has less than 4 GiB and
65,535 members.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

Scalar = str | int | float | bool
Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]

CONTAINER_SCHEMA: Final = 1
"""Version of the container and of the manifest's shape; another number is refused."""
HOST_ABI_VERSION: Final = 1
"""Newest version of the packed host interface that this reader knows; packs of a greater one are refused."""
KERNEL_RECORD_VERSION: Final = 1
"""Newest version of the kernel records that this reader knows; packs of a greater one are refused."""
READER_VERSION: Final = 1
"""What ``min_reader`` is compared with: additions that old readers may ignore do not raise it."""
KNOWN_REQUIREMENTS: Final[frozenset[str]] = frozenset()
"""Names that a manifest may list under ``requires``: what a reader must understand to read the pack rightly."""

MANIFEST_NAME: Final = "manifest.json"
SUFFIX: Final = ".kpack"
"""What the name of a pack's file ends in."""
ALIGNMENT: Final = 64
"""Every member's bytes begin at a multiple of this."""
PAGE_ALIGNMENT: Final = 4096
"""The same for code that is mapped or uploaded by pages."""
PAGE_ALIGNED_KINDS: Final = frozenset({"elf-shared", "hsaco"})

LARGEST_MANIFEST: Final = 16 * 2**20
MOST_MEMBERS: Final = 65_534
MOST_FUNCTIONS: Final = 65_536
LARGEST_PACK: Final = 2**32 - 2
LONGEST_NAME: Final = 255


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a public function, for people and for tools; the compiled code does the checking."""

    name: str
    kind: str
    """``buffer`` or ``scalar``."""
    dtype: str
    shape: tuple[str, ...] = ()
    """One expression a dimension, as written: ``("n", "4", "m + 1")``."""
    written: bool = False


@dataclass(frozen=True, slots=True)
class Function:
    """One public function: its name, its signature as text, its parameters as data."""

    name: str
    signature: str
    parameters: tuple[Parameter, ...] = ()
    summary: str = ""


@dataclass(frozen=True, slots=True)
class Member:
    """One member of the container: code for a target, or a text for people.

    ``kind`` says what the bytes are: ``elf-shared``, ``hsaco``, ``spirv``; ``ir-text``, ``llvm-ir``, ``assembly``.
    ``host`` is the triple of host code. ``requirements`` is what the runtime checks before loading, ``kernels`` the
    kernel records, which this package passes on unread. ``offset``, ``size`` and ``sha256`` are filled by the writer.
    """

    name: str
    kind: str
    target: str = ""
    host: str = ""
    entry_points: tuple[str, ...] = ()
    requirements: Mapping[str, Scalar] = field(default_factory=dict)
    kernels: tuple[Mapping[str, Json], ...] = ()
    offset: int = 0
    size: int = 0
    sha256: str = ""

    @property
    def alignment(self) -> int:
        return PAGE_ALIGNMENT if self.kind in PAGE_ALIGNED_KINDS else ALIGNMENT


@dataclass(frozen=True, slots=True)
class Versions:
    """The three version numbers of a pack; they change independently."""

    container: int = CONTAINER_SCHEMA
    host_abi: int = HOST_ABI_VERSION
    kernel_record: int = KERNEL_RECORD_VERSION


@dataclass(frozen=True, slots=True)
class Manifest:
    """All that a pack says of itself. ``blobs`` are for machines, ``texts`` for people; both sorted by name."""

    project: str
    module: str
    functions: tuple[Function, ...] = ()
    blobs: tuple[Member, ...] = ()
    texts: tuple[Member, ...] = ()
    provenance: Mapping[str, Scalar] = field(default_factory=dict)
    """What made the pack: versions of tools, digests of sources. No times, hosts or paths, or packs would differ."""
    versions: Versions = Versions()
    requires: tuple[str, ...] = ()
    min_reader: int = 1

    @property
    def members(self) -> tuple[Member, ...]:
        """Blobs and texts together, in the order in which they lie in the file."""
        return tuple(sorted((*self.blobs, *self.texts), key=lambda member: member.name))
