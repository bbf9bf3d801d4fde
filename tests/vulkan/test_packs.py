"""Packs with code for Vulkan: the best of several codes, machines without Vulkan, damaged code, and what commands show."""

from __future__ import annotations

import hashlib
import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gristmill.build import build
from gristmill.cli import main
from gristmill.errors import MissingError, UserError
from gristmill.objfile.spirv import module_fault
from gristmill.pack import find_pack, write_pack
from gristmill.plugin.registry import Registry
from gristmill.runtime import Runtimes, device, load
from gristmill_vulkan.runtime import VulkanRuntime

MANIFEST = """schema = 1
[project]
name = "p"
[targets]
{targets}
[[module]]
name = "m"
source = "m.py"
"""
SOURCE = """from gristmill.script import tir as T

{constants}

@T.prim_func
def scale(x: T.Buffer(("n",), "float32"), by: T.float32):
    for i in range(n):
        if x[i] != 0.0:
            x[i] = x[i] * by
"""
SEVERAL = """plain = "vulkan"
addresses = "vulkan:1.2+address"
newest = "vulkan:1.4+address"
"""


def built(folder: Path, targets: str, module: str = "", source: str = SOURCE.format(constants="")) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "m.py").write_text(source)
    (folder / "kernels.toml").write_text(MANIFEST.format(targets=targets) + module)
    return build(folder / "kernels.toml").pack("m").path


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("several"), SEVERAL)


# Several codes --------------------------------------------------------------------------------------------------------


def runs(pack: Any, gpu: Any) -> None:
    x = gpu.array(np.arange(5, dtype=np.float32))
    pack.scale(x, 3.0)
    np.testing.assert_array_equal(x.numpy(), np.arange(5, dtype=np.float32) * 3)


@pytest.mark.parametrize(
    ("without", "target", "reasons"),
    [
        ("", "vulkan:1.2+address+float_controls+int64+storage16+storage8", []),
        ("address", "vulkan:1.1+int64+storage16+storage8", ["lacks address"]),
    ],
)
def test_the_best_code_that_the_device_runs_is_taken(
    several: Path, monkeypatch: pytest.MonkeyPatch, without: str, target: str, reasons: list[str]
) -> None:
    monkeypatch.setenv("GRISTMILL_VULKAN_WITHOUT", without)
    runtimes = Runtimes(Registry.installed())
    gpu = runtimes.device("vulkan:0")
    pack = load(several, device=gpu, runtimes=runtimes)
    runs(pack, gpu)
    assert pack.targets == {"vulkan:0": (target,)}
    told = {each.member.target: each.reason for each in pack.refused if each.member.kind == "spirv"}
    newest = "vulkan:1.4+address+float_controls+int64+storage16+storage8"
    if gpu.properties()["vulkan"] == "1.3":
        assert "it requires Vulkan 1.4, and" in told.pop(newest)
    assert len(told) == len(reasons)
    for reason, text in zip(reasons, told.values(), strict=True):
        assert reason in text


EXCHANGING = """from gristmill.script import tir as T

W = 8

@T.prim_func
def scale(x: T.Buffer(("n",), "float32"), by: T.float32):
    for i in T.thread_binding(64, thread="threadIdx.x"):
        near = T.warp_shuffle_xor(by, 1, width=W)
        if i < n:
            x[i] = x[i] * near
"""


def exchanging(folder: Path, sizes: list[int]) -> Path:
    """A pack with a code for each size of subgroups."""
    targets = "".join(
        f's{size} = {{ kind = "vulkan", subgroup_size = {size}, subgroup_shuffle = true, subgroup_ballot = true }}\n'
        for size in sizes
    )
    return built(folder, targets, source=EXCHANGING)


def test_code_for_other_subgroups_is_passed_over(tmp_path: Path) -> None:
    gpu = device("vulkan:0")
    own = int(gpu.properties()["subgroup_size"])
    other = 64 if own != 64 else 32
    pack = load(exchanging(tmp_path / "both", [own, other]), device=gpu)
    runs(pack, gpu)
    told = [each.reason for each in pack.refused if each.member.kind == "spirv"]
    assert len(told) == 1
    assert f"it needs subgroups of {other} threads, and those of " in told[0]
    assert told[0].endswith(f"have {own}")
    path = exchanging(tmp_path / "one", [other])
    with pytest.raises(MissingError, match=f"it needs subgroups of {other} threads"):
        load(path, device=gpu)
    with pytest.raises(MissingError, match=f"it needs subgroups of {other} threads"):
        load(path).scale(gpu.array(np.zeros(3, np.float32)), 1.0)


def test_a_code_can_be_asked_for(several: Path) -> None:
    gpu = device("vulkan:0")
    pack = load(several, device=gpu, target="vulkan:1.1+int64+storage16+storage8")
    runs(pack, gpu)
    assert pack.targets == {"vulkan:0": ("vulkan:1.1+int64+storage16+storage8",)}


