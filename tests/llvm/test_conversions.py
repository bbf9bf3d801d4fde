"""Casts between all pairs of dtypes, and reinterpretation of bits."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gristmill.ir.dtype import BOOL, FLOAT32, FLOAT64, INT8, INT32, INT64, SIGNED, UINT16, UINT32, UINT64, UNSIGNED
from gristmill.ir.expr import Cast, Reinterpret

ALL = (BOOL, *SIGNED, *UNSIGNED, FLOAT32, FLOAT64)


def _converted(value, source, target):
    """What the language says a cast gives, from exact Python numbers."""
    if target.is_bool:
        return value != 0  # a NaN is not 0
    if target.is_float:
        if source.is_float:
            with np.errstate(over="ignore"):
                return np.dtype(str(target)).type(value)
        return _nearest(int(value), 24 if target == FLOAT32 else 53)
    if not source.is_float:
        return target.wrap(int(value))
    if math.isnan(value):
        return 0
    if math.isinf(value):
        return target.maximum if value > 0 else target.minimum
    return min(max(math.trunc(float(value)), target.minimum), target.maximum)


def _nearest(value, precision):
    """An integer rounded to nearest even with so many bits of precision."""
    excess = max(abs(value).bit_length() - precision, 0)
    step = 1 << excess
    quotient, rest = divmod(value, step)
    if rest * 2 > step or (rest * 2 == step and quotient % 2):
        quotient += 1
    return quotient * step


@pytest.mark.parametrize("source", ALL, ids=str)
@pytest.mark.parametrize("target", ALL, ids=str)
def test_cast(elementwise, corner_values, source, target):
    values = corner_values(source)
    run = elementwise(lambda a: Cast(target.with_lanes(a.dtype.lanes), a), (source,), target, texts=frozenset())
    kind = np.dtype(str(target))
    expected = np.array([kind.type(_converted(value, source, target)) for value in values], kind)
    np.testing.assert_array_equal(run(values), expected)


@pytest.mark.parametrize(
    ("source", "target"), [(INT32, FLOAT32), (FLOAT32, UINT32), (FLOAT64, INT64), (UINT64, FLOAT64), (INT64, UINT64)]
)
def test_reinterpret(elementwise, corner_values, source, target):
    values = corner_values(source)
    run = elementwise(lambda a: Reinterpret(target.with_lanes(a.dtype.lanes), a), (source,), target)
    np.testing.assert_array_equal(run(values), values.view(str(target)))


def test_reinterpret_of_vectors_takes_lanes_from_the_low_end(compile_module, array_of):
    from gristmill.ir.dtype import VOID
    from gristmill.ir.expr import IntImm, Load, Ramp
    from gristmill.ir.module import Function, FunctionFacts
    from gristmill.ir.stmt import Seq, Store, View

    a, first = array_of("a", INT8, 4)
    b, second = array_of("b", UINT16, 2)
    zero, one = IntImm(0, INT64), IntImm(1, INT64)
    bytes_of = Load(first, (Ramp(zero, one, 4),))
    body = Store(second, (Ramp(zero, one, 2),), Reinterpret(UINT16.with_lanes(2), bytes_of))
    function = Function("f", (a, b), (), VOID, Seq((View(first), View(second), body)), FunctionFacts(symbol="f"))
    source, out = np.array([1, 2, 3, -1], np.int8), np.zeros(2, np.uint16)
    compile_module([function]).plain("f")(source.ctypes.data, out.ctypes.data)
    np.testing.assert_array_equal(out, source.view(np.uint16))
