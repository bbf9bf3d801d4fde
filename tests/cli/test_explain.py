"""``gristmill explain``: pages, the list of codes, and codes that are not there."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from gristmill.cli import main
from gristmill.cli.explain import MANUAL

Capture = pytest.CaptureFixture[str]


@pytest.mark.parametrize("word", ["GM0102", "gm0102", "102", "gm102"])
def test_page(word: str, capsys: Capture) -> None:
    assert main(["explain", word]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("# GM0102: a key is not known\n")
    assert "## Wrong" in shown
    assert main(["explain", word, "--json"]) == 0
    page = json.loads(capsys.readouterr().out)
    assert (page["schema"], page["code"], page["title"]) == (1, "GM0102", "a key is not known")
    assert page["text"].rstrip() == shown.rstrip()


def test_list(capsys: Capture) -> None:
    assert main(["explain"]) == 0
    assert "GM0102  a key is not known\n" in capsys.readouterr().out
    assert main(["explain", "--json"]) == 0
    codes = json.loads(capsys.readouterr().out)["codes"]
    assert {"code": "GM0102", "title": "a key is not known"} in codes


def test_page_of_the_manual(capsys: Capture) -> None:
    assert main(["explain", "language"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("# The kernel language\n")
    assert main(["explain", "Language", "--json"]) == 0
    page = json.loads(capsys.readouterr().out)
    assert (page["page"], page["title"]) == ("language", "The kernel language")
    assert page["text"].rstrip() == shown.rstrip()
    assert main(["explain", "langage"]) == 1
    assert "did you mean `language`?" in capsys.readouterr().err
    assert main(["explain", "--json"]) == 0
    pages = [entry["page"] for entry in json.loads(capsys.readouterr().out)["pages"]]
    assert pages == list(MANUAL)


def test_a_wheel_carries_the_manual() -> None:
    root = Path(__file__).parents[2]
    build = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"]
    carried = build["targets"]["wheel"]["force-include"]
    assert {f"docs/{name}.md": f"gristmill/docs/{name}.md" for name in MANUAL}.items() <= carried.items()
    assert all((root / "docs" / f"{name}.md").is_file() for name in MANUAL)


@pytest.mark.parametrize("word", ["GM9999", "../../errors", "", "GM01020"])
def test_no_such_code(word: str, capsys: Capture) -> None:
    assert main(["explain", word]) == 1
    shown = capsys.readouterr().err
    assert "error[GM0002]" in shown
    assert "`gristmill explain` lists the codes and pages" in shown