def test_every_refusal_is_told(tmp_path: Path) -> None:
    path = built(tmp_path / "p", 'a = "vulkan:1.4"\nb = { kind = "vulkan", version = "1.4", storage8 = false }\n')
    if device("vulkan:0").properties()["vulkan"] == "1.4":
        pytest.skip("this device has all of it")
    with pytest.raises(MissingError) as caught:
        load(path, device="vulkan:0")
    lines = str(caught.value).splitlines()
    assert sum("(spirv): it requires Vulkan 1.4, and" in line for line in lines) == 2


def test_more_features_are_preferred() -> None:
    runtime = VulkanRuntime()
    targets = [
        "vulkan:1.1+no-int64+storage16",
        "vulkan:1.4+int64",
        "vulkan:1.1+float64+int64",
        "vulkan:1.2+address+int64",
    ]
    assert sorted(targets, key=runtime.preference) == [targets[0], targets[1], targets[2], targets[3]]


# Machines without Vulkan ----------------------------------------------------------------------------------------------

SCRIPT = """
import sys
{before}
import gristmill
pack = gristmill.load({path!r})
assert pack.devices == (), pack.devices
scale = pack.scale
try:
    scale(None, 1.0)
except gristmill.errors.MissingError as error:
    print(error)
"""


def without_vulkan(path: Path, before: str, **environment: str) -> str:
    """What a process prints that loads and calls the pack on a machine without some part of Vulkan."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(before=before, path=str(path))],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_no_driver(several: Path, tmp_path: Path) -> None:
    nowhere = str(tmp_path / "nothing.json")
    told = without_vulkan(several, "", VK_DRIVER_FILES=nowhere, VK_ICD_FILENAMES=nowhere)
    assert "GM0901" in told
    assert told.count("(spirv): the vulkan runtime has no device: ") == 3
    assert "driver" in told


def test_the_command_that_calls_says_so_too(several: Path, tmp_path: Path) -> None:
    nowhere = str(tmp_path / "nothing.json")
    done = subprocess.run(
        [sys.executable, "-m", "gristmill", "run", str(several), "scale", "ones:5:float32", "3.0"],
        env={**os.environ, "VK_DRIVER_FILES": nowhere, "VK_ICD_FILENAMES": nowhere},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 3
    assert done.stderr.startswith("error[GM0901]: ")
    assert done.stderr.count("(spirv): the vulkan runtime has no device: ") == 3


def test_no_package(several: Path) -> None:
    told = without_vulkan(several, 'sys.modules["vulkan"] = None')
    assert told.count("the Python package `vulkan` is not installed") == 3
    assert "pip install vulkan" in told


def test_no_loader(several: Path, tmp_path: Path) -> None:
    package = tmp_path / "vulkan"
    package.mkdir()
    (package / "__init__.py").write_text('raise OSError("cannot load library libvulkan.so.1")\n')
    told = without_vulkan(several, f"sys.path.insert(0, {str(tmp_path)!r})")
    assert told.count("Vulkan's loader is not installed (cannot load library libvulkan.so.1)") == 3
    assert "libvulkan1" in told


def test_other_code_of_the_pack_is_used(tmp_path: Path) -> None:
    path = built(tmp_path / "p", 'gpu = "vulkan"\ncpu = "cpu"\n')
    code = """
