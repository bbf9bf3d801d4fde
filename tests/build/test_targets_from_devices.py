"""What a build reads of the machine that builds: a device where a target names one, the processor for `native`, else nothing."""

from __future__ import annotations

import builtins
import os
from pathlib import Path
from typing import Any

import pytest

import gristmill_llvm.cpu
import gristmill_llvm.machine
from gristmill.build import build
from gristmill.build.driver import Plan
from gristmill.codegen import reference as reference_generator
from gristmill.errors import PluginError, UserError
from gristmill.ir.target import Target
from gristmill.plugin.artifacts import Capabilities
from gristmill.plugin.device_limits import as_properties, check_limits, filled_in, with_limits_of
from gristmill.plugin.hookspecs import hookimpl
from gristmill.plugin.protocols import FROM_DEVICE, DeviceDescription, Probe, TargetKind
from gristmill.plugin.registry import Registry
from gristmill.plugin.target_data import device_limits
from gristmill.runtime import load
from gristmill.runtime import reference as reference_runtime
from gristmill.runtime.reference import ReferenceRuntime

MANIFEST = """schema = 1
[project]
name = "p"
[targets]
plain = "cpu:x86-64-v3"
gpu = { kind = "reference", %s }
[[module]]
name = "m"
source = "m.py"
"""
SOURCE = """from gristmill.script import tir as T


@T.prim_func
def double(x: T.Buffer((100,), "float32")):
    for i in range(100):
        x[i] = x[i] * 2.0
"""


def project(folder: Path, keys: str) -> Path:
    (folder / "m.py").write_text(SOURCE)
    (folder / "kernels.toml").write_text(MANIFEST % keys)
    return folder / "kernels.toml"


def target_of(path: Path, registry: Registry | None = None) -> Target:
    jobs = Plan.of(path, None, ["gpu"], registry).jobs
    return jobs[0].target


def test_a_target_takes_its_limits_from_the_device_that_it_names(tmp_path: Path) -> None:
    found = target_of(project(tmp_path, "from_device = 0"))
    limits = dict(found.options)
    assert "from_device" not in limits
    assert limits["max_threads_per_block"] == 1024
    assert limits["max_grid_size_y"] == 65535
    assert limits["max_block_size_z"] == 64
    assert limits["max_shared_memory"] == 65536
    assert limits.items() <= ReferenceRuntime().probe().devices[0].properties.items()


def test_what_the_target_states_itself_is_not_taken_from_the_device(tmp_path: Path) -> None:
    limits = dict(target_of(project(tmp_path, "from_device = 0, max_threads_per_block = 48")).options)
    assert (limits["max_threads_per_block"], limits["max_shared_memory"]) == (48, 65536)


class SmallDevices(ReferenceRuntime):
    """Two reference devices, the second a small one."""

    def probe(self) -> Probe:
        return Probe(
            (
                DeviceDescription(0, "large", {"max_threads_per_block": 512}),
                DeviceDescription(1, "small", {"max_threads_per_block": 16, "colour": "green"}),
            )
        )


class NoDevices(ReferenceRuntime):
    def probe(self) -> Probe:
        return Probe(reason="the driver is on holiday")


def with_runtime(*runtimes: Any) -> Registry:
    class Plugin:
        GRISTMILL_API_VERSION = 1

        @hookimpl
        def gristmill_runtimes(self) -> Any:
            return list(runtimes)

    return Registry.of([reference_generator, Plugin(), gristmill_llvm_plugin()])


def gristmill_llvm_plugin() -> Any:
    import gristmill_llvm.plugin

    return gristmill_llvm.plugin


def test_the_limits_are_those_of_the_numbered_device(tmp_path: Path) -> None:
    path = project(tmp_path, "from_device = 1")
    assert dict(target_of(path, with_runtime(SmallDevices)).options) == {"max_threads_per_block": 16}


def test_the_limits_shape_the_code_and_the_pack_says_them(tmp_path: Path) -> None:
    large, small = tmp_path / "large", tmp_path / "small"
    for folder, threads in ((large, 64), (small, 32)):
        folder.mkdir()
        path = build(project(folder, f"from_device = 0, max_threads_per_block = {threads}")).pack("m").path
        pack = load(path, device="reference:0")
        assert f'"max_threads_per_block": {threads}' in pack.manifest.provenance["options of gpu"]
        (kernel,) = [record for blob in pack.manifest.blobs for record in blob.kernels if record["axes"]]
        assert kernel["block"] == [threads, 1, 1]


@pytest.mark.parametrize(
    ("runtimes", "hint"),
    [
        ((SmallDevices,), "there is reference:0, reference:1"),
        ((NoDevices,), "the reference runtime has none: the driver is on holiday"),
        ((), "no installed runtime takes reference code; write what the target has as keys"),
    ],
)
@pytest.mark.parametrize("number", [2, -1])
def test_a_device_that_is_not_here_is_an_error_and_no_default(
    tmp_path: Path, runtimes: tuple[Any, ...], hint: str, number: int
) -> None:
    path = project(tmp_path, f"from_device = {number}")
    with pytest.raises(UserError) as caught:
        build(path, registry=with_runtime(*runtimes))
    (found,) = caught.value.diagnostics
    assert (found.code, found.hint, found.label) == ("GM0121", hint, "no such device")
    assert found.message == (
        f"target `gpu` is to be as device {number} of this machine, and there is none of that number for reference code"
    )
    assert found.place is not None
    assert (found.place.line, found.place.column) == (6, len('gpu = { kind = "reference", from_device = ') + 1)
    assert not (tmp_path / "build").exists()


