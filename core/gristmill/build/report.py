"""What a build did: the packs that it wrote, the code in them, the time it took."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from gristmill.errors import Diagnostic


@dataclass(frozen=True, slots=True)
class CodeReport:
    """The code of one module for one target. Sizes in bytes, times in milliseconds."""

    target: str
    """The target's name in the manifest."""
    identity: str
    """The resolved target string, as ``cpu:x86-64-v3``."""
    kind: str
    """The kind of the blob, as ``elf-shared``."""
    size: int
    milliseconds: float
    functions: tuple[str, ...]
    cached: bool = False


@dataclass(frozen=True, slots=True)
class PackReport:
    """One pack; ``size`` is the file's, in bytes; ``changed`` is whether the file had to be written."""

    module: str
    path: str
    size: int
    milliseconds: float
    code: tuple[CodeReport, ...]
    changed: bool = True


@dataclass(frozen=True, slots=True)
class BuildReport:
    """All that a build wrote. ``warnings`` did not stop it; ``sources`` are the texts that they point into."""

    manifest: str
    packs: tuple[PackReport, ...]
    milliseconds: float
    warnings: tuple[Diagnostic, ...] = ()
    sources: dict[str, str] = field(default_factory=dict, repr=False)

    def as_json(self) -> dict[str, Any]:
        """A JSON object with the same content."""
        return {
            "manifest": self.manifest,
            "milliseconds": round(self.milliseconds, 3),
            "packs": [_pack_json(pack) for pack in self.packs],
            "warnings": [warning.as_json() for warning in self.warnings],
        }


def _pack_json(pack: PackReport) -> dict[str, Any]:
    return {
        "module": pack.module,
        "path": pack.path,
        "size": pack.size,
        "milliseconds": round(pack.milliseconds, 3),
        "changed": pack.changed,
        "code": [
            {
                "target": code.target,
                "identity": code.identity,
                "kind": code.kind,
                "size": code.size,
                "milliseconds": round(code.milliseconds, 3),
                "functions": list(code.functions),
                "cached": code.cached,
            }
            for code in pack.code
        ],
    }
