"""The registry, with distributions that exist only as a ``dist-info`` folder and a module in a temporary folder."""

from __future__ import annotations

import importlib.metadata
import itertools
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from gristmill.errors import EXIT_INTERNAL, MissingError, PluginError, UserError
from gristmill.ir.target import Target
from gristmill.plugin.artifacts import Capabilities
from gristmill.plugin.hookspecs import GROUP_HOOKS, hookimpl
from gristmill.plugin.protocols import PassEntry, Probe, TargetKind
from gristmill.plugin.registry import GROUPS, Registry

_numbers = itertools.count()

KIND = """
from gristmill.plugin.hookspecs import hookimpl
from gristmill.plugin.protocols import TargetKind
from gristmill.plugin.artifacts import Capabilities
GRISTMILL_API_VERSION = 1

@hookimpl
def gristmill_targets():
    return [TargetKind({name!r}, "a kind", "gen", ("blob",), lambda target: target, lambda target: Capabilities())]
"""

Install = Callable[..., str]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Make a distribution with one entry point; returns the name of its module, which no other test uses."""

    def make(
        distribution: str,
        version: str,
        source: str,
        name: str,
        group: str = "targets",
        attribute: str = "",
    ) -> str:
        module = f"gm_fake_plugin_{next(_numbers)}"
        place = tmp_path / f"site{next(_numbers)}"
        info = place / f"{distribution.replace('-', '_')}-{version}.dist-info"
        info.mkdir(parents=True)
        (place / f"{module}.py").write_text(source)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n")
        value = f"{module}:{attribute}" if attribute else module
        (info / "entry_points.txt").write_text(f"[gristmill.{group}]\n{name} = {value}\n")
        monkeypatch.syspath_prepend(str(place))
        return module

    return make


def _problem_of(registry: Registry, distribution: str) -> str:
    """The message of the only problem with a distribution's plugins."""
    (problem,) = [problem for problem in registry.problems() if problem.origin.distribution == distribution]
    return f"{problem.code} {problem.message}"


def test_a_kind_is_found_by_entry_point_and_imports_no_other_plugin(install: Install) -> None:
    wanted = install("gm-good", "1.0", KIND.format(name="good"), "good")
    other = install("gm-other", "1.0", KIND.format(name="other"), "other")
    registry = Registry.installed()
    assert registry.target_kind("good").name == "good"
    assert wanted in sys.modules
    assert other not in sys.modules
    assert str(registry.origin("targets", "good")) == f"target plugin 'good' of gm-good 1.0 ({wanted})"
    assert [origin.distribution for origin in registry.loaded()] == ["gm-good"]
    assert {"good", "other"} <= {kind.name for kind in registry.target_kinds()}


def test_a_kind_with_another_name_than_its_entry_point_is_found_too(install: Install) -> None:
    install("gm-many", "1.0", KIND.format(name="inner"), "outer")
    assert Registry.installed().target_kind("inner").name == "inner"


def test_a_broken_import_names_plugin_distribution_and_version_and_the_others_go_on(install: Install) -> None:
    broken = install("acme-imp", "1.0", "import nope_not_there", "imp")
    install("gm-good", "1.0", KIND.format(name="good"), "good")
    registry = Registry.installed()
    assert "good" in {kind.name for kind in registry.target_kinds()}
    expected = (
        f"target plugin 'imp' of acme-imp 1.0 ({broken}) cannot be imported: "
        "ModuleNotFoundError: No module named 'nope_not_there'"
    )
    assert _problem_of(registry, "acme-imp") == f"GM1001 {expected}"
    with pytest.raises(PluginError, match="GM1001") as caught:
        registry.target_kind("imp")
    assert expected in str(caught.value)
    assert caught.value.exit_status == EXIT_INTERNAL
    assert isinstance(caught.value.__cause__, ModuleNotFoundError)


def test_a_module_that_exits_does_not_end_the_process(install: Install) -> None:
    install("acme-exit", "2.1", "import sys; sys.exit(3)", "leaves")
    with pytest.raises(PluginError, match=r"GM1001.*'leaves' of acme-exit 2\.1 .* cannot be imported: SystemExit: 3"):
        Registry.installed().target_kind("leaves")


def test_a_missing_attribute(install: Install) -> None:
    install("acme-attr", "1.0", KIND.format(name="attr"), "attr", attribute="plugin.inner")
    with pytest.raises(PluginError, match=r"GM1002.*'attr' of acme-attr 1\.0 .* has no attribute 'plugin'"):
        Registry.installed().target_kind("attr")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", "states no GRISTMILL_API_VERSION"),
        ("GRISTMILL_API_VERSION = 2", "is made for plugin API 2"),
        ("GRISTMILL_API_VERSION = True", "is made for plugin API True"),
    ],
)
def test_another_api_version_is_refused(install: Install, line: str, expected: str) -> None:
    install("acme-old", "0.1", KIND.format(name="old").replace("GRISTMILL_API_VERSION = 1", line), "old")
    with pytest.raises(PluginError, match=rf"GM1003.*'old' of acme-old 0\.1 .* {expected}.* plugin API 1"):
        Registry.installed().target_kind("old")


