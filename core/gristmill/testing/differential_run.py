"""Long runs of random programs on a device: ``python -m gristmill.testing.differential_run --target vulkan --device vulkan:0``.

Seeds can be shared among processes (``--shard 2/4``), and a run that was stopped goes on where it was (``--resume FILE``).
Each failing program is kept as a file, made as small as could be. Optional passes are on for one seed and off for the
next, and host functions run compiled for two seeds and on the executor for the next two. Of kernels in 32 and in 64 bits,
all launches of six seeds take the one that fits, of the next six mostly and then always the other. Warnings are failures:
a Vulkan device gives what the validation layer says as warnings.
"""

from __future__ import annotations

import argparse
import datetime
import itertools
import json
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path

from gristmill.files import replace_file
from gristmill.ir.dtype import FLOAT32, FLOAT64, INT32, SCALARS
from gristmill.ir.target import Target, parse_target
from gristmill.passes.index_widths import BOTH
from gristmill.testing.device_programs import DEVICE_CONSTRUCTS, random_device_program
from gristmill.testing.on_device import DeviceBackend, flushes_denormals
from gristmill.testing.programs import CONSTRUCTS, differential, random_program
from gristmill.testing.programs.program import RandomProgram

VERIFIED = 5
"""The verifier runs between all passes for one program in so many."""
SAVED_EVERY = 10
ON_DEVICES = CONSTRUCTS - {"recursion", "result"}
"""What of plain programs devices can have: no recursion, and no result that only the device knows."""

WITH_DENORMALS = frozenset({"denormals", "view"})
"""What makes denormals of float32, for devices that flush them."""

INDEX_LIMITS = (INT32.maximum, 12, -1)
"""Up to which index launches take kernels in 32 bits: nearly all, some of them, only those that have no other kernel."""

Make = Callable[[int], RandomProgram]
Choice = tuple[int, bool, bool, int]
"""Optimization, whether host functions are interpreted, whether the verifier runs between passes, the index limit."""


@dataclass
class Progress:
    """How far a run has come; what ``--resume`` keeps."""

    run: dict[str, object]
    """What the run is of: another run must not go on from here."""
    done: int = 0
    failures: list[int] = field(default_factory=list)
    """Seeds."""
    seconds: float = 0.0


