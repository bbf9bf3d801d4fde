"""Making support objects: the same bytes each time, no imports, kept in the cache, made by several processes at once."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gristmill.objfile import EM_X86_64, check_shared
from gristmill.runtime import native_support
from gristmill.runtime.native_support import SupportCode, find_support
from gristmill_llvm.native.layout import LAYOUT_SYMBOL, Structure
from gristmill_llvm.native.objects import EXPORTS, MACHINES, WRITERS, build_support, identity
from gristmill_llvm.native.vulkan_structures import LAYOUT_VERSION

NOWHERE = Path("/nonexistent")
"""A package without files, as if Gristmill ran from its sources."""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GRISTMILL_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def found(name: str) -> SupportCode:
    support = find_support(name, NOWHERE)
    assert isinstance(support, SupportCode), support
    return support


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("name", WRITERS)
def test_objects(name: str, machine: str) -> None:
    data = build_support(name, machine)
    assert data == build_support(name, machine)
    about = check_shared(data, EM_X86_64, ())
    assert about.imports == ()
    assert set(about.exports) == {*EXPORTS[name], LAYOUT_SYMBOL}
    assert len(data) < 16384


def test_unknown() -> None:
    with pytest.raises(KeyError):
        build_support("acme_code", "x86_64")
    with pytest.raises(KeyError):
        build_support("vulkan_launch", "s390x")


def test_the_main_module_writes_them_all(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "gristmill_llvm.native", str(tmp_path)], check=True)
    written = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.so")}
    assert written == {f"{machine}/{name}.so" for machine in MACHINES for name in WRITERS}


def test_identity_changes_with_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    before = identity("vulkan_launch", "x86_64")
    assert identity("vulkan_launch", "x86_64") == before
    changed = {"vulkan_launch": lambda triple: "; another text"}
    monkeypatch.setattr("gristmill_llvm.native.objects.WRITERS", changed)
    assert identity("vulkan_launch", "x86_64") != before


def test_structures_are_laid_out_as_in_c() -> None:
    types = {"i32": ctypes.c_int32, "i64": ctypes.c_int64, "ptr": ctypes.c_void_p}
    fields = [("a", "i32"), ("b", "i64"), ("c", "i32"), ("d", "i32"), ("e", "ptr"), ("f", "i32")]
    structure = Structure("s", fields)

    class Same(ctypes.Structure):
        _fields_ = tuple((name, types[type_]) for name, type_ in fields)

    assert structure.offsets() == {name: getattr(Same, name).offset for name, _ in fields}
    assert structure.size == ctypes.sizeof(Same)


def test_made_at_first_use(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    support = found("vulkan_launch")
    path = Path(support.origin)
    assert path.is_relative_to(cache / "native")
    assert path.read_bytes() == build_support("vulkan_launch", os.uname().machine)
    assert json.loads(support.text(LAYOUT_SYMBOL))["version"] == LAYOUT_VERSION
    with pytest.raises(ValueError, match="acme"):
        support.address("acme")

    def build(*_: object) -> bytes:
        raise AssertionError("made again")

    monkeypatch.setattr(native_support, "_built", build)
    assert found("vulkan_launch").address(EXPORTS["vulkan_launch"][0])


def test_a_damaged_file_in_the_cache_is_made_again(cache: Path) -> None:
    # Written by a process that has it not loaded, as a crash of the machine might leave it.
    path = cache / "native" / identity("vulkan_launch", os.uname().machine)[:40] / "vulkan_launch.so"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"\x7fELF")
    assert Path(found("vulkan_launch").origin) == path
    assert path.stat().st_size > 1000


def test_without_a_folder_to_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("GRISTMILL_CACHE_DIR", str(tmp_path / "file"))
    support = found("vulkan_launch")
    assert support.origin == ""
    assert "structures" in support.text(LAYOUT_SYMBOL)


def test_several_processes(cache: Path) -> None:
    text = (
        "from pathlib import Path; from gristmill.runtime.native_support import find_support\n"
        "print(find_support('vulkan_launch', Path('/nonexistent')).origin)"
    )
    running = [subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, text=True) for _ in range(4)]
    outputs = {process.communicate()[0] for process in running}
    assert {process.returncode for process in running} == {0}
    (origin,) = outputs
    assert [path.name for path in Path(origin.strip()).parent.iterdir()] == ["vulkan_launch.so"]


def test_a_file_of_another_user_is_not_loaded(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cache folder may be a shared one: what is loaded runs as who loads it."""
    path = Path(found("vulkan_launch").origin)
    before = path.stat().st_ino
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    assert Path(found("vulkan_launch").origin) == path
    assert path.stat().st_ino != before
