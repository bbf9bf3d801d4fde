"""The library against float64 NumPy: all special values, and a sample of all float32.

benchmarks/mathlib_accuracy.py takes many more points.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from gristmill.ir.dtype import FLOAT32, FLOAT64
from gristmill.mathlib import function_for
from gristmill.testing.straight_line import evaluate
from gristmill.testing.ulp import ulp_errors

SAMPLE_STEP = 14_983  # a prime: about 287,000 of all float32
ULP_AT_MOST = 4.0

SPECIAL = np.array(
    [
        *(0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 3.0, -3.0, 0.5, -0.5, 1.5, -1.5, 2.5, np.inf, -np.inf, np.nan),
        *(1e-45, -1e-45, 1.1754944e-38, 1.1754942e-38, -1e-39, 3.4028235e38, -3.4028235e38, 0.49999997, 8388607.5),
        *(8388608.0, 16777215.0, 16777216.0, -8388609.0, 1.0000001, 0.99999994, -0.99999994, 88.72283, 88.72284),
        *(-103.97208, -103.97209, -87.33655, 128.0, -149.0, -150.0, 3.1415927, 1.5707964, 355.0, 1e22, 0.7853981),
        *(0.625, 0.62499994, 9.010913, 1.7014118e38, 0.70710677, 0.7071068, 1.4142135),
    ],
    np.float32,
)


def sigmoid(x: np.ndarray) -> np.ndarray:
    e = np.exp(-np.abs(x))
    return np.where(x < 0, e, 1.0) / (1.0 + e)


EXACT = {
    "exp": np.exp,
    "exp2": np.exp2,
    "log": np.log,
    "log2": np.log2,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1.0 / np.sqrt(x),
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "sigmoid": sigmoid,
}


@pytest.fixture(autouse=True)
def _no_floating_point_warnings() -> Iterator[None]:
    # Signalling NaNs and overflows are among the values on purpose.
    with np.errstate(all="ignore"):
        yield


@pytest.fixture(scope="module")
def sample() -> np.ndarray:
    return np.concatenate([SPECIAL, np.arange(0, 1 << 32, SAMPLE_STEP, dtype=np.uint32).view(np.float32)])


@pytest.mark.parametrize("name", EXACT)
def test_functions_of_one_argument_are_within_four_ulp(name: str, sample: np.ndarray):
    function = function_for(name, FLOAT32)
    assert function is not None
    results = evaluate(function, sample)
    with np.errstate(all="ignore"):
        errors = ulp_errors(results, EXACT[name](sample.astype(np.float64)))
    worst = int(np.argmax(errors))
    assert errors[worst] <= ULP_AT_MOST, f"{name}({sample[worst]!r}) = {results[worst]!r}"
    assert results.dtype == np.float32


def pairs(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of special values, pairs of any bits, and pairs whose power is in the range of float32."""
    print(f"seed {seed}")
    random = np.random.default_rng(seed)
    a, b = (grid.ravel() for grid in np.meshgrid(SPECIAL, SPECIAL))
    any_a, any_b = (random.integers(0, 1 << 32, 100_000, dtype=np.uint32).view(np.float32) for _ in range(2))
    base = np.concatenate([np.exp(random.uniform(-87, 88, 100_000)), random.uniform(0.6, 1.6, 100_000)])
    base = base.astype(np.float32)
    exponent = (random.uniform(-104, 89, base.size) / np.log(base.astype(np.float64))).astype(np.float32)
    return np.concatenate([a, any_a, base]), np.concatenate([b, any_b, exponent])


def test_pow_is_within_four_ulp():
    a, b = pairs(int(np.random.SeedSequence().entropy) % (1 << 32))
    results = evaluate(function_for("pow", FLOAT32), a, b)
    with np.errstate(all="ignore"):
        errors = ulp_errors(results, np.power(a.astype(np.float64), b.astype(np.float64)))
    worst = int(np.argmax(errors))
    assert errors[worst] <= ULP_AT_MOST, f"pow({a[worst]!r}, {b[worst]!r}) = {results[worst]!r}"


