"""The demonstration: build the example project, run each kernel on each device for each target, compare, write pictures."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gristmill.build.driver import build
from gristmill.build.report import BuildReport
from gristmill.codegen.context_table import DEVICE_KIND
from gristmill.errors import MissingError
from gristmill.interp import execute
from gristmill.ir.host_interface import CPU_DEVICE_TYPE
from gristmill.ir.parser import parse_module
from gristmill.pack import find_pack
from gristmill.runtime import device, devices, load
from gristmill.runtime.devices import this_process
from gristmill.testing.example_project import copy_project, import_from

if TYPE_CHECKING:
    from gristmill.runtime import LoadedPack

_EXECUTOR_PICTURE = (13, 17)
"""Size of the picture that the executor, which is slow, checks the kernels on."""
_DEVICE_SIZES = ((160, 240), 40_003, 35)
"""Height and width of the picture, values of a line, and rows of a matrix on devices beside the processor.

Loops that nothing lets share are run by one thread there, and Mesa's driver for processors (llvmpipe) ends the loops of a
thread after 65535 iterations in all (LP_MAX_TGSI_LOOP_ITERATIONS in its lp_bld_limits.h) without a word."""
_TIMED_RUNS = 5
_SLOW_RUNTIME = "reference"


@dataclass(frozen=True)
class Row:
    """One kernel on one device. Times in milliseconds, sizes in bytes; errors relative to the greatest value expected."""

    kernel: str
    target: str
    device: str
    work: str
    size: int
    build_ms: float
    run_ms: float
    error: float
    bound: float
    ok: bool

    def as_json(self) -> dict[str, Any]:
        return {
            "kernel": self.kernel,
            "target": self.target,
            "device": self.device,
            "work": self.work,
            "size": self.size,
            "build_ms": round(self.build_ms, 3),
            "run_ms": round(self.run_ms, 4),
            "error": self.error,
            "allowed": self.bound,
            "ok": self.ok,
        }


@dataclass(frozen=True)
class Demonstration:
    """What was run, the pictures that were written, and what could not be tried with the reason."""

    rows: tuple[Row, ...]
    pictures: tuple[str, ...]
    absent: tuple[tuple[str, str], ...]

    def as_json(self) -> dict[str, Any]:
        return {
            "rows": [row.as_json() for row in self.rows],
            "pictures": list(self.pictures),
            "absent": [{"name": name, "reason": reason} for name, reason in self.absent],
        }


def demonstrate(output: str, chosen: Collection[str] | None = None) -> Demonstration:
    """Build the example project under ``output`` and run all of it, on the devices ``chosen`` by name or on all.

    Results are compared with NumPy on the photograph, and with the reference executor on a small picture. Raises
    MissingError (GM0021) where Pillow, which reads and writes the pictures, is not installed.
    """
    picture_library()
    folder = Path(output)
    project = copy_project(folder / "imagekit")
    report = build(project / "kernels.toml", output=folder / "kernels")
    picture = read_picture(project / "imagekit" / "data" / "chelsea.png")
    checks = import_from(project, "checks")
    cases = checks.cases(picture)
    small_cases = checks.cases(picture[: _EXECUTOR_PICTURE[0], : _EXECUTOR_PICTURE[1]].copy(), count=1003, extent=19)
    names, absent = present_devices(chosen)
    (height, width), count, extent = _DEVICE_SIZES
    device_cases = checks.cases(picture[:height, :width].copy(), count=count, extent=extent)
    rows: list[Row] = []
    for name in names:
        is_processor = device(name).device_type == CPU_DEVICE_TYPE
        rows += _run_on(name, report, cases if is_processor else device_cases, small_cases, absent)
    pictures = _write_pictures(report, picture, folder)
    return Demonstration(tuple(rows), tuple(pictures), tuple(absent))


def present_devices(chosen: Collection[str] | None) -> tuple[list[str], list[tuple[str, str]]]:
    """Names of the devices to run on, and what is absent with the reason. Raises MissingError for a chosen one.

    The reference device, which would take hours over the photograph, is left out unless it is chosen.
    """
    if chosen is not None:
        return [device(name).name for name in chosen], []
    found = devices()
    here = [row.name for row in found if row.is_here and row.name.partition(":")[0] != _SLOW_RUNTIME]
    return here, [(row.name, row.reason) for row in found if not row.is_here]


def _run_on(
    name: str, report: BuildReport, cases: Sequence[Any], small_cases: Sequence[Any], absent: list[tuple[str, str]]
) -> list[Row]:
    rows = []
    taken = this_process().registry.runtime(name.partition(":")[0]).blob_kinds
    for built in report.packs:
        for part in built.parts:
            if _kinds(built.path, part.identity).isdisjoint(taken):
                continue
            try:
                pack = load(built.path, device=name, target=part.identity)
            except MissingError as missing:
                absent.append((f"{built.module} for {part.target} on {name}", missing.diagnostic.message))
                continue
            for case, small in zip(cases, small_cases, strict=True):
                if case.module == built.module:
                    run_ms, error, ok = _check(pack, name, case)
                    exact = _agrees_with_executor(pack, name, part.target, small)
                    rows.append(
                        Row(
                            f"{case.module}.{case.function}",
                            part.target,
                            name,
                            case.size,
                            part.size,
                            part.milliseconds,
                            run_ms,
                            error,
                            case.tolerance,
                            ok and exact,
                        )
                    )
    return rows


def _kinds(path: Path, target: str) -> set[str]:
    """The kinds of code that the pack has for a target, without the functions that launch it."""
    with find_pack(path) as pack:
        blobs = [blob for blob in pack.manifest.blobs if blob.target == target and DEVICE_KIND not in blob.requirements]
        return {blob.kind for blob in blobs}


def _check(pack: LoadedPack, name: str, case: Any) -> tuple[float, float, bool]:
    """Least run time in ms, relative error against NumPy, and whether it is small enough."""
    expected = case.expected(*case.arguments)
    least = float("inf")
    results: list[np.ndarray] = []
    for _ in range(_TIMED_RUNS):
        results, milliseconds = _run(pack, name, case)
        least = min(least, milliseconds)
    error = max(
        (relative_error(results[position], wanted) for position, wanted in zip(case.outputs, expected, strict=True)),
        default=0.0,
    )
    return least, error, error <= case.tolerance


def _run(pack: LoadedPack, name: str, case: Any) -> tuple[list[Any], float]:
    """The arguments after a call with fresh copies of them on the device, and the time of the call."""
    opened = device(name)
    given = [opened.array(value) if isinstance(value, np.ndarray) else value for value in case.arguments]
    function = getattr(pack, case.function)
    begin = time.perf_counter()
    function(*given)
    opened.synchronize()
    milliseconds = (time.perf_counter() - begin) * 1e3
    return [value.numpy() if hasattr(value, "numpy") else value for value in given], milliseconds


def _agrees_with_executor(pack: LoadedPack, name: str, target: str, case: Any) -> bool:
    """Whether a small case gives what the reference executor gives, within the bound of the case."""
    module = parse_module(pack.inspect("ir-text")[f"ir/{target}.gmir"], f"{case.module}.gmir")
    wanted = [value.copy() if isinstance(value, np.ndarray) else value for value in case.arguments]
    execute(module, case.function, wanted)
    results, _ = _run(pack, name, case)
    return all(relative_error(results[position], wanted[position]) <= case.tolerance for position in case.outputs)


def relative_error(result: np.ndarray, wanted: np.ndarray) -> float:
    """The greatest difference, over the greatest magnitude wanted; infinite for a NaN on one side only."""
    a, b = result.astype(np.float64), wanted.astype(np.float64)
    if a.shape != b.shape or not np.array_equal(np.isnan(a), np.isnan(b)):
        return float("inf")
    difference = np.abs(np.nan_to_num(a) - np.nan_to_num(b)).max(initial=0.0)
    scale = np.abs(np.nan_to_num(b)).max(initial=0.0)
    return float(difference / scale) if scale else float(difference)


def picture_library() -> Any:
    """Pillow's Image module. Raises MissingError (GM0021) where it is not installed."""
    try:
        from PIL import Image
    except ImportError:
        raise MissingError(
            "GM0021",
            "the demonstration reads and writes PNG pictures with Pillow, which is not installed",
            'pip install "gristmill[demo]"',
        ) from None
    return Image


