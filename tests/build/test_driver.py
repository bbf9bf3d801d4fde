"""The build as a function: what it writes, what it reports, and that nothing is written when anything is wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import gristmill
from gristmill.cli import main
from gristmill.errors import UserError
from gristmill.pack import open_pack, verify_pack

MANIFEST = """\
schema = 1
[project]
name = "sample"
[targets]
small = "cpu:x86-64-v2"
large = "cpu:x86-64-v3"
[[module]]
name = "scale"
source = "kernels/scale.py"
params = { FACTOR = 3 }
[module.target.large]
params = { FACTOR = 5 }
[[module]]
name = "shift"
source = "kernels/shift.py"
targets = ["small"]
"""

SCALE = """\
from gristmill.script import tir as T

FACTOR = 2


@T.prim_func
def scale(x: T.Buffer(("n",), "int32")):
    '''Multiplies by FACTOR.

    Integers wrap.
    '''
    for i in range(n):
        x[i] = x[i] * FACTOR


@T.prim_func
def negate(x: T.Buffer(("n",), "int32")):
    for i in range(n):
        x[i] = -x[i]
"""

SHIFT = """\
from gristmill.script import tir as T


@T.prim_func
def shift(x: T.Buffer(("n",), "int32"), by: T.int32):
    for i in range(n):
        x[i] = x[i] + by
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels.toml").write_text(MANIFEST)
    (tmp_path / "kernels" / "scale.py").write_text(SCALE)
    (tmp_path / "kernels" / "shift.py").write_text(SHIFT)
    return tmp_path


def test_packs_and_report(project: Path) -> None:
    report = gristmill.build(project)
    assert [pack.module for pack in report.packs] == ["scale", "shift"]
    scale = report.pack("scale")
    assert scale.path == project / "build" / "kernels" / "scale.kpack"
    assert [(part.target, part.identity, part.functions) for part in scale.parts] == [
        ("small", "cpu:x86-64-v2", ("scale", "negate")),
        ("large", "cpu:x86-64-v3", ("scale", "negate")),
    ]
    assert scale.size == scale.path.stat().st_size
    assert verify_pack(scale.path) == []
    with open_pack(scale.path) as pack:
        assert [function.name for function in pack.manifest.functions] == ["scale", "negate"]
        assert pack.manifest.functions[0].signature == "scale(x: Buffer((n,), int32))"
        assert [function.summary for function in pack.manifest.functions] == ["Multiplies by FACTOR.", ""]
        assert pack.manifest.functions[0].parameters[0].written


