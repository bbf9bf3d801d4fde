"""How a command line is answered: the command found, the exit status, what is written where."""

from __future__ import annotations

import argparse
import errno
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gristmill.cli import COMMANDS, main
from gristmill.errors import Diagnostic, InternalError, MissingError, UserError
from gristmill.plugin.hookspecs import hookimpl
from gristmill.plugin.protocols import CommandEntry
from gristmill.plugin.registry import Registry
from gristmill.version import __version__

Capture = pytest.CaptureFixture[str]


def pretend(monkeypatch: pytest.MonkeyPatch, run: Callable[[argparse.Namespace], int]) -> None:
    """Make ``check`` a command that does this."""

    def add_arguments(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true")

    command = SimpleNamespace(__doc__="Pretends.", add_arguments=add_arguments, run=run)
    monkeypatch.setattr("gristmill.cli.dispatch.import_module", lambda name: command)


def raising(error: BaseException) -> Callable[[argparse.Namespace], int]:
    def run(options: argparse.Namespace) -> int:
        raise error

    return run


def test_version_and_help(capsys: Capture) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"gristmill {__version__}\n"
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert all(f"  {name} " in shown for name in COMMANDS)
    assert main([]) == 2


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(name: str, capsys: Capture) -> None:
    assert main([name, "--help"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"usage: gristmill {name}")
    assert main(["help", name]) == 0
    assert capsys.readouterr().out == shown


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_refuses_an_unknown_option(name: str, capsys: Capture) -> None:
    assert main([name, "--no-such-option"]) == 2
    assert "usage: gristmill" in capsys.readouterr().err


def test_unknown_command_names_the_nearest(capsys: Capture) -> None:
    assert main(["biuld"]) == 2
    assert capsys.readouterr().err == (
        "error[GM0001]: there is no command `biuld`\n  = hint: did you mean `gristmill build`?\n"
    )
    assert main(["--jsn"]) == 2
    assert "GM0001" in capsys.readouterr().err


def test_mistakes_of_the_user(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    pretend(monkeypatch, raising(UserError([Diagnostic("GM0101", "wrong", hint="do"), Diagnostic("GM0102", "too")])))
    assert main(["check"]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "error[GM0101]: wrong\n  = hint: do\n\nerror[GM0102]: too\n"
    assert main(["check", "--json"]) == 1
    captured = capsys.readouterr()
    assert captured.err == ""
    assert json.loads(captured.out) == {
        "schema": 1,
        "version": __version__,
        "diagnostics": [
            {"code": "GM0101", "severity": "error", "message": "wrong", "hint": "do"},
            {"code": "GM0102", "severity": "error", "message": "too"},
        ],
    }


def test_something_missing(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    pretend(monkeypatch, raising(MissingError("GM0112", "no device", "plug one in")))
    assert main(["check"]) == 3
    assert capsys.readouterr().err == "error[GM0112]: no device\n  = hint: plug one in\n"
    assert main(["check", "--json"]) == 3
    assert json.loads(capsys.readouterr().out)["diagnostics"][0]["hint"] == "plug one in"


def test_internal_errors_show_no_stack(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.delenv("GRISTMILL_TRACEBACK", raising=False)
    pretend(monkeypatch, raising(InternalError("lost count", pass_name="count")))
    assert main(["check"]) == 4
    assert "in pass: count" in capsys.readouterr().err
    pretend(monkeypatch, raising(ZeroDivisionError("division by zero")))
    assert main(["check"]) == 4
    shown = capsys.readouterr().err
    assert shown.startswith("internal error: ZeroDivisionError: division by zero\n")
    assert "Traceback" not in shown
    assert main(["check", "--json"]) == 4
    assert "ZeroDivisionError" in json.loads(capsys.readouterr().out)["internal_error"]
    monkeypatch.setenv("GRISTMILL_TRACEBACK", "1")
    assert main(["check"]) == 4
    assert "Traceback" in capsys.readouterr().err


def test_interruption(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    pretend(monkeypatch, raising(KeyboardInterrupt()))
    assert main(["check"]) == 130
    assert capsys.readouterr().err == "interrupted\n"


def test_color_follows_the_environment(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert main(["biuld"]) == 2
    assert "\x1b[1;31m" in capsys.readouterr().err
    monkeypatch.setenv("NO_COLOR", "1")
    assert main(["biuld"]) == 2
    assert "\x1b" not in capsys.readouterr().err


def run_module(*words: str, **keywords: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "gristmill", *words], capture_output=True, text=True, check=False, **keywords
    )


def test_module_is_the_command() -> None:
    assert run_module("--version").stdout == f"gristmill {__version__}\n"
    assert run_module("explain", "GM9999").returncode == 1


def test_what_the_system_refuses(monkeypatch: pytest.MonkeyPatch, capsys: Capture, tmp_path: Path) -> None:
    pretend(monkeypatch, raising(OSError(errno.ENOSPC, "No space left on device", "/full/x")))
    assert main(["check"]) == 3
    assert capsys.readouterr().err.startswith(
        "error[GM0012]: the system refuses `/full/x`: No space left on device\n  = hint: check that"
    )
    assert main(["check", "--json"]) == 3
    assert json.loads(capsys.readouterr().out)["diagnostics"][0]["code"] == "GM0012"


@pytest.mark.parametrize("words", [["init"], ["init", "below"], ["opt", "x.py"], ["export", "x.kpack", "-o", "x.so"]])
def test_current_folder_that_is_gone(words: list[str], tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    code = f"import os, sys; os.rmdir({str(gone)!r}); from gristmill.cli import main; sys.exit(main(sys.argv[1:]))"
    done = subprocess.run(
        [sys.executable, "-c", code, *words], cwd=gone, capture_output=True, text=True, check=False, timeout=60
    )
    assert "Traceback" not in done.stderr
    assert "internal error" not in done.stderr
    assert done.returncode in (1, 3)
    if words[0] == "init":
        assert "error[GM0012]: the current folder does not exist any more\n" in done.stderr


def no_arguments(parser: argparse.ArgumentParser) -> None:
    pass


def count(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("count", type=int)


def greet(options: argparse.Namespace) -> int:
    print("hello " * options.count)
    return 0


def plugin_with_command(
    monkeypatch: pytest.MonkeyPatch,
    run: Callable[[argparse.Namespace], Any] = greet,
    add_arguments: Callable[[argparse.ArgumentParser], None] = count,
) -> None:
    entry = CommandEntry("greet", "Greets.", add_arguments, run)

    class Plugin:
        GRISTMILL_API_VERSION = 1

        @hookimpl
        def gristmill_commands(self) -> list[CommandEntry]:
            return [entry]

    monkeypatch.setattr(Registry, "installed", classmethod(lambda kind: Registry.of([Plugin()])))


def test_commands_of_plugins(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    plugin_with_command(monkeypatch)
    assert main(["greet", "2"]) == 0
    assert capsys.readouterr().out == "hello hello \n"
    assert main(["greet", "--help"]) == 0
    assert "Greets." in capsys.readouterr().out
    assert main(["greeet"]) == 2
    assert "did you mean `gristmill greet`?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("run", "wrong"),
    [
        (lambda options: None, "ended with None, no exit status"),
        (lambda options: "done", "ended with 'done', no exit status"),
        (lambda options: True, "ended with True, no exit status"),
        (lambda options: 256, "ended with 256, no exit status"),
        (raising(ZeroDivisionError("by zero")), "failed: ZeroDivisionError: by zero"),
        (raising(SystemExit(0)), "failed: SystemExit: 0"),
    ],
)
def test_commands_of_plugins_that_fail(
    run: Callable[[argparse.Namespace], Any], wrong: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    plugin_with_command(monkeypatch, run, no_arguments)
    assert main(["greet"]) == 4
    shown = capsys.readouterr().err
    assert shown.startswith(f"internal error: the command `greet` of plugin 'Plugin' (Plugin) {wrong}\n")
    assert "Traceback" not in shown


def test_commands_of_plugins_whose_arguments_fail(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    def twice(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--help")

    plugin_with_command(monkeypatch, greet, twice)
    assert main(["greet"]) == 4
    assert "the command `greet` of plugin 'Plugin' (Plugin) failed: ArgumentError" in capsys.readouterr().err


def test_code_that_would_end_the_process(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    pretend(monkeypatch, raising(SystemExit(0)))
    assert main(["check"]) == 4
    assert capsys.readouterr().err.startswith("internal error: SystemExit: 0\n")
