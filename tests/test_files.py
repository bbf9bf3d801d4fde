"""Files are written whole or not at all, whatever comes between."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gristmill.files import replace_file


def test_new_and_old_files(tmp_path: Path) -> None:
    path = tmp_path / "file"
    replace_file(str(path), b"before", follow_links=True)
    with path.open("rb") as old:
        replace_file(str(path), b"after", follow_links=True)
        assert old.read() == b"before"
    assert path.read_bytes() == b"after"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("kind", ["link", "lost link", "pipe"])
def test_what_stands_in_the_way_of_a_made_up_name_is_replaced(kind: str, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_bytes(b"other")
    path = tmp_path / "file"
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("other" if kind == "link" else "absent")
    replace_file(path, b"new", follow_links=False)
    assert path.read_bytes() == b"new"
    assert stat.S_ISREG(path.lstat().st_mode)
    assert other.read_bytes() == b"other"
    assert sorted(found.name for found in tmp_path.iterdir()) == ["file", "other"]


def test_modes_can_be_narrower(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        replace_file(tmp_path / "own", b"", follow_links=False, mode=0o600)
        replace_file(tmp_path / "everybody", b"", follow_links=False)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "own").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "everybody").stat().st_mode) == 0o644


def test_mode_is_what_the_umask_says(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        replace_file(str(tmp_path / "file"), b"", follow_links=True)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o600


@pytest.mark.parametrize("name", ["n" * 255, "ü" * 127])
def test_names_as_long_as_they_may_be(name: str, tmp_path: Path) -> None:
    replace_file(str(tmp_path / name), b"x", follow_links=True)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_links_are_followed(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "other").write_bytes(b"other")
    (tmp_path / "link").symlink_to("folder/other")
    (tmp_path / "new").symlink_to("folder/absent")
    replace_file(str(tmp_path / "link"), b"new", follow_links=True)
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "folder" / "other").read_bytes() == b"new"
    replace_file(str(tmp_path / "new"), b"first", follow_links=True)
    assert (tmp_path / "folder" / "absent").read_bytes() == b"first"
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["absent", "folder", "link", "new", "other"]


def test_pipes_are_written_into(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    (tmp_path / "link").symlink_to("pipe")
    for path in (pipe, tmp_path / "link"):
        reader = subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE)
        replace_file(str(path), b"through the pipe", follow_links=True)
        assert reader.communicate(timeout=60)[0] == b"through the pipe"
        assert stat.S_ISFIFO(pipe.stat().st_mode), "it is still a pipe"


def test_devices_are_written_into(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*arguments: object) -> None:
        raise AssertionError("a device must not be replaced")

    monkeypatch.setattr("os.replace", forbidden)
    replace_file("/dev/null", b"away", follow_links=True)
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


@pytest.mark.parametrize("failing", ["os.replace", "os.open"])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_failures_leave_nothing(
    failing: str, error: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"before")

    def fail(*arguments: object) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(f"gristmill.files.{failing}", fail)
        with pytest.raises(type(error)):
            replace_file(str(path), b"after", follow_links=True)
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]


def test_interrupted_writers_leave_whole_files(tmp_path: Path) -> None:
    path = tmp_path / "file"
    replace_file(str(path), b"a" * 1_000_000, follow_links=True)
    script = (
        "import sys, itertools, signal; from gristmill.files import replace_file\n"
        # Where the tests run in the background of a shell, processes begin with this signal ignored.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "print('ready', flush=True)\n"
        "for number in itertools.count(): replace_file(sys.argv[1], b'ab'[number % 2:][:1] * 1_000_000, follow_links=True)\n"
    )
    for pause in (0.001, 0.002, 0.003, 0.005, 0.007, 0.011):
        writer = subprocess.Popen(
            [sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        assert writer.stdout is not None
        writer.stdout.readline()
        time.sleep(pause)
        writer.send_signal(signal.SIGINT)
        writer.wait(60)
        writer.stdout.close()
        assert set(path.read_bytes()) in ({97}, {98})
        assert path.stat().st_size == 1_000_000
        assert list(tmp_path.iterdir()) == [path]
