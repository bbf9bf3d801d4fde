"""The budget of an environment: a command that keeps it, one that does not, and one that will not be interrupted."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest

HERE = Path(__file__).parent


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def time_limit() -> ModuleType:
    return load(HERE / "time_limit.py")


@pytest.mark.parametrize("status", [0, 3])
def test_status_of_the_command(status: int, time_limit: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert time_limit.run_limited([sys.executable, "-c", f"raise SystemExit({status})"], 60) == status
    assert "of 1 minutes" in capsys.readouterr().err


def test_command_over_its_budget_is_interrupted(time_limit: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    started = time.monotonic()
    assert time_limit.run_limited([sys.executable, "-c", "import time; time.sleep(60)"], 0.5) == 124
    assert time.monotonic() - started < 30
    assert "the budget of this command" in capsys.readouterr().err


def test_command_that_ignores_interruption_is_killed(time_limit: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_limit, "SECONDS_TO_FINISH", 0.2)
    stubborn = "import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN); time.sleep(60)"
    started = time.monotonic()
    assert time_limit.run_limited([sys.executable, "-c", stubborn], 1.0) == 124
    assert time.monotonic() - started < 30


def test_count_of_reports(tmp_path: Path) -> None:
    (tmp_path / "one.xml").write_text(
        '<testsuites><testsuite tests="10" failures="1" errors="1" skipped="2"/></testsuites>'
    )
    (tmp_path / "two.xml").write_text(
        '<testsuites><testsuite tests="5" failures="0" errors="0" skipped="0"/></testsuites>'
    )
    script = HERE.parent / ".ci" / "count.py"

    def printed(folder: Path, status: int) -> str:
        words = [sys.executable, str(script), str(folder), str(status)]
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout

    assert printed(tmp_path, 1) == "11 passed, 2 failed\n"
    (tmp_path / "one.xml").unlink()
    assert printed(tmp_path, 0) == "5 passed, 0 failed\n"
    assert printed(tmp_path, 1) == "5 passed, 1 failed\n"
    assert printed(tmp_path / "absent", 1) == "0 passed, 1 failed\n"
