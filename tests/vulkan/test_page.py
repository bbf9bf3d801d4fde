"""docs/vulkan.md: what it shows is built and run, its tables are complete, the codes that it names are there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gristmill import knobs
from gristmill.plugin.target_data import target_table

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "vulkan.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


def test_its_project(tmp_path: Path) -> None:
    (manifest,) = [text for language, text in BLOCKS if language == "toml"]
    kernel, use = [text for language, text in BLOCKS if language == "python"]
    (name,) = re.findall(r"^# (kernels/\w+\.py)$", kernel, re.MULTILINE)
    (tmp_path / "kernels").mkdir()
    (tmp_path / name).write_text(kernel)
    (tmp_path / "kernels.toml").write_text(manifest)
    for words in (["-m", "gristmill", "build"], ["-c", use]):
        done = subprocess.run([sys.executable, *words], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("[1. 3. 5.]\n")


def test_its_tables() -> None:
    table = target_table("vulkan")
    keys = {key for row in re.findall(r"^\| (`[^|]*) \|", PAGE, re.MULTILINE) for key in re.findall(r"`(\w+)`", row)}
    assert set(table["features"]) <= keys
    assert {"version", "max_push_constants_size", "from_device"} <= keys
    for form in ("push", "uniform", "address", "address_block"):
        assert re.search(rf"^\| `{form}` \|", PAGE, re.MULTILINE)
    for knob in (knob for knob in knobs.ALL if "VULKAN" in knob.name):
        assert f"`{knob.name}`" in PAGE
    for feature in table["default_features"]:
        assert re.search(rf"^\| [^|]*`{feature}`[^|]* \| on \|", PAGE, re.MULTILINE), feature
    assert f"| `max_push_constants_size` | {table['limits']['max_push_constants_size']} |" in PAGE


@pytest.mark.parametrize("code", sorted(set(re.findall(r"GM\d{4}", PAGE))))
def test_codes(code: str) -> None:
    assert os.path.exists(ROOT / "core" / "gristmill" / "explain" / f"{code}.md")
