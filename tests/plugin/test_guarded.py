"""Plugins that lie: whatever they register or answer, the error names plugin and distribution, and no other suffers."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from gristmill.errors import Diagnostic, InternalError, MissingError, PluginError, Unsupported, UserError
from gristmill.ir.module import Module
from gristmill.ir.target import Target
from gristmill.plugin.artifacts import Blob, Capabilities, KernelArgument, KernelRecord
from gristmill.plugin.discovery import Candidate, Origin
from gristmill.plugin.guarded import passes_named
from gristmill.plugin.hookspecs import hookimpl
from gristmill.plugin.protocols import (
    CommandEntry,
    DeviceDescription,
    GenerateOptions,
    KeyDescription,
    NativeSupport,
    PassContext,
    PassEntry,
    Probe,
    TargetKind,
)
from gristmill.plugin.registry import Registry

OWNER = "'liar' of liar-tools 9.9 (liar.plugin)"
GROUPS = {
    "gristmill_targets": "targets",
    "gristmill_code_generators": "targets",
    "gristmill_native_support": "targets",
    "gristmill_passes": "passes",
    "gristmill_runtimes": "runtimes",
    "gristmill_executors": "executors",
    "gristmill_commands": "commands",
}
TARGET = Target("water")
KIND = TargetKind("water", "A mill.", "wheel", ("flour",), lambda target: target, lambda target: Capabilities())
PASS = PassEntry("liar.grind", "host", lambda context: Grind(), "grinds")
RECORD = KernelRecord("f", "f_entry")
BLOB = Blob("flour", "water", b"code", ("f_entry",), (RECORD,))


def named(value: object) -> str:
    """The value as text, the same in every process: without addresses."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))


class Grind:
    name = "grind"

    def run(self, module: Module) -> Module:
        return module


class Wheel:
    """A generator that gives what the test says."""

    name = "wheel"
    answer: Any = ()

    def generate(self, module: Module, target: Target, options: GenerateOptions) -> Any:
        return answered(self.answer)


class Mill:
    """A runtime that answers what the test says."""

    name = "mill"
    blob_kinds = ("flour",)
    found: Any = Probe((DeviceDescription(0, "a mill"),))
    refused: Any = ""
    rank: Any = 0
    opened: Any = None

    def probe(self) -> Any:
        return answered(self.found)

    def open(self, index: int) -> Any:
        return answered(self.opened)

    def refusal(self, *arguments: object) -> Any:
        return answered(self.refused)

    def preference(self, target: str) -> Any:
        return answered(self.rank)


def answered(answer: Any) -> Any:
    if isinstance(answer, BaseException):
        raise answer
    return answer


def registry_of(**answers: Any) -> Registry:
    """A registry with one plugin of a distribution; ``answers`` are what its hooks return (or raise)."""
    body: dict[str, Any] = {"GRISTMILL_API_VERSION": 1}
    for hook, answer in answers.items():
        function: Callable[[Any], Any] = lambda self, answer=answer: answered(answer)  # noqa: E731
        function.__name__ = hook
        body[hook] = hookimpl(function)
    plugin = type("Plugin", (), body)()
    groups = {GROUPS[hook] for hook in answers}

    def find(group: str) -> list[Candidate]:
        if group not in groups:
            return []
        return [Candidate(Origin(group, "liar", "liar-tools", "9.9", "liar.plugin"), plugin)]

    return Registry(find)


def generator_that(answer: Any) -> Any:
    made = type("Wheel", (Wheel,), {"answer": answer})
    return registry_of(gristmill_code_generators=[made]).code_generator("wheel")


def runtime_that(**answers: Any) -> Any:
    return registry_of(gristmill_runtimes=[type("Mill", (Mill,), answers)]).runtime("mill")


FAULTS = (ZeroDivisionError("by zero"), OSError(2, "No such file", "x"), SystemExit(0), MemoryError())


# What is registered ---------------------------------------------------------------------------------------------------

