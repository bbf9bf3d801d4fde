"""Comparing what two executions of a program gave: bit by bit, or within some ulp for bounded results."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gristmill.ir.memory import Buffer
from gristmill.ir.module import Function

BOUNDED_ULP = 4.0
_SHOWN = 4


@dataclass(frozen=True)
class Outcome:
    """The result of the function, and its arguments afterwards."""

    value: int | float | bool | None
    arguments: Sequence[Any] = field(repr=False)


def bits(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The bits of the elements, with all NaNs as one."""
    array = np.atleast_1d(array)
    if array.dtype.kind == "b":
        return array.astype(np.uint8)
    found = np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}").copy()
    if _is_float(array):
        found[np.isnan(array)] = np.array(math.nan, dtype=array.dtype).view(found.dtype)
    return found


def _is_float(array: np.ndarray[Any, Any]) -> bool:
    return bool(array.dtype.kind == "f" or array.dtype.name == "bfloat16")


def ulps_apart(expected: np.ndarray[Any, Any], got: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """How many representable values lie between, as floats; 0 for two NaNs, infinity for one. Zeros of two signs are equal."""
    lines = []
    for array in (np.atleast_1d(expected), np.atleast_1d(got)):
        width = array.dtype.itemsize * 8
        pattern = np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}").astype(object)
        sign = 1 << (width - 1)
        lines.append(np.array([-(p - sign) if p & sign else p for p in map(int, pattern.ravel())], dtype=object))
    distance = np.array([float(abs(a - b)) for a, b in zip(*lines, strict=True)])
    one, other = np.isnan(np.atleast_1d(expected)).ravel(), np.isnan(np.atleast_1d(got)).ravel()
    distance[one & other] = 0.0
    distance[one != other] = math.inf
    return distance.reshape(np.atleast_1d(expected).shape)


def compare(
    function: Function, expected: Outcome, got: Outcome, bounded: Collection[str] = (), ulp: float = BOUNDED_ULP
) -> list[str]:
    """What differs, a text for each argument (and the result) that does; none if all is as it should be.

    Arguments named in ``bounded`` may be ``ulp`` apart; everything else is equal in every bit, NaNs being one value.
    """
    found = []
    if not _same_value(expected.value, got.value):
        found.append(f"the result is {got.value!r}, expected {expected.value!r}")
    for param, wanted, given in zip(function.params, expected.arguments, got.arguments, strict=True):
        if isinstance(param, Buffer):
            difference = _difference(wanted, given, ulp if param.name in bounded else 0.0)
            if difference:
                found.append(f"`{param.name}`: {difference}")
    return found


def _same_value(expected: object, got: object) -> bool:
    if expected is None or got is None:
        return expected is got
    if isinstance(expected, float):
        if not isinstance(got, float):
            return False
        nan = expected != expected and got != got
        return nan or (expected == got and math.copysign(1, expected) == math.copysign(1, got))
    return isinstance(got, (int, np.integer, np.bool_)) and int(expected) == int(got)  # type: ignore[call-overload]


def _difference(expected: np.ndarray[Any, Any], got: np.ndarray[Any, Any], ulp: float) -> str:
    if expected.shape != got.shape or expected.dtype != got.dtype:
        return f"is {got.dtype}{list(got.shape)}, expected {expected.dtype}{list(expected.shape)}"
    if expected.size == 0:
        return ""
    if ulp:
        wrong = ulps_apart(expected, got) > ulp
    else:
        wrong = bits(expected) != bits(got)
    places = np.argwhere(wrong)
    if len(places) == 0:
        return ""
    one, other = np.atleast_1d(expected), np.atleast_1d(got)
    shown = [f"{list(map(int, at))} is {other[tuple(at)]!s}, expected {one[tuple(at)]!s}" for at in places[:_SHOWN]]
    more = f", and {len(places) - _SHOWN} more" if len(places) > _SHOWN else ""
    return "; ".join(shown) + more
