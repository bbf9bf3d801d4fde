"""The operations that the generator emits itself, and the refusal of those that it does not."""

from __future__ import annotations

import numpy as np
import pytest

from gristmill.errors import Unsupported
from gristmill.ir.build import call, const
from gristmill.ir.dtype import BOOL, FLOAT32, FLOAT64, INT32, SIGNED, UNSIGNED
from gristmill.ir.expr import Select
from gristmill_llvm.cpu import resolve
from gristmill_llvm.launches import CONTEXT_VALUES
from gristmill_llvm.operation_names import CPU_OPERATIONS
from gristmill_llvm.operations import NATIVE
from gristmill_llvm.packed import MESSAGE_VALUES, PACKED

INTEGERS = (*SIGNED, *UNSIGNED)


@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT64], ids=str)
@pytest.mark.parametrize(
    ("name", "meaning"),
    [
        ("sqrt", np.sqrt),
        ("rsqrt", lambda a: 1 / np.sqrt(a)),
        ("floor", np.floor),
        ("ceil", np.ceil),
        ("round", np.rint),
        ("trunc", np.trunc),
        ("abs", np.abs),
    ],
)
def test_rounding_and_roots(elementwise, corner_values, dtype, name, meaning):
    values = corner_values(dtype)
    with np.errstate(all="ignore"):
        expected = meaning(values)
    found = elementwise(lambda a: call(name, a), (dtype,), dtype)(values)
    np.testing.assert_array_equal(found, expected)
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(found)[numbers], np.signbit(expected)[numbers])


@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT64], ids=str)
@pytest.mark.parametrize(("name", "meaning"), [("isnan", np.isnan), ("isinf", np.isinf), ("isfinite", np.isfinite)])
def test_float_tests(elementwise, corner_values, dtype, name, meaning):
    values = corner_values(dtype)
    np.testing.assert_array_equal(elementwise(lambda a: call(name, a), (dtype,), BOOL)(values), meaning(values))


@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT64], ids=str)
def test_copysign(elementwise, corner_values, pairs, dtype):
    a, b = pairs(corner_values(dtype), corner_values(dtype))
    found = elementwise(lambda a, b: call("copysign", a, b), (dtype, dtype), dtype)(a, b)
    np.testing.assert_array_equal(found, np.copysign(a, b))
    np.testing.assert_array_equal(np.signbit(found), np.signbit(b))


def test_fma_rounds_once(elementwise):
    a = np.full(8, 1 + 2.0**-13, np.float32)
    c = np.full(8, -(1 + 2.0**-12), np.float32)
    build = lambda a, c: call("fma", a, a, c)  # noqa: E731
    found = elementwise(build, (FLOAT32, FLOAT32), FLOAT32, targets=("cpu:x86-64-v3",))(a, c)
    np.testing.assert_array_equal(found, np.full(8, 2.0**-26, np.float32))


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_bit_counts(elementwise, corner_values, dtype):
    values = corner_values(dtype)
    bits = [int(value) % 2**dtype.bits for value in values]
    expected = {
        "popcount": [value.bit_count() for value in bits],
        "clz": [dtype.bits - value.bit_length() for value in bits],
        "ctz": [(value & -value).bit_length() - 1 if value else dtype.bits for value in bits],
    }
    for name, counts in expected.items():
        found = elementwise(lambda a, name=name: call(name, a), (dtype,), dtype)(values)
        np.testing.assert_array_equal(found, counts, err_msg=name)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_magnitude_of_integers(elementwise, corner_values, dtype):
    values = corner_values(dtype)
    found = elementwise(lambda a: call("abs", a), (dtype,), dtype)(values)
    np.testing.assert_array_equal(found, [dtype.wrap(abs(int(value))) for value in values])


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_partial_operations_within_their_preconditions(elementwise, corner_values, pairs, dtype):
    a, b = pairs(corner_values(dtype), corner_values(dtype))
    allowed = b != 0
    if dtype.is_signed:
        allowed &= ~((b == -1) & (a == dtype.minimum))
    x, y = a[allowed], b[allowed]
    quotient = [abs(int(p)) // abs(int(q)) * (1 if (p < 0) == (q < 0) else -1) for p, q in zip(x, y, strict=True)]
    run = elementwise(lambda a, b: call("quotient", a, b), (dtype, dtype), dtype)
    np.testing.assert_array_equal(run(x, y), quotient)
    run = elementwise(lambda a, b: call("remainder", a, b), (dtype, dtype), dtype)
    expected = [int(p) - int(q) * part for p, q, part in zip(x, y, quotient, strict=True)]
    np.testing.assert_array_equal(run(x, y), expected)
    shifts = (b >= 0) & (b < dtype.bits)
    x, y = a[shifts], b[shifts]
    run = elementwise(lambda a, b: call("shift_left", a, b), (dtype, dtype), dtype)
    np.testing.assert_array_equal(run(x, y), [dtype.wrap(int(p) << int(q)) for p, q in zip(x, y, strict=True)])
    run = elementwise(lambda a, b: call("shift_right", a, b), (dtype, dtype), dtype)
    np.testing.assert_array_equal(run(x, y), [int(p) >> int(q) for p, q in zip(x, y, strict=True)])


def test_likely_is_its_operand(elementwise):
    values = np.array([True, False, True, True])

    def build(a):
        return Select(
            call("likely", a), const(1, INT32.with_lanes(a.dtype.lanes)), const(0, INT32.with_lanes(a.dtype.lanes))
        )

    np.testing.assert_array_equal(elementwise(build, (BOOL,), INT32)(values), values.astype(np.int32))


@pytest.mark.parametrize("name", ["exp", "sin", "tanh", "fmod", "pow"])
def test_mathematics_that_no_pass_replaced_is_refused(elementwise, name):
    arity = 2 if name in ("fmod", "pow") else 1
    with pytest.raises(Unsupported) as caught:
        elementwise(lambda *operands: call(name, *operands), (FLOAT32,) * arity, FLOAT32)
    assert caught.value.code == "GM0663"
    assert f"`{name}` of float32" in str(caught.value)


def test_fma_without_the_instruction_is_refused(elementwise):
    with pytest.raises(Unsupported) as caught:
        elementwise(lambda a: call("fma", a, a, a), (FLOAT32,), FLOAT32, targets=("cpu:x86-64-v2",))
    assert caught.value.code == "GM0663"
    assert "x86-64-v2" in str(caught.value)


def test_every_operation_that_is_claimed_is_there():
    assert {*NATIVE, *PACKED, *MESSAGE_VALUES, *CONTEXT_VALUES} >= CPU_OPERATIONS


def test_capabilities_name_them():
    from gristmill.ir.target import Target
    from gristmill_llvm.cpu import capabilities

    assert "fma" not in capabilities(resolve(Target("cpu", "x86-64-v2"))).native_operations
    assert "fma" in capabilities(resolve(Target("cpu", "x86-64-v3"))).native_operations