WRONG = [
    ("gristmill_targets", 3),
    ("gristmill_targets", replace(KIND, name="")),
    ("gristmill_targets", replace(KIND, name="a:b")),
    ("gristmill_targets", replace(KIND, name="a b")),
    ("gristmill_targets", replace(KIND, name="a\x1b[2J")),
    ("gristmill_targets", replace(KIND, name=[])),
    ("gristmill_targets", replace(KIND, summary=None)),
    ("gristmill_targets", replace(KIND, generator=3)),
    ("gristmill_targets", replace(KIND, blob_kinds="flour")),
    ("gristmill_targets", replace(KIND, resolve=3)),
    ("gristmill_targets", replace(KIND, capabilities=None)),
    ("gristmill_targets", replace(KIND, architectures=None)),
    ("gristmill_targets", replace(KIND, keys=None)),
    ("gristmill_targets", replace(KIND, keys=(1,))),
    ("gristmill_targets", replace(KIND, keys=(KeyDescription("k", "strange", ""),))),
    ("gristmill_targets", replace(KIND, keys=(KeyDescription("k", "string", "", choices=(1,)),))),
    ("gristmill_targets", replace(KIND, device_type="cpu")),
    ("gristmill_code_generators", Wheel()),
    ("gristmill_code_generators", type("Nameless", (), {"generate": None})),
    ("gristmill_code_generators", type("Badly", (), {"generate": None, "name": 3})),
    ("gristmill_native_support", Wheel()),
    ("gristmill_native_support", NativeSupport("n", "x86_64", str, str.encode)),  # type: ignore[arg-type]
    ("gristmill_native_support", NativeSupport("n", ("x86_64",), "a", str.encode)),  # type: ignore[arg-type]
    ("gristmill_native_support", NativeSupport("n", ("x86_64",), str, b"code")),  # type: ignore[arg-type]
    ("gristmill_passes", Grind),
    ("gristmill_passes", replace(PASS, name=3)),
    ("gristmill_passes", replace(PASS, name=[])),
    ("gristmill_passes", replace(PASS, phase=None)),
    ("gristmill_passes", replace(PASS, make=None)),
    ("gristmill_passes", replace(PASS, after="simplify")),
    ("gristmill_passes", replace(PASS, before=3)),
    ("gristmill_runtimes", Mill()),
    ("gristmill_runtimes", type("Mute", (), {"name": "mute"})),
    ("gristmill_runtimes", type("Mill", (Mill,), {"blob_kinds": "flour"})),
    ("gristmill_runtimes", type("Mill", (Mill,), {"blob_kinds": None})),
    ("gristmill_runtimes", type("Mill", (Mill,), {"name": "a:0"})),
    ("gristmill_executors", type("Slow", (), {"name": "slow"})),
    ("gristmill_commands", CommandEntry("c", None, print, print)),  # type: ignore[arg-type]
    ("gristmill_commands", CommandEntry("c", "", None, print)),  # type: ignore[arg-type]
    ("gristmill_commands", CommandEntry("two words", "", print, print)),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("hook", "item"), WRONG, ids=itertools.count())
def test_what_is_registered_is_checked(hook: str, item: Any) -> None:
    registry = registry_of(**{hook: [item]})
    (row,) = registry.listing(check=True)
    assert row.status == "broken"
    assert f"{OWNER} gives " in row.reason
    everything = (
        *registry.target_kinds(),
        *registry.pass_entries(),
        *registry.runtimes(),
        *registry.executors(),
        *registry.commands(),
    )
    assert everything == ()


@pytest.mark.parametrize("answer", [{}, "abc", (item for item in ()), 3, *FAULTS], ids=named)
def test_hooks_that_fail(answer: Any) -> None:
    registry = registry_of(gristmill_targets=answer)
    assert registry.target_kinds() == ()
    (problem,) = registry.problems("targets")
    assert OWNER in problem.message


