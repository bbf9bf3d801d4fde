"""Check packs in full: structure, hashes, and that every way of reading the file gives the same members.

A pack that passes has the bytes that its manifest names. That says nothing about what its code does: code of a pack
runs with the rights of the process that calls it.
"""

from __future__ import annotations

import argparse
import sys

from gristmill.cli.output import add_json_option, write_json
from gristmill.errors import EXIT_DONE, EXIT_USER, wants_color
from gristmill.pack import verify_pack


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "packs", nargs="+", metavar="pack", help="a .kpack file, or PACKAGE:MODULE of an installed package"
    )
    add_json_option(parser)


def run(options: argparse.Namespace) -> int:
    found = {name: verify_pack(name) for name in options.packs}
    if options.json:
        packs = [
            {"pack": name, "ok": not faults, "diagnostics": [fault.as_json() for fault in faults]}
            for name, faults in found.items()
        ]
        write_json({"packs": packs})
    else:
        for name, faults in found.items():
            print(f"{name}: {'refused' if faults else 'ok'}", flush=True)
            for fault in faults:
                print(fault.render(color=wants_color(sys.stderr)), file=sys.stderr)
    return EXIT_USER if any(found.values()) else EXIT_DONE
