"""From the words of a command line to the command, and from every way it can end to text and an exit status."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, cast

from gristmill.cli import COMMANDS
from gristmill.cli.output import write_json
from gristmill.cli.streams import OutputLost, complain
from gristmill.errors import (
    EXIT_INTERNAL,
    EXIT_USAGE,
    Diagnostic,
    GristmillError,
    InternalError,
    MissingError,
    PluginError,
    UserError,
    suggestion,
    wants_color,
)

if TYPE_CHECKING:
    from gristmill.plugin.discovery import Origin
    from gristmill.plugin.protocols import CommandEntry


class Command(Protocol):
    """What the module of a command has. Its docstring is the text of its ``--help``.

    ``run`` does the work and gives the exit status; it raises what :mod:`gristmill.errors` has for what is wrong.
    """

    __doc__: str | None

    @property
    def add_arguments(self) -> Callable[[argparse.ArgumentParser], None]: ...

    @property
    def run(self) -> Callable[[argparse.Namespace], int]: ...


def dispatch(words: Sequence[str]) -> int:
    """Run the command that the first word names with the others as its arguments."""
    as_json = "--json" in words[1:]
    try:
        return _run(words)
    except UserError as error:
        return _refuse(error.render(wants_color(sys.stderr)), error.diagnostics, error, as_json)
    except MissingError as error:
        return _refuse(error.diagnostic.render(color=wants_color(sys.stderr)), (error.diagnostic,), error, as_json)
    except OutputLost:
        raise
    except OSError as error:
        refused = _refused_by_the_system(error)
        status = _refuse(
            refused.diagnostic.render(color=wants_color(sys.stderr)), (refused.diagnostic,), refused, as_json
        )
        _show_traceback(error)
        return status
    except (Exception, SystemExit) as error:
        # SystemExit: somebody's code that a command calls would end the process with a status of its own.
        return _fault(error, as_json)


def _run(words: Sequence[str]) -> int:
    name, *rest = words
    command = _find(name)
    parser = argparse.ArgumentParser(
        prog=f"gristmill {name}",
        description=command.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    command.add_arguments(parser)
    try:
        options = parser.parse_args(rest)
    except SystemExit as end:
        # argparse has printed help or usage already.
        return end.code if isinstance(end.code, int) else EXIT_USAGE
    return command.run(options)


def _find(name: str) -> Command:
    if name in COMMANDS:
        return cast(Command, import_module(f"gristmill.cli.{name}"))
    if name.startswith("-"):
        raise _unknown(f"there is no option `{name}` before the command", "options of a command stand after it")
    # Only now: looking plugins up costs more than most commands.
    from gristmill.plugin.registry import Registry

    registry = Registry.installed()
    try:
        return _PluginCommand(registry.command(name), registry.origin("commands", name))
    except UserError:
        hint = suggestion(
            name,
            [*COMMANDS, *(command.name for command in registry.commands())],
            "`gristmill --help` lists the commands",
            form="`gristmill {}`",
        )
        raise _unknown(f"there is no command `{name}`", hint) from None


class _PluginCommand:
    """A command of a plugin, in the form of a module here. What it does wrong is told with the plugin's name."""

    def __init__(self, entry: CommandEntry, origin: Origin) -> None:
        self.__doc__ = entry.summary
        self.entry = entry
        self.origin = origin

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        self._called(lambda: self.entry.add_arguments(parser))

    def run(self, options: argparse.Namespace) -> int:
        status = self._called(lambda: self.entry.run(options))
        if type(status) is not int or not 0 <= status <= 255:
            raise PluginError(f"the command `{self.entry.name}` of {self.origin} ended with {status!r}, no exit status")
        return status

    def _called(self, work: Callable[[], Any]) -> Any:
        try:
            return work()
        except (GristmillError, OutputLost, OSError):
            raise
        except (Exception, SystemExit) as error:
            message = f"the command `{self.entry.name}` of {self.origin} failed: {type(error).__name__}: {error}"
            raise PluginError(message) from error


class _UsageError(UserError):
    """The command line itself is wrong."""

    exit_status = EXIT_USAGE


def _unknown(message: str, hint: str) -> _UsageError:
    return _UsageError(Diagnostic("GM0001", message, hint=hint))


def _refuse(text: str, diagnostics: Sequence[Diagnostic], error: GristmillError, as_json: bool) -> int:
    if as_json:
        write_json({"diagnostics": [diagnostic.as_json() for diagnostic in diagnostics]})
    else:
        complain(text)
    return error.exit_status


def _refused_by_the_system(error: OSError) -> MissingError:
    """What no command has foreseen of the ways in which a file operation can fail: a full disk, a folder that goes."""
    try:
        os.getcwd()
    except OSError:
        return MissingError(
            "GM0012", "the current folder does not exist any more", "change to a folder that exists, as with `cd`"
        )
    what = f"`{error.filename}`: " if error.filename else ""
    hint = "check that it exists, that you may use it, and that there is room; GRISTMILL_TRACEBACK=1 shows who asked"
    return MissingError("GM0012", f"the system refuses {what}{error.strerror or error}", hint)


def _fault(error: BaseException, as_json: bool) -> int:
    if isinstance(error, InternalError):
        text, status = str(error), error.exit_status
    else:
        wrapped = InternalError(f"{type(error).__name__}: {error}")
        wrapped.where.notes.append("GRISTMILL_TRACEBACK=1 shows where it happened.")
        text, status = str(wrapped), EXIT_INTERNAL
    if as_json:
        write_json({"internal_error": text})
    else:
        complain(text)
    _show_traceback(error)
    return status


def _show_traceback(error: BaseException) -> None:
    if _shows_tracebacks():
        import traceback

        complain("".join(traceback.format_exception(error)))


def _shows_tracebacks() -> bool:
    from gristmill import knobs

    try:
        return knobs.TRACEBACK.value()
    except UserError:
        return False
