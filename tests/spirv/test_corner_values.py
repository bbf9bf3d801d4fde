"""Every operation on every pair of corner values of its type, and every conversion between types, on a Vulkan device.

One kernel a type computes all operations for all pairs. The executor says what the results are.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from gristmill.interp import Executor
from gristmill.ir import expr as e
from gristmill.ir.build import call, const, round_to
from gristmill.ir.dtype import BFLOAT16, BOOL, FLOAT16, FLOAT32, FLOAT64, FLOATS, HANDLE, INT64, SCALARS, VOID, DType
from gristmill.ir.memory import Buffer, PointerType
from gristmill.ir.module import Function, FunctionFacts, Module
from gristmill.ir.stmt import For, LoopKind, Seq, Stmt, Store
from gristmill.testing.programs.comparison import bits

INTEGERS = tuple(dtype for dtype in SCALARS if dtype.is_integer and not dtype.is_bool)
ARITHMETIC: tuple[Any, ...] = (e.Add, e.Sub, e.Mul)
EXTREMES: tuple[Any, ...] = (e.Min, e.Max)
OF_INTEGERS: tuple[Any, ...] = (
    *(*ARITHMETIC, *EXTREMES, e.Div, e.Mod, e.FloorDiv, e.FloorMod),
    *(e.BitAnd, e.BitOr, e.BitXor, e.ShiftLeft, e.ShiftRight),
)
COMPARISONS: tuple[Any, ...] = (e.Equal, e.NotEqual, e.Less, e.LessEqual, e.Greater, e.GreaterEqual)


def numpy_dtype(dtype: DType) -> np.dtype[Any]:
    return np.dtype(ml_dtypes.bfloat16) if dtype == BFLOAT16 else np.dtype(str(dtype))


def corners(dtype: DType) -> np.ndarray[Any, Any]:
    """Values at which arithmetic of a type goes wrong."""
    kind = numpy_dtype(dtype)
    if dtype.is_bool:
        return np.array([False, True])
    if dtype.is_float:
        info = ml_dtypes.finfo(kind)
        ends = [
            info.max,
            info.smallest_normal,
            info.smallest_subnormal,
            info.eps,
            1 + info.eps,
            info.smallest_normal * 3,
        ]
        found = [
            0.0,
            1.0,
            1.5,
            2.5,
            0.5,
            3.0,
            127.5,
            128.5,
            255.5,
            2.0**31,
            2.0**63,
            2.0**64,
            np.inf,
            *map(float, ends),
        ]
        with np.errstate(over="ignore"):
            return np.array([*found, *(-value for value in found), np.nan], np.float64).astype(kind)
    half = dtype.bits // 2
    numbers = {
        0,
        1,
        2,
        3,
        7,
        dtype.bits - 1,
        dtype.bits,
        dtype.bits + 1,
        (1 << half) - 1,
        1 << half,
        12345,
        3**19,
        5**27,
    }
    numbers |= {dtype.maximum, dtype.maximum - 1, dtype.minimum, dtype.minimum + 1, dtype.maximum // 2 + 1}
    numbers |= {-number for number in numbers}
    return np.array(sorted({dtype.wrap(number) for number in numbers}), kind)


def buffer(name: str, dtype: DType, *shape: int) -> Buffer:
    data = e.Var(f"{name}_data", HANDLE, PointerType(dtype))
    return Buffer(name, dtype, tuple(const(size, INT64) for size in shape), data)


def module_of(
    inputs: dict[str, tuple[DType, int]], results: Callable[..., Iterator[e.Expr]]
) -> tuple[Module, list[np.ndarray[Any, Any]]]:
    """A module that stores each result for each element, and arrays for what it writes: one a type, a row a result."""
    index = e.Var("i", INT64)
    given = {name: buffer(name, dtype, size) for name, (dtype, size) in inputs.items()}
    (size,) = {size for _, size in inputs.values()}
    rows: dict[DType, list[e.Expr]] = {}
    for result in results(*(e.Load(each, (index,)) for each in given.values())):
        rows.setdefault(result.dtype, []).append(result)
    outputs = {dtype: buffer(f"of_{dtype}", dtype, len(found), size) for dtype, found in rows.items()}
    stores: list[Stmt] = [
        Store(outputs[dtype], (const(row, INT64), index), value)
        for dtype, found in rows.items()
        for row, value in enumerate(found)
    ]
    body = For(index, const(0, INT64), const(size, INT64), LoopKind.SERIAL, Seq(tuple(stores)))
    params = (*given.values(), *outputs.values())
    module = Module((Function("f", params, (), VOID, Seq((body,)), FunctionFacts(symbol="f")),))
    return module, [np.zeros((len(found), size), numpy_dtype(dtype)) for dtype, found in rows.items()]


def check(run: Callable[..., Any], module: Module, args: list[np.ndarray[Any, Any]]) -> None:
    """Results on the device are those of the executor, bit for bit (all NaNs are one)."""
    expected, given = copy.deepcopy(args), copy.deepcopy(args)
    Executor(module).call("f", expected)
    run(module, "f", given)
    for param, one, other in zip(module.functions[0].params, expected, given, strict=True):
        wrong = np.argwhere(bits(one) != bits(other))
        first = tuple(wrong[0]) if len(wrong) else ()
        told = f"`{param.name}` at {first}: {other[first]!r}, and right is {one[first]!r}" if len(wrong) else ""
        inputs = [float(arg[first[-1]]) for arg in args if arg.ndim == 1] if first else []
        assert not told, f"{told} for {inputs}, {len(wrong)} differ"


def of_pair(dtype: DType, a: e.Expr, b: e.Expr) -> Iterator[e.Expr]:
    """Every operation that is exact."""
    yield from (kind(a, b) for kind in COMPARISONS)
    if dtype.is_bool:
        yield from (kind(a, b) for kind in (e.And, e.Or, e.BitAnd, e.BitOr, e.BitXor))
        yield e.Not(a)
        return
    yield e.Negate(a)
    yield e.Select(e.Less(a, b), a, b)
    yield call("abs", a)
    if dtype.is_integer:
        yield from (kind(a, b) for kind in OF_INTEGERS)
        yield e.BitNot(a)
        yield from (call(name, a) for name in ("popcount", "clz", "ctz"))
        return
    yield from (kind(a, b) for kind in ARITHMETIC)
    # Of zeros of two signs either may come out; the sum hides which.
    yield from (e.Add(kind(a, b), const(1.0, dtype)) for kind in EXTREMES)
    yield from (call(name, a) for name in ("floor", "ceil", "round", "trunc", "isnan", "isinf", "isfinite"))
    # The sign of a NaN is not determined.
    yield call("copysign", a, e.Select(call("isnan", b), const(1.0, dtype), b))


@pytest.mark.parametrize("dtype", SCALARS, ids=str)
def test_operations(dtype: DType, on_vulkan: Callable[..., Any]) -> None:
    values = corners(dtype)
    first, second = (found.ravel() for found in np.meshgrid(values, values))
    shapes = {"a": (dtype, len(first)), "b": (dtype, len(first))}
    module, outputs = module_of(shapes, partial(of_pair, dtype))
    with np.errstate(all="ignore"):
        check(on_vulkan(), module, [first, second, *outputs])


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_constant_operands(dtype: DType, on_vulkan: Callable[..., Any]) -> None:
    """A constant on the right needs fewer guards than a variable."""
    values = corners(dtype)
    constants = {dtype.wrap(number) for number in (0, 1, -1, 2, 3, -7, dtype.minimum, dtype.bits, dtype.bits - 1)}

    def results(a: e.Expr) -> Iterator[e.Expr]:
        for kind in (e.Div, e.Mod, e.FloorDiv, e.FloorMod, e.ShiftLeft, e.ShiftRight):
            yield from (kind(a, const(number, dtype)) for number in sorted(constants))

    module, outputs = module_of({"a": (dtype, len(values))}, results)
    check(on_vulkan(optimization=0), module, [values, *outputs])


@pytest.mark.parametrize("source", SCALARS, ids=str)
def test_conversions(source: DType, on_vulkan: Callable[..., Any]) -> None:
    values = corners(source)
    if source.is_integer and source.bits == 64:
        # What lies just beside the middle between two float16, bfloat16, float32 or float64.
        near = [1 << bit | tail for bit in range(10, 63) for kept in (7, 8, 11, 24, 53) for tail in _tails(bit, kept)]
        values = np.unique(np.concatenate([values, np.array(near, values.dtype)]))

    def results(a: e.Expr) -> Iterator[e.Expr]:
        yield from (e.Cast(target, a) for target in SCALARS)

    module, outputs = module_of({"a": (source, len(values))}, results)
    with np.errstate(all="ignore"):
        check(on_vulkan(), module, [values, *outputs])


def _tails(bit: int, kept: int) -> list[int]:
    middle = bit - kept
    return [] if middle < 1 else [1 << middle, (1 << middle) - 1, (1 << middle) + 1, 3 << middle]


@pytest.mark.parametrize("narrow", [FLOAT16, BFLOAT16], ids=str)
@pytest.mark.parametrize("wide", [FLOAT32, FLOAT64], ids=str)
def test_every_value_of_16_bits_and_what_lies_between(
    narrow: DType, wide: DType, on_vulkan: Callable[..., Any]
) -> None:
    """All patterns, and of each pair of neighbours the middle, and the wide values just beside it."""
    own, held = numpy_dtype(narrow), numpy_dtype(wide)
    with np.errstate(all="ignore"):
        patterns = np.arange(1 << 16, dtype=np.uint16).view(own)
        exact = patterns.astype(held)
        middle = (exact + np.roll(exact, -1)) / 2
        values = np.concatenate(
            [exact, middle, np.nextafter(middle, held.type(np.inf)), np.nextafter(middle, held.type(-np.inf))]
        )
        # ml_dtypes rounds float64 to bfloat16 by way of float32, so twice.
        expected = np.array([round_to(float(value), narrow) for value in values], np.float64).astype(own)

    def results(a: e.Expr) -> Iterator[e.Expr]:
        yield e.Cast(narrow, a)
        yield e.Cast(wide, e.Cast(narrow, a))

    module, outputs = module_of({"a": (wide, len(values))}, results)
    given = [values, *outputs]
    on_vulkan()(module, "f", given)
    np.testing.assert_array_equal(bits(given[1][0]), bits(expected))
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(bits(given[2][0]), bits(expected.astype(held)))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_bits_of_floats_pass_through_memory(dtype: DType, on_vulkan: Callable[..., Any]) -> None:
    values = corners(dtype)
    unsigned = next(each for each in SCALARS if each.code.name == "UINT" and each.bits == dtype.bits)

    def results(a: e.Expr) -> Iterator[e.Expr]:
        yield a
        yield e.Reinterpret(dtype, e.Reinterpret(unsigned, a))
        yield e.Select(call("isnan", a), const(0, unsigned), e.Reinterpret(unsigned, a))
        yield e.Cast(BOOL, a)

    module, outputs = module_of({"a": (dtype, len(values))}, results)
    check(on_vulkan("vulkan:1.2+address+float64"), module, [values, *outputs])
