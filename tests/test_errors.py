"""How diagnostics are laid out where the user's text is unusual."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gristmill.errors import Diagnostic, Place


def shown(line: str, start: int, end: int) -> list[str]:
    """The lines of a diagnostic that points at ``line[start:end]``, the only line of its file."""
    place = Place("file", 1, start + 1, 1, end + 1)
    return Diagnostic("GM0101", "wrong", place, label="here").render({"file": line}).split("\n")


@pytest.mark.parametrize("start", [0, 70, 90, 5_000, 99_838, 99_841, 99_998])
def test_very_long_lines_are_cut_around_the_place(start: int) -> None:
    line = "-" * start + "XY" + "-" * (100_000 - start - 2)
    *_, source, caret = shown(line, start, start + 2)
    assert len(source) < 260
    at = source.index("XY")
    assert caret[at : at + 2] == "^^"
    assert caret.strip(" |") == "^^ here"
    assert source.endswith("...") == (start + 160 < 100_000)


def test_long_ranges_end_where_the_line_is_cut() -> None:
    *_, source, caret = shown("x" * 100_000, 10, 100_000)
    assert len(source) < 260
    assert len(caret) < 260
    assert caret.count("^") == 160


def test_lines_of_usual_length_are_whole() -> None:
    line = "a" * 230 + "XY"
    *_, source, caret = shown(line, 230, 232)
    assert source == f"1 | {line}"
    assert caret == f"  | {' ' * 230}^^ here"


def test_files_below_the_current_folder_are_named_from_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    inside, outside = str(tmp_path / "kernels" / "blur.py"), str(tmp_path.parent / f"{tmp_path.name}2" / "blur.py")
    for file, named in [
        (inside, os.path.join("kernels", "blur.py")),
        (outside, outside),
        ("kernels.toml", "kernels.toml"),
    ]:
        diagnostic = Diagnostic("GM0101", "wrong", Place(file, 3, 5, 3, 6))
        assert diagnostic.render().split("\n")[1] == f" --> {named}:3:5"
        assert diagnostic.as_json()["place"]["file"] == file
