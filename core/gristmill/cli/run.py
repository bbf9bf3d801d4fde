"""Run a function of a pack on a device, with arguments from the command line.

Given a kernel source (a .py file) instead of a pack, run it on the reference executor, without building: slowly, with
every access checked. Accesses out of bounds, reads of what was never written and races are errors at their line.

An argument is a number, true or false, a .npy file, or a new array:

    zeros:480x640:float32   ones:480x640:float32   random:480x640:float32

A number with an exponent and a minus needs -- before the arguments, as in: run PACK FUNCTION -- -1e5

Prints what each array holds afterwards. --save writes one to a .npy file, --repeat measures. Positions of arguments
count from 1.
"""

from __future__ import annotations

import argparse
import math
import re
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gristmill.cli.output import add_json_option, write_file, write_json, write_table
from gristmill.errors import Diagnostic, GristmillError, UserError, suggestion
from gristmill.script.dialects import DIALECTS

if TYPE_CHECKING:
    import numpy as np

    Outcome = tuple[dict[int, np.ndarray], Any, list[float]]
    """Arrays by position as they are afterwards, what was returned, and the milliseconds of each call."""

_NEW_ARRAY = re.compile(r"(?P<fill>zeros|ones|random):(?P<shape>(?:\d{1,12}(?:x\d{1,12})*)?):(?P<dtype>[a-z0-9]+)")
_INTEGERS = tuple(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64))
_DTYPES = (*_INTEGERS, "bool", "float16", "float32", "float64")
_LARGEST_ARRAY = 1 << 34
_FORMS = 'write a number, true, false, "file.npy" or a new array such as zeros:480x640:float32'


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("pack", help="a .kpack file, PACKAGE:MODULE of an installed package, or a .py file of kernels")
    parser.add_argument("function", help="the function to run")
    parser.add_argument("arguments", nargs="*", metavar="ARGUMENT", help="its arguments, in order")
    parser.add_argument(
        "-d", "--device", help="where to run it (default: cpu:0, or what the pack is for); not for a .py file"
    )
    parser.add_argument("--dialect", choices=DIALECTS, default=DIALECTS[0], help="dialect of a .py file")
    parser.add_argument("--seed", type=_seed, default=0, help="seed of random arrays (default: 0)")
    parser.add_argument("--repeat", type=_count, default=1, metavar="N", help="run it N times and print the least time")
    parser.add_argument(
        "--save", action="append", default=[], metavar="POSITION=FILE", help="write the array argument at the position"
    )
    add_json_option(parser)


def _seed(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,40}", text):
        raise argparse.ArgumentTypeError("must be a number from 0 up, of at most 40 digits")
    return int(text)


def _count(text: str) -> int:
    if not re.fullmatch(r"[1-9][0-9]{0,6}", text):
        raise argparse.ArgumentTypeError("must be a number from 1 to 9999999")
    return int(text)


def run(options: argparse.Namespace) -> int:
    import numpy as np

    generator = np.random.default_rng(options.seed)
    values = [read_argument(text, position, generator) for position, text in enumerate(options.arguments, 1)]
    saved = read_saves(options.save, values)
    if options.pack.endswith(".py"):
        results, returned, times = _run_source(options, values)
    else:
        results, returned, times = _run_pack(options, values)
    for position, file in saved.items():
        _save(file, results[position])
    _write(options, results, returned, times)
    return 0


def _run_pack(options: argparse.Namespace, values: list[Any]) -> Outcome:
    import numpy as np

    import gristmill

    pack = gristmill.load(options.pack)
    try:
        # By item: attributes of a pack are its methods too.
        function = pack[options.function]
    except KeyError as error:
        hint = "`gristmill inspect` lists the functions of a pack"
        raise UserError(Diagnostic("GM0013", str(error.args[0]), hint=hint)) from None
    if options.device is None:
        if not pack.devices:
            # It says why nothing of the pack runs here.
            function(*values)
        options.device = "cpu:0" if "cpu:0" in pack.devices else pack.devices[0]
    device = gristmill.device(options.device)
    given = [device.array(value) if isinstance(value, np.ndarray) else value for value in values]

    def once() -> Any:
        returned = _call(options.function, function, given)
        device.synchronize()
        return returned

    returned, times = _timed(once, options.repeat)
    arrays = {
        position: array.numpy()
        for position, (array, value) in enumerate(zip(given, values, strict=True), 1)
        if isinstance(value, np.ndarray)
    }
    return arrays, returned, times


def _run_source(options: argparse.Namespace, values: list[Any]) -> Outcome:
    import numpy as np

    from gristmill.cli.run_source import source_function

    if options.device is not None:
        hint = "build it, and name the pack instead of the source"
        raise UserError(Diagnostic("GM0013", f"{options.pack} is not built for {options.device}", hint=hint))
    options.device = "the reference executor"
    function = source_function(options.pack, options.function, options.dialect)
    returned, times = _timed(lambda: function(*values), options.repeat)
    arrays = {position: value for position, value in enumerate(values, 1) if isinstance(value, np.ndarray)}
    return arrays, returned, times


