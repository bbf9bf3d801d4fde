"""List the installed plugins: name, distribution, status.

Reads metadata alone; --check imports every plugin and asks it what it offers.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING

from gristmill.cli import COMMANDS
from gristmill.cli.output import add_json_option, write_json, write_table
from gristmill.cli.selection import add_plugin_option, registry_of
from gristmill.errors import EXIT_DONE, EXIT_INTERNAL

if TYPE_CHECKING:
    from gristmill.plugin.registry import Registry


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--check", action="store_true", help="import every plugin and say which are broken")
    add_plugin_option(parser)
    add_json_option(parser)


def run(options: argparse.Namespace) -> int:
    registry = registry_of(options)
    rows = registry.listing(check=options.check)
    problems = _between_plugins(registry) if options.check else []
    if options.json:
        write_json({"plugins": [asdict(row) for row in rows], "problems": problems})
    else:
        write_table(
            ["group", "name", "distribution", "version", "module", "status"],
            [[row.group, row.name, row.distribution, row.version, row.value, row.status] for row in rows],
        )
        for row in rows:
            if row.reason:
                print(f"{row.group} {row.name}: {row.status}: {row.reason}")
        for problem in problems:
            print(f"broken: {problem}")
    # A name that two distributions claim is found without an import.
    return EXIT_INTERNAL if problems or any(row.status == "broken" for row in rows) else EXIT_DONE


def _between_plugins(registry: Registry) -> list[str]:
    """What is wrong with plugins together that each alone does not show: names given twice, classes not to be made."""
    registry.target_kinds()
    registry.pass_entries()
    registry.runtimes()
    registry.executors()
    found = [problem.message for problem in registry.problems() if problem.code in ("GM1007", "GM1010")]
    for command in registry.commands():
        if command.name in COMMANDS:
            origin = registry.origin("commands", command.name)
            found.append(f"{origin} gives the command {command.name!r}, which is Gristmill's own and stays so")
    return found
