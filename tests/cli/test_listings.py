"""``plugins``, ``targets`` and ``doctor`` over plugins that are good, broken, or switched off."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gristmill import knobs
from gristmill.cli import main
from gristmill.ir.target import Target
from gristmill.plugin.artifacts import Capabilities
from gristmill.plugin.hookspecs import hookimpl
from gristmill.plugin.protocols import CommandEntry, DeviceDescription, KeyDescription, Probe, TargetKind
from gristmill.plugin.registry import Registry

Capture = pytest.CaptureFixture[str]

WATER = TargetKind(
    "water",
    "A mill by the river.",
    "wheel",
    ("flour",),
    lambda target: Target(target.kind, target.arch),
    lambda target: Capabilities(),
    keys=(
        KeyDescription("width", "integer", "Width of the wheel.", 3),
        KeyDescription("wood", "string", "Which.", None, ("oak", "elm")),
    ),
    architectures=("overshot", "undershot"),
    features=(("sluice", "A gate above."), ("width", "As the key says.")),
)


class River:
    name = "river"
    blob_kinds = ("flour",)
    found = Probe((DeviceDescription(0, "the brook"),))

    def probe(self) -> Probe:
        return self.found

    def open(self, index: int) -> Any:
        raise NotImplementedError

    def refusal(self, *about: Any) -> str:
        return ""

    def preference(self, target: str) -> int:
        return 0


class Good:
    GRISTMILL_API_VERSION = 1

    @hookimpl
    def gristmill_targets(self) -> list[TargetKind]:
        return [WATER]

    @hookimpl
    def gristmill_runtimes(self) -> list[type[River]]:
        return [River]


class Old:
    GRISTMILL_API_VERSION = 0


def install(monkeypatch: pytest.MonkeyPatch, *plugins: Any) -> None:
    monkeypatch.setattr(Registry, "installed", classmethod(lambda kind, disabled=(): Registry.of(plugins, disabled)))


def test_targets(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    install(monkeypatch, Good())
    assert main(["targets"]) == 0
    assert capsys.readouterr().out == (
        "water: A mill by the river.\n"
        "  code: flour by wheel\n"
        "  architectures: overshot, undershot\n"
        "  features, also keys: +width\n"
        "  feature water+sluice: A gate above.\n"
        "  key width (integer, default 3): Width of the wheel.\n"
        "  key wood (string, one of oak, elm): Which.\n"
    )
    assert main(["targets", "water", "--json"]) == 0
    (kind,) = json.loads(capsys.readouterr().out)["targets"]
    assert kind["keys"][1] == {"name": "wood", "type": "string", "meaning": "Which.", "choices": ["oak", "elm"]}
    assert main(["targets", "watr"]) == 1
    assert "water" in capsys.readouterr().err


def test_broken_plugins_do_not_hide_the_others(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    install(monkeypatch, Good(), Old())
    assert main(["targets"]) == 4
    shown = capsys.readouterr().out
    assert "water: A mill by the river." in shown
    assert "broken: " in shown
    assert main(["plugins", "--check", "--json"]) == 4
    rows = json.loads(capsys.readouterr().out)["plugins"]
    assert {row["status"] for row in rows} == {"ok", "broken"}


def test_installed_plugins_are_listed_without_import(capsys: Capture) -> None:
    assert main(["plugins"]) == 0
    shown = capsys.readouterr().out
    assert "gristmill_llvm.plugin" in shown
    assert "installed" in shown
    assert main(["plugins", "--no-plugin", "gristmill", "--json"]) == 0
    ours = [row for row in json.loads(capsys.readouterr().out)["plugins"] if row["distribution"] == "gristmill"]
    assert {row["status"] for row in ours} == {"disabled"}


def test_no_targets_at_all(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    install(monkeypatch)
    assert main(["targets"]) == 0
    assert capsys.readouterr().out == "no installed plugin provides a target kind\n"


def test_doctor(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    for knob in knobs.ALL:
        monkeypatch.delenv(knob.name, raising=False)
    install(monkeypatch, Good())
    monkeypatch.setenv("GRISTMILL_CACHE_DIR", "/somewhere")
    assert main(["doctor", "--json"]) == 0
    findings = {entry["name"]: entry for entry in json.loads(capsys.readouterr().out)["findings"]}
    assert findings["python"]["status"] == "ok"
    assert "LLVM" in findings["llvmlite"]["detail"]
    assert findings["river:0"]["detail"] == "the brook"
    assert findings["GRISTMILL_CACHE_DIR"] == {
        "section": "Settings",
        "name": "GRISTMILL_CACHE_DIR",
        "status": "ok",
        "detail": "/somewhere",
    }
    assert findings["GRISTMILL_DUMP"]["status"] == "not set"
    assert main(["doctor"]) == 0
    shown = capsys.readouterr().out
    assert "  ok       river:0: the brook\n" in shown
    assert "  not set  GRISTMILL_NUM_THREADS: default: all that the process may use. How many threads" in shown
    assert "absent" not in shown


def test_doctor_says_what_is_missing_and_why(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    install(monkeypatch, Good())
    monkeypatch.setattr(River, "found", Probe(reason="the river is dry"))
    monkeypatch.setenv("GRISTMILL_NUM_THREADS", "many")
    assert main(["doctor"]) == 3
    shown = capsys.readouterr().out
    assert "  absent   river: the river is dry\n" in shown
    assert "  missing  any: no runtime has a device" in shown
    assert "GM0003" in shown
    monkeypatch.setenv("GRISTMILL_NUM_THREADS", "2")
    monkeypatch.setattr("gristmill.cli.doctor._llvmlite", lambda: (_ for _ in ()).throw(ImportError("no llvmlite")))
    assert main(["doctor"]) == 3
    assert "  missing  llvmlite: ImportError: no llvmlite\n" in capsys.readouterr().out


class Greedy:
    """Gives what others give, a runtime that cannot be made, and a command of Gristmill's own name."""

    GRISTMILL_API_VERSION = 1

    @hookimpl
    def gristmill_targets(self) -> list[TargetKind]:
        return [WATER]

    @hookimpl
    def gristmill_runtimes(self) -> list[type[River]]:
        def fail(self: River) -> None:
            raise OSError("the river is dry")

        return [type("Dry", (River,), {"name": "dry", "__init__": fail})]

    @hookimpl
    def gristmill_commands(self) -> list[CommandEntry]:
        return [CommandEntry("build", "Builds.", lambda parser: None, lambda options: 0)]