def test_an_unknown_hook_is_refused(install: Install) -> None:
    source = KIND.format(name="typo") + "\n@hookimpl\ndef gristmill_target():\n    return []\n"
    install("acme-typo", "1.0", source, "typo")
    with pytest.raises(
        PluginError,
        match=r"GM1004.*'typo' of acme-typo 1\.0 .* implements gristmill_target, .*gristmill_targets",
    ):
        Registry.installed().target_kind("typo")


def test_an_unknown_argument_is_refused(install: Install) -> None:
    source = KIND.format(name="args").replace("def gristmill_targets():", "def gristmill_targets(config):")
    install("acme-args", "1.0", source, "args")
    with pytest.raises(PluginError, match=r"GM1005.*'args' of acme-args 1\.0 .*config"):
        Registry.installed().target_kind("args")


def test_one_name_from_two_distributions_is_given_to_neither(install: Install) -> None:
    install("acme-first", "1.0", KIND.format(name="same"), "same")
    install("acme-second", "2.0", KIND.format(name="same"), "same")
    install("gm-good", "1.0", KIND.format(name="good"), "good")
    registry = Registry.installed()
    with pytest.raises(PluginError, match=r"GM1006.*'same'.*acme-first 1\.0 .* and acme-second 2\.0 "):
        registry.target_kind("same")
    names = {kind.name for kind in registry.target_kinds()}
    assert "good" in names
    assert "same" not in names
    # Switching one off mends it.
    assert Registry.installed(disabled=["acme-first"]).target_kind("same").name == "same"


def test_one_kind_from_two_entry_points_is_given_to_neither(install: Install) -> None:
    install("acme-first", "1.0", KIND.format(name="shared"), "one")
    install("acme-second", "2.0", KIND.format(name="shared"), "two")
    with pytest.raises(PluginError, match=r"GM1010.*'shared'.*acme-first 1\.0.* and .*acme-second 2\.0"):
        Registry.installed().target_kind("shared")


def test_a_raising_hook_is_named_with_a_note_and_the_others_go_on(install: Install) -> None:
    source = KIND.format(name="raises").replace("    return [", "    raise OSError('no disk')\n    return [")
    install("acme-raises", "1.0", source, "raises")
    install("gm-good", "1.0", KIND.format(name="good"), "good")
    registry = Registry.installed()
    assert "good" in {kind.name for kind in registry.target_kinds()}
    with pytest.raises(PluginError, match=r"GM1007.*'raises' of acme-raises 1\.0 .*OSError: no disk") as caught:
        registry.target_kind("raises")
    cause = caught.value.__cause__
    assert isinstance(cause, OSError)
    assert any("while gristmill_targets of target plugin 'raises'" in note for note in cause.__notes__)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("'text'", "returned an object of type str, not a list"),
        ("['text']", "gives an object of type str where a TargetKind is wanted"),
    ],
)
def test_a_hook_that_answers_with_something_else(install: Install, answer: str, expected: str) -> None:
    source = KIND.format(name="odd").replace("    return [TargetKind", f"    return {answer}\n    return [TargetKind")
    install("acme-odd", "1.0", source, "odd")
    with pytest.raises(PluginError, match=rf"GM1009.*gristmill_targets of .*'odd' of acme-odd 1\.0.*{expected}"):
        Registry.installed().target_kind("odd")


def test_an_unknown_name_gets_the_close_one_and_the_known_ones(install: Install) -> None:
    install("gm-good", "1.0", KIND.format(name="vulkanic"), "vulkanic")
    install("acme-imp", "1.0", "import nope_not_there", "imp")
    with pytest.raises(UserError) as caught:
        Registry.installed().target_kind("vulkanik")
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "GM1008"
    assert diagnostic.message == "there is no target kind 'vulkanik'"
    assert "did you mean 'vulkanic'?" in diagnostic.hint
    assert any("acme-imp 1.0" in note.message for note in diagnostic.notes)


