"""What the CPU runtime finds, and what it refuses and prefers, on processors made up for the purpose."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from gristmill.errors import MissingError
from gristmill_cpu.processor import Processor, this_processor
from gristmill_cpu.runtime import CpuRuntime

OLD = Processor("x86_64", "an old one", 2, frozenset({"cx16", "popcnt", "lahf_lm", "pni", "sse4_1", "sse4_2", "ssse3"}))
V2 = "cx16,popcnt,sahf,sse3,sse4.1,sse4.2,ssse3"


def test_this_processor_is_found() -> None:
    (found,) = CpuRuntime().probe().devices
    assert found.index == 0
    assert found.name
    assert found.properties["cores"] >= 1
    assert str(found.properties["machine"]) in ("x86_64", "aarch64")


def test_the_device_shows_its_name() -> None:
    assert repr(CpuRuntime().open(0)) == "<gristmill device cpu:0>"


def test_what_fits_is_not_refused() -> None:
    assert CpuRuntime(OLD).refusal("elf-shared", "cpu:x86-64-v2", "x86_64-linux", {"cpu_features": V2}) == ""
    assert CpuRuntime(OLD).refusal("elf-shared", "cpu", "x86_64-linux", {}) == ""


@pytest.mark.parametrize(
    ("kind", "host", "requirements", "expected"),
    [
        ("elf-shared", "x86_64-linux", {"cpu_features": V2 + ",avx2,fma"}, "this processor lacks avx2, fma"),
        ("elf-shared", "x86_64-linux", {"cpu_features": "telepathy"}, "this processor lacks telepathy"),
        ("elf-shared", "aarch64-linux", {}, "it is for aarch64-linux, and this machine is x86_64-linux"),
        ("elf-shared", "", {}, "it is for an unnamed host, and this machine is x86_64-linux"),
        ("spirv", "x86_64-linux", {}, "the cpu runtime does not take code of kind spirv"),
        (
            "elf-shared",
            "x86_64-linux",
            {"cpu_features": V2, "moonlight": "full", "kernels": "", "externs": ""},
            "it requires moonlight, which this version of the cpu runtime does not know",
        ),
    ],
)
def test_refusals_name_what_is_missing(kind: str, host: str, requirements: dict[str, str], expected: str) -> None:
    assert CpuRuntime(OLD).refusal(kind, "cpu:x86-64-v3", host, requirements) == expected


def test_higher_levels_are_preferred() -> None:
    targets = ["cpu", "cpu:x86-64-v2", "cpu:x86-64-v2+avx", "cpu:x86-64-v3", "cpu:x86-64-v3+avxvnni", "cpu:x86-64-v4"]
    assert sorted({*targets}, key=CpuRuntime(OLD).preference) == targets


def test_a_machine_without_cpu_code_says_so() -> None:
    runtime = CpuRuntime(dataclasses.replace(OLD, machine="riscv64"))
    assert runtime.probe().devices == ()
    assert "there is no CPU code for riscv64" in runtime.probe().reason
    with pytest.raises(MissingError, match="GM0905"):
        runtime.open(0)


def test_there_is_one_cpu() -> None:
    with pytest.raises(MissingError, match="GM0905"):
        CpuRuntime(OLD).open(1)
    device = CpuRuntime(OLD).open(0)
    assert device.properties() == {"name": "an old one", "machine": "x86_64", "cores": 2}
    assert device.synchronize() is None


def test_cpuinfo_is_read_and_may_be_absent(tmp_path: Path) -> None:
    path = tmp_path / "cpuinfo"
    path.write_text("processor\t: 0\nmodel name\t: A Fine One\nflags\t\t: fpu avx avx2\n\nmodel name\t: Second\n")
    found = this_processor(str(path))
    assert (found.name, found.flags) == ("A Fine One", {"fpu", "avx", "avx2"})
    absent = this_processor(str(tmp_path / "nowhere"))
    assert absent.flags == frozenset()
    assert absent.name == absent.machine