def test_what_is_wrong_between_plugins(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    install(monkeypatch, Good(), Greedy())
    assert main(["plugins"]) == 0
    capsys.readouterr()
    assert main(["plugins", "--check"]) == 4
    shown = capsys.readouterr().out
    assert "broken: gristmill_targets gives the name 'water' more than once: plugin 'Good'" in shown
    assert "Dry() of plugin 'Greedy' (Greedy) failed: OSError: the river is dry" in shown
    assert "broken: plugin 'Greedy' (Greedy) gives the command 'build', which is Gristmill's own and stays so" in shown
    assert main(["plugins", "--check", "--json"]) == 4
    assert len(json.loads(capsys.readouterr().out)["problems"]) == 3


@pytest.mark.parametrize("found", [None, [1], OSError("dry")], ids=repr)
def test_doctor_survives_a_runtime_that_lies(found: Any, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    def probe(self: River) -> Any:
        if isinstance(found, OSError):
            raise found
        return found

    monkeypatch.setattr(River, "probe", probe)
    install(monkeypatch, Good())
    main(["doctor", "--json"])
    (device,) = [row for row in json.loads(capsys.readouterr().out)["findings"] if row["name"] == "river"]
    assert device["status"] == "absent"
    assert "plugin 'Good' (Good)" in device["detail"]