def same(results: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Bit for bit, all NaNs being one."""
    bits = f"u{results.dtype.itemsize}"
    return (results.view(bits) == wanted.view(bits)) | (np.isnan(results) & np.isnan(wanted))


def test_fmod_is_exact():
    a, b = pairs(int(np.random.SeedSequence().entropy) % (1 << 32))
    with np.errstate(all="ignore"):
        wanted = np.fmod(a, b)
    is_same = same(evaluate(function_for("fmod", FLOAT32), a, b), wanted)
    assert is_same.all(), f"fmod({a[~is_same][0]!r}, {b[~is_same][0]!r})"


ROUNDING = {"floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "round": np.rint, "abs": np.abs}


@pytest.mark.parametrize("name", ROUNDING)
@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT64], ids=str)
def test_rounding_is_exact(name: str, dtype, sample: np.ndarray):
    kind = np.dtype(str(dtype)).type
    with np.errstate(all="ignore"):
        values = np.concatenate([sample.astype(kind), np.arange(-9, 9, 0.25, kind), sample.astype(kind) * kind(1e3)])
    if dtype == FLOAT64:
        values = np.concatenate([values, 2.0**52 + np.arange(-8, 8) * 0.5, -(2.0**53) + np.arange(-4.0, 4.0)])
    is_same = same(evaluate(function_for(name, dtype), values), ROUNDING[name](values))
    assert is_same.all(), f"{name}({values[~is_same][0]!r})"


@pytest.mark.parametrize(("name", "wanted"), [("isnan", np.isnan), ("isinf", np.isinf), ("isfinite", np.isfinite)])
def test_classification_is_exact(name: str, wanted, sample: np.ndarray):
    for dtype in (FLOAT32, FLOAT64):
        values = sample.astype(str(dtype))
        assert np.array_equal(evaluate(function_for(name, dtype), values), wanted(values))


def test_copysign_is_exact():
    a, b = (grid.ravel() for grid in np.meshgrid(SPECIAL, SPECIAL))
    assert same(evaluate(function_for("copysign", FLOAT32), a, b), np.copysign(a, b)).all()


def test_roots_in_float64():
    values = np.concatenate([SPECIAL.astype(np.float64), np.exp(np.linspace(-740, 709, 20_000)), [5e-324, 2.2e-308]])
    with np.errstate(all="ignore"):
        for name, exact in (("sqrt", np.sqrt(values)), ("rsqrt", 1.0 / np.sqrt(values))):
            results = evaluate(function_for(name, FLOAT64), values)
            finite = np.isfinite(exact) & (exact != 0)
            assert np.max(np.abs(results[finite] / exact[finite] - 1)) < 4 * 2.0**-52
            assert same(results[~finite], exact[~finite]).all()


LONG = np.longdouble


@pytest.mark.skipif(np.finfo(LONG).nmant < 60, reason="NumPy's longdouble is no wider than float64 here")
@pytest.mark.parametrize("name", ["exp", "exp2", "sigmoid", "tanh", "log", "log2"])
def test_functions_in_float64_are_within_four_ulp(name: str):
    seed = int(np.random.SeedSequence().entropy) % (1 << 32)
    print(f"seed {seed}")
    random = np.random.default_rng(seed)
    anything = random.integers(0, (1 << 64) - 1, 100_000, dtype=np.uint64).view(np.float64)
    usual = np.concatenate([random.normal(size=100_000) * scale for scale in (0.01, 1, 30, 400)])
    near_one = 1 + random.normal(size=100_000) * 2.0 ** random.integers(-52, -1, 100_000)
    edges = np.array([709.782, 709.783, -745.13, -745.14, -708.4, 1024.0, -1074.0, -1075.0, 5e-324, 2.3e-308, 0.625])
    values = np.concatenate([SPECIAL.astype(np.float64), edges, usual, near_one, anything])
    if name.startswith("log"):
        values = np.concatenate([values, np.abs(values)])
    wanted = EXACT[name](values.astype(LONG))
    results = evaluate(function_for(name, FLOAT64), values)
    nearest = wanted.astype(np.float64)
    finite = np.isfinite(nearest) & np.isfinite(results)
    distance = np.abs(results[finite].astype(LONG) - wanted[finite]) / np.spacing(np.abs(nearest[finite]))
    worst = int(np.argmax(distance))
    assert distance[worst] <= ULP_AT_MOST, f"{name}({values[finite][worst]!r})"
    assert same(results[~finite], nearest[~finite]).all()
    zero = finite & (nearest == 0) & (results == 0)
    assert same(results[zero], nearest[zero]).all()


@pytest.mark.skipif(np.finfo(LONG).nmant < 60, reason="NumPy's longdouble is no wider than float64 here")
def test_pow_in_float64_is_within_four_ulp():
    seed = int(np.random.SeedSequence().entropy) % (1 << 32)
    print(f"seed {seed}")
    random = np.random.default_rng(seed)
    a, b = (grid.ravel() for grid in np.meshgrid(SPECIAL.astype(np.float64), SPECIAL.astype(np.float64)))
    base = np.concatenate([np.exp(random.uniform(-700, 700, 50_000)), random.uniform(0.6, 1.6, 50_000)])
    exponent = random.uniform(-740, 709, base.size) / np.log(base)
    any_a, any_b = (random.integers(0, (1 << 64) - 1, 50_000, dtype=np.uint64).view(np.float64) for _ in range(2))
    a, b = np.concatenate([a, base, any_a]), np.concatenate([b, exponent, any_b])
    results = evaluate(function_for("pow", FLOAT64), a, b)
    wanted = np.power(a.astype(LONG), b.astype(LONG))
    nearest = wanted.astype(np.float64)
    finite = np.isfinite(nearest) & np.isfinite(results)
    distance = np.abs(results[finite].astype(LONG) - wanted[finite]) / np.spacing(np.abs(nearest[finite]))
    worst = int(np.argmax(distance))
    assert distance[worst] <= ULP_AT_MOST, f"pow({a[finite][worst]!r}, {b[finite][worst]!r})"
    assert same(results[~finite], nearest[~finite]).all()
    assert np.array_equal(np.signbit(results[finite]), np.signbit(nearest[finite]))


def test_large_arguments_of_sine_are_reduced_exactly():
    # Values of sin and cos of float32 near 2**k, from mpmath with 400 bits.
    import mpmath

    values = np.array([2.0**k * 1.337 for k in range(0, 128, 3)] + [3.4028235e38, 16367173 * 2.0**72], np.float32)
    # The float32 on either side of multiples of pi/2, where almost nothing is left.
    turns = (np.arange(1, 3000) * (np.pi / 2)).astype(np.float32)
    values = np.concatenate([values, turns, np.nextafter(turns, np.float32(0)), np.nextafter(turns, np.float32(1e9))])
    for name, exact in (("sin", mpmath.sin), ("cos", mpmath.cos)):
        with mpmath.workprec(400):
            wanted = np.array([float(exact(mpmath.mpf(float(value)))) for value in values])
        assert np.max(ulp_errors(evaluate(function_for(name, FLOAT32), values), wanted)) <= ULP_AT_MOST


def test_sine_and_cosine_in_float64_are_within_four_ulp():
    import mpmath

    seed = int(np.random.SeedSequence().entropy) % (1 << 32)
    print(f"seed {seed}")
    random = np.random.default_rng(seed)
    bits = random.integers(0, 0x7FF << 52, 1500, dtype=np.uint64).view(np.float64)
    # 6381956970095103 * 2**797 is the float64 nearest to a multiple of pi/2 (Kahan and McDonald).
    values = np.concatenate(
        [bits, random.normal(size=1500) * 20, [6381956970095103.0 * 2.0**797, 1e22, 0.0, -0.0, 5e-324]]
    )
    values = np.concatenate([values, np.arange(1, 200) * (np.pi / 2), -np.arange(1, 200) * (np.pi / 4)])
    for name, exact in (("sin", mpmath.sin), ("cos", mpmath.cos)):
        results = evaluate(function_for(name, FLOAT64), values)
        with mpmath.workprec(1400):
            for value, result in zip(values, results, strict=True):
                wanted = exact(mpmath.mpf(float(value)))
                nearest = float(wanted)
                distance = abs(mpmath.mpf(float(result)) - wanted) / mpmath.mpf(float(np.spacing(abs(nearest))))
                assert distance <= ULP_AT_MOST, f"{name}({value!r}) = {result!r}, not {nearest!r}"
        special = np.array([np.inf, -np.inf, np.nan])
        assert np.isnan(evaluate(function_for(name, FLOAT64), special)).all()
    assert np.signbit(evaluate(function_for("sin", FLOAT64), np.array([-0.0, 0.0]))).tolist() == [True, False]


def test_the_error_measure_sees_errors():
    def error(result: float, exact: float) -> float:
        return float(ulp_errors(np.array([result], np.float32), np.array([exact]))[0])

    assert error(1.0, 1.0) == 0
    assert error(1.0000002, 1.0) == 2.0
    assert error(np.nan, 1.0) == np.inf
    assert error(0.0, -0.0) == np.inf
    assert error(np.inf, 1e39) == 0
    assert error(np.inf, 1e38) > 1e6
    assert error(3.4028235e38, np.inf) > 1e6
    assert error(3e-45, 1.4e-45) == pytest.approx(1, abs=0.01)
