"""Build the packs of a project: one for each module of kernels.toml.

All mistakes in the manifest and the kernels are shown; nothing is written if there are any.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from gristmill.cli.output import add_json_option, size_text, write_json, write_table
from gristmill.cli.selection import add_manifest_argument, add_module_options, add_plugin_option, registry_of
from gristmill.errors import shown_path

if TYPE_CHECKING:
    from gristmill.build.report import BuildReport


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_manifest_argument(parser)
    add_module_options(parser)
    parser.add_argument(
        "-o", "--output", metavar="FOLDER", help="where packs go (default: build/kernels beside the manifest)"
    )
    parser.add_argument(
        "--texts",
        action="append",
        default=[],
        metavar="KIND",
        help="keep texts of this kind in the packs too, such as assembly; may be repeated",
    )
    add_plugin_option(parser)
    add_json_option(parser)


def run(options: argparse.Namespace) -> int:
    from gristmill.build import build

    report = build(
        options.manifest,
        modules=options.module,
        targets=options.target,
        output=options.output,
        texts=options.texts,
        registry=registry_of(options),
    )
    if options.json:
        write_json(report.as_json())
    else:
        write_report(report)
    return 0


def write_report(report: BuildReport) -> None:
    """The report as a table, a row for each piece of code."""
    write_table(
        ["pack", "target", "kind", "functions", "size", "ms"],
        [
            [
                shown_path(str(pack.path)),
                part.identity,
                part.kind,
                str(len(part.functions)),
                size_text(part.size),
                f"{part.milliseconds:.1f}",
            ]
            for pack in report.packs
            for part in pack.parts
        ],
        numbers=["functions", "size", "ms"],
    )
    for pack in report.packs:
        for part in pack.parts:
            for note in part.notes:
                print(f"{pack.module} for {part.target}: {note}")
    written = sum(pack.changed for pack in report.packs)
    kept = len(report.packs) - written
    unchanged = f", {kept} unchanged" if kept else ""
    print(f"{written} {'pack' if written == 1 else 'packs'} written{unchanged}, {report.milliseconds:.0f} ms")