# Native support -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("answer", [None, 3, *FAULTS], ids=named)
def test_native_support_that_fails(answer: Any) -> None:
    lying = NativeSupport("n", ("x86_64",), lambda machine: answered(answer), lambda machine: answered(answer))
    support = registry_of(gristmill_native_support=[lying]).native_support("n")
    for call in (support.identity, support.build):
        with pytest.raises(PluginError, match=r"GM1012.*liar-tools"):
            call("x86_64")


# Target kinds ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("answer", [None, "water", 3, *FAULTS], ids=named)
def test_target_kinds_that_fail(answer: Any) -> None:
    lying = replace(KIND, resolve=lambda target: answered(answer), capabilities=lambda target: answered(answer))
    kind = registry_of(gristmill_targets=[lying]).target_kind("water")
    for ask in (kind.resolve, kind.capabilities):
        with pytest.raises(PluginError, match="GM1012") as caught:
            ask(TARGET)
        assert OWNER in str(caught.value)
        assert caught.value.exit_status == 4


def test_target_kinds_may_refuse() -> None:
    def refuse(target: Target) -> Target:
        raise ValueError("no such wheel")

    kind = registry_of(gristmill_targets=[replace(KIND, resolve=refuse)]).target_kind("water")
    with pytest.raises(ValueError, match="no such wheel"):
        kind.resolve(TARGET)
    assert registry_of(gristmill_targets=[KIND]).target_kind("water").resolve(TARGET) is TARGET


# Code generators ------------------------------------------------------------------------------------------------------

WRONG_BLOBS = [
    None,
    "flour",
    iter(()),
    [1],
    [replace(BLOB, kind="")],
    [replace(BLOB, kind="../up here")],
    [replace(BLOB, data="text")],
    [replace(BLOB, data=None)],
    [replace(BLOB, data=b"")],
    [replace(BLOB, target=None)],
    [replace(BLOB, host=3)],
    [replace(BLOB, entry_points="f_entry")],
    [replace(BLOB, entry_points=("f_entry", 1))],
    [replace(BLOB, entry_points=("f_entry", "f_entry"))],
    [BLOB, BLOB],
    [replace(BLOB, requirements=None)],
    [replace(BLOB, requirements={1: "a"})],
    [replace(BLOB, requirements={"a": object()})],
    [replace(BLOB, requirements={"a": "\x1b[2J"})],
    [replace(BLOB, requirements={"a": float("nan")})],
    [replace(BLOB, kernels=3)],
    [replace(BLOB, kernels=(3,))],
    [replace(BLOB, kernels=(replace(RECORD, name=""),))],
    [replace(BLOB, kernels=(replace(RECORD, entry="other"),))],
    [replace(BLOB, kernels=(replace(RECORD, arguments=(1,)),))],
    [replace(BLOB, kernels=(replace(RECORD, extra={"a": []}),))],
    [replace(BLOB, kernels=(replace(RECORD, extra={"a": float("inf")}),))],
    [replace(BLOB, texts=(1,))],
    [replace(BLOB, texts=(("assembly", b"bytes"),))],
    *FAULTS,
]


@pytest.mark.parametrize("answer", WRONG_BLOBS, ids=itertools.count())
def test_blobs_are_checked(answer: Any) -> None:
    with pytest.raises(PluginError, match="GM1012") as caught:
        generator_that(answer).generate(Module(()), TARGET, GenerateOptions())
    assert OWNER in str(caught.value)
    assert "`water`" in str(caught.value)


def test_right_blobs_pass() -> None:
    right = replace(
        BLOB,
        requirements={"features": "a,b", "size": 3, "ratio": 0.5, "fast": True},
        kernels=(replace(RECORD, arguments=(KernelArgument("x", "scalar", "int32"),)),),
        texts=(("assembly", "nop\n"),),
    )
    assert generator_that([right]).generate(Module(()), TARGET, GenerateOptions()) == (right,)
    assert generator_that(()).generate(Module(()), TARGET, GenerateOptions()) == ()


