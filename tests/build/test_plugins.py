"""Builds with plugins that lie: the error names the plugin, and nothing is written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

import gristmill
from gristmill.errors import InternalError, PluginError, UserError
from gristmill.ir.dtype import INT32
from gristmill.ir.expr import Var
from gristmill.ir.module import Module
from gristmill.ir.stmt import Return
from gristmill.ir.target import Target
from gristmill.passes.manager import Pass
from gristmill.plugin.artifacts import Blob, Capabilities
from gristmill.plugin.hookspecs import hookimpl
from gristmill.plugin.protocols import GenerateOptions, PassEntry, TargetKind
from gristmill.plugin.registry import Registry

MANIFEST = """\
schema = 1
[project]
name = "sample"
[targets]
only = "water"
[[module]]
name = "one"
source = "one.py"
"""
KERNEL = """\
from gristmill.script import tir as T


@T.prim_func
def one(y: T.Buffer((1,), "int32")):
    y[0] = 1
"""
KIND = TargetKind("water", "A mill.", "wheel", ("flour",), lambda target: target, lambda target: Capabilities())
BLOB = Blob("flour", "water", b"code", ("f",))


class Wheel:
    name = "wheel"
    blobs: Any = (BLOB,)

    def generate(self, module: Module, target: Target, options: GenerateOptions) -> Any:
        return self.blobs


@dataclass(frozen=True)
class Odd(Pass):
    """Do what the test says."""

    def run(self, module: Module) -> Module:
        return WORK[0](module)


WORK: list[Callable[[Module], Any]] = []


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "kernels.toml").write_text(MANIFEST)
    (tmp_path / "one.py").write_text(KERNEL)
    return tmp_path


def plugin(kind: Any = KIND, generators: tuple[Any, ...] = (Wheel,), passes: tuple[PassEntry, ...] = ()) -> Any:
    class Plugin:
        GRISTMILL_API_VERSION = 1

        @hookimpl
        def gristmill_targets(self) -> Any:
            return [kind]

        @hookimpl
        def gristmill_code_generators(self) -> Any:
            return list(generators)

        @hookimpl
        def gristmill_passes(self) -> Any:
            return list(passes)

    return Plugin()


def refused(project: Path, **offers: Any) -> str:
    with pytest.raises(InternalError) as caught:
        gristmill.build(project, registry=Registry.of([plugin(**offers)]))
    assert not (project / "build").exists()
    assert caught.value.exit_status == 4
    assert "plugin 'Plugin' (Plugin)" in str(caught.value)
    return str(caught.value)


def test_a_plugin_that_does_not_lie(project: Path) -> None:
    report = gristmill.build(project, registry=Registry.of([plugin()]))
    assert [part.kind for part in report.pack("one").parts] == ["flour"]


def test_code_that_no_runtime_takes(project: Path) -> None:
    other = type("Other", (Wheel,), {"blobs": (replace(BLOB, kind="bran"),)})
    assert "made code of kind 'bran'; the target kind 'water' is for flour" in refused(project, generators=(other,))
    nothing = type("Nothing", (Wheel,), {"blobs": ()})
    assert "made no code for the target kind 'water'" in refused(project, generators=(nothing,))


def test_a_generator_that_is_not_there(project: Path) -> None:
    assert "names the code generator 'wheel'" in refused(project, generators=())


def test_a_target_that_cannot_be_resolved_points_at_the_manifest(project: Path) -> None:
    shown = refused(project, kind=replace(KIND, resolve=lambda target: None))
    assert "resolved `water` to None" in shown
    assert f"at: {project / 'kernels.toml'}:5:8" in shown


def test_a_kind_that_is_unknown_because_its_plugin_is_broken(project: Path) -> None:
    from gristmill.plugin.discovery import Candidate, Origin

    broken = Candidate(Origin("targets", "water", "mills", "1.0", "mills"), plugin(kind=replace(KIND, keys=None)))
    with pytest.raises(PluginError, match=r"'water' of mills 1\.0") as caught:
        gristmill.build(project, registry=Registry(lambda group: [broken] if group == "targets" else []))
    assert "whose keys is None" in str(caught.value)


@pytest.mark.parametrize(
    "work",
    [
        lambda module: None,
        lambda module: 3,
        lambda module: 1 // 0,
        lambda module: exit(0),
        lambda module: Module(()),
        lambda module: module.with_functions(
            replace(function, body=Return(Var("nowhere", INT32))) for function in module.functions
        ),
    ],
    ids=["None", "int", "raises", "exits", "empties", "breaks"],
)
def test_passes_that_break_the_module(work: Callable[[Module], Any], project: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(project))
    manifest = (project / "kernels.toml").read_text()
    (project / "kernels.toml").write_text(manifest + 'passes = ["odd.pass"]\n')
    WORK[:] = [work]
    assert "`odd.pass` is of" in refused(
        project, passes=(PassEntry("odd.pass", "cleanup", lambda context: Odd(), "is odd"),)
    )


def test_an_unknown_pass_points_at_the_manifest(project: Path) -> None:
    entry = PassEntry("acme.prefetch", "cleanup", lambda context: Odd(), "asks early")
    manifest = (project / "kernels.toml").read_text()
    wrong = f'{manifest}passes = ["acme.prefetch", "acme.prefech"]\n[module.target.only]\npasses = ["mill"]\n'
    (project / "kernels.toml").write_text(wrong)
    with pytest.raises(UserError) as caught:
        gristmill.build(project, registry=Registry.of([plugin(passes=(entry,))]))
    first, second = caught.value.diagnostics
    assert (first.code, first.place.line, first.place.column, first.hint) == (
        "GM0602", 9, 28, "did you mean `acme.prefetch`?",
    )  # fmt: skip
    assert (second.code, second.place.line) == ("GM0602", 11)
    assert '9 | passes = ["acme.prefetch", "acme.prefech"]' in str(caught.value)
    assert not (project / "build").exists()


def test_a_pass_that_is_unknown_because_its_plugin_is_broken(project: Path) -> None:
    broken = PassEntry("plugin.prefetch", "cleanup", lambda context: Odd(), "asks early", after=3)  # type: ignore[arg-type]
    manifest = (project / "kernels.toml").read_text()
    (project / "kernels.toml").write_text(f'{manifest}passes = ["plugin.prefetch"]\n')
    assert "whose after is" in refused(project, passes=(broken,))