def test_no_device_is_asked_for_a_target_that_is_not_built(tmp_path: Path) -> None:
    path = project(tmp_path, "from_device = 5")
    assert build(path, targets=["plain"]).pack("m").parts[0].target == "plain"


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ("max_threads_per_block = 0", "`max_threads_per_block` is 0; the least is 1"),
        ("max_grid_size_x = -4", "`max_grid_size_x` is -4; the least is 1"),
        ("max_shared_memory = 65537", "`max_shared_memory` is 65537; reference devices have at most 65536"),
    ],
)
def test_limits_that_the_device_does_not_have(tmp_path: Path, keys: str, message: str) -> None:
    with pytest.raises(UserError) as caught:
        build(project(tmp_path, keys))
    (found,) = caught.value.diagnostics
    assert found.code == "GM0119"
    assert message in found.message


def test_a_kind_without_the_key_does_not_take_it(tmp_path: Path) -> None:
    path = project(tmp_path, "max_threads_per_block = 64")
    path.write_text(path.read_text().replace('"cpu:x86-64-v3"', '{ kind = "cpu", from_device = 0 }'))
    with pytest.raises(UserError, match="from_device") as caught:
        build(path)
    assert caught.value.code == "GM0102"


def test_limits_and_their_names() -> None:
    most = device_limits("reference")
    assert as_properties(Capabilities()) == {}
    stated = filled_in(Target("reference"), as_properties(most), ["max_block_size_y", "max_grid_size_z", "absent"])
    assert stated.options == (("max_block_size_y", 1024), ("max_grid_size_z", 65535))
    assert with_limits_of(stated, most) == most
    small = Target("reference", options=(("max_block_size_y", 3), ("max_grid_size_z", 7), ("max_shared_memory", 5)))
    found = with_limits_of(small, most)
    assert (found.max_block_size, found.max_grid_size) == ((1024, 3, 64), (2147483647, 65535, 7))
    assert (found.max_threads_per_block, found.max_shared_memory) == (1024, 5)
    with pytest.raises(ValueError, match="`max_shared_memory` is True"):
        check_limits(Target("reference", options=(("max_shared_memory", True),)), most)


@pytest.mark.parametrize("answer", ["a text", RuntimeError("lost"), None])
def test_a_kind_that_fails_to_complete_a_target(tmp_path: Path, answer: Any) -> None:
    def from_device(target: Target, properties: Any) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    class Plugin:
        GRISTMILL_API_VERSION = 1

        @hookimpl
        def gristmill_targets(self) -> Any:
            return [
                TargetKind(
                    "reference",
                    "A kind.",
                    "reference",
                    ("gmir",),
                    lambda target: target,
                    lambda target: Capabilities(is_device=True),
                    keys=(FROM_DEVICE,),
                    from_device=from_device,
                )
            ]

    registry = Registry.of([Plugin(), reference_runtime, gristmill_llvm_plugin()])
    with pytest.raises(PluginError, match="Plugin"):
        build(project(tmp_path, "from_device = 0"), registry=registry)


def test_nothing_else_of_the_machine_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine is unreadable: its processor, its devices, its name. What is built is what any machine builds."""
    wanted = build(project(tmp_path, "max_threads_per_block = 64")).pack("m").path.read_bytes()
    opened = builtins.open

    def refused(*args: Any, **options: Any) -> Any:
        raise AssertionError(f"the build has looked at the machine: {args}")

    def watched(file: Any, *args: Any, **options: Any) -> Any:
        if str(file).startswith(("/proc", "/sys", "/dev")):
            refused(file)
        return opened(file, *args, **options)

    monkeypatch.setattr(builtins, "open", watched)
    monkeypatch.setattr(gristmill_llvm.cpu, "_cpu_flags", refused)
    monkeypatch.setattr(gristmill_llvm.machine, "host_cpu_name", refused)
    monkeypatch.setattr(ReferenceRuntime, "probe", refused)
    monkeypatch.setattr(os, "uname", refused)
    monkeypatch.setattr(os, "cpu_count", refused)
    monkeypatch.setattr(os, "sched_getaffinity", refused)
    (tmp_path / "again").mkdir()
    again = build(project(tmp_path / "again", "max_threads_per_block = 64")).pack("m").path
    assert again.read_bytes() == wanted
    with pytest.raises((AssertionError, UserError, PluginError), match="looked at the machine"):
        build(project(tmp_path / "again", "from_device = 0"))
    native = project(tmp_path / "again", "max_threads_per_block = 64")
    native.write_text(native.read_text().replace("cpu:x86-64-v3", "cpu:native"))
    with pytest.raises((AssertionError, PluginError), match="looked at the machine"):
        build(native)
