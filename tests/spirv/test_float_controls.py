"""Rounding is asked for where the target says that devices do as asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gristmill.interp import Executor
from gristmill.testing.programs.comparison import bits

SOURCE = """@T.prim_func
def f(x: T.Buffer((64,), "{0}"), y: T.Buffer((64,), "{0}")):
    for i in T.thread_binding(64, thread="threadIdx.x"):
        y[i] = x[i] * x[63 - i] + x[i]
"""
BOTH = SOURCE.replace("* x[63 - i]", "+ T.float64(T.float32(x[63 - i]) * T.float32(3))")


@pytest.mark.parametrize(
    ("dtype", "source", "features", "widths"),
    [
        ("float32", SOURCE, "float_controls", {32}),
        ("float16", SOURCE, "float_controls", {32}),
        ("float32", SOURCE, "float_controls64", set()),
        ("float64", SOURCE, "float_controls64", {64}),
        ("float64", SOURCE, "float_controls", set()),
        ("float64", BOTH, "float_controls", set()),
        ("float64", BOTH, "float_controls+float_controls64", {32, 64}),
        ("int32", SOURCE, "float_controls", set()),
    ],
)
@pytest.mark.parametrize("version", ["1.1", "1.2"])
def test_it_is_said_of_all_widths_in_use_or_of_none(
    dtype: str,
    source: str,
    features: str,
    widths: set[int],
    version: str,
    parsed: Callable[..., Any],
    written: Callable[..., Any],
    disassembled: Callable[..., list[str]],
) -> None:
    off = {"float_controls", "float_controls64"} - set(features.split("+")) if version == "1.2" else set()
    target = "+".join([f"vulkan:{version}+float64", features, *(f"no-{name}" for name in sorted(off))])
    found = written(parsed(source.format(dtype)), target)
    lines = disassembled(found.data)
    modes = [line.split()[2:] for line in lines if line.startswith("OpExecutionMode ")]
    for mode in ("RoundingModeRTE", "SignedZeroInfNanPreserve"):
        assert {int(said[1]) for said in modes if said[0] == mode} == widths
        assert (f"OpCapability {mode}" in lines) == bool(widths)
    has_extension = any("SPV_KHR_float_controls" in line for line in lines)
    assert has_extension == (bool(widths) and version == "1.1")
    names = {32: "float_controls", 64: "float_controls64"}
    assert {name for name in found.features if "controls" in name} == {names[width] for width in widths}


@pytest.mark.parametrize(
    ("target", "dtype", "expected"),
    [
        ("vulkan+float64", "float32", set()),
        ("vulkan:1.2", "float32", {"float_controls"}),
        ("vulkan:1.4+address", "float16", {"float_controls"}),
        ("vulkan:1.2+float64", "float64", {"float_controls64"}),
        ("vulkan:1.2", "int32", set()),
        ("vulkan:1.2+no-float_controls", "float32", set()),
        ("vulkan:1.2+float64+no-float_controls64", "float64", set()),
    ],
)
def test_where_it_is_said_by_default(
    target: str, dtype: str, expected: set[str], parsed: Callable[..., Any], written: Callable[..., Any]
) -> None:
    found = written(parsed(SOURCE.format(dtype)), target)
    assert {name for name in found.features if "controls" in name} == expected


TWICE = """@T.prim_func
def f(x: T.Buffer((64,), "{0}"), y: T.Buffer((8, 64), "{0}")):
    for i in T.thread_binding(64, thread="threadIdx.x"):
        v = x[i]
        y[0, i] = v - v
        y[1, i] = v / v
        y[2, i] = T.Select(v == v, v, T.{0}(1))
        y[3, i] = T.Select(v != v, v, T.{0}(1))
        y[4, i] = v + T.{0}(float("inf"))
        y[5, i] = T.Select(v < T.{0}(float("inf")), v, T.{0}(1))
        y[6, i] = v * T.{0}(float("nan"))
        y[7, i] = T.{0}(0) / v
"""


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("target", ["vulkan+float64", "vulkan:1.2+float64"])
def test_a_driver_knows_no_operand_whose_result_it_might_make_up(
    target: str,
    dtype: str,
    parsed: Callable[..., Any],
    written: Callable[..., Any],
    disassembled: Callable[..., list[str]],
    on_vulkan: Callable[..., Any],
) -> None:
    """Where nothing is declared: no zero, infinity or NaN as a constant, and nothing twice."""
    module = parsed(TWICE.format(dtype))
    lines = disassembled(written(module, target).data)
    names = {line.split()[0]: line for line in lines if " OpConstant " in line and "%float" in line.split()[3]}
    wide = "%double" if dtype == "float64" else "%float"
    found = [
        line.split()[4:] for line in lines if any(f" OpF{op} {wide}" in line for op in ("Add", "Sub", "Mul", "Div"))
    ]
    found += [line.split()[4:] for line in lines if " OpFOrd" in line or " OpFUnord" in line]
    assert found
    if target == "vulkan+float64":
        assert (
            not [pair for pair in found if len(set(pair)) == 1 or not set(pair).isdisjoint(names)] or dtype == "float16"
        )
    else:
        assert [pair for pair in found if len(set(pair)) == 1]
    x = np.zeros(64, dtype)
    x[:9] = [0.0, -0.0, 1.0, -2.5, np.inf, -np.inf, np.nan, 3e-5, 1000.0]
    expected, given = [x, np.zeros((8, 64), dtype)], [x.copy(), np.zeros((8, 64), dtype)]
    Executor(module).call("f", expected)
    on_vulkan(target)(module, "f", given)
    np.testing.assert_array_equal(bits(given[1]), bits(expected[1]))


def test_zeros_keep_their_signs(parsed: Callable[..., Any], on_vulkan: Callable[..., Any]) -> None:
    source = """@T.prim_func
def f(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):
    for i in range(4):
        y[i] = x[i] + T.float32(-0.0)
"""
    x = np.array([-0.0, 0.0, np.inf, -1.0], np.float32)
    given = [x, np.ones(4, np.float32)]
    on_vulkan("vulkan:1.2+float_controls")(parsed(source), "f", given)
    np.testing.assert_array_equal(given[1].view(np.uint32), x.view(np.uint32))
