"""``gristmill init``: a project that can be built, and nothing overwritten."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
import tomli

from gristmill.cli import main
from gristmill.cli.init import project_name


def test_writes_a_project(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "my project"
    assert main(["init", str(folder)]) == 0
    manifest = tomli.loads((folder / "kernels.toml").read_text())
    assert manifest["project"]["name"] == "my-project"
    source = folder / manifest["module"][0]["source"]
    compile(source.read_text(), str(source), "exec")
    assert sorted(path.name for path in folder.rglob("*") if path.is_file()) == ["kernels.toml", "scale.py"]
    assert "next: gristmill build" in capsys.readouterr().out


def test_refuses_to_overwrite(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "kernels.toml").write_text("mine")
    assert main(["init", str(tmp_path), "--json"]) == 1
    (diagnostic,) = json.loads(capsys.readouterr().out)["diagnostics"]
    assert diagnostic["code"] == "GM0004"
    assert str(tmp_path / "kernels.toml") in diagnostic["message"]
    assert (tmp_path / "kernels.toml").read_text() == "mine"
    assert not (tmp_path / "kernels").exists()
    assert main(["init", str(tmp_path), "--force", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["written"]) == 2
    assert (tmp_path / "kernels.toml").read_text() != "mine"


def test_refuses_a_wrong_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", str(tmp_path), "--name", "a/b"]) == 1
    assert "GM0005" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_says_where_it_cannot_write(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert main(["init", str(tmp_path / "file" / "inner")]) == 1
    assert "GM0006" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("folder", "name"), [("imagekit", "imagekit"), ("my project", "my-project"), ("3d", "project-3d"), ("", "project")]
)
def test_project_name(folder: str, name: str) -> None:
    assert project_name(folder) == name


@pytest.mark.parametrize("folder", ["sp ace", "qu'ote", "-dash", "new\nline"])
def test_the_next_command_can_be_pasted(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["init", "--", folder]) == 0
    pasted = capsys.readouterr().out.partition("next: gristmill build ")[2]
    shown = subprocess.run(["sh", "-c", f"printf %s {pasted}"], capture_output=True, text=True, check=True).stdout
    assert not shown.startswith("-")
    assert (tmp_path / shown).samefile(tmp_path / folder / "kernels.toml")


@pytest.mark.parametrize("folder", ["n" * 300, "/dev/null", "/dev/null/x"])
def test_folders_that_cannot_be(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", folder]) == 1
    assert "error[GM0006]: can't write" in capsys.readouterr().err


def test_empty_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", str(tmp_path), "--name", ""]) == 1
    assert "error[GM0005]" in capsys.readouterr().err
    assert not any(tmp_path.iterdir())