def choice_of(seed: int) -> Choice:
    """How the program of a seed is built and run."""
    limit = INDEX_LIMITS[seed // 6 % len(INDEX_LIMITS)]
    return 3 if seed % 2 else 0, seed // 2 % 2 == 1, seed % VERIFIED == 0, limit


def make_for(backend: DeviceBackend, kind: str, constructs: frozenset[str]) -> Make:
    """Programs of a kind, ``plain`` or ``device``, with no more than the target and the device have."""
    capabilities = backend.registry.target_kind(backend.target.kind).capabilities(backend.target)
    dtypes = [dtype for dtype in SCALARS if dtype in capabilities.dtypes]
    floats = [dtype for dtype in (FLOAT32, FLOAT64) if dtype in dtypes]
    if flushes_denormals(backend):
        constructs -= WITH_DENORMALS
    if kind == "plain":
        return partial(random_program, dtypes=dtypes, constructs=constructs, mathematics_in=floats)
    if not capabilities.warp_shuffles:
        constructs -= {"exchange"}
    return partial(
        random_device_program,
        dtypes=dtypes,
        constructs=constructs,
        mathematics_in=floats,
        warp_size=capabilities.warp_size or 32,
    )


class Run:
    """The programs of some seeds on one device, each with two sets of arguments."""

    def __init__(self, first: DeviceBackend, make: Make, folder: Path | None) -> None:
        registry = first.registry
        choices = itertools.product((0, 3), (False, True), (False, True), INDEX_LIMITS)
        self.backends = {
            (optimization, interpreted, verify, limit): DeviceBackend(
                first.target,
                first.device,
                optimization=optimization,
                interpreted=interpreted,
                registry=registry,
                verify=verify,
                indices=BOTH,
                index_limit=limit,
            )
            for optimization, interpreted, verify, limit in choices
        }
        self.make = make
        self.folder = folder

    def program(self, seed: int) -> str:
        """Run one program; a text of what differs, empty if nothing does."""
        choice = choice_of(seed)
        report = differential([seed], self.backends[choice], make=self.make)
        if not report.failures:
            return ""
        told = f"; optimization {choice[0]}, host functions {'interpreted' if choice[1] else 'compiled'}"
        told += f", indices of 32 bits up to {choice[3]}\n"
        text = told + str(report.failures[0])
        if self.folder is not None:
            self.folder.mkdir(parents=True, exist_ok=True)
            replace_file(self.folder / f"seed{seed}.txt", text.encode(), follow_links=True)
        return text


def resumed(path: Path | None, run: dict[str, object]) -> Progress:
    """The progress that a file holds, or none. Raises ValueError for a file of another run."""
    if path is None or not path.exists():
        return Progress(run)
    found = Progress(**json.loads(path.read_text()))
    if found.run != run:
        raise ValueError(f"{path} is of another run: {found.run}, not {run}")
    return found


def target_of(text: str, options: Sequence[str]) -> Target:
    """A target from its text and options ``KEY=NUMBER``. Raises ValueError for options of another form."""
    pairs = [option.partition("=") for option in options]
    if wrong := [
        option for option, (key, _, value) in zip(options, pairs, strict=True) if not (key and value.isdigit())
    ]:
        raise ValueError(f"{wrong[0]!r} is no option; write max_shared_memory=32768")
    named = parse_target(text)
    return replace(named, options=(*named.options, *((key, int(value)) for key, _, value in pairs)))


def seeds_of(first: int, programs: int, shard: str) -> range:
    """The seeds of a shard ``i/n``, i from 1 to n. Raises ValueError for a text of another form."""
    number, _, count = shard.partition("/")
    if not (number.isdigit() and count.isdigit() and 1 <= int(number) <= int(count)):
        raise ValueError(f"{shard!r} is no shard; write 1/4 for the first of four")
    return range(first + int(number) - 1, first + programs, int(count))


def summary(progress: Progress, seeds: range) -> str:
    """A row for a table: date, what, how many programs, which seeds, how many failures."""
    run, today = progress.run, datetime.date.today().isoformat()
    shown = f"{seeds.start} to {seeds[progress.done - 1]}" if progress.done else "none"
    if seeds.step > 1:
        shown += f", each {seeds.step}th"
    what = f"{run['kind']} programs, `{run['target']}` on {run['device']}"
    what += f", without {run['without']}" if run["without"] else ""
    failed = f"{len(progress.failures)}" + (f" (seeds {progress.failures})" if progress.failures else "")
    return f"| {today} | {what} | {progress.done:,} | {shown} | {failed} |"


def parsed(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m gristmill.testing.differential_run", description=__doc__)
    parser.add_argument("--target", default="reference", help="what the programs are built for")
    parser.add_argument(
        "--option", action="append", default=[], help="a number of the target, as max_shared_memory=32768"
    )
    parser.add_argument(
        "--device", default="", help="what they run on; by default the first device of the target's kind"
    )
    parser.add_argument("--kind", choices=("device", "plain"), default="device", help="kernels, or plain loops")
    parser.add_argument("--programs", type=int, default=1000, help="how many, over all shards")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--shard", default="1/1", help="which part of the seeds, as 2/4")
    parser.add_argument("--minutes", type=float, default=0.0, help="stop after so long; 0 runs to the end")
    parser.add_argument("--leave-out", default="", help="constructs that the device does not have, separated by commas")
    parser.add_argument("--without", default="", help="what is switched off on the device; for the summary")
    parser.add_argument("--resume", type=Path, help="a file that keeps how far the run has come")
    parser.add_argument("--failures", type=Path, help="a folder for programs that fail")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run programs, and print what came of them. Gives 1 if a program failed, 2 for arguments that cannot be."""
    options = parsed(sys.argv[1:] if arguments is None else arguments)
    left_out = {name.strip() for name in options.leave_out.split(",") if name.strip()}
    device = options.device or f"{options.target.partition(':')[0].partition('+')[0]}:0"
    all_constructs = DEVICE_CONSTRUCTS if options.kind == "device" else ON_DEVICES
    constructs = frozenset(all_constructs - left_out)
    run: dict[str, object] = {
        "kind": options.kind,
        "target": " ".join([options.target, *options.option]),
        "device": device,
        "without": options.without,
        "constructs": sorted(constructs),
        "programs": options.programs,
        "seed": options.seed,
        "shard": options.shard,
    }
    try:
        target = target_of(options.target, options.option)
        seeds = seeds_of(options.seed, options.programs, options.shard)
        progress = resumed(options.resume, run)
        if unknown := sorted(left_out - all_constructs):
            raise ValueError(f"there are no constructs {unknown}; there are {sorted(all_constructs)}")
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        backend = DeviceBackend(target, device)
        make = make_for(backend, options.kind, constructs)
        _go_on(Run(backend, make, options.failures), seeds, progress, options)
    print(summary(progress, seeds))
    return 1 if progress.failures else 0


def _go_on(run: Run, seeds: range, progress: Progress, options: argparse.Namespace) -> None:
    started, before = time.monotonic(), progress.seconds
    for seed in seeds[progress.done :]:
        failed = run.program(seed)
        if failed:
            progress.failures.append(seed)
            print(failed, flush=True)
        progress.done += 1
        progress.seconds = before + time.monotonic() - started
        is_late = bool(options.minutes) and time.monotonic() - started > 60 * options.minutes
        if options.resume is not None and (failed or is_late or progress.done % SAVED_EVERY == 0):
            _save(options.resume, progress)
        if is_late:
            break
    if options.resume is not None:
        _save(options.resume, progress)


def _save(path: Path, progress: Progress) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, json.dumps(asdict(progress), indent=1).encode(), follow_links=True)


if __name__ == "__main__":
    sys.exit(main())
