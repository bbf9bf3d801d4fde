"""Standard streams that are closed, full, gone, or of an encoding that lacks characters: none of it looks like a fault."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

COMMANDS = (["--version"], ["--help"], ["explain"], ["explain", "--json"], ["check", "--help"], ["plugins"])


def run(words: list[str], shell: str = "", **environment: str) -> subprocess.CompletedProcess[bytes]:
    """Run a command; ``shell`` redirects its streams."""
    script = f'exec "$0" -m gristmill "$@" {shell}'
    return subprocess.run(
        ["sh", "-c", script, sys.executable, *words],
        env={**os.environ, **environment},
        capture_output=True,
        check=False,
        timeout=60,
    )


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system has no /dev/full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_full_output(words: list[str], unbuffered: str) -> None:
    done = run(words, ">/dev/full", PYTHONUNBUFFERED=unbuffered)
    assert done.returncode == 3
    assert done.stderr.decode() == "error[GM0011]: standard output can't be written: No space left on device\n"


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_output_that_nobody_reads(words: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "gristmill", *words], stdout=writing, stderr=subprocess.PIPE, check=False
        )
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_closed_output(words: list[str]) -> None:
    done = run(words, ">&-")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.parametrize("shell", ["2>&-", "2>/dev/full", ">&- 2>&-", "<&- >&- 2>&-"])
def test_errors_that_cannot_be_shown_do_not_become_output(shell: str) -> None:
    done = run(["explain", "GM9999"], shell)
    assert (done.returncode, done.stdout, done.stderr) == (1, b"", b"")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_names_that_the_encoding_lacks(encoding: str, tmp_path: Path) -> None:
    folder = tmp_path / "ünï 日本"
    done = run(["init", str(folder), "--name", "project"], PYTHONIOENCODING=encoding)
    assert (done.returncode, done.stderr) == (0, b"")
    assert str(folder).encode(encoding, "backslashreplace") in done.stdout
    done = run(["init", str(folder), "--name", "project", "--force", "--json"], PYTHONIOENCODING=encoding)
    assert done.returncode == 0
    assert json.loads(done.stdout)["written"][0] == str(folder / "kernels.toml")


def test_names_that_are_no_text(tmp_path: Path) -> None:
    folder = os.fsdecode(os.fsencode(tmp_path) + b"/n\xff")
    done = run(["check", folder, "--json"])
    assert done.returncode == 1
    assert folder in json.loads(done.stdout)["diagnostics"][0]["message"]
    done = run(["init", folder, "--name", "project"])
    assert done.returncode == 0
    assert b"n\\udcff" in done.stdout
