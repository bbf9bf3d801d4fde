"""Options that several commands share: which manifest, which modules and targets, which plugins not."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gristmill.plugin.registry import Registry


def add_manifest_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "manifest", nargs="?", default="kernels.toml", help="the manifest, or its folder (default: kernels.toml)"
    )


def add_module_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-m", "--module", action="append", metavar="NAME", help="only this module; may be repeated")
    parser.add_argument("-t", "--target", action="append", metavar="NAME", help="only this target; may be repeated")


def add_plugin_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--no-plugin",
        action="append",
        default=[],
        metavar="NAME",
        help="leave out the plugin or distribution of this name; may be repeated",
    )


def registry_of(options: argparse.Namespace) -> Registry:
    """The installed plugins, less those that the command line and the environment leave out."""
    from gristmill.plugin.registry import Registry

    return Registry.installed(disabled=options.no_plugin)
