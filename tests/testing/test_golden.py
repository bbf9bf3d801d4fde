"""Golden files: what is compared, what a failure shows, how files are renewed, and the fixture that tests use."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gristmill.testing.golden import GoldenFiles

COMPARING = GoldenFiles(False, "pytest test_x.py --renew-golden")
RENEWING = GoldenFiles(True, "")


def test_renewed_files_agree_to_the_byte(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "a.txt"
    for text in ("one\r\ntwo\n", "über\n", ""):
        RENEWING.check(file, text)
        COMPARING.check(file, text)
        for other in (text + "\n", text + " "):
            with pytest.raises(AssertionError):
                COMPARING.check(file, other)
    RENEWING.check(file, "one\r\n")
    with pytest.raises(AssertionError):
        COMPARING.check(file, "one\n")


def test_a_failure_shows_the_difference_and_what_to_type(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    RENEWING.check(file, "first\nsecond\nthird\n")
    with pytest.raises(AssertionError) as caught:
        COMPARING.check(file, "first\n2nd\nthird\n")
    lines = str(caught.value).splitlines()
    assert [line for line in lines if line[:1] in "+-" and line[:3] not in ("+++", "---")] == ["-second", "+2nd"]
    assert lines[1:3] == [f"--- {file} (golden)", f"+++ {file} (made now)"]
    assert lines[-1] == "read the difference; if it is right, renew with: pytest test_x.py --renew-golden"


def test_a_difference_at_the_ends_of_lines_is_shown(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    RENEWING.check(file, "first\n")
    with pytest.raises(AssertionError, match="no newline at the end"):
        COMPARING.check(file, "first")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="there is no golden file"):
        COMPARING.check(tmp_path / "a.txt", "")


def test_folders_have_the_files_that_tests_make_and_no_others(tmp_path: Path) -> None:
    folder = tmp_path / "texts"
    with pytest.raises(AssertionError, match=r"lacks a\.txt, and has nothing"):
        COMPARING.check_folder(folder, {"a.txt"})
    RENEWING.check(folder / "a.txt", "a")
    RENEWING.check(folder / "old.txt", "old")
    with pytest.raises(AssertionError, match=r"lacks nothing, and has old\.txt"):
        COMPARING.check_folder(folder, {"a.txt"})
    RENEWING.check_folder(folder, {"a.txt"})
    COMPARING.check_folder(folder, {"a.txt"})
    assert [path.name for path in folder.iterdir()] == ["a.txt"]


def test_the_fixture_in_a_project(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["gristmill.testing.golden_fixture"]\n')
    (tmp_path / "test_text.py").write_text(
        "from pathlib import Path\n"
        "def test_text(golden):\n"
        '    golden.check(Path(__file__).parent / "text.txt", "made\\n")\n'
    )

    def run(*options: str) -> subprocess.CompletedProcess[str]:
        words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
        return subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)

    refused = run()
    assert refused.returncode == 1
    assert "renew with: pytest test_text.py --renew-golden" in refused.stdout
    assert run("--renew-golden").returncode == 0
    assert (tmp_path / "text.txt").read_text() == "made\n"
