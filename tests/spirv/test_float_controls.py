"""Rounding is asked for where the target says that devices do as asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

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
    found = written(parsed(source.format(dtype)), f"vulkan:{version}+float64+{features}")
    lines = disassembled(found.data)
    modes = [line.split()[2:] for line in lines if line.startswith("OpExecutionMode ")]
    for mode in ("RoundingModeRTE", "SignedZeroInfNanPreserve"):
        assert {int(said[1]) for said in modes if said[0] == mode} == widths
        assert (f"OpCapability {mode}" in lines) == bool(widths)
    has_extension = any("SPV_KHR_float_controls" in line for line in lines)
    assert has_extension == (bool(widths) and version == "1.1")
    names = {32: "float_controls", 64: "float_controls64"}
    assert {name for name in found.features if "controls" in name} == {names[width] for width in widths}


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
