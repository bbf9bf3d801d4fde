"""The packs that benchmarks of Vulkan devices run: one source, built for each form in which kernels get their arguments."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import gristmill


def built(folder: Path, name: str, source: str, forms: Mapping[str, str]) -> dict[str, Path]:
    """The packs by the form, whose target is given as ``kernels.toml`` has it; built unless they are in the folder."""
    found = {form: folder / f"{name}_{form}.kpack" for form in forms}
    if not all(path.exists() for path in found.values()):
        (folder / f"{name}.py").write_text(source)
        lines = ["schema = 1", "[project]", f'name = "{name}"', "[targets]"]
        lines += [f"{form} = {target}" for form, target in forms.items()]
        for form in forms:
            lines += ["[[module]]", f'name = "{form}"', f'source = "{name}.py"', f'targets = ["{form}"]']
        (folder / "kernels.toml").write_text("\n".join(lines) + "\n")
        gristmill.build(folder / "kernels.toml")
        for form, path in found.items():
            path.write_bytes((folder / f"build/kernels/{form}.kpack").read_bytes())
    return found
