"""The environment variables: defaults, how each is read, what a malformed one is told."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from gristmill import knobs
from gristmill.errors import UserError


def test_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    for knob in knobs.ALL:
        monkeypatch.delenv(knob.name, raising=False)
        assert knob.value() == knob.default
        monkeypatch.setenv(knob.name, "  ")
        assert knob.value() == knob.default
        assert knob.meaning.endswith(".")


def test_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRISTMILL_TRACEBACK", "yes")
    monkeypatch.setenv("GRISTMILL_DISABLE_PLUGINS", "cpu, acme-passes|other")
    monkeypatch.setenv("GRISTMILL_NUM_THREADS", "12")
    monkeypatch.setenv("GRISTMILL_DUMP", "~/dumps")
    assert knobs.TRACEBACK.value() is True
    assert knobs.DISABLED_PLUGINS.value() == ("cpu", "acme-passes", "other")
    assert knobs.THREADS.value() == 12
    assert knobs.DUMP_FOLDER.value() == str(Path.home() / "dumps")
    monkeypatch.setenv("GRISTMILL_TRACEBACK", "0")
    assert knobs.TRACEBACK.value() is False


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("GRISTMILL_TRACEBACK", "maybe", "not 1 or 0"),
        ("GRISTMILL_NUM_THREADS", "many", "not a number from 1 to 1024"),
        ("GRISTMILL_NUM_THREADS", "0", "not a number from 1 to 1024"),
        ("GRISTMILL_NUM_THREADS", "9" * 5000, "not a number from 1 to 1024"),
        ("GRISTMILL_NUM_THREADS", "\u00b2", "not a number from 1 to 1024"),
    ],
)
def test_malformed_values(monkeypatch: pytest.MonkeyPatch, name: str, text: str, expected: str) -> None:
    monkeypatch.setenv(name, text)
    (knob,) = [knob for knob in knobs.ALL if knob.name == name]
    with pytest.raises(UserError) as caught:
        knob.value()
    assert caught.value.code == "GM0003"
    assert expected in caught.value.diagnostics[0].message
    assert name in caught.value.diagnostics[0].message


def test_cache_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GRISTMILL_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    assert knobs.cache_folder() == "/caches/gristmill"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert knobs.cache_folder() == str(Path.home() / ".cache" / "gristmill")
    monkeypatch.setenv("GRISTMILL_CACHE_DIR", "/elsewhere")
    assert knobs.cache_folder() == "/elsewhere"


def test_no_other_file_reads_the_environment() -> None:
    core = Path(knobs.__file__).parent
    readers = []
    for path in core.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and node.attr in {"environ", "getenv", "environb"}:
                readers.append(path.relative_to(core).as_posix())
    assert set(readers) <= {"knobs.py", "errors.py"}
