"""``build``, ``check``, ``run`` and ``demo``: their arguments and what they print, over a builder and devices of the test."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import gristmill
from gristmill.build.report import BuildReport, PackReport, PartReport
from gristmill.cli import main

Capture = pytest.CaptureFixture[str]


def report() -> BuildReport:
    part = PartReport("cpu", "cpu:x86-64-v3", "elf-shared", ("rows", "columns"), 3482, 21.25)
    return BuildReport(
        Path("kernels.toml"),
        (
            PackReport("blur", Path("build/kernels/blur.kpack"), 5000, True, 21.25, (part,)),
            PackReport("sobel", Path("build/kernels/sobel.kpack"), 4000, False, 20.0, (part,)),
        ),
        45.4,
    )


def test_build(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    given: list[tuple[Any, dict[str, Any]]] = []

    def build(manifest: Any, **options: Any) -> BuildReport:
        given.append((manifest, options))
        return report()

    monkeypatch.setattr("gristmill.build.driver.build", build)
    assert main(["build", "some", "-m", "blur", "-m", "sobel", "-t", "cpu", "-o", "out"]) == 0
    ((manifest, options),) = given
    assert manifest == "some"
    assert (options["modules"], options["targets"], options["output"]) == (["blur", "sobel"], ["cpu"], "out")
    assert capsys.readouterr().out == (
        "pack                       target         kind        functions     size    ms\n"
        "build/kernels/blur.kpack   cpu:x86-64-v3  elf-shared          2  3.4 KiB  21.2\n"
        "build/kernels/sobel.kpack  cpu:x86-64-v3  elf-shared          2  3.4 KiB  21.2\n"
        "1 pack written, 1 unchanged, 45 ms\n"
    )
    assert main(["build", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert given[1][0] == "kernels.toml"
    assert found["packs"][1]["changed"] is False
    assert found["packs"][0]["parts"][0]["functions"] == ["rows", "columns"]


@pytest.mark.parametrize("command", ["build", "check"])
def test_mistakes_of_a_manifest(command: str, tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "kernels.toml"
    path.write_text('schema = 1\n[project]\nname = "p"\n[targets]\n[[module]]\nname = "m"\nsuorce = "m.py"\n')
    assert main([command, str(path)]) == 1
    shown = capsys.readouterr().err
    assert f"{path}:7:1" in shown
    assert "did you mean `source`?" in shown
    assert main([command, str(tmp_path), "--json"]) == 1
    codes = [found["code"] for found in json.loads(capsys.readouterr().out)["diagnostics"]]
    assert codes == ["GM0117", "GM0103", "GM0102"]
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["kernels.toml"]


class Array:
    def __init__(self, content: np.ndarray) -> None:
        self.content = content

    def numpy(self) -> np.ndarray:
        return self.content


class Pack(dict[str, Any]):
    devices = ("abacus:1", "cpu:0")


@pytest.fixture
def pack(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A pack whose only function adds a number to an array; the list has the names that were asked for."""
    asked: list[str] = []

    def add(source: Array, target: Array, number: float) -> None:
        target.content[...] = source.content + number

    def mend(source: Array) -> None:
        raise ValueError("mend: argument `x` (number 1) has rank 1\n  signature: mend(x: float32)")

    def check() -> None:
        raise AssertionError("n is 3")

    def load(name: str) -> Any:
        asked.append(name)
        return Pack({"add": add, "mend": mend, "check": check, "nan": lambda: float("nan")})

    def device(name: str) -> Any:
        asked.append(name)
        return SimpleNamespace(array=lambda content: Array(content.copy()), synchronize=lambda: None)

    monkeypatch.setitem(gristmill.__dict__, "load", load)
    monkeypatch.setitem(gristmill.__dict__, "device", device)
    return asked


def test_run(pack: list[str], tmp_path: Path, capsys: Capture) -> None:
    np.save(tmp_path / "in.npy", np.arange(6, dtype=np.float32).reshape(2, 3))
    out = tmp_path / "out.npy"
    words = ["run", "x.kpack", "add", str(tmp_path / "in.npy"), "zeros:2x3:float32", "1.5", "--save", f"2={out}"]
    assert main([*words, "-d", "cpu:1", "--repeat", "3"]) == 0
    assert pack == ["x.kpack", "cpu:1"]
    assert np.array_equal(np.load(out), np.arange(6, dtype=np.float32).reshape(2, 3) + 1.5)
    shown = capsys.readouterr().out
    assert "       2  2x3    float32    1.5       6.5   4.0\n".replace("4.0", "  4") in shown
    assert "add on cpu:1: " in shown
    assert main([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["arrays"][1] == {
        "position": 2,
        "shape": [2, 3],
        "dtype": "float32",
        "least": 1.5,
        "greatest": 6.5,
        "mean": 4.0,
    }
    assert len(found["milliseconds"]) == 1


def test_random_arrays_follow_the_seed(pack: list[str], capsys: Capture) -> None:
    def mean(seed: str) -> float:
        words = ["run", "x", "add", "random:100:float64", "ones:100:float64", "0", "--json", "--seed", seed]
        assert main(words) == 0
        return float(json.loads(capsys.readouterr().out)["arrays"][0]["mean"])

    assert mean("1") == mean("1") != mean("2")
    assert 0 < mean("3") < 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["x"], "`x` is not an argument"),
        (["zeros:3:float31"], "did you mean `float32`?"),
        (["zeros:999999999999x9:int8"], "too large"),
        (["zeros::float32:"], "is not an argument"),
        (["absent.npy"], "can't read the array in `absent.npy`"),
        (["3", "--save", "1=x.npy"], "no argument is an array"),
        (["ones:2:int8", "--save", "2=x.npy"], "arrays are at 1"),
        (["ones:2:int8", "--save", "x.npy"], "write POSITION=FILE.npy"),
    ],
)
def test_wrong_arguments_of_run(words: list[str], message: str, pack: list[str], capsys: Capture) -> None:
    assert main(["run", "x.kpack", "add", *words]) == 1
    shown = capsys.readouterr().err
    assert "error[GM0009]" in shown
    assert message in shown
    assert pack == [], "nothing is loaded for wrong arguments"


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (
            ["mend", "zeros:3:int8"],
            "error[GM0013]: mend: argument `x` (number 1) has rank 1\n  = hint: signature: mend(x: float32)\n",
        ),
        (
            ["check"],
            "error[GM0013]: check: AssertionError: n is 3\n  = hint: the function itself refuses these arguments\n",
        ),
    ],
)
def test_what_a_function_raises_is_its_answer(words: list[str], shown: str, pack: list[str], capsys: Capture) -> None:
    assert main(["run", "x.kpack", *words]) == 1
    assert capsys.readouterr().err == shown


