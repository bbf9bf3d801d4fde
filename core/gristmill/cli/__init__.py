"""The command line: ``gristmill COMMAND ...``.

This file finds the command and turns every way it can end into text and an exit status; each command is a module of
its own, imported when it is asked for. ``--version`` and ``--help`` import neither argparse nor anything that works.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from gristmill.cli import streams
from gristmill.version import __version__

_EXIT_MISSING = 3
_EXIT_INTERRUPTED = 130
_EXIT_BROKEN_PIPE = 141

COMMANDS = {
    "init": "begin a project: a manifest and a first kernel",
    "check": "check a project without building it",
    "build": "build the packs of a project",
    "run": "run a function of a pack",
    "inspect": "show what a pack holds",
    "verify": "check a pack's structure and hashes",
    "opt": "run passes over kernels and print what comes out",
    "explain": "explain an error code",
    "export": "take code or text out of a pack",
    "targets": "list the target kinds",
    "plugins": "list the plugins",
    "doctor": "say what is here, what is not, and why",
    "demo": "build the example project and run it on every device",
}
"""The commands and what they do, in the order of ``--help``. The module of a command has its name."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit status (see :mod:`gristmill.errors`)."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    streams.prepare()
    before, sys.stdout = sys.stdout, streams.Output(sys.stdout)
    try:
        status = _answer(words)
        sys.stdout.flush()
        return status
    except streams.OutputLost as lost:
        streams.give_up(before)
        if isinstance(lost.cause, BrokenPipeError):
            return _EXIT_BROKEN_PIPE
        from gristmill.errors import Diagnostic

        problem = Diagnostic("GM0011", f"standard output can't be written: {lost.cause.strerror}")
        streams.complain(problem.render())
        return _EXIT_MISSING
    except KeyboardInterrupt:
        streams.complain("interrupted")
        return _EXIT_INTERRUPTED
    finally:
        sys.stdout = before


def _answer(words: list[str]) -> int:
    if words[:1] == ["--version"] or words[:1] == ["-V"]:
        print(f"gristmill {__version__}")
        return 0
    if not words or words[0] in {"--help", "-h"} or words == ["help"]:
        print(_help())
        return 0 if words else 2
    from gristmill.cli.dispatch import dispatch

    if words[0] == "help":
        words = [words[1], "--help"]
    return dispatch(words)


def _help() -> str:
    width = max(len(name) for name in COMMANDS)
    lines = [
        "usage: gristmill COMMAND ...",
        "",
        "Build compute kernels into packs, inspect them, run them.",
        "",
        "commands:",
    ]
    lines += [f"  {name:<{width}}  {summary}" for name, summary in COMMANDS.items()]
    lines += [
        "",
        "options:",
        "  -h, --help     show this; `gristmill COMMAND --help` shows a command's options",
        "  -V, --version  show the version",
        "",
        "exit status: 0 done, 1 mistakes in the input, 2 usage, 3 something of the environment is missing,",
        "             4 a fault of Gristmill or of a plugin",
    ]
    return "\n".join(lines)
