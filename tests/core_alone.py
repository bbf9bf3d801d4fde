"""Runs core's own tests in a process where our plugins cannot be imported: core knows none of them.

python tests/core_alone.py [options of pytest]
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent.parent
PLUGIN_PACKAGES = {path.parent.name for path in ROOT.glob("plugins/*/__init__.py")}
FOLDERS = (
    "arith",
    "codegen",
    "interp",
    "ir",
    "mathlib",
    "objfile",
    "pack",
    "passes",
    "plugin",
    "runtime",
    "schedule",
    "script",
    "testing",
)


class Refusal:
    """A finder that refuses the plugin packages as if they were not installed."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name.partition(".")[0] in PLUGIN_PACKAGES:
            raise ModuleNotFoundError(f"core's tests run without {name}", name=name)
        return None


def find_spec_or_none(name: str) -> ModuleSpec | None:
    try:
        return importlib.util.find_spec(name)
    except ModuleNotFoundError:
        return None


def main(options: list[str]) -> int:
    """The status of pytest. All tests must run in this process, for another one would find the plugins."""
    sys.meta_path.insert(0, Refusal())
    for name in PLUGIN_PACKAGES:
        if find_spec_or_none(name):
            raise RuntimeError(f"{name} can be imported")
    return int(pytest.main(["-p", "no:xdist", *(str(ROOT / "tests" / folder) for folder in FOLDERS), *options]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
