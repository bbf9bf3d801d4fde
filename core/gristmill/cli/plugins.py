"""List the installed plugins: name, distribution, status.

Reads metadata alone; --check imports every plugin and asks it what it offers.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict

from gristmill.cli.output import add_json_option, write_json, write_table
from gristmill.cli.selection import add_plugin_option, registry_of
from gristmill.errors import EXIT_DONE, EXIT_INTERNAL


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--check", action="store_true", help="import every plugin and say which are broken")
    add_plugin_option(parser)
    add_json_option(parser)


def run(options: argparse.Namespace) -> int:
    rows = registry_of(options).listing(check=options.check)
    if options.json:
        write_json({"plugins": [asdict(row) for row in rows]})
    else:
        write_table(
            ["group", "name", "distribution", "version", "module", "status"],
            [[row.group, row.name, row.distribution, row.version, row.value, row.status] for row in rows],
        )
        for row in rows:
            if row.reason:
                print(f"{row.group} {row.name}: {row.status}: {row.reason}")
    # A name that two distributions claim is found without an import.
    return EXIT_INTERNAL if any(row.status == "broken" for row in rows) else EXIT_DONE