import sys
sys.modules["vulkan"] = None
import gristmill, numpy
pack = gristmill.load({path!r})
x = numpy.ones(3, numpy.float32)
pack.scale(x, 2.0)
print(x.tolist(), pack.devices, [refusal.reason for refusal in pack.refused])
"""
    command = [sys.executable, "-c", code.format(path=str(path))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("[2.0, 2.0, 2.0] ('cpu:0',)")
    assert "the Python package `vulkan` is not installed" in done.stdout


# Damage ---------------------------------------------------------------------------------------------------------------


def changed(path: Path, change: Callable[[bytearray, dict[str, Any]], None]) -> bytes:
    """The pack with the code for Vulkan, or the record of its kernel, changed, and all hashes made to fit."""
    with find_pack(path) as reader:
        manifest, members = reader.manifest, {each.name: bytes(reader.blob(each)) for each in reader.manifest.members}
    blobs = []
    for blob in manifest.blobs:
        if blob.kind == "spirv":
            data = bytearray(members[blob.name])
            records = json.loads(json.dumps(list(blob.kernels)))
            change(data, records[0])
            members[blob.name] = bytes(data)
            old, blob = blob, replace(blob, kernels=tuple(records), sha256="", offset=0, size=0)
            new = hashlib.sha256(bytes(data)).hexdigest()
        blobs.append(blob)
    blobs = [
        replace(blob, requirements={**blob.requirements, "device_code": new})
        if blob.requirements.get("device_code") == old.sha256
        else blob
        for blob in blobs
    ]
    return write_pack(replace(manifest, blobs=tuple(blobs)), members)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    # One kernel, which is all that there is to damage.
    return built(tmp_path_factory.mktemp("plain"), 'gpu = "vulkan"\n', 'options = { indices = "wide" }\n')


def test_the_changing_itself_does_no_harm(plain: Path) -> None:
    gpu = device("vulkan:0")
    runs(load(changed(plain, lambda data, record: None), device=gpu), gpu)


def damages() -> list[tuple[str, Callable[[bytearray, dict[str, Any]], None]]]:
    def word(place: int, value: int) -> Callable[[bytearray, dict[str, Any]], None]:
        def change(data: bytearray, record: dict[str, Any]) -> None:
            start = record["extra"]["code_start"] + 4 * place
            data[start : start + 4] = value.to_bytes(4, "little")

        return change

    def extra(key: str, value: Any) -> Callable[[bytearray, dict[str, Any]], None]:
        return lambda data, record: record["extra"].__setitem__(key, value)

    def cut(data: bytearray, record: dict[str, Any]) -> None:
        del data[-8:]

    return [
        ("magic", word(0, 0x3022307)),
        ("version", word(1, 0x00020000)),
        ("bound", word(3, 0)),
        ("schema", word(4, 1)),
        ("length", word(5, 0x7FFF0011)),
        ("no length", word(5, 0x00000011)),
        ("cut", cut),
        ("start", extra("code_start", 12)),
        ("start beyond", extra("code_start", 1 << 20)),
        ("size", extra("code_bytes", 24)),
        ("size of text", extra("code_bytes", "many")),
        ("form", extra("arguments", "telepathy")),
        ("layout", extra("layout", "0:offset")),
        ("layout of nonsense", extra("layout", "0:offset,x:f32,8:i64")),
        ("place beyond", extra("layout", "0:offset,4:f32,64:i64,72:i64")),
        ("array as a number", extra("layout", "0:f32,4:f32,8:i64,16:i64")),
        ("block", extra("block_bytes", 1 << 30)),
        ("entry", lambda data, record: record.__setitem__("entry", "other_kernel")),
    ]


@pytest.mark.parametrize("name", [name for name, _ in damages()])
def test_damage_is_refused_before_the_driver_sees_it(plain: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    change = dict(damages())[name]
    gpu = device("vulkan:0")
    given: list[str] = []
    monkeypatch.setattr(gpu.logical.api.hook, "before", lambda call: given.append(call) or 0)
    with pytest.raises(UserError) as caught:
        load(changed(plain, change), device=gpu)
    assert caught.value.code in ("GM0716", "GM0914")
    assert "vkCreateShaderModule" not in given
    assert "scale_kernel" in str(caught.value) or "other_kernel" in str(caught.value)


def test_random_damage_of_headers_is_found(plain: Path) -> None:
    """Of bytes of the header that are not the writer's number or the bound, every change is seen."""
    with find_pack(plain) as reader:
        (blob,) = [each for each in reader.manifest.blobs if each.kind == "spirv"]
        extra = blob.kernels[0]["extra"]
        start = extra["code_start"]  # type: ignore[index]
        code = bytes(reader.blob(blob))[start : start + extra["code_bytes"]]  # type: ignore[index]
    assert module_fault(code, "scale_kernel") == ""
    chance = random.Random(3)
    for place in (*range(5), *range(16, 20)):
        for _ in range(20):
            damaged = bytearray(code)
            damaged[place] ^= chance.randrange(1, 256)
            assert module_fault(bytes(damaged), "scale_kernel"), place


# Commands -------------------------------------------------------------------------------------------------------------


def test_inspect_verify_export_and_doctor(
    plain: Path, several: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["inspect", str(several)]) == 0
    shown = capsys.readouterr().out
    assert "needs features int64, spirv 1.3, vulkan 1.1" in shown
    (row,) = [line for line in shown.splitlines() if line.startswith("scale_kernel ") and "code/plain-0.spv" in line]
    assert row.split()[:3] == ["scale_kernel", "code/plain-0.spv", "push"]
    assert "256 x 1 x 1" in row
    assert "address" in next(line for line in shown.splitlines() if "scale_kernel" in line and "addresses-0" in line)
    assert main(["verify", str(plain), str(several)]) == 0
    capsys.readouterr()
    damaged = tmp_path / "damaged.kpack"
    damaged.write_bytes(changed(plain, dict(damages())["bound"]))
    assert main(["verify", str(damaged)]) == 1
    assert "GM0716" in capsys.readouterr().err
    out = tmp_path / "kernels.spv"
    assert main(["export", str(plain), "-k", "spirv", "-o", str(out)]) == 0
    assert out.read_bytes().startswith(b"gmspirv1\x03\x02\x23\x07")
    main(["doctor"])
    shown = capsys.readouterr().out
    (line,) = [line for line in shown.splitlines() if "vulkan:0 has:" in line]
    assert "int64" in line
    assert "max_push_constants_size" in line


def test_run(plain: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(plain), "-d", "vulkan:0", "scale", "ones:5:float32", "3.0"]) == 0
    shown = capsys.readouterr()
    assert "scale on vulkan:0" in shown.out + shown.err
    assert " 3 " in shown.out


def test_doctor_says_why_there_is_none() -> None:
    code = 'import sys; sys.modules["vulkan"] = None; from gristmill.cli import main; main(["doctor"])'
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    (line,) = [line for line in done.stdout.splitlines() if "absent" in line and " vulkan: " in line]
    assert "the Python package `vulkan` is not installed" in line
