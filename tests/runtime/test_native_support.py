"""Native support code that is not there: the reason is kept, and nobody fails for it."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from gristmill.runtime.native_support import NoSupport, find_support


def reason(name: str = "acme_code", package: Path | None = None) -> str:
    found = find_support(name) if package is None else find_support(name, package)
    assert isinstance(found, NoSupport)
    return found.reason


def test_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRISTMILL_NATIVE", "0")
    assert reason() == "GRISTMILL_NATIVE switches it off"


def test_another_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(machine="s390x"))
    assert reason() == "there is none for linux on s390x"


def test_nobody_offers_it() -> None:
    assert "there is no native support 'acme_code'" in reason()


def test_a_damaged_file(tmp_path: Path) -> None:
    folder = tmp_path / "native" / os.uname().machine
    folder.mkdir(parents=True)
    (folder / "acme_code.so").write_bytes(b"\x7fELF and no more")
    assert "acme_code.so" in reason(package=tmp_path)
