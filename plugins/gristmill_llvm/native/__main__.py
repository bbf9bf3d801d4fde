"""``python -m gristmill_llvm.native FOLDER``: write all support objects, as ``FOLDER/MACHINE/NAME.so``."""

from __future__ import annotations

import sys
from pathlib import Path

from gristmill_llvm.native.objects import MACHINES, WRITERS, build_support


def main(folder: Path) -> None:
    """Write every object for every machine."""
    for machine in MACHINES:
        (folder / machine).mkdir(parents=True, exist_ok=True)
        for name in sorted(WRITERS):
            (folder / machine / f"{name}.so").write_bytes(build_support(name, machine))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
