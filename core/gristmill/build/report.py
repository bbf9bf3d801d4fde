"""What a build did: the packs that it wrote, the code in them, the time it took."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class PartReport:
    """The code of one module for one target. Sizes in bytes, times in milliseconds."""

    target: str
    """The target's name in the manifest."""
    identity: str
    """The resolved target string, as ``cpu:x86-64-v3``."""
    kind: str
    """The kind of the blob, as ``elf-shared``."""
    functions: tuple[str, ...]
    size: int
    milliseconds: float
    notes: tuple[str, ...] = ()
    """What of the code there is not, and why: host parts of device code, for one."""


@dataclass(frozen=True, slots=True)
class PackReport:
    """One pack; ``size`` is the file's, in bytes; ``changed`` is whether the file had to be written."""

    module: str
    path: Path
    size: int
    changed: bool
    milliseconds: float
    parts: tuple[PartReport, ...]


@dataclass(frozen=True, slots=True)
class BuildReport:
    """All that a build wrote, in the order of the manifest."""

    manifest: Path
    packs: tuple[PackReport, ...]
    milliseconds: float

    def pack(self, module: str) -> PackReport:
        """The pack of the module of that name. Raises KeyError where it was not built."""
        for pack in self.packs:
            if pack.module == module:
                return pack
        raise KeyError(module)

    def as_json(self) -> dict[str, Any]:
        """A JSON object with the same content."""
        return {
            "manifest": str(self.manifest),
            "milliseconds": round(self.milliseconds, 3),
            "packs": [_pack_json(pack) for pack in self.packs],
        }


def _pack_json(pack: PackReport) -> dict[str, Any]:
    return {
        "module": pack.module,
        "path": str(pack.path),
        "size": pack.size,
        "changed": pack.changed,
        "milliseconds": round(pack.milliseconds, 3),
        "parts": [
            {
                "target": part.target,
                "identity": part.identity,
                "kind": part.kind,
                "functions": list(part.functions),
                "size": part.size,
                "milliseconds": round(part.milliseconds, 3),
                **({"notes": list(part.notes)} if part.notes else {}),
            }
            for part in pack.parts
        ],
    }
