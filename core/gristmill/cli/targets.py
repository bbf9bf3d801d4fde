"""List the target kinds of the installed plugins: their architectures, features, and the keys of their tables in kernels.toml."""

from __future__ import annotations

import argparse
from typing import Any

from gristmill.cli.output import add_json_option, write_json
from gristmill.cli.selection import add_plugin_option, registry_of
from gristmill.errors import EXIT_DONE, EXIT_INTERNAL
from gristmill.plugin.protocols import KeyDescription, TargetKind


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kind", nargs="?", help="only this kind")
    add_plugin_option(parser)
    add_json_option(parser)


def run(options: argparse.Namespace) -> int:
    registry = registry_of(options)
    kinds = (registry.target_kind(options.kind),) if options.kind else registry.target_kinds()
    problems = [problem.message for problem in registry.problems("targets")]
    if options.json:
        write_json({"targets": [_kind_json(kind) for kind in kinds], "problems": problems})
    else:
        for kind in kinds:
            _write_kind(kind)
        if not kinds:
            print("no installed plugin provides a target kind")
        for problem in problems:
            print(f"broken: {problem}")
    return EXIT_INTERNAL if problems else EXIT_DONE


def _write_kind(kind: TargetKind) -> None:
    print(f"{kind.name}: {kind.summary}")
    print(f"  code: {', '.join(kind.blob_kinds)} by {kind.generator}")
    if kind.architectures:
        print(f"  architectures: {', '.join(kind.architectures)}")
    keys = {key.name for key in kind.keys}
    if shared := [f"+{name}" for name, _ in kind.features if name in keys]:
        print(f"  features, also keys: {', '.join(shared)}")
    for name, meaning in kind.features:
        if name not in keys:
            print(f"  feature {kind.name}+{name}: {meaning}")
    if kind.texts:
        print(f"  texts: {', '.join(kind.texts)}")
    for key in kind.keys:
        choices = f", one of {', '.join(key.choices)}" if key.choices else ""
        default = f", default {key.default}" if key.default is not None else ""
        print(f"  key {key.name} ({key.type}{choices}{default}): {key.meaning}")


def _kind_json(kind: TargetKind) -> dict[str, Any]:
    return {
        "name": kind.name,
        "summary": kind.summary,
        "generator": kind.generator,
        "blob_kinds": list(kind.blob_kinds),
        "architectures": list(kind.architectures),
        "features": [{"name": name, "meaning": meaning} for name, meaning in kind.features],
        "texts": list(kind.texts),
        "keys": [_key_json(key) for key in kind.keys],
    }


def _key_json(key: KeyDescription) -> dict[str, Any]:
    found: dict[str, Any] = {"name": key.name, "type": key.type, "meaning": key.meaning}
    if key.default is not None:
        found["default"] = key.default
    if key.choices:
        found["choices"] = list(key.choices)
    return found
