"""The example projects built for Vulkan targets and run on a device give what NumPy gives, in every form of arguments."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gristmill.build import build
from gristmill.errors import UserError
from gristmill.pack import find_pack
from gristmill.runtime import device, load
from gristmill.runtime.kernel_records import kernel_records
from gristmill.testing.demonstration import relative_error
from gristmill.testing.example_project import example_project, import_from
from gristmill.testing.spirv_tools import disassembly, refusals

GPU = "vulkan:0"
FORMS = {
    '"vulkan"': {"push"},
    '{ kind = "vulkan", max_push_constants_size = 8 }': {"push", "uniform"},
    '"vulkan:1.2+address"': {"address"},
    '{ kind = "vulkan", version = "1.2", address = true, max_push_constants_size = 8 }': {"address", "address_block"},
    '"vulkan+no-int64"': {"push"},
}
"""Targets, and the forms of arguments of the kernels that are built for them."""
ON_INT64 = {"prefix_sum"}
"""Functions whose values, not only their indices, are int64."""


def project(kit: str, folder: Path, target: str) -> Path:
    """A copy of an example project for one target; for devices without int64 without what needs it."""
    shutil.copytree(example_project(kit), folder, ignore=shutil.ignore_patterns("build", "__pycache__"))
    text = (folder / "kernels.toml").read_text()
    (folder / "kernels.toml").write_text(re.sub(r"(?<=\[targets\]\n)(.+\n)+", f"gpu = {target}\n", text))
    if "no-int64" in target:
        for source in (folder / "kernels").glob("*.py"):
            parts = re.split(r"\n\n\n(?=@T)", source.read_text())
            kept = [part for part in parts if not any(f"def {name}(" in part for name in ON_INT64)]
            source.write_text("\n\n\n".join(kept).rstrip() + "\n")
    return folder / "kernels.toml"


def forms_of(path: Path) -> set[Any]:
    with find_pack(path) as reader:
        return {
            record["extra"]["arguments"]
            for blob in reader.manifest.blobs
            if blob.kind == "spirv"
            for record in blob.kernels
        }


@pytest.mark.parametrize("kit", ["imagekit", "blockkit"])
def test_nothing_of_int64_is_left_for_devices_without_it(kit: str, tmp_path: Path) -> None:
    for pack in build(project(kit, tmp_path / kit, '"vulkan+no-int64"')).packs:
        with find_pack(pack.path) as reader:
            (blob,) = [each for each in reader.manifest.blobs if each.kind == "spirv"]
            assert "int64" not in str(blob.requirements["features"]).split(",")
            data = bytes(reader.blob(blob))
            for record in kernel_records(blob):
                start = int(record.extra["code_start"])
                code = data[start : start + int(record.extra["code_bytes"])]
                assert refusals(code, "1.1") == []
                text = disassembly(code)
                assert "OpCapability Int64" not in text
                assert not any("OpTypeInt 64" in line for line in text)


@pytest.mark.parametrize("target", FORMS)
def test_imagekit(target: str, tmp_path: Path) -> None:
    path = project("imagekit", tmp_path / "imagekit", target)
    report = build(path)
    assert set().union(*(forms_of(pack.path) for pack in report.packs)) <= FORMS[target] | {"push"}
    picture = np.random.default_rng(1).integers(0, 255, (37, 41, 4), np.uint8)
    gpu = device(GPU)
    packs = {pack.module: load(pack.path, device=gpu) for pack in report.packs}
    ran = set()
    for case in import_from(path.parent, "checks").cases(picture, count=3001, extent=35):
        if "no-int64" in target and case.function in ON_INT64:
            continue
        given = [gpu.array(value) if isinstance(value, np.ndarray) else value for value in case.arguments]
        packs[case.module][case.function](*given)
        for place, wanted in zip(case.outputs, case.expected(*case.arguments), strict=True):
            error = relative_error(given[place].numpy(), wanted)
            assert error <= case.tolerance, f"{case.function}: {error}"
        ran.add(case.function)
    assert ran == {name for pack in packs.values() for name in pack.functions}


@pytest.mark.parametrize("target", FORMS)
def test_blockkit(target: str, tmp_path: Path) -> None:
    path = project("blockkit", tmp_path / "blockkit", target)
    report = build(path)
    forms = set().union(*(forms_of(pack.path) for pack in report.packs))
    assert forms <= FORMS[target]
    gpu = device(GPU)
    packs = {pack.module: load(pack.path, device=gpu) for pack in report.packs}
    ran = set()
    for size in ((16, 16, 16, 128), (37, 21, 35, 1300), (1, 1, 1, 1), (0, 5, 3, 0), (5, 3, 0, 2)):
        for case in import_from(path.parent, "checks", "blockkit").cases(*size):
            if "no-int64" in target and case.function in ON_INT64:
                continue
            given = [gpu.array(value) if isinstance(value, np.ndarray) else value for value in case.arguments]
            packs[case.module][case.function](*given)
            error = relative_error(given[case.output].numpy(), case.expected(*case.arguments))
            assert error <= case.tolerance, f"{case.function} of {size}: {error}"
            ran.add(case.function)
    assert ran == {name for pack in packs.values() for name in pack.functions}


def test_values_of_int64_are_refused_where_devices_have_none(tmp_path: Path) -> None:
    path = project("imagekit", tmp_path / "imagekit", '"vulkan"')
    path.write_text(path.read_text().replace('gpu = "vulkan"', 'gpu = "vulkan+no-int64"'))
    with pytest.raises(UserError) as caught:
        build(path)
    (found,) = caught.value.diagnostics
    assert found.code == "GM0680"
    assert "`int64` is not supported by target `vulkan:1.1+no-int64+storage16+storage8`" in found.message
    assert found.place is not None
    assert found.place.file.endswith("reductions.py")


def test_blockkits_python_package(tmp_path: Path) -> None:
    report = build(project("blockkit", tmp_path / "blockkit", '"vulkan"'))
    kit = import_from(tmp_path / "blockkit", "__init__", "blockkit").open(report.packs[0].path.parent, device=GPU)
    random = np.random.default_rng(3)
    left, right = random.random((5, 7), np.float32), random.random((7, 3), np.float32)
    np.testing.assert_allclose(kit.multiplied(left, right), left @ right, rtol=1e-5)
    grey = np.full((6, 4), 9, np.uint8)
    np.testing.assert_allclose(kit.blurred(grey), grey, rtol=1e-6)
    assert kit.total(np.arange(10, dtype=np.float32)) == 45


COUNTED = """from gristmill.script import tir as T


