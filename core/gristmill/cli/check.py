"""Check a project as a build would, and write nothing: the manifest, its targets, the kernels.

Shows all mistakes of all of them.
"""

from __future__ import annotations

import argparse

from gristmill.cli.output import add_json_option, write_json
from gristmill.cli.selection import add_manifest_argument, add_module_options, add_plugin_option, registry_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_manifest_argument(parser)
    add_module_options(parser)
    add_plugin_option(parser)
    add_json_option(parser)


def run(options: argparse.Namespace) -> int:
    from gristmill.build import check

    manifest = check(options.manifest, modules=options.module, targets=options.target, registry=registry_of(options))
    if options.json:
        modules = [{"name": module.name, "targets": list(module.targets)} for module in manifest.modules]
        write_json({"manifest": manifest.file, "project": manifest.project.name, "modules": modules, "diagnostics": []})
    else:
        for module in manifest.modules:
            print(f"{module.name}: {', '.join(module.targets)}")
        print(f"{manifest.file}: no mistakes")
    return 0
