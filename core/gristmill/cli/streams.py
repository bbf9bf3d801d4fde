"""The standard streams, made fit for commands: all open, able to take any text, and telling when they fail.

A command may be started without a standard output or error, with an encoding that lacks characters of a path, or with
an output that is full or gone. None of that is a fault of the command, so none of it may look like one.
"""

from __future__ import annotations

import os
import sys
from typing import Any


class OutputLost(Exception):
    """Standard output takes no more: ``cause`` is the system's reason.

    Not an OSError: argparse passes over those.
    """

    def __init__(self, cause: OSError) -> None:
        self.cause = cause
        super().__init__(cause)


class Output:
    """A standard output that raises :class:`OutputLost` where the stream under it raises OSError."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        try:
            return int(self.stream.write(text))
        except OSError as error:
            raise OutputLost(error) from None

    def flush(self) -> None:
        try:
            self.stream.flush()
        except OSError as error:
            raise OutputLost(error) from None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def prepare() -> None:
    """Open what is closed, so that no file gets the number of a standard stream, and let every text through."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115  (it stays open to the end)
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        # As Python has it for standard error: what the encoding lacks is written as an escape.
        reconfigure(errors="backslashreplace")


def complain(text: str) -> None:
    """Write to standard error. Where even that fails, the exit status alone says what happened."""
    try:
        print(text, file=sys.stderr, flush=True)
    except OSError:
        give_up(sys.stderr)


def give_up(stream: Any) -> None:
    """Let what is still to be written to the stream go nowhere, also Python's own flush at exit."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    except (OSError, ValueError):
        # A stream without a file, as tests have.
        return