def test_docstrings_reach_who_uses_the_pack(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = gristmill.build(project).pack("scale").path
    pack = gristmill.load(path)
    assert pack.scale.__doc__ == "scale(x: Buffer((n,), int32))\n\nMultiplies by FACTOR."
    assert pack.negate.__doc__ == pack.functions["negate"].signature
    assert main(["inspect", str(path)]) == 0
    assert "scale(x: Buffer((n,), int32))\n    Multiplies by FACTOR.\n" in capsys.readouterr().out


def test_params_of_a_target(project: Path) -> None:
    report = gristmill.build(project)
    for target, factor in (("cpu:x86-64-v2", 3), ("cpu:x86-64-v3", 5)):
        pack = gristmill.load(report.pack("scale").path, target=target)
        values = np.arange(10, dtype=np.int32)
        pack.scale(values)
        np.testing.assert_array_equal(values, np.arange(10) * factor)


def test_same_input_same_bytes(project: Path) -> None:
    first = gristmill.build(project)
    bytes_before = [pack.path.read_bytes() for pack in first.packs]
    assert all(pack.changed for pack in first.packs)
    second = gristmill.build(project)
    assert not any(pack.changed for pack in second.packs)
    other = gristmill.build(project, output=project / "elsewhere")
    assert [pack.path.read_bytes() for pack in other.packs] == bytes_before


def test_chosen_modules_and_targets(project: Path) -> None:
    report = gristmill.build(project, modules=["scale"], targets=["large"])
    assert [(pack.module, [part.target for part in pack.parts]) for pack in report.packs] == [("scale", ["large"])]


@pytest.mark.parametrize(
    ("chosen", "message", "hint"),
    [
        ({"modules": ["scal"]}, "the manifest has no module `scal`", "did you mean `scale`?"),
        ({"targets": ["gpu"]}, "the manifest has no target `gpu`", "the targets are small, large"),
    ],
)
def test_unknown_names(project: Path, chosen: dict[str, list[str]], message: str, hint: str) -> None:
    with pytest.raises(UserError) as caught:
        gristmill.build(project, **chosen)
    assert caught.value.code == "GM1101"
    assert (caught.value.diagnostics[0].message, caught.value.diagnostics[0].hint) == (message, hint)


def test_mistakes_of_all_modules_come_together_and_nothing_is_written(project: Path) -> None:
    (project / "kernels" / "scale.py").write_text(SCALE.replace("x[i] * FACTOR", "y[i] * FACTOR"))
    (project / "kernels" / "shift.py").write_text(SHIFT.replace("+ by", "+ bye"))
    with pytest.raises(UserError) as caught:
        gristmill.build(project)
    places = {(Path(found.place.file).name, found.place.line) for found in caught.value.diagnostics if found.place}
    assert places == {("scale.py", 13), ("shift.py", 7)}
    assert "x[i] = y[i] * FACTOR" in str(caught.value)
    assert "x[i] = x[i] + bye" in str(caught.value)
    assert not (project / "build").exists()


def test_a_failed_build_leaves_the_earlier_packs(project: Path) -> None:
    report = gristmill.build(project)
    before = report.pack("shift").path.read_bytes()
    (project / "kernels" / "scale.py").write_text("def broken(:\n")
    with pytest.raises(UserError):
        gristmill.build(project)
    assert report.pack("shift").path.read_bytes() == before


@pytest.mark.parametrize("in_the_way", ["build", "build/kernels"])
def test_folder_for_packs_that_cannot_be_made(in_the_way: str, project: Path) -> None:
    (project / in_the_way).parent.mkdir(exist_ok=True)
    (project / in_the_way).write_text("a file")
    with pytest.raises(UserError, match="can't be made for the packs") as caught:
        gristmill.build(project / "kernels.toml")
    assert caught.value.code == "GM0811"


def test_fast_math_leaves_the_mathematical_functions_exact(project: Path) -> None:
    source = """\
from gristmill.script import tir as T


@T.prim_func
def scale(x: T.Buffer(("n",), "float32"), by: T.Buffer(("n",), "float32")):
    for i in range(n):
        x[i] = T.pow(x[i], by[i]) * by[i] + x[i]
"""
    (project / "kernels" / "scale.py").write_text(source)
    manifest = MANIFEST.replace("params = { FACTOR = 3 }", "options = { fast_math = true }").replace(
        "params = { FACTOR = 5 }", "options = { fast_math = false }"
    )
    (project / "kernels.toml").write_text(manifest)
    texts = {}
    report = gristmill.build(project, modules=["scale"], texts=["llvm-ir"])
    with open_pack(report.pack("scale").path) as pack:
        for member in pack.manifest.texts:
            if member.kind == "llvm-ir":
                texts[member.target] = pack.text(member)
    fast, exact = texts["cpu:x86-64-v2"], texts["cpu:x86-64-v3"]
    assert "reassoc" not in exact
    # Of the kernel's own floats one product and one sum are free; those of the power, which are many, are not.
    assert fast.count("fmul reassoc") == fast.count("fadd reassoc") == 1
    assert fast.count("fmul float") > 10
    values = np.linspace(0.1, 9, 1000, dtype=np.float32)
    powers = np.linspace(-3, 3, 1000, dtype=np.float32)
    expected = values.astype(np.float64) ** powers * powers + values
    gristmill.load(report.pack("scale").path, target="cpu:x86-64-v2").scale(values, powers)
    np.testing.assert_allclose(values, expected, rtol=2e-6, atol=1e-6)
