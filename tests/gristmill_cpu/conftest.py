"""Shared objects compiled from C by the system's compiler, and packs of them: so the loader is tested by itself."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import pytest

import gristmill_cpu.plugin
from gristmill.pack import Function, Manifest, Member, write_pack
from gristmill.plugin.artifacts import KernelRecord
from gristmill.plugin.registry import Registry
from gristmill.runtime import Runtimes
from gristmill_cpu.processor import this_processor

HEADER = """
#include <stdint.h>
typedef struct { int32_t kind; uint32_t zero; union { int64_t i; double f; void* p; }; } Any;
typedef struct { void* data; int32_t device, number, rank; uint8_t code, bits; uint16_t lanes;
                 int64_t *shape, *strides; uint64_t offset; } Tensor;
extern void TVMFFIErrorSetRaisedFromCStr(const char* kind, const char* message);
static inline Tensor* tensor(const Any* a) { return (Tensor*)(a->kind == 7 ? a->p : (char*)a->p + 24); }
"""

Compile = Callable[..., bytes]


@pytest.fixture(scope="session")
def compile_c(tmp_path_factory: pytest.TempPathFactory) -> Compile:
    """The bytes of a shared object made of C functions, with nothing linked to it."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    assert compiler, "these tests need a C compiler (apt-get install gcc)"
    folder = tmp_path_factory.mktemp("c")
    made: dict[tuple[str, tuple[str, ...]], bytes] = {}

    def compile_source(source: str, *options: str) -> bytes:
        key = (source, options)
        if key not in made:
            path = folder / f"{len(made)}.c"
            path.write_text(HEADER + source)
            output = path.with_suffix(".so")
            flags = ["-O2", "-shared", "-fPIC", "-nostdlib", "-nostartfiles", "-fno-stack-protector", *options]
            subprocess.run([compiler, *flags, "-o", str(output), str(path)], check=True)
            made[key] = output.read_bytes()
        return made[key]

    return compile_source


def constant(name: str, value: int) -> str:
    """C text of a packed function that returns a number."""
    return (
        f"int __tvm_ffi_{name}(void* self, const Any* args, int32_t count, Any* result) "
        f"{{ result->kind = 1; result->zero = 0; result->i = {value}; return 0; }}\n"
    )


@pytest.fixture(scope="session")
def constant_source() -> Callable[[str, int], str]:
    return constant


MakePack = Callable[..., bytes]


@pytest.fixture(scope="session")
def make_pack() -> MakePack:
    """A pack of shared objects: (data, functions, fields of the member)."""

    def make(*codes: tuple[bytes, tuple[str, ...], dict[str, Any]], **extra: Any) -> bytes:
        blobs, contents, functions = [], {}, {}
        for number, (data, names, fields) in enumerate(codes):
            records = tuple(
                {
                    **asdict(KernelRecord(name, f"__tvm_ffi_{name}")),
                    "axes": [],
                    "block": [],
                    "arguments": [],
                    "extra": dict(extra),
                }
                for name in names
            )
            member = Member(
                f"code/{number}.so",
                "elf-shared",
                **{
                    "target": "cpu:x86-64-v2",
                    "host": this_processor().host,
                    "entry_points": tuple(f"__tvm_ffi_{name}" for name in names),
                    "kernels": records,
                    **fields,
                },
            )
            blobs.append(member)
            contents[member.name] = data
            functions |= {name: Function(name, f"{name}()") for name in names}
        return write_pack(Manifest("project", "module", tuple(functions.values()), tuple(blobs)), contents)

    return make


@pytest.fixture
def runtimes() -> Runtimes:
    return Runtimes(Registry.of([gristmill_cpu.plugin]))


@pytest.fixture
def no_memory_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """A system without memfd_create."""
    monkeypatch.delattr("os.memfd_create")


@pytest.fixture
def memory_files() -> Callable[[], set[str]]:
    """The numbers of the descriptors of this process that are memfds."""

    def find() -> set[str]:
        found = set()
        for number in os.listdir("/proc/self/fd"):
            # The descriptor of the listing itself is gone by now.
            with contextlib.suppress(FileNotFoundError):
                if "memfd:" in os.readlink(f"/proc/self/fd/{number}"):
                    found.add(number)
        return found

    return find
