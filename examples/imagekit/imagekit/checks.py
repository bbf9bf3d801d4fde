"""What each kernel of imagekit must compute, in NumPy: inputs, expected outputs, and how far results may be off.

``gristmill demo`` runs these on every device; they serve as this project's own tests too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

Values = Sequence[np.ndarray | float | int]


@dataclass(frozen=True)
class Case:
    """One kernel with one set of arguments.

    ``arguments`` are in the order of the kernel's parameters; ``outputs`` are the positions of those it writes, and
    ``expected`` gives what they must hold, from the arguments as they were before. ``tolerance`` is relative to the
    greatest magnitude expected; 0 asks for equality.
    """

    module: str
    function: str
    size: str
    arguments: Values
    outputs: tuple[int, ...]
    expected: Callable[..., Sequence[np.ndarray]]
    tolerance: float = 0.0


def cases(picture: np.ndarray, count: int = 1_000_003, extent: int = 203, seed: int = 1) -> list[Case]:
    """All cases, for a picture of RGBA bytes of shape (height, width, 4), lines of ``count`` values and matrices of
    about ``extent`` rows and columns."""
    random = np.random.default_rng(seed)
    grey = grey_of(picture)
    light = (grey / np.float32(255)).astype(np.float32)
    area = f"{grey.shape[0]}x{grey.shape[1]}"
    line = random.standard_normal(count, np.float32)
    whole = random.integers(-1000, 1000, count, np.int32)
    m, k, n = extent, extent - 16, extent + 8
    left, right = random.random((m, k), np.float32), random.random((k, n), np.float32)
    product = f"{m}x{k}x{n}"

    def image() -> np.ndarray:
        return np.zeros(grey.shape, np.float32)

    return [
        Case("filters", "grey", area, [picture, np.zeros_like(grey)], (1,), lambda rgba, out: [grey_of(rgba)]),
        Case("filters", "blur_rows", area, [light, image()], (1,), lambda src, dst: [blurred(src, 1)], 1e-6),
        Case("filters", "blur_columns", area, [light, image()], (1,), lambda src, dst: [blurred(src, 0)], 1e-6),
        Case("filters", "sobel", area, [light, image()], (1,), lambda src, dst: [edges_of(src)], 1e-5),
        Case("filters", "stencil", area, [light, image(), 0.2], (1,), lambda src, dst, rate: [heat(src, rate)], 1e-6),
        Case(
            "filters",
            "posterize",
            area,
            [light, np.zeros_like(grey), 5],
            (1,),
            lambda src, dst, levels: [posterized(src, levels)],
        ),
        Case(
            "linear", "saxpy", str(count), [0.5, line, line[::-1].copy()], (2,), lambda a, x, y: [saxpy(a, x, y)], 1e-6
        ),
        Case(
            "linear",
            "transpose",
            f"{m}x{k}",
            [left, np.zeros((k, m), np.float32)],
            (1,),
            lambda src, dst: [src.T],
        ),
        Case("linear", "matmul", product, [left, right, np.zeros((m, n), np.float32)], (2,), multiplied, 1e-5),
        Case("linear", "matmul_tiled", product, [left, right, np.zeros((m, n), np.float32)], (2,), multiplied, 1e-5),
        Case(
            "reductions",
            "sum",
            str(count),
            [np.abs(line), np.zeros(1, np.float32)],
            (1,),
            lambda src, out: [src.sum(dtype=np.float64, keepdims=True)],
            1e-4,
        ),
        Case(
            "reductions",
            "maximum",
            str(count),
            [line, np.zeros(1, np.float32)],
            (1,),
            lambda src, out: [src.max(keepdims=True)],
        ),
        Case("reductions", "softmax", area, [light * 8, image()], (1,), lambda src, dst: [softmax(src)], 1e-5),
        Case(
            "reductions",
            "prefix_sum",
            str(count),
            [whole, np.zeros(count, np.int64)],
            (1,),
            lambda src, dst: [np.cumsum(src, dtype=np.int64)],
        ),
        Case(
            "reductions",
            "histogram",
            area,
            [grey, np.zeros(256, np.int32)],
            (1,),
            lambda src, counts: [np.bincount(src.ravel(), minlength=256).astype(np.int32)],
        ),
    ]


def grey_of(rgba: np.ndarray) -> np.ndarray:
    red, green, blue = (rgba[..., channel].astype(np.int32) for channel in range(3))
    return ((77 * red + 150 * green + 29 * blue + 128) >> 8).astype(np.uint8)


def blurred(src: np.ndarray, axis: int, radius: int = 3) -> np.ndarray:
    padding = [(radius, radius) if dimension == axis else (0, 0) for dimension in range(2)]
    padded = np.pad(src.astype(np.float64), padding, mode="edge")
    length = src.shape[axis]
    return sum(padded.take(range(k, k + length), axis) for k in range(2 * radius + 1)) / (2 * radius + 1)


def edges_of(src: np.ndarray) -> np.ndarray:
    p = np.pad(src.astype(np.float64), 1, mode="edge")
    across = (p[:-2, 2:] + 2 * p[1:-1, 2:] + p[2:, 2:]) - (p[:-2, :-2] + 2 * p[1:-1, :-2] + p[2:, :-2])
    down = (p[2:, :-2] + 2 * p[2:, 1:-1] + p[2:, 2:]) - (p[:-2, :-2] + 2 * p[:-2, 1:-1] + p[:-2, 2:])
    return np.sqrt(across * across + down * down)


def heat(src: np.ndarray, rate: float) -> np.ndarray:
    values = src.astype(np.float64)
    after = values.copy()
    around = values[:-2, 1:-1] + values[2:, 1:-1] + values[1:-1, :-2] + values[1:-1, 2:]
    after[1:-1, 1:-1] += rate * (around - 4 * values[1:-1, 1:-1])
    return after


def posterized(src: np.ndarray, levels: int) -> np.ndarray:
    steps = np.float32(levels - 1)
    inside = (np.round(src * steps) * (np.float32(255) / steps)).astype(np.uint8)
    return np.where(src >= 1, np.uint8(255), np.where(src > 0, inside, np.uint8(0)))


def saxpy(a: float, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return a * x.astype(np.float64) + y


def multiplied(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> list[np.ndarray]:
    return [a.astype(np.float64) @ b.astype(np.float64)]


def softmax(src: np.ndarray) -> np.ndarray:
    powers = np.exp(src.astype(np.float64) - src.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)
