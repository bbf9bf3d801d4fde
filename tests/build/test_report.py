"""What a build reports: finding a pack, and the JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gristmill.build.report import BuildReport, PackReport, PartReport

PART = PartReport("cpu", "cpu:x86-64-v3", "elf-shared", ("f", "g"), 3000, 12.34567)
PACK = PackReport("blur", Path("out/blur.kpack"), 5000, True, 12.34567, (PART,))
REPORT = BuildReport(Path("kernels.toml"), (PACK,), 20.5)


def test_pack_by_module() -> None:
    assert REPORT.pack("blur") is PACK
    with pytest.raises(KeyError, match="sobel"):
        REPORT.pack("sobel")


def test_json() -> None:
    assert json.loads(json.dumps(REPORT.as_json())) == {
        "manifest": "kernels.toml",
        "milliseconds": 20.5,
        "packs": [
            {
                "module": "blur",
                "path": "out/blur.kpack",
                "size": 5000,
                "changed": True,
                "milliseconds": 12.346,
                "parts": [
                    {
                        "target": "cpu",
                        "identity": "cpu:x86-64-v3",
                        "kind": "elf-shared",
                        "functions": ["f", "g"],
                        "size": 3000,
                        "milliseconds": 12.346,
                    }
                ],
            }
        ],
    }