def read_picture(file: Path) -> np.ndarray:
    """RGBA bytes of shape (height, width, 4)."""
    with file.open("rb") as opened:
        return np.asarray(picture_library().open(opened).convert("RGBA")).copy()


def _write_pictures(report: BuildReport, picture: np.ndarray, folder: Path) -> list[str]:
    """The photograph, its blur and its edges side by side, each also on its own."""
    filters = load(report.pack("filters").path)
    height, width = picture.shape[:2]
    blurred = picture.copy()
    rows, smooth = np.empty((height, width), np.float32), np.empty((height, width), np.float32)
    for channel in range(3):
        filters.blur_rows(picture[..., channel].astype(np.float32), rows)
        filters.blur_columns(rows, smooth)
        blurred[..., channel] = np.round(smooth).astype(np.uint8)
    grey, edges = np.empty((height, width), np.uint8), np.empty((height, width), np.float32)
    filters.grey(picture, grey)
    filters.sobel(grey.astype(np.float32), edges)
    drawn = np.clip(edges, 0, 255).astype(np.uint8)
    edge_picture = np.dstack([drawn, drawn, drawn, np.full_like(drawn, 255)])
    written = {
        "original.png": picture,
        "blurred.png": blurred,
        "edges.png": edge_picture,
        "beside.png": np.concatenate([picture, blurred, edge_picture], axis=1),
    }
    for name, pixels in written.items():
        picture_library().fromarray(pixels).save(folder / name)
    return [str(folder / name) for name in written]
