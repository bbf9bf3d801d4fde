"""The installed distribution, from the sources or from the wheel: metadata, data files, entry points."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from importlib.metadata import distribution, entry_points
from pathlib import Path

import pytest

import gristmill

PACKAGE = Path(gristmill.__file__).parent


def test_version() -> None:
    assert distribution("gristmill").version == gristmill.__version__


def test_types_and_pages_are_shipped() -> None:
    assert (PACKAGE / "py.typed").is_file()
    assert len(list((PACKAGE / "explain").glob("GM*.md"))) > 25


def test_packages_are_importable_names() -> None:
    for name in (
        "gristmill_launch",
        "gristmill_llvm",
        "gristmill_spirv",
        "gristmill_cpu",
        "gristmill_vulkan",
        "gristmill_targets",
    ):
        done = subprocess.run([sys.executable, "-c", f"import {name}"], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


def test_entry_points() -> None:
    for group, name in (("targets", "cpu"), ("passes", "launch"), ("runtimes", "cpu")):
        (found,) = [
            point
            for point in entry_points(group=f"gristmill.{group}", name=name)
            if point.dist is not None and point.dist.name == "gristmill"
        ]
        assert found.load() is not None


def test_command_is_installed() -> None:
    command = shutil.which("gristmill", path=sysconfig.get_path("scripts"))
    assert command is not None
    done = subprocess.run([command, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"gristmill {gristmill.__version__}\n"


def test_pure_wheel_for_python_3() -> None:
    wheel = distribution("gristmill").read_text("WHEEL")
    assert wheel is not None
    assert "Tag: py3-none-any" in wheel


USES_NATIVE_SUPPORT = """
import ctypes, sys
sys.modules["llvmlite"] = None
from gristmill.runtime.native_support import find_support
found = find_support("vulkan_launch")
word = ctypes.c_int32(0)
acquire = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(found.address("gristmill_vulkan_acquire"))
assert [acquire(ctypes.addressof(word)), acquire(ctypes.addressof(word)), word.value] == [1, 0, 1]
print(found.origin)
"""


@pytest.mark.skipif(os.environ.get("TOX_ENV_NAME") != "wheel", reason="only where the wheel is what is tested")
def test_native_support_needs_no_compiler() -> None:
    (shipped,) = (PACKAGE / "native").glob("*/vulkan_launch.so")
    done = subprocess.run([sys.executable, "-c", USES_NATIVE_SUPPORT], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(shipped)


@pytest.mark.skipif(os.environ.get("TOX_ENV_NAME") != "wheel", reason="only where the wheel is what is tested")
def test_the_wheel_is_what_is_tested() -> None:
    assert "site-packages" in PACKAGE.parts
    assert not (PACKAGE.parent / "tests").exists()
