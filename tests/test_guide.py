"""docs/guide.md: its kernels are read and give the mistakes that they are marked with, its commands and Python are run."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from gristmill.errors import UserError
from gristmill.script import parse_source

PAGE = (Path(__file__).parent.parent / "docs" / "guide.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
FILES = {text.partition("\n")[0].removeprefix("# "): text for _, text in BLOCKS if text.startswith("# kernels/")}
MARK = re.compile(r"# (GM\d{4})$")


def run(words: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False, timeout=120)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (manifest,) = [text for language, text in BLOCKS if language == "toml"]
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels.toml").write_text(manifest)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize("name", FILES)
def test_kernels(name: str) -> None:
    lines = FILES[name].splitlines()
    expected = [(match[1], number) for number, line in enumerate(lines, 1) if (match := MARK.search(line))]
    found = []
    try:
        parse_source(FILES[name], name)
    except UserError as error:
        found = [(each.code, each.place.line) for each in error.diagnostics if each.place is not None]
    assert found == expected


def test_commands_and_python(project: Path) -> None:
    command = [sys.executable, "-m", "gristmill"]
    for language, text in BLOCKS:
        if language == "sh":
            for line in text.splitlines():
                done = run([*command, *line.removeprefix("gristmill ").split()], project)
                assert done.returncode == 0, done.stderr
    for word in ("check", "build"):
        done = run([*command, word], project)
        assert done.returncode == 0, done.stderr
    script = "".join(text for language, text in BLOCKS if language == "python" and text not in FILES.values())
    done = run([sys.executable, "-c", script], project)
    assert done.returncode == 0, done.stderr
    assert "there is no greatest of none" in done.stdout


def test_the_executor_shows_the_index_that_is_beyond(project: Path) -> None:
    (words,) = re.findall(r"`gristmill (run kernels/beyond\.py [^`]*)`", PAGE)
    done = run([sys.executable, "-m", "gristmill", *words.split()], project)
    assert done.returncode == 1
    assert "x[i] = x[i + 1]" in done.stderr
    assert "8" in done.stderr
