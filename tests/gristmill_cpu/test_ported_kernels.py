"""Kernels as people port them, from the manifest to the call: every result is compared with NumPy or Python's library."""

from __future__ import annotations

import base64
import colorsys
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gristmill

SOURCES = Path(__file__).parent / "kernels"
MODULES = ("imaging", "numeric", "bits")


@pytest.fixture(scope="module")
def packs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("ported")
    (folder / "kernels").mkdir()
    for source in SOURCES.glob("*.py"):
        (folder / "kernels" / source.name).write_text(source.read_text(encoding="utf-8"), encoding="utf-8")
    modules = "".join(f'[[module]]\nname = "{name}"\nsource = "kernels/{name}.py"\n' for name in MODULES)
    manifest = f'schema = 1\n[project]\nname = "ported"\n[targets]\ncpu = "cpu:native"\n{modules}'
    (folder / "kernels.toml").write_text(manifest, encoding="utf-8")
    gristmill.build(folder)
    return {name: gristmill.load(folder / "build" / "kernels" / f"{name}.kpack") for name in MODULES}


@pytest.fixture
def imaging(packs: dict[str, Any]) -> Any:
    return packs["imaging"]


@pytest.fixture
def numeric(packs: dict[str, Any]) -> Any:
    return packs["numeric"]


@pytest.fixture
def bits(packs: dict[str, Any]) -> Any:
    return packs["bits"]


@pytest.fixture
def random() -> np.random.Generator:
    return np.random.default_rng(20)


# Pictures -------------------------------------------------------------------------------------------------------------


def test_bilateral_filter(imaging: Any, random: np.random.Generator) -> None:
    source = random.random((40, 50), dtype=np.float32)
    found = np.empty_like(source)
    imaging.bilateral(source, found)
    padded = np.pad(source.astype(np.float64), 2, mode="edge")
    weights, values = np.zeros((40, 50)), np.zeros((40, 50))
    for dy in range(-2, 3):
        for dx in range(-2, 3):
            near = padded[2 + dy : 42 + dy, 2 + dx : 52 + dx]
            weight = np.exp(-(dx * dx + dy * dy) / 8 - (near - source) ** 2 / 0.02)
            weights += weight
            values += weight * near
    np.testing.assert_allclose(found, values / weights, atol=2e-6)


def test_bilinear_resize(imaging: Any, random: np.random.Generator) -> None:
    source = random.integers(0, 256, (37, 53, 4), dtype=np.uint8)
    found = np.empty((61, 29, 4), np.uint8)
    imaging.resize_bilinear(source, found)
    y, x = (np.arange(61) + 0.5) * 37 / 61 - 0.5, (np.arange(29) + 0.5) * 53 / 29 - 0.5
    top, left = np.floor(y).astype(int), np.floor(x).astype(int)
    below, right = (y - top)[:, None, None], (x - left)[None, :, None]

    def at(rows: np.ndarray, columns: np.ndarray) -> Any:
        return source[np.clip(rows, 0, 36)[:, None], np.clip(columns, 0, 52)[None]].astype(float)

    upper = at(top, left) * (1 - right) + at(top, left + 1) * right
    lower = at(top + 1, left) * (1 - right) + at(top + 1, left + 1) * right
    assert np.max(np.abs(upper * (1 - below) + lower * below - found)) < 0.501


def test_hue_saturation_value(imaging: Any, random: np.random.Generator) -> None:
    rgb = random.random((500, 3), dtype=np.float32)
    rgb[0], rgb[1] = 0, (1, 1, 1)
    found = np.empty_like(rgb)
    imaging.rgb_to_hsv(rgb, found)
    np.testing.assert_allclose(found, [colorsys.rgb_to_hsv(*map(float, row)) for row in rgb], atol=1e-6)


def test_mandelbrot(imaging: Any) -> None:
    found = np.empty((50, 60), np.int32)
    imaging.mandelbrot(found, -2, -1, 0.05, 100)
    points = (-2 + np.arange(60) * 0.05)[None] + 1j * (-1 + np.arange(50) * 0.05)[:, None]
    z, steps = np.zeros_like(points), np.zeros(points.shape, int)
    for step in range(100):
        inside = (z.real**2 + z.imag**2 <= 4) & (steps == step)
        steps[inside] += 1
        z[inside] = z[inside] ** 2 + points[inside]
    assert np.mean(found != steps) < 0.002  # The last bits of a point may put it on the other side.