def test_generators_may_refuse_and_their_own_errors_are_kept() -> None:
    with pytest.raises(Unsupported, match="no stones"):
        generator_that(Unsupported(Diagnostic("GM0663", "no stones"))).generate(Module(()), TARGET, GenerateOptions())
    with pytest.raises(InternalError, match="lost count") as caught:
        generator_that(InternalError("lost count")).generate(Module(()), TARGET, GenerateOptions())
    assert OWNER in str(caught.value)


# Passes ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("answer", [None, 3, *FAULTS], ids=named)
def test_passes_that_cannot_be_made(answer: Any) -> None:
    entry = registry_of(gristmill_passes=[replace(PASS, make=lambda context: answered(answer))]).pass_entry(PASS.name)
    with pytest.raises(PluginError, match=r"GM1012.*`liar.grind`") as caught:
        entry.make(PassContext(TARGET, Capabilities()))
    assert OWNER in str(caught.value)


@pytest.mark.parametrize(
    "error", [InternalError("x", pass_name="grind"), InternalError("`liar.grind` is odd"), SystemExit(3)], ids=named
)
def test_failing_passes_are_told_with_their_plugins(error: BaseException) -> None:
    registry = registry_of(gristmill_passes=[PASS])
    with pytest.raises(InternalError) as caught, passes_named(registry):
        raise error
    assert f"`liar.grind` is of pass plugin {OWNER}" in str(caught.value)


def test_a_pass_that_is_missing_because_its_plugin_is_broken() -> None:
    unknown = UserError(Diagnostic("GM0602", "there is no pass named `liar.grind`"))
    broken = registry_of(gristmill_passes=[replace(PASS, after=3)])
    assert broken.pass_entries() == ()
    with pytest.raises(PluginError, match="whose after is") as caught, passes_named(broken):
        raise unknown
    assert OWNER in str(caught.value)
    twice = registry_of(gristmill_passes=[PASS, PASS])
    assert twice.pass_entries() == ()
    with pytest.raises(PluginError, match="more than once"), passes_named(twice):
        raise unknown
    other = UserError(Diagnostic("GM0602", "there is no pass named `acme.grind`"))
    with pytest.raises(UserError, match="acme"), passes_named(broken):
        raise other


# Runtimes -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "found",
    [
        None,
        [1],
        Probe(None),  # type: ignore[arg-type]
        Probe((1,)),  # type: ignore[arg-type]
        Probe((DeviceDescription("0", "a mill"),)),  # type: ignore[arg-type]
        Probe((DeviceDescription(0, None),)),  # type: ignore[arg-type]
        Probe((DeviceDescription(0, "a mill", {"a": []}),)),  # type: ignore[dict-item]
        Probe(reason=3),  # type: ignore[arg-type]
        MissingError("GM0905", "away"),
        *FAULTS,
    ],
    ids=itertools.count(),
)
def test_runtimes_that_find_nonsense_have_no_device(found: Any) -> None:
    got = runtime_that(found=found).probe()
    assert got.devices == ()
    assert OWNER in got.reason


@pytest.mark.parametrize("answer", [None, 3, *FAULTS], ids=named)
def test_runtimes_that_judge_nonsense_take_nothing(answer: Any) -> None:
    reason = runtime_that(refused=answer).refusal("flour", "water", "", {})
    assert OWNER in reason
    if answer != 3:
        assert OWNER in runtime_that(rank=answer).refusal("flour", "water", "", {})
    assert runtime_that().refusal("flour", "water", "", {}) == ""
    assert runtime_that(refused="too wet").refusal("flour", "water", "", {}) == "too wet"


@pytest.mark.parametrize("answer", [None, 3, object(), *FAULTS], ids=named)
def test_runtimes_that_open_nothing(answer: Any) -> None:
    with pytest.raises(PluginError, match=r"GM1012.*mill:0") as caught:
        runtime_that(opened=answer).open(0)
    assert OWNER in str(caught.value)
    with pytest.raises(MissingError, match="away"):
        runtime_that(opened=MissingError("GM0905", "away")).open(0)
