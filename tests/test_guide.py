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
NAMED = {
    match[1]: text for _, text in BLOCKS if (match := re.match(r"# ((?:threads/)?kernels(?:/\w+\.py|\.toml))\n", text))
}
FILES = {name: text for name, text in NAMED.items() if name.endswith(".py")}
MARK = re.compile(r"# (GM\d{4})$")


def run(words: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False, timeout=120)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (manifest,) = [text for language, text in BLOCKS if language == "toml" and text not in NAMED.values()]
    (tmp_path / "kernels.toml").write_text(manifest)
    for name, text in NAMED.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
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


def test_what_the_page_says_of_threads(project: Path) -> None:
    command = [sys.executable, "-m", "gristmill"]
    (words,) = re.findall(r"`gristmill (opt threads/[^`]*)`", PAGE)
    done = run([*command, *words.split()], project)
    assert done.returncode == 0, done.stderr
    kernel, _, _ = done.stdout.partition("function @mean<")
    assert kernel.count("barrier shared") == 1
    source, pack = re.findall(r"`gristmill (run threads/[^`]*)`", PAGE)
    done = run([*command, *source.split(), "reverse_runs", "random:8:float32", "4"], project)
    assert done.returncode == 1
    assert "GM0502" in done.stderr or "GM0504" in done.stderr
    done = run([*command, *source.split(), "mean", "random:8:float32", "zeros:1:float32"], project)
    assert "GM0522" in done.stderr
    assert run([*command, "build", "threads"], project).returncode == 0
    done = run([*command, *pack.split()], project)
    assert done.returncode == 0, done.stderr
