"""What the tests of ``objfile`` share: objects made by LLVM, libraries opened from memory, Debian's linker as the oracle."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import llvmlite.binding as llvm
import pytest

TRIPLE = "x86_64-unknown-linux-gnu"


@pytest.fixture(scope="session")
def compile_ir() -> Callable[..., bytes]:
    """LLVM's textual IR -> a relocatable object of x86-64; further arguments go to ``create_target_machine``."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()

    def compile_text(text: str, *, triple: str = TRIPLE, **options: object) -> bytes:
        settings = {"cpu": "x86-64-v3", "opt": 2, "reloc": "pic", "codemodel": "default"} | options
        machine = llvm.Target.from_triple(triple).create_target_machine(**settings)
        module = llvm.parse_assembly(f'target triple = "{triple}"\n{text}')
        module.verify()
        return bytes(machine.emit_object(module))

    return compile_text


@pytest.fixture(scope="session")
def open_library() -> Iterator[Callable[[bytes], ctypes.CDLL]]:
    """Bytes of a shared object -> the library, opened from memory with nothing on disk."""
    # A memfd must stay open as long as its library: the loader takes a reused /proc/self/fd/N for the old library.
    descriptors: list[int] = []

    def open_bytes(data: bytes) -> ctypes.CDLL:
        descriptor = os.memfd_create("library")
        descriptors.append(descriptor)
        os.write(descriptor, data)
        return ctypes.CDLL(f"/proc/self/fd/{descriptor}")

    yield open_bytes
    for descriptor in descriptors:
        os.close(descriptor)


@pytest.fixture(scope="session")
def run_with_musl(tmp_path_factory: pytest.TempPathFactory) -> Callable[[bytes, str], str]:
    """Runs a C program under the musl C library: (shared object, text of the program) -> what it prints.

    The program gets the path of the shared object as its first argument.
    """
    tool = _tool("musl-gcc", "musl-tools")

    def run(data: bytes, program: str) -> str:
        folder = tmp_path_factory.mktemp("musl")
        (folder / "library.so").write_bytes(data)
        (folder / "main.c").write_text(program)
        subprocess.run([tool, "-rdynamic", "-o", "main", "main.c"], cwd=folder, check=True)
        ended = subprocess.run([folder / "main", folder / "library.so"], capture_output=True, text=True, check=True)
        return ended.stdout

    return run


def _tool(name: str, package: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.fail(f"these tests compare with `{name}`, which is not here: apt-get install {package}", pytrace=False)
    return found


@pytest.fixture(scope="session")
def ld_lld(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., bytes]:
    """Links objects with Debian's ``ld.lld``: (objects, options) -> the shared object. Fails where it is not installed."""
    tool = _tool("ld.lld", "lld")

    def link(objects: list[bytes], *options: str) -> bytes:
        folder = tmp_path_factory.mktemp("lld")
        paths = []
        for number, data in enumerate(objects):
            paths.append(folder / f"{number}.o")
            paths[-1].write_bytes(data)
        # The libraries that our linker makes: symbols bound inside and at once, equal constants not folded.
        fixed = ["-shared", "-Bsymbolic", "-O0", "-z", "now", "-z", "relro", "--hash-style=sysv", "-o", "out.so"]
        command = [tool, *fixed, *options, *map(str, paths)]
        ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stderr
        return (folder / "out.so").read_bytes()

    return link


@pytest.fixture(scope="session")
def readelf(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., str]:
    """Runs binutils' ``readelf`` on bytes: (data, options) -> its output; warnings and errors fail the test."""
    tool = _tool("readelf", "binutils")

    def run(data: bytes, *options: str) -> str:
        path: Path = tmp_path_factory.mktemp("readelf") / "file.so"
        path.write_bytes(data)
        ended = subprocess.run([tool, *options, str(path)], capture_output=True, text=True, check=False)
        assert ended.returncode == 0
        assert ended.stderr == ""
        assert "arning" not in ended.stdout.replace("Key to Flags", "")
        return ended.stdout

    return run
