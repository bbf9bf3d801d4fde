"""What each kernel of blockkit must compute, in NumPy: arguments, expected results, and how far results may be off."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

Values = Sequence[np.ndarray | float | int]


@dataclass(frozen=True)
class Case:
    """One kernel with one set of arguments.

    ``arguments`` are in the order of the kernel's parameters; ``output`` is the position of the one that it writes, and
    ``expected`` gives what that must hold, from the arguments as they were before. ``tolerance`` is relative to the
    greatest magnitude expected; 0 asks for equality.
    """

    module: str
    function: str
    arguments: Values
    output: int
    expected: Callable[..., np.ndarray]
    tolerance: float = 0.0


def cases(m: int, n: int, k: int, count: int, seed: int = 1) -> list[Case]:
    """All cases, for matrices and pictures of m rows and n columns, products over k, and lines of ``count`` values."""
    random = np.random.default_rng(seed)
    table = random.random((m, n), np.float32)
    left, right = random.random((m, k), np.float32), random.random((k, n), np.float32)
    line = random.standard_normal(count, np.float32)
    whole = random.integers(-1000, 1000, count, np.int32)
    grey = random.integers(0, 256, (m, n), np.uint8)
    zeros = np.zeros_like
    return [
        Case("tiles", "saxpy", [0.5, line, line[::-1].copy()], 2, lambda a, x, y: a * x.astype(np.float64) + y, 1e-6),
        Case("tiles", "matmul", [left, right, zeros(table)], 2, lambda a, b, c: a.astype(np.float64) @ b, 1e-5),
        Case("tiles", "transpose", [table, zeros(table.T.copy())], 1, lambda src, dst: src.T),
        Case("tiles", "blur", [table, zeros(table)], 1, lambda src, dst: means(means(src, 2).T, 2).T, 1e-6),
        Case(
            "tiles", "heat", [line, zeros(line), 0.2, 3], 1, lambda src, dst, rate, steps: rod(src, rate, steps), 1e-6
        ),
        *(Case("tiles", "reverse_runs", [line, run], 0, reversed_runs) for run in (100, 1, 256)),
        Case("collectives", "total", [abs(line), np.zeros(1, np.float32)], 1, total, 1e-5),
        Case("collectives", "softmax", [table * 8, zeros(table)], 1, lambda src, dst: softmax(src), 1e-5),
        Case(
            "collectives",
            "prefix_sum",
            [whole, np.zeros(count, np.int64)],
            1,
            lambda src, dst: np.cumsum(src, dtype=np.int64),
        ),
        Case("collectives", "histogram", [grey, np.zeros(256, np.int32)], 1, histogram),
    ]


def means(src: np.ndarray, radius: int) -> np.ndarray:
    """The mean of each value and ``radius`` neighbours to either side in its row; the ends repeat."""
    width = src.shape[1]
    columns = np.arange(width)
    shifts = range(-radius, radius + 1)
    return np.sum([src.astype(np.float64)[:, np.clip(columns + k, 0, width - 1)] for k in shifts], 0) / len(shifts)


def rod(src: np.ndarray, rate: float, steps: int) -> np.ndarray:
    """Heat flow along a rod whose ends stay as they are."""
    values = src.astype(np.float64)
    for _ in range(steps):
        values[1:-1] += rate * (values[:-2] + values[2:] - 2 * values[1:-1])
    return values


def reversed_runs(x: np.ndarray, run: int) -> np.ndarray:
    return np.concatenate([x[:0], *(x[i : i + run][::-1] for i in range(0, x.size, run))])


def total(src: np.ndarray, out: np.ndarray) -> np.ndarray:
    return src.sum(dtype=np.float64, keepdims=True)


def softmax(src: np.ndarray) -> np.ndarray:
    powers = np.exp(src.astype(np.float64) - src.max(axis=1, keepdims=True, initial=-np.inf))
    return powers / powers.sum(axis=1, keepdims=True)


def histogram(src: np.ndarray, counts: np.ndarray) -> np.ndarray:
    return np.bincount(src.ravel(), minlength=256).astype(np.int32)
