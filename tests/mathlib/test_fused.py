"""fma of the library, against whole numbers rounded once: every bit, and of zeros the sign."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from gristmill.ir.dtype import FLOAT32, FLOAT64, DType
from gristmill.ir.functor import walk
from gristmill.mathlib import function_for
from gristmill.testing.fused import exact_fma, exact_fma_of, random_triples, special_triples
from gristmill.testing.straight_line import evaluate

COUNT = 200_000
WAYS = [(FLOAT32, True), (FLOAT32, False), (FLOAT64, True)]
IDS = ["float32", "float32 without float64", "float64"]

Triples = tuple[np.ndarray, np.ndarray, np.ndarray]


@pytest.fixture(scope="module")
def triples() -> dict[DType, tuple[Triples, np.ndarray]]:
    """Triples of each type, with what their fma is."""
    seed = int(np.random.SeedSequence().entropy) % (1 << 32)
    print(f"seed {seed}")
    found = {}
    for dtype in (FLOAT32, FLOAT64):
        parts = zip(special_triples(dtype), random_triples(dtype, seed, COUNT), strict=True)
        a, b, c = (np.concatenate(part) for part in parts)
        found[dtype] = ((a, b, c), exact_fma_of(a, b, c, dtype))
    return found


def same(results: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Bit for bit, all NaNs being one."""
    bits = f"u{results.dtype.itemsize}"
    return (results.view(bits) == wanted.view(bits)) | (np.isnan(results) & np.isnan(wanted))


@pytest.mark.parametrize(("dtype", "float64"), WAYS, ids=IDS)
def test_fma_is_rounded_once(triples, dtype: DType, float64: bool):
    (a, b, c), wanted = triples[dtype]
    results = evaluate(function_for("fma", dtype, float64=float64), a, b, c)
    wrong = ~same(results, wanted)
    shown = [tuple(float(values[wrong][0]).hex() for values in (a, b, c, results, wanted))] if wrong.any() else []
    assert not wrong.any(), f"a, b, c, result, wanted: {shown}"


@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT64], ids=str)
def test_the_triples_are_hard(triples, dtype: DType):
    (a, b, c), wanted = triples[dtype]
    with np.errstate(all="ignore"):
        assert np.count_nonzero(~same(a * b + c, wanted)) > COUNT // 20
    size = np.abs(wanted)
    assert np.count_nonzero((size < np.finfo(wanted.dtype).smallest_normal) & (size > 0)) > COUNT // 20
    assert np.count_nonzero(np.isinf(wanted) & np.isfinite(a) & np.isfinite(b) & np.isfinite(c)) > COUNT // 100
    assert np.count_nonzero((wanted == 0) & (a != 0) & (b != 0)) > COUNT // 500


def test_float32_without_float64_uses_none():
    types = {
        str(node.dtype) for node in walk(function_for("fma", FLOAT32, float64=False).body) if hasattr(node, "dtype")
    }
    assert "float32" in types
    assert "float64" not in types


# The oracle itself ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT64], ids=str)
def test_the_oracle_takes_the_nearest(triples, dtype: DType):
    """No neighbour of its results is nearer to the exact fraction; of two as near, it takes the even one."""
    (a, b, c), wanted = triples[dtype]
    kind = wanted.dtype.type
    count = ties = 0
    for x, y, z, found in zip(*(values[::97] for values in (a, b, c, wanted)), strict=True):
        if not all(map(math.isfinite, (x, y, z, found))):
            continue
        exact = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
        distance = abs(exact - Fraction(float(found)))
        for end in (-np.inf, np.inf):
            with np.errstate(all="ignore"):
                other = np.nextafter(found, kind(end))
            if not np.isfinite(other):
                continue
            apart = abs(exact - Fraction(float(other)))
            assert distance <= apart
            if distance == apart:
                ties += 1
                assert not int(found.view(f"u{found.itemsize}")) & 1
        count += 1
    assert count > 1000
    assert ties > 3


def test_the_oracle_knows_the_special_cases():
    inf, nan, most, least = math.inf, math.nan, np.finfo(np.float64).max.item(), 5e-324
    for dtype in (FLOAT32, FLOAT64):
        for a, b, c in [(0.0, inf, 1.0), (inf, -0.0, nan), (inf, 1.0, -inf), (-inf, 1.0, inf), (nan, 1.0, 1.0)]:
            assert math.isnan(exact_fma(a, b, c, dtype))
        assert math.isnan(exact_fma(1.0, 1.0, nan, dtype))
        assert exact_fma(-inf, 2.0, -inf, dtype) == -inf
        assert exact_fma(2.0, 3.0, -inf, dtype) == -inf
        for a, b, c, sign in [(0.0, 1.0, -0.0, 1), (-0.0, 1.0, -0.0, -1), (2.0, -3.0, 6.0, 1), (-0.0, -1.0, 0.0, 1)]:
            zero = exact_fma(a, b, c, dtype)
            assert zero == 0
            assert math.copysign(1, zero) == sign
    assert exact_fma(most, most, -inf, FLOAT64) == -inf
    assert exact_fma(most, 2.0, -most, FLOAT64) == most
    assert exact_fma(most, 1.0, 2.0**969, FLOAT64) == most
    assert exact_fma(most, 1.0, 2.0**970, FLOAT64) == inf
    assert math.copysign(1, exact_fma(-least, 0.5, 0.0, FLOAT64)) == -1
    assert exact_fma(least, 0.5, 0.0, FLOAT64) == 0
    assert exact_fma(least, 0.5, least, FLOAT64) == 2 * least
    assert exact_fma(2.0**-75, 2.0**-75, 2.0**-149, FLOAT32) == 2.0**-148
    assert exact_fma(2.0**127, 2.0, 0.0, FLOAT32) == inf