def _timed(call: Callable[[], Any], count: int) -> tuple[Any, list[float]]:
    times = []
    for _ in range(count):
        start = time.perf_counter()
        returned = call()
        times.append((time.perf_counter() - start) * 1e3)
    return returned, times


def _call(name: str, function: Callable[..., Any], given: list[Any]) -> Any:
    """Call the function. What it raises is its answer to the arguments: UserError (GM0013)."""
    try:
        return function(*given)
    except GristmillError:
        raise
    except Exception as error:
        said, _, signature = str(error).partition("\n")
        if not said.startswith(f"{name}: "):
            said = f"{name}: {type(error).__name__}: {said}"
        hint = signature.strip() or "the function itself refuses these arguments"
        raise UserError(Diagnostic("GM0013", said, hint=hint)) from error


def read_argument(text: str, position: int, generator: np.random.Generator) -> Any:
    """The value that an argument's text means. Raises UserError (GM0009) where it means none."""
    import numpy as np

    if text in {"true", "false"}:
        return text == "true"
    if re.fullmatch(r"[+-]?\d{1,20}", text):
        return int(text)
    if text.endswith(".npy"):
        try:
            with open(text, "rb") as opened:
                # Pickled objects in a file would run code of whoever wrote it.
                return np.lib.format.read_array(opened, allow_pickle=False)
        except (OSError, ValueError, MemoryError) as error:
            raise _refused(
                position, f"can't read the array in `{text}`: {error}", "name a .npy file of numbers"
            ) from None
    match = _NEW_ARRAY.fullmatch(text)
    if match:
        return _new_array(match, position, generator)
    try:
        return float(text)
    except ValueError:
        raise _refused(position, f"`{text[:80]}` is not an argument", _FORMS) from None


def _new_array(match: re.Match[str], position: int, generator: np.random.Generator) -> np.ndarray:
    import numpy as np

    dtype = match["dtype"]
    if dtype not in _DTYPES:
        raise _refused(position, f"`{dtype}` is not a dtype", suggestion(dtype, _DTYPES, "float32, say"))
    shape = tuple(int(extent) for extent in match["shape"].split("x") if extent)
    if math.prod(shape) * np.dtype(dtype).itemsize > _LARGEST_ARRAY:
        raise _refused(position, f"an array of shape {shape} is too large", "at most 16 GiB")
    if match["fill"] == "zeros":
        return np.zeros(shape, dtype)
    if match["fill"] == "ones":
        return np.ones(shape, dtype)
    if dtype.startswith("float"):
        return generator.random(shape).astype(dtype)
    return generator.integers(0, 2 if dtype == "bool" else 100, shape).astype(dtype)


def read_saves(texts: list[str], values: list[Any]) -> dict[int, str]:
    """Positions of arguments to save, with the files. Raises UserError (GM0009) where one is no array."""
    found = {}
    for text in texts:
        position, _, file = text.partition("=")
        if not position.isdecimal() or not file.endswith(".npy"):
            hint = "write POSITION=FILE.npy, positions count from 1"
            raise UserError(Diagnostic("GM0009", f"--save can't be `{text}`", hint=hint))
        arrays = [str(index) for index, value in enumerate(values, 1) if hasattr(value, "shape")]
        if position not in arrays:
            hint = f"arrays are at {', '.join(arrays)}" if arrays else "no argument is an array"
            raise UserError(Diagnostic("GM0009", f"--save {text}: the argument is no array", hint=hint))
        found[int(position)] = file
    return found


def _refused(position: int, message: str, hint: str) -> UserError:
    return UserError(Diagnostic("GM0009", f"argument {position}: {message}", hint=hint))


def _save(file: str, array: np.ndarray) -> None:
    import io

    import numpy as np

    content = io.BytesIO()
    np.lib.format.write_array(content, array, allow_pickle=False)
    write_file(file, content.getvalue(), force=True)


def _write(options: argparse.Namespace, results: dict[int, np.ndarray], returned: Any, times: list[float]) -> None:
    arrays: list[dict[str, Any]] = [
        {
            "position": position,
            "shape": list(array.shape),
            "dtype": str(array.dtype),
            **({} if array.size == 0 else _summary(array)),
        }
        for position, array in results.items()
    ]
    if options.json:
        content: dict[str, Any] = {"function": options.function, "device": options.device, "arrays": arrays}
        if returned is not None:
            content["returned"] = returned
        write_json({**content, "milliseconds": [round(milliseconds, 4) for milliseconds in times]})
        return
    if returned is not None:
        print(f"returned {returned}")
    write_table(
        ["argument", "shape", "dtype", "least", "greatest", "mean"],
        [
            [
                str(array["position"]),
                "x".join(str(extent) for extent in array["shape"]),
                array["dtype"],
                *(f"{array[name]:.6g}" if name in array else "" for name in ("least", "greatest", "mean")),
            ]
            for array in arrays
        ],
        numbers=["argument", "least", "greatest", "mean"],
    )
    print(f"{options.function} on {options.device}: {min(times):.3f} ms")


def _summary(array: np.ndarray) -> dict[str, float]:
    import numpy as np

    numbers = array.astype(np.float64)
    return {"least": float(numbers.min()), "greatest": float(numbers.max()), "mean": float(numbers.mean())}
