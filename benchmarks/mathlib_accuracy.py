"""Largest error of every function of gristmill.mathlib, in units in the last place, over many float32.

    python benchmarks/mathlib_accuracy.py                 # every 401st float32: 10.7 million points a function
    python benchmarks/mathlib_accuracy.py --step 1 sin    # all of them; minutes a function

The exact values are float64 NumPy's, whose own error is some 2**-29 of a float32 ulp.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator

import numpy as np

from gristmill.ir.dtype import FLOAT32
from gristmill.mathlib import function_for
from gristmill.testing.straight_line import evaluate
from gristmill.testing.ulp import ulp_errors

CHUNK = 1 << 20


def sigmoid(x: np.ndarray) -> np.ndarray:
    e = np.exp(-np.abs(x))
    return np.where(x < 0, e, 1.0) / (1.0 + e)


UNARY = {
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
BINARY = {"pow": np.power, "fmod": np.fmod}


def all_bits(step: int) -> Iterator[tuple[np.ndarray, ...]]:
    for start in range(0, 1 << 32, CHUNK * step):
        yield (
            np.arange(start, min(start + CHUNK * step, 1 << 32), step, dtype=np.uint64)
            .astype(np.uint32)
            .view(np.float32),
        )


def random_pairs(count: int) -> Iterator[tuple[np.ndarray, ...]]:
    """Half of them any bits, half of them pairs whose power is in the range of float32."""
    random = np.random.default_rng(20)
    for _ in range(max(1, count // (2 * CHUNK))):
        yield tuple(random.integers(0, 1 << 32, CHUNK, dtype=np.uint32).view(np.float32) for _ in range(2))
        base = np.exp(random.uniform(-87, 88, CHUNK) ** random.choice((1, 3)) % 88).astype(np.float32)
        with np.errstate(all="ignore"):
            yield base, (random.uniform(-104, 89, CHUNK) / np.log(base.astype(np.float64))).astype(np.float32)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=[*UNARY, *BINARY], metavar="function")
    parser.add_argument("--step", type=int, default=401, help="take every so many-th float32 (default 401)")
    options = parser.parse_args()
    for name in options.names:
        function = function_for(name, FLOAT32)
        if function is None:
            parser.error(f"the library has no {name}")
        points = all_bits(options.step) if name in UNARY else random_pairs((1 << 32) // options.step)
        exact = UNARY.get(name) or BINARY[name]
        worst, where, count, start = 0.0, "", 0, time.perf_counter()
        for arguments in points:
            results = evaluate(function, *arguments)
            with np.errstate(all="ignore"):
                errors = ulp_errors(results, exact(*(argument.astype(np.float64) for argument in arguments)))
            count += len(errors)
            index = int(np.argmax(errors))
            if errors[index] > worst:
                worst = float(errors[index])
                where = f"{', '.join(repr(float(argument[index])) for argument in arguments)}"
        seconds = time.perf_counter() - start
        print(
            f"{name:8} {worst:7.3f} ulp at most, of {count:11,} points, at {name}({where})  [{seconds:.0f} s]",
            flush=True,
        )


if __name__ == "__main__":
    main()