# Numbers --------------------------------------------------------------------------------------------------------------


def test_assignment_step_of_k_means(numeric: Any, random: np.random.Generator) -> None:
    points, centers = random.random((300, 7), dtype=np.float32), random.random((9, 7), dtype=np.float32)
    labels, counts = np.empty(300, np.int32), np.empty(9, np.int64)
    numeric.kmeans_assign(points, centers, labels, counts)
    expected = ((points[:, None].astype(float) - centers[None]) ** 2).sum(2).argmin(1)
    assert np.array_equal(labels, expected)
    assert np.array_equal(counts, np.bincount(expected, minlength=9))


def test_floyd_warshall(numeric: Any, random: np.random.Generator) -> None:
    found = random.random((40, 40)) * 10
    np.fill_diagonal(found, 0)
    expected = found.copy()
    numeric.floyd_warshall(found)
    for middle in range(40):
        expected = np.minimum(expected, expected[:, middle : middle + 1] + expected[middle : middle + 1])
    assert np.array_equal(found, expected)


def test_smith_waterman(numeric: Any, random: np.random.Generator) -> None:
    a, b = (random.integers(0, 4, size).astype(np.uint8) for size in (40, 55))
    scores = np.empty((41, 56), np.int32)
    best = numeric.smith_waterman(a, b, scores, 2, -1, 1)
    expected = np.zeros((41, 56), int)
    for i in range(1, 41):
        for j in range(1, 56):
            same = expected[i - 1, j - 1] + (2 if a[i - 1] == b[j - 1] else -1)
            expected[i, j] = max(0, same, expected[i - 1, j] - 1, expected[i, j - 1] - 1)
    assert np.array_equal(scores, expected)
    assert best == expected.max()


def test_step_of_n_bodies(numeric: Any, random: np.random.Generator) -> None:
    position, velocity, mass = random.random((30, 3)), random.random((30, 3)), random.random(30)
    away = position[None] - position[:, None]
    force = mass[None] * ((away**2).sum(2) + 1e-9) ** -1.5
    np.fill_diagonal(force, 0)
    faster = velocity + (force[..., None] * away).sum(1) * 0.01
    expected = position + faster * 0.01
    numeric.nbody_step(position, velocity, mass, 0.01)
    np.testing.assert_allclose(velocity, faster)
    np.testing.assert_allclose(position, expected)


def test_stages_of_a_fourier_transform(numeric: Any, random: np.random.Generator) -> None:
    signal = random.random(64) + 1j * random.random(64)
    order = [int(f"{index:06b}"[::-1], 2) for index in range(64)]
    real, imaginary = signal.real[order].astype(np.float32), signal.imag[order].astype(np.float32)
    half = 1
    while half < 64:
        numeric.fft_stage(real, imaginary, half)
        half *= 2
    np.testing.assert_allclose(real + 1j * imaginary, np.fft.fft(signal), atol=1e-4)


def test_sparse_product(numeric: Any, random: np.random.Generator) -> None:
    matrix = (random.random((50, 40)) < 0.2) * random.random((50, 40))
    starts = np.concatenate([[0], np.cumsum((matrix != 0).sum(1))]).astype(np.int32)
    columns, x = np.nonzero(matrix)[1].astype(np.int32), random.random(40, dtype=np.float32)
    y = np.empty(50, np.float32)
    numeric.csr_matvec(starts, columns, matrix[matrix != 0].astype(np.float32), x, y)
    np.testing.assert_allclose(y, matrix @ x, rtol=1e-5, atol=1e-6)


def test_bitonic_sort(numeric: Any, random: np.random.Generator) -> None:
    found = random.integers(-1000, 1000, 256).astype(np.int32)
    expected = np.sort(found)
    size = 2
    while size <= 256:
        apart = size // 2
        while apart:
            numeric.bitonic_step(found, apart, size)
            apart //= 2
        size *= 2
    assert np.array_equal(found, expected)


def test_moving_average(numeric: Any, random: np.random.Generator) -> None:
    x, y = random.random(100), np.empty(94)
    numeric.moving_average(x, y, 7)
    np.testing.assert_allclose(y, np.convolve(x, np.ones(7) / 7, "valid"))
    with pytest.raises(ValueError, match="`n - w \\+ 1` is 94"):
        numeric.moving_average(x, np.empty(93), 7)
    with pytest.raises(AssertionError, match="window out of range"):
        numeric.moving_average(x, np.empty(101), 0)


