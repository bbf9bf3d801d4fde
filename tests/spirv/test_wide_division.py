"""Division of int64: by constants and by what is not known, of corner values and of numbers that were narrower before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gristmill.interp import Executor

MIN, MAX = -(1 << 63), (1 << 63) - 1
DIVISORS = (0, 1, -1, 2, -2, 3, -5, 14, 1 << 31, -(1 << 32), 3**39, MAX, MIN, MIN + 1)
CORNERS = sorted({0, *(sign * value + by for value in (*DIVISORS, 1 << 62) for sign in (1, -1) for by in (-1, 0, 1))})
VALUES = np.array([value for value in CORNERS if MIN <= value <= MAX], np.int64)
OPERATIONS = ("{a} // {b}", "{a} % {b}", "T.truncdiv({a}, {b})", "T.truncmod({a}, {b})")
FORMS = ("vulkan", "vulkan:1.2+address")


def module_of(parsed: Callable[..., Any], results: list[str], x: np.ndarray[Any, Any]) -> Any:
    body = "".join(f"        y[{row}, i] = {result}\n" for row, result in enumerate(results))
    sizes = f'({len(x)},), "{x.dtype}"', f'({len(results)}, {len(x)}), "int64"'
    head = "@T.prim_func\ndef f(x: T.Buffer({}), y: T.Buffer({})):\n".format(*sizes)
    return parsed(f"{head}    for i in range({len(x)}):\n{body}")


def check(module: Any, run: Callable[..., Any], x: np.ndarray[Any, Any], rows: list[str]) -> None:
    expected, given = ([x.copy(), np.zeros((len(rows), len(x)), np.int64)] for _ in range(2))
    Executor(module).call("f", expected)
    run(module, "f", given)
    wrong = np.argwhere(expected[1] != given[1])
    assert not len(wrong), [(rows[row], int(x[place]), int(given[1][row, place])) for row, place in wrong]


@pytest.mark.parametrize("optimization", [0, 3])
@pytest.mark.parametrize("target", FORMS)
def test_by_constants(
    target: str, optimization: int, parsed: Callable[..., Any], on_vulkan: Callable[..., Any]
) -> None:
    rows = [form.format(a="x[i]", b=f"T.int64({divisor})") for divisor in DIVISORS for form in OPERATIONS]
    check(module_of(parsed, rows, VALUES), on_vulkan(target, optimization), VALUES, rows)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "uint32"])
@pytest.mark.parametrize("target", FORMS)
def test_of_numbers_that_were_narrower(
    target: str, dtype: str, parsed: Callable[..., Any], on_vulkan: Callable[..., Any]
) -> None:
    """Also where all threads divide the same number."""
    info = np.iinfo(dtype)
    x = np.array(sorted({0, 1, 5, 14, info.min, info.min + 1, info.max, info.max - 1}), dtype)
    numbers = ("T.int64(x[i])", "T.int64(x[0])", f"T.int64(x[{len(x) - 1}])")
    rows = [form.format(a=a, b=f"T.int64({b})") for a in numbers for b in (5, -14) for form in OPERATIONS]
    check(module_of(parsed, rows, x), on_vulkan(target), x, rows)


def test_no_signed_division_of_64_bits_is_written(
    parsed: Callable[..., Any], written: Callable[..., Any], disassembled: Callable[..., list[str]]
) -> None:
    rows = [form.format(a="x[i]", b=b) for b in ("T.int64(5)", "x[63 - i]") for form in OPERATIONS]
    body = "".join(f"        y[i, {row}] = {result}\n" for row, result in enumerate(rows))
    head = '@T.prim_func\ndef f(x: T.Buffer((64,), "int64"), y: T.Buffer((64, 8), "int64")):\n'
    threads = '    for i in T.thread_binding(64, thread="threadIdx.x"):\n'
    lines = disassembled(written(parsed(head + threads + body), "vulkan").data)
    assert len([line for line in lines if " OpUDiv " in line or " OpUMod " in line]) == len(rows)
    assert not [line for line in lines if any(f" Op{name} " in line for name in ("SDiv", "SRem", "SMod"))]
