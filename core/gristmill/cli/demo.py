"""Build the example project, run it on every device that is here, and compare every result.

The reference device is left out: it is slow. Results are compared with the reference executor or NumPy. Pictures before
and after are written into the folder. Ends with status 1 where a result is wrong.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from gristmill.cli.output import add_json_option, size_text, write_json, write_table
from gristmill.errors import EXIT_DONE, EXIT_USER

if TYPE_CHECKING:
    from gristmill.testing.demonstration import Demonstration


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-o", "--output", default="gristmill-demo", metavar="FOLDER", help="where to work (default: gristmill-demo)"
    )
    parser.add_argument("-d", "--device", action="append", metavar="NAME", help="only this device; may be repeated")
    add_json_option(parser)


def run(options: argparse.Namespace) -> int:
    from gristmill.testing.demonstration import demonstrate

    done = demonstrate(options.output, options.device)
    if options.json:
        write_json(done.as_json())
    else:
        _write(done)
    return EXIT_DONE if all(row.ok for row in done.rows) else EXIT_USER


def _write(done: Demonstration) -> None:
    write_table(
        ["kernel", "target", "device", "work", "code", "build ms", "run ms", "error", "allowed", ""],
        [
            [
                row.kernel,
                row.target,
                row.device,
                row.work,
                size_text(row.size),
                f"{row.build_ms:.1f}",
                f"{row.run_ms:.3f}",
                f"{row.error:.1e}",
                f"{row.bound:.0e}",
                "ok" if row.ok else "WRONG",
            ]
            for row in done.rows
        ],
        numbers=["work", "code", "build ms", "run ms"],
    )
    for name, reason in done.absent:
        print(f"no {name}: {reason}")
    for picture in done.pictures:
        print(f"wrote {picture}")
    wrong = sum(not row.ok for row in done.rows)
    print("build ms and code are of the whole module for that target; errors are relative to the greatest value")
    print(f"{len(done.rows) - wrong} of {len(done.rows)} results agree with NumPy and the reference executor")
