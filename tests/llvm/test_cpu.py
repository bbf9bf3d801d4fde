"""CPU targets: what their texts resolve to, and the data behind them."""

from __future__ import annotations

import os

import pytest

from gristmill.ir.target import Target, parse_target
from gristmill_llvm.cpu import CPU, all_features, capabilities, cpu_data, profile_of, resolve


def resolved(text, **options):
    found = parse_target(text)
    return resolve(Target(found.kind, found.arch, found.features, tuple(sorted(options.items()))))


def test_the_default_is_the_level_that_nearly_every_machine_has():
    assert str(resolved("cpu")) == "cpu:x86-64-v2"


@pytest.mark.parametrize("level", ["x86-64-v2", "x86-64-v3", "x86-64-v4"])
def test_levels(level):
    assert str(resolved(f"cpu:{level}")) == f"cpu:{level}"
    assert profile_of(resolved(f"cpu:{level}")).cpu == level


def test_each_level_includes_the_one_before():
    features = [all_features(resolved(f"cpu:x86-64-v{number}")) for number in (2, 3, 4)]
    assert features[0] < features[1] < features[2]
    assert "sse4.2" in features[0]
    assert {"avx2", "fma"} <= features[1] - features[0]
    assert "avx512f" in features[2] - features[1]


def test_features_are_sorted_and_those_of_the_level_left_out():
    found = resolved("cpu:x86-64-v3+gfni+avx2+avxvnni+gfni")
    assert found.features == ("avxvnni", "gfni")
    assert str(found) == "cpu:x86-64-v3+avxvnni+gfni"
    assert resolve(found) == found


def test_a_feature_brings_what_it_stands_on():
    found = resolved("cpu:x86-64-v2+fma")
    assert all_features(found) == all_features(resolved("cpu:x86-64-v2")) | {"fma", "avx"}
    assert profile_of(found).features == ("avx", "fma")
    assert "fma" in capabilities(found).native_operations


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("cpu:x86-64-v5", ("x86-64-v5", "did you mean `x86-64-v", "native")),
        ("cpu:znver4", ("znver4", "Known: native, x86-64-v2")),
        ("cpu:x86-64-v3+avx512g", ("avx512g", "did you mean `avx512", "x86_64")),
        ("cpu+zz", ("zz", "avx2")),
    ],
)
def test_unknown_names_are_refused_with_a_suggestion(text, words):
    with pytest.raises(ValueError, match="known") as caught:
        resolved(text)
    for word in words:
        assert word in str(caught.value)


def test_native_is_a_level_with_extra_features_and_tuning():
    found = resolved("cpu:native")
    assert found.arch in cpu_data().architectures
    assert dict(found.options)["tune"]
    assert resolve(found) == found
    with open("/proc/cpuinfo", encoding="utf-8") as opened:
        flags = set(next(line for line in opened if line.startswith("flags")).split())
    known = cpu_data().features[os.uname().machine]
    assert {known[name].cpuinfo for name in all_features(found)} <= flags


def test_a_machine_without_the_least_level_is_told_what_it_lacks(monkeypatch):
    monkeypatch.setattr("gristmill_llvm.cpu._cpu_flags", lambda: frozenset(("pni", "ssse3", "sse4_1", "cx16")))
    monkeypatch.setattr("os.uname", lambda: os.uname_result(("", "", "", "", "x86_64")))
    with pytest.raises(ValueError, match=r"below x86-64-v2.*popcnt, sahf, sse4\.2"):
        resolved("cpu:native")


def test_native_on_another_machine_is_refused(monkeypatch):
    monkeypatch.setattr("os.uname", lambda: os.uname_result(("", "", "", "", "riscv64")))
    with pytest.raises(ValueError, match="riscv64"):
        resolved("cpu:native")


def test_options():
    assert capabilities(resolved("cpu:x86-64-v4")).vector_bytes == 32
    assert capabilities(resolved("cpu:x86-64-v4", vector_width=512)).vector_bytes == 64
    assert '"prefer-vector-width"="512"' in profile_of(resolved("cpu:x86-64-v4", vector_width=512)).attributes
    assert '"tune-cpu"="znver3"' in profile_of(resolved("cpu:x86-64-v3", tune="znver3")).attributes
    with pytest.raises(ValueError, match="`vector_width` is 100"):
        resolved("cpu", vector_width=100)


def test_the_data_is_whole():
    data = cpu_data()
    assert data.default in data.architectures
    for architecture in data.architectures.values():
        assert architecture.features <= set(data.features[architecture.machine])
    for known in data.features.values():
        for feature in known.values():
            assert set(feature.needs) <= set(known)
    assert {key.name for key in CPU.keys} == {"tune", "vector_width"}


def test_llvm_knows_every_feature_and_level(capfd, compile_module):
    """LLVM prints a warning for a feature that it does not know, and goes on without."""
    from gristmill.ir.dtype import INT32
    from gristmill.ir.expr import Var
    from gristmill.ir.module import Function, FunctionFacts
    from gristmill.ir.stmt import Return

    n = Var("n", INT32)
    everything = "".join(f"+{name}" for name in cpu_data().features["x86_64"])
    loaded = compile_module([Function("f", (n,), (), INT32, Return(n), FunctionFacts(symbol="f"))], f"cpu{everything}")
    assert loaded.plain("f")(3) == 3
    assert capfd.readouterr().err == ""


def test_importing_the_plugin_imports_no_llvmlite():
    import subprocess
    import sys

    code = (
        "import sys; from gristmill_llvm import plugin; plugin.gristmill_targets(); plugin.gristmill_code_generators();"
        "from gristmill_llvm.cpu import *; capabilities(resolve(Target('cpu')));"
        "assert not any(name.startswith('llvmlite') for name in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
