"""Largest error, on a Vulkan device, of division, sqrt and every function of float32, in units in the last place.

    python benchmarks/vulkan_numerics.py                            # vulkan:0, every 401st float32
    python benchmarks/vulkan_numerics.py -d vulkan:1 --step 31 sin  # another device, more points, one function

Points whose arguments or results are below the least normal float32 are counted apart: devices may take them for zeros.
The exact values are float64 NumPy's, whose own error is some 2**-29 of a float32 ulp. The last line is a row for
docs/numerics.md.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from mathlib_accuracy import BINARY, UNARY, all_bits, random_pairs

import gristmill
from gristmill.testing.ulp import ulp_errors

Exact = Callable[..., np.ndarray]

FUNCTIONS: dict[str, Exact] = {"divide": np.divide, **UNARY, **BINARY}
LEAST_NORMAL = 2.0**-126

HEAD = "from gristmill.script import tir as T\n\n\n"
ARRAY = 'T.Buffer(("n",), "float32")'


def source() -> str:
    """One kernel a function; of each, one thread an element."""
    texts = [HEAD]
    for name in FUNCTIONS:
        takes = ["x", "y"] if is_binary(name) else ["x"]
        value = "x[i] / y[i]" if name == "divide" else f"T.{name}({', '.join(f'{each}[i]' for each in takes)})"
        parameters = ", ".join(f"{each}: {ARRAY}" for each in (*takes, "out"))
        texts.append(f"@T.prim_func\ndef {name}({parameters}):\n    for i in range(n):\n        out[i] = {value}\n\n\n")
    return "".join(texts).rstrip() + "\n"


def is_binary(name: str) -> bool:
    return name in BINARY or name == "divide"


def build(folder: Path, target: str) -> gristmill.LoadedPack:
    (folder / "functions.py").write_text(source())
    (folder / "kernels.toml").write_text(
        f'schema = 1\n[project]\nname = "numerics"\n[targets]\ngpu = "{target}"\n'
        '[[module]]\nname = "functions"\nsource = "functions.py"\n'
    )
    return gristmill.build(folder / "kernels.toml").pack("functions").path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=list(FUNCTIONS), metavar="function")
    parser.add_argument("-d", "--device", default="vulkan:0")
    parser.add_argument("-t", "--target", default="vulkan", help="what to build for (default: vulkan)")
    parser.add_argument("--step", type=int, default=401, help="take every so many-th float32 (default 401)")
    options = parser.parse_args()
    if unknown := sorted(set(options.names) - set(FUNCTIONS)):
        parser.error(f"there is no {', '.join(unknown)}; there are {', '.join(FUNCTIONS)}")
    device = gristmill.device(options.device)
    row = next(row for row in gristmill.devices() if row.name == options.device)
    print(f"{options.device}: {row.title}")
    with tempfile.TemporaryDirectory() as folder:
        pack = gristmill.load(build(Path(folder), options.target), device=device)
    worsts = []
    for name in options.names:
        start = time.perf_counter()
        points = random_pairs((1 << 32) // options.step) if is_binary(name) else all_bits(options.step)
        worst, where, tiny, count = 0.0, "", 0.0, 0
        for arguments in points:
            out = device.empty(arguments[0].shape, "float32")
            pack[name](*(device.array(argument) for argument in arguments), out)
            with np.errstate(all="ignore"):
                exact = FUNCTIONS[name](*(argument.astype(np.float64) for argument in arguments))
                errors = ulp_errors(out.numpy(), exact)
                normal = np.ones(errors.shape, bool)
                for value in (*arguments, exact):
                    normal &= (value == 0) | (np.abs(value) >= LEAST_NORMAL) | np.isnan(value)
            count += int(normal.sum())
            tiny = max(tiny, float(errors[~normal].max(initial=0.0)))
            index = int(np.argmax(np.where(normal, errors, 0)))
            if normal[index] and errors[index] > worst:
                worst = float(errors[index])
                where = f", at {name}({', '.join(repr(float(argument[index])) for argument in arguments)})"
        seconds = time.perf_counter() - start
        below = f"{tiny:.2f}" if tiny < 1e3 else "taken for zeros"
        print(
            f"{name:8} {worst:8.2f} ulp at most of {count:11,}{where}; denormals: {below}  [{seconds:.0f} s]",
            flush=True,
        )
        worsts.append(f"{worst:.2f}")
    print(f"| {row.title} | {' | '.join(worsts)} |")


if __name__ == "__main__":
    main()