@T.prim_func
def fill(x: T.Buffer(("n",), "float32"), count: T.int64, by: T.int64):
    for i in range(count):
        x[i] = T.float32(i * by)
"""


def test_what_does_not_fit_into_32_bits_is_an_error_before_the_launch(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text(COUNTED)
    (tmp_path / "kernels.toml").write_text(
        'schema = 1\n[project]\nname = "p"\n[targets]\ngpu = "vulkan+no-int64"\n[[module]]\nname = "m"\nsource = "m.py"\n'
    )
    gpu = device(GPU)
    pack = load(build(tmp_path / "kernels.toml").pack("m").path, device=gpu)
    x = gpu.array(np.zeros(10, np.float32))
    pack.fill(x, 10, 1 << 27)
    np.testing.assert_array_equal(x.numpy(), np.arange(10, dtype=np.float32) * (1 << 27))
    for count, by in ((1 << 40, 1), (10, 1 << 40), (10, 1 << 30)):
        with pytest.raises(ValueError, match="fill: indices would need more than 32 bits") as caught:
            pack.fill(x, count, by)
        assert f"`count` is {count}, `by` is {by}" in str(caught.value)
    pack.fill(x, 0, 1 << 40)
    pack.fill(x, -(1 << 40), 1)
    np.testing.assert_array_equal(x.numpy(), np.arange(10, dtype=np.float32) * (1 << 27))
