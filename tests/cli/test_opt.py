"""``gristmill opt``: passes by name or for a target, what is printed, dumps, timings, reproducers."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from gristmill.cli import main
from gristmill.ir.dtype import INT32
from gristmill.ir.expr import IntImm
from gristmill.ir.functor import Mutator
from gristmill.ir.module import Function, FunctionFacts, Module
from gristmill.ir.printer import print_module
from gristmill.ir.stmt import Return
from gristmill.ir.target import Target
from gristmill.passes import reproducer
from gristmill.passes.manager import Pass
from gristmill.plugin.artifacts import Capabilities
from gristmill.plugin.hookspecs import hookimpl
from gristmill.plugin.protocols import PassEntry, TargetKind
from gristmill.plugin.registry import Registry

Capture = pytest.CaptureFixture[str]


@dataclass(frozen=True)
class AddToConstants(Pass):
    """Add one to every constant."""

    def run(self, module: Module) -> Module:
        class Adding(Mutator):
            def visit_IntImm(self, node: IntImm) -> IntImm:
                return replace(node, value=node.value + 1)

        return Adding().visit(module)


@dataclass(frozen=True)
class Fail(Pass):
    """Fail."""

    def run(self, module: Module) -> Module:
        raise ZeroDivisionError("no reason")


def resolve(target: Target) -> Target:
    if target.arch == "none":
        raise ValueError("there is no `none`")
    return target


class Plugin:
    GRISTMILL_API_VERSION = 1

    @hookimpl
    def gristmill_targets(self) -> list[TargetKind]:
        return [TargetKind("water", "A mill.", "wheel", ("flour",), resolve, lambda target: Capabilities())]

    @hookimpl
    def gristmill_passes(self) -> list[PassEntry]:
        return [
            PassEntry("add_to_constants", "host", lambda context: AddToConstants(), "adds one", required=True),
            PassEntry("acme.fail", "host", lambda context: Fail(), "fails"),
        ]


@pytest.fixture(autouse=True)
def plugins(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(Registry, "installed", classmethod(lambda kind, disabled=(): Registry.of([Plugin()], disabled)))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.delenv("GRISTMILL_DUMP", raising=False)


@pytest.fixture
def text(tmp_path: Path) -> Path:
    module = Module((Function("f", (), (), INT32, Return(IntImm(41, INT32)), FunctionFacts(symbol="f")),))
    path = tmp_path / "module.gmir"
    path.write_text(print_module(module))
    return path


def test_pipeline_of_a_target(text: Path, capsys: Capture) -> None:
    assert main(["opt", str(text)]) == 0
    captured = capsys.readouterr()
    assert "42" in captured.out
    assert captured.err == ""
    assert main(["opt", str(text), "-t", "water", "--time", "--print-after", "add_to_constants"]) == 0
    captured = capsys.readouterr()
    assert "# after add_to_constants\n" in captured.err
    assert "total" in captured.err


def test_chosen_passes(text: Path, capsys: Capture) -> None:
    assert main(["opt", str(text), "--passes", "lower_blocks", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert "41" in found["module"]
    (timing,) = found["timings"]
    assert (timing["pass"], timing["changed"]) == ("lower_blocks", False)
    assert main(["opt", str(text), "-t", "water", "--passes", "add_to_constants,add_to_constants"]) == 0
    assert "43" in capsys.readouterr().out
    assert main(["opt", str(text), "--passes", "lower_bloks"]) == 1
    assert "did you mean `lower_blocks`?" in capsys.readouterr().err


def test_stopping_and_listing(text: Path, capsys: Capture) -> None:
    assert main(["opt", str(text), "--stop-after", "lower_blocks"]) == 0
    assert "41" in capsys.readouterr().out
    assert main(["opt", "--list"]) == 0
    assert "host: add_to_constants: adds one\n" in capsys.readouterr().out
    assert main(["opt", "--list", "--json", "--with", "acme.fail"]) == 0
    steps = {step["pass"]: step for step in json.loads(capsys.readouterr().out)["steps"]}
    assert steps["add_to_constants"] == {
        "phase": "host",
        "pass": "add_to_constants",
        "optional": False,
        "reason": "adds one",
    }
    assert steps["fail"]["optional"] is True


def test_output_and_dump(text: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out.gmir"
    assert main(["opt", str(text), "-o", str(out), "--dump", str(tmp_path / "dump")]) == 0
    assert capsys.readouterr().out == ""
    assert "42" in out.read_text()
    names = sorted(path.name for path in (tmp_path / "dump").iterdir())
    assert names[0].startswith("000_input")
    assert [name.partition("_")[2] for name in names[1:]] == ["add_to_constants.gmir"]
    monkeypatch.setenv("GRISTMILL_DUMP", str(tmp_path / "other"))
    assert main(["opt", str(text)]) == 0
    assert sorted(path.name for path in (tmp_path / "other").iterdir()) == names


def test_failing_pass_leaves_a_reproducer(text: Path, tmp_path: Path, capsys: Capture) -> None:
    assert main(["opt", str(text), "-t", "water", "--with", "acme.fail"]) == 4
    shown = capsys.readouterr().err
    assert "in pass: fail" in shown
    assert "Traceback" not in shown
    (path,) = tmp_path.glob("*.repro")
    assert f"gristmill opt --repro {path}" in shown
    found = reproducer.read(path)
    assert str(found.target) == "water"


def test_replaying(tmp_path: Path, capsys: Capture) -> None:
    module = Module((Function("f", (), (), INT32, Return(IntImm(41, INT32)), FunctionFacts(symbol="f")),))
    path = reproducer.write(tmp_path, "add_to_constants", "add_to_constants", Target("water"), "it failed", module)
    assert main(["opt", "--repro", str(path)]) == 0
    captured = capsys.readouterr()
    assert "42" in captured.out
    assert "pass `add_to_constants` does not fail any more" in captured.err
    assert main(["opt", "--repro", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["fails"] is False
    assert main(["opt", "--repro", str(tmp_path / "absent")]) == 1
    assert "GM0605" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "no file to run passes over"),
        (["absent.gmir"], "can't read `absent.gmir`"),
        (["absent.gmir", "-t", "water:none"], "there is no `none`"),
        (["absent.gmir", "-t", "a b"], "is not of the form"),
    ],
)
def test_wrong_arguments(words: list[str], message: str, capsys: Capture) -> None:
    assert main(["opt", *words]) == 1
    shown = capsys.readouterr().err
    assert "error[GM0010]" in shown
    assert message in shown


def test_target_must_be_named_where_there_are_several(
    monkeypatch: pytest.MonkeyPatch, text: Path, capsys: Capture
) -> None:
    class Second:
        GRISTMILL_API_VERSION = 1

        @hookimpl
        def gristmill_targets(self) -> list[Any]:
            return [TargetKind("wind", "A mill.", "wheel", ("flour",), resolve, lambda target: Capabilities())]

    monkeypatch.setattr(
        Registry, "installed", classmethod(lambda kind, disabled=(): Registry.of([Plugin(), Second()], disabled))
    )
    assert main(["opt", str(text)]) == 1
    assert "name one with --target; installed kinds: water, wind" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--skip", "--stop-after", "--print-after"])
def test_passes_that_do_not_run_cannot_be_named(option: str, text: Path, capsys: Capture) -> None:
    assert main(["opt", str(text), option, "add_to_constant"]) == 1
    shown = capsys.readouterr().err
    assert "error[GM0602]: there is no pass named `add_to_constant`" in shown
    assert "did you mean `add_to_constants`?" in shown