def test_plugins_are_switched_off_by_entry_point_or_distribution_name(
    install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    install("Acme.Off_Switch", "1.0", KIND.format(name="off"), "off")
    for way in ("off", "acme-off-switch"):
        with pytest.raises(MissingError, match=r"GM1011.*'off' of Acme\.Off_Switch 1\.0 .*switched off"):
            Registry.installed(disabled=[way]).target_kind("off")
    monkeypatch.setenv("GRISTMILL_DISABLE_PLUGINS", "something,acme-off-switch")
    registry = Registry.installed()
    assert "off" not in {kind.name for kind in registry.target_kinds()}
    (row,) = [row for row in registry.listing() if row.name == "off"]
    assert (row.status, row.reason) == ("disabled", "'Acme.Off_Switch' is switched off")


def test_listing_imports_nothing_and_checking_imports_all(install: Install) -> None:
    good = install("gm-good", "1.0", KIND.format(name="good"), "good")
    install("acme-imp", "1.0", "import nope_not_there", "imp")
    registry = Registry.installed()
    rows = {row.name: row for row in registry.listing() if row.group == "targets"}
    assert good not in sys.modules
    assert (rows["good"].status, rows["good"].distribution, rows["good"].version) == ("installed", "gm-good", "1.0")
    checked = {row.name: row for row in registry.listing(check=True) if row.group == "targets"}
    assert checked["good"].status == "ok"
    assert checked["good"].hooks == ("gristmill_targets",)
    assert checked["imp"].status == "broken"
    assert "nope_not_there" in checked["imp"].reason


def test_the_installed_distributions_are_read_once(install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    install("gm-good", "1.0", KIND.format(name="good"), "good")
    scans = []
    scan = importlib.metadata.entry_points
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda **select: scans.append(select) or scan(**select))
    registry = Registry.installed()
    assert registry.target_kind("good").name == "good"
    registry.listing()
    assert scans == [{}]
    install("gm-late", "1.0", KIND.format(name="late"), "late")
    assert "late" in {kind.name for kind in Registry.installed().target_kinds()}


def test_making_a_registry_reads_nothing() -> None:
    code = (
        "import sys, json; from gristmill.plugin.registry import Registry; Registry.installed(); "
        "print(json.dumps([name for name in ('pluggy', 'importlib.metadata', 'llvmlite', 'tvm_ffi') "
        "if name in sys.modules]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []


# Registries made of modules -------------------------------------------------------------------------------------------


class _Runtime:
    name = "made-up"
    blob_kinds = ("blob",)

    def probe(self) -> Probe:
        return Probe(reason="there is never one")

    def open(self, index: int) -> None:
        raise MissingError("GM0901", "never")

    def refusal(self, *args: object) -> str:
        return "never"

    def preference(self, target: str) -> int:
        return 0


class _BrokenRuntime(_Runtime):
    name = "broken"

    def __init__(self) -> None:
        raise OSError("no device file")


class _Generator:
    name = "gen"

    def generate(self, *args: object) -> list[object]:
        return []


def _module(name: str, **hooks: Callable[[], object]) -> ModuleType:
    module = ModuleType(name)
    module.GRISTMILL_API_VERSION = 1  # type: ignore[attr-defined]
    for hook, function in hooks.items():
        function.__name__ = hook
        setattr(module, hook, hookimpl(function))
    return module


def _kind(name: str) -> TargetKind:
    def same(target: Target) -> Target:
        return target

    return TargetKind(name, "a kind", "gen", ("blob",), same, lambda target: Capabilities())


def test_a_registry_of_modules_knows_them_alone_and_makes_each_thing_once() -> None:
    module = _module(
        "acme.plugin",
        gristmill_targets=lambda: [_kind("b"), _kind("a")],
        gristmill_code_generators=lambda: [_Generator],
        gristmill_runtimes=lambda: (_Runtime, _BrokenRuntime),
        gristmill_passes=lambda: [PassEntry("acme.p", "host", lambda context: None, "does nothing")],  # type: ignore[arg-type,return-value]
    )
    registry = Registry.of([module])
    assert [kind.name for kind in registry.target_kinds()] == ["a", "b"]
    assert registry.code_generator("gen") is registry.code_generator("gen")
    assert registry.pass_entry("acme.p").phase == "host"
    assert [runtime.name for runtime in registry.runtimes()] == ["made-up"]
    assert registry.runtime("made-up") is registry.runtimes()[0]
    assert registry.executors() == ()
    assert registry.commands() == ()
    with pytest.raises(PluginError, match=r"GM1007.*_BrokenRuntime\(\) of .*OSError: no device file"):
        registry.runtime("broken")
    with pytest.raises(UserError, match="no installed plugin offers any"):
        registry.executor("dask")


def test_a_class_that_lacks_members_is_refused() -> None:
    class Half:
        name = "half"

    registry = Registry.of([_module("acme.half", gristmill_runtimes=lambda: [Half])])
    assert registry.runtimes() == ()
    assert "which lacks blob_kinds, probe, open, refusal, preference of Runtime" in registry.problems()[0].message


def test_every_hook_belongs_to_one_group() -> None:
    assert tuple(GROUP_HOOKS) == GROUPS
    hooks = [hook for hooks in GROUP_HOOKS.values() for hook in hooks]
    assert len(hooks) == len(set(hooks)) == 7