def test_linear_systems(numeric: Any, random: np.random.Generator) -> None:
    matrix, right = random.random((20, 20)), random.random(20)
    solved = right.copy()
    assert numeric.gauss_solve(matrix.copy(), solved) == 0
    np.testing.assert_allclose(matrix @ solved, right)
    assert numeric.gauss_solve(np.zeros((3, 3)), np.ones(3)) == 1
    matrix += 20 * np.eye(20)
    factors = matrix.copy()
    numeric.lu(factors)
    np.testing.assert_allclose((np.tril(factors, -1) + np.eye(20)) @ np.triu(factors), matrix)


def test_greatest_values(numeric: Any, random: np.random.Generator) -> None:
    x = random.random(1000, dtype=np.float32)
    values, places = np.empty(5, np.float32), np.empty(5, np.int64)
    numeric.top_k(x, values, places)
    assert np.array_equal(places, np.argsort(-x)[:5])
    assert np.array_equal(values, x[places])


def test_product_in_blocks(numeric: Any, random: np.random.Generator) -> None:
    a, b = random.random((128, 128), dtype=np.float32), random.random((128, 128), dtype=np.float32)
    c = np.empty_like(a)
    numeric.matmul_blocked(a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-4)


# Bits and bytes -------------------------------------------------------------------------------------------------------


def octets(text: bytes) -> np.ndarray:
    return np.frombuffer(text, np.uint8).copy()


def test_cyclic_redundancy_check(bits: Any) -> None:
    table = np.empty(256, np.uint32)
    bits.crc_table(table)
    for text in (b"", b"a", b"hello, world"):
        assert bits.crc32(table, octets(text)) == zlib.crc32(text)


def test_base64(bits: Any, random: np.random.Generator) -> None:
    alphabet = octets(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
    source, found = random.integers(0, 256, 300).astype(np.uint8), np.empty(400, np.uint8)
    bits.base64(source, alphabet, found)
    assert found.tobytes() == base64.b64encode(source.tobytes())
    with pytest.raises(ValueError, match="`3 \\* n` is 300"):
        bits.base64(np.zeros(301, np.uint8), alphabet, found)


@pytest.mark.parametrize("needle", [b"brown", b"the", b"fox", b"brawn", b"", b"f" * 30])
def test_search(needle: bytes, bits: Any) -> None:
    text = b"the quick brown fox"
    assert bits.find(octets(text), octets(needle)) == text.find(needle)


def test_random_numbers(bits: Any) -> None:
    """The first two numbers of SplitMix64 from the seed 1234567 (the reference code by Sebastiano Vigna)."""
    uniform, raw = np.empty(5), np.empty(5, np.uint64)
    bits.splitmix(1234567, uniform, raw)
    assert raw[:2].tolist() == [6457827717110365317, 3203168211198807973]
    assert np.array_equal(uniform, (raw >> np.uint64(11)) * 2.0**-53)
    bits.splitmix(2**64 - 1, uniform, raw)
    with pytest.raises(ValueError, match="from 0 to 18446744073709551615, not -1"):
        bits.splitmix(-1, uniform, raw)


def test_hamming_distances(bits: Any, random: np.random.Generator) -> None:
    a, b = (random.integers(0, 2**63, (rows, 4)).astype(np.uint64) for rows in (10, 8))
    found = np.empty((10, 8), np.int32)
    bits.hamming(a, b, found)
    expected = [[sum(int(x ^ y).bit_count() for x, y in zip(p, q, strict=True)) for q in b] for p in a]
    assert found.tolist() == expected


def test_conversions_saturate(bits: Any) -> None:
    x = np.array([1e9, -1e9, np.nan, 3.7, -3.7], np.float32)
    int16, uint8, int64, boolean = (
        np.empty(5, np.int16),
        np.empty(5, np.uint8),
        np.empty(5, np.int64),
        np.empty(5, bool),
    )
    bits.saturate_i16(x, int16)
    bits.bounce(x, uint8, int64, boolean)
    assert int16.tolist() == [32767, -32768, 32767, 3, -3]
    assert uint8.tolist() == [255, 0, 0, 3, 0]
    assert int64.tolist() == [10**9, -(10**9), 0, 3, -3]
    assert boolean.all()
    bytes_of = np.empty(3, np.uint8)
    bits.to_u8(np.array([-5, 3, 300], np.int32), bytes_of)
    assert bytes_of.tolist() == [0, 3, 255]
