"""Build the packs of a project: one for each module of kernels.toml.

All mistakes in the manifest and the kernels are shown; a module with a mistake writes nothing.
"""

from __future__ import annotations

import argparse
import sys

from gristmill.build.report import BuildReport
from gristmill.cli.output import add_json_option, size_text, write_json, write_table
from gristmill.cli.selection import add_manifest_argument, add_module_options, add_plugin_option, registry_of
from gristmill.errors import wants_color


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_manifest_argument(parser)
    add_module_options(parser)
    parser.add_argument(
        "-o", "--output", metavar="FOLDER", help="where packs go (default: build/kernels beside the manifest)"
    )
    parser.add_argument("--verify", action="store_true", help="check the intermediate representation after every pass")
    add_plugin_option(parser)
    add_json_option(parser)


def run(options: argparse.Namespace) -> int:
    from gristmill.build import build

    report: BuildReport = build(
        options.manifest,
        modules=options.module,
        targets=options.target,
        output=options.output,
        verify=options.verify,
        registry=registry_of(options),
    )
    if options.json:
        write_json(report.as_json())
    else:
        write_report(report)
    return 0


def write_report(report: BuildReport) -> None:
    """The report as a table, a row for each piece of code; warnings on standard error."""
    for warning in report.warnings:
        print(warning.render(report.sources, wants_color(sys.stderr)), file=sys.stderr)
    write_table(
        ["pack", "target", "kind", "functions", "size", "ms"],
        [
            [
                pack.path,
                code.identity,
                code.kind,
                str(len(code.functions)),
                size_text(code.size),
                "cached" if code.cached else f"{code.milliseconds:.1f}",
            ]
            for pack in report.packs
            for code in pack.code
        ],
        numbers=["functions", "size", "ms"],
    )
    written = sum(pack.changed for pack in report.packs)
    kept = len(report.packs) - written
    unchanged = f", {kept} unchanged" if kept else ""
    noun = "pack" if written == 1 else "packs"
    print(f"{written} {noun} written{unchanged}, {report.milliseconds:.0f} ms")