def test_function_that_is_not_there(pack: list[str], capsys: Capture) -> None:
    assert main(["run", "x.kpack", "subtract", "1"]) == 1
    shown = capsys.readouterr().err
    assert shown.startswith("error[GM0013]: ")
    assert "subtract" in shown
    assert "gristmill inspect" in shown


def test_objects_in_files_are_not_read(pack: list[str], tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "objects.npy"
    np.save(path, np.array([{}], dtype=object), allow_pickle=True)
    assert main(["run", "x.kpack", "add", str(path)]) == 1
    assert "GM0009" in capsys.readouterr().err


def test_demo(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    row = SimpleNamespace(
        kernel="saxpy",
        target="cpu:x86-64-v3",
        device="cpu:0",
        work="1000",
        size=100,
        build_ms=20.0,
        run_ms=0.5,
        error=1e-7,
        bound=1e-6,
        ok=True,
    )
    given: list[Any] = []

    def demonstrate(folder: str, devices: Any) -> Any:
        given.append((folder, devices))
        return SimpleNamespace(
            rows=[row], pictures=["blur.png"], absent=[("hip", "no driver")], as_json=lambda: {"rows": [vars(row)]}
        )

    module = ModuleType("gristmill.testing.demonstration")
    module.demonstrate = demonstrate  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "gristmill.testing.demonstration", module)
    assert main(["demo", "-o", "here", "-d", "cpu:0"]) == 0
    assert given == [("here", ["cpu:0"])]
    shown = capsys.readouterr().out
    assert "saxpy   cpu:x86-64-v3  cpu:0   1000  100 B      20.0   0.500  1.0e-07  1e-06    ok\n" in shown
    assert "no hip: no driver\nwrote blur.png\n" in shown
    assert "1 of 1 results agree" in shown
    row.ok = False
    assert main(["demo", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["rows"][0]["ok"] is False
    assert main(["demo"]) == 1
    assert "WRONG\n" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["__class__", "save", "_reader", "bytes", "get"])
def test_only_functions_of_the_pack_are_run(name: str, pack: list[str], capsys: Capture) -> None:
    assert main(["run", "x.kpack", name]) == 1
    assert "error[GM0013]" in capsys.readouterr().err


@pytest.mark.parametrize("seed", ["-1", "1.5", "x", "9" * 41, "٣"])
def test_seeds_that_are_none(seed: str, pack: list[str], capsys: Capture) -> None:
    assert main(["run", "x.kpack", "add", f"--seed={seed}"]) == 2
    assert "argument --seed: must be a number from 0 up" in capsys.readouterr().err


def test_array_files_that_claim_too_much(pack: list[str], tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "huge.npy"
    np.save(path, np.zeros(3, "float32"))
    path.write_bytes(path.read_bytes().replace(b"(3,), }           ", b"(99999999999999,)}"[:18]))
    assert main(["run", "x.kpack", "add", str(path)]) == 1
    assert "error[GM0009]" in capsys.readouterr().err


def test_floats_that_json_has_not(pack: list[str], capsys: Capture) -> None:
    def strict(name: str) -> float:
        raise AssertionError(f"{name} is no JSON")

    assert main(["run", "x.kpack", "nan", "--json"]) == 0
    assert json.loads(capsys.readouterr().out, parse_constant=strict)["returned"] == "nan"


def test_without_a_device_named_a_pack_runs_where_it_can(
    pack: list[str], monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    assert main(["run", "x.kpack", "nan"]) == 0
    monkeypatch.setattr(Pack, "devices", ("abacus:1",))
    assert main(["run", "x.kpack", "nan"]) == 0
    assert pack == ["x.kpack", "cpu:0", "x.kpack", "abacus:1"]
    assert "nan on abacus:1" in capsys.readouterr().out
