"""Hatch's build hook: puts native support code into the wheel as data, for every machine that there is some for.

An editable installation gets none: it makes what it needs at first use. The objects are made by the sources beside this
file, in a process of their own, which needs llvmlite and nothing else.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class NativeSupportHook(BuildHookInterface[Any]):
    """Makes ``gristmill/native/MACHINE/NAME.so``."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before the wheel is put together; ``version`` is ``standard`` or ``editable``."""
        if version == "editable":
            return
        self._folder = tempfile.TemporaryDirectory(prefix="gristmill-native-")
        folder = Path(self._folder.name)
        sources = [os.path.join(self.root, part) for part in ("core", "plugins")]
        environment = {
            **os.environ,
            # What was there before leads to the build requirements.
            "PYTHONPATH": os.pathsep.join((*sources, os.environ.get("PYTHONPATH", ""))).rstrip(os.pathsep),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        subprocess.run([sys.executable, "-m", "gristmill_llvm.native", str(folder)], env=environment, check=True)
        for path in sorted(folder.rglob("*.so")):
            build_data["force_include"][str(path)] = f"gristmill/native/{path.relative_to(folder).as_posix()}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Called when the wheel is written."""
        if version != "editable":
            self._folder.cleanup()
