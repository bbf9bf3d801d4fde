"""What Gristmill says when something is wrong: places, diagnostics, and the exceptions that carry them.

Three kinds of fault are three kinds of exception, because they are answered differently:

* :class:`UserError`: the user's kernel, manifest, pack or argument is wrong. Shown without a traceback. Exit status 1.
* :class:`MissingError`: something of the environment is absent (a runtime, a device, a library). Exit status 3.
* :class:`InternalError`: Gristmill or a plugin is wrong. Names a reproducer file where there is one. Exit status 4.

This module is a leaf: it imports nothing of Gristmill, so that every other part may use it.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

EXIT_DONE = 0
EXIT_USER = 1
EXIT_USAGE = 2
EXIT_MISSING = 3
EXIT_INTERNAL = 4

_TAB_WIDTH = 4
_SHOWN_LINES_AT_MOST = 6
# Of a line that is longer than both together, only so many characters before and after the place are shown.
_SHOWN_BEFORE = 80
_SHOWN_AFTER = 160


@dataclass(frozen=True, slots=True)
class Place:
    """A range of one text file.

    Lines and columns count from 1, columns in characters (not bytes); the end column is the first one after the range.
    """

    file: str
    line: int
    column: int
    end_line: int
    end_column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Note:
    """A further sentence under a diagnostic, with the place it speaks of where it has one."""

    message: str
    place: Place | None = None


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One thing that is wrong, in the user's words.

    ``code`` is stable (``GM0123``) and has a page that ``gristmill explain`` prints; ``message`` says what is wrong with
    the values; ``label`` is the short text beside the caret; ``hint`` says what to write instead.
    """

    code: str
    message: str
    place: Place | None = None
    label: str = ""
    hint: str = ""
    notes: tuple[Note, ...] = ()
    severity: str = "error"

    def as_json(self) -> dict[str, Any]:
        """A JSON object with the same content; absent parts are left out."""
        found: dict[str, Any] = {"code": self.code, "severity": self.severity, "message": self.message}
        if self.place is not None:
            found["place"] = _place_json(self.place)
        if self.label:
            found["label"] = self.label
        if self.hint:
            found["hint"] = self.hint
        if self.notes:
            found["notes"] = [
                {"message": note.message} | ({"place": _place_json(note.place)} if note.place else {})
                for note in self.notes
            ]
        return found

    def render(self, sources: Mapping[str, str] | None = None, color: bool = False) -> str:
        """The diagnostic as text, with the user's line and a caret under what is wrong.

        ``sources`` gives the text of files that may not be on disk; other files are read, and where that fails only
        the place is named.
        """
        return _Renderer(sources or {}, color).render(self)


def _place_json(place: Place) -> dict[str, Any]:
    return {
        "file": place.file,
        "line": place.line,
        "column": place.column,
        "end_line": place.end_line,
        "end_column": place.end_column,
    }


class _Renderer:
    """Lays out one diagnostic: header, arrow line, source lines with carets, hint, notes."""

    def __init__(self, sources: Mapping[str, str], color: bool) -> None:
        self.sources = sources
        self.color = color

    def render(self, diagnostic: Diagnostic) -> str:
        paint = "1;33" if diagnostic.severity == "warning" else "1;31"
        head = self.paint(f"{diagnostic.severity}[{diagnostic.code}]", paint)
        lines = [f"{head}: {diagnostic.message}"]
        if diagnostic.place is not None:
            lines += self.excerpt(diagnostic.place, diagnostic.label, paint)
        if diagnostic.hint:
            lines.append(f"  = {self.paint('hint', '1;36')}: {diagnostic.hint}")
        for note in diagnostic.notes:
            lines.append(f"  = {self.paint('note', '1')}: {note.message}")
            if note.place is not None:
                lines += self.excerpt(note.place, "", "1;34")
        return "\n".join(lines)

    def excerpt(self, place: Place, label: str, paint: str) -> list[str]:
        text = self.lines_of(place.file)
        gutter = len(str(place.end_line))
        lines = [f"{' ' * gutter}--> {shown_path(place.file)}:{place.line}:{place.column}"]
        if text is None or not 1 <= place.line <= len(text):
            return lines
        lines.append(f"{' ' * gutter} |")
        last = min(place.end_line, len(text), place.line + _SHOWN_LINES_AT_MOST - 1)
        for number in range(place.line, last + 1):
            source = text[number - 1]
            start = place.column - 1 if number == place.line else len(source) - len(source.lstrip())
            end = place.end_column - 1 if number == place.end_line else len(source.rstrip())
            source, start, end = _cropped(source, start, end)
            before, marked = _columns(source[:start]), _columns(source[start:end], _columns(source[:start]))
            caret = " " * before + "^" * max(1, marked)
            beside = f" {label}" if label and number == last else ""
            lines.append(f"{number:>{gutter}} | {_expand(source)}")
            lines.append(f"{' ' * gutter} | {self.paint(caret + beside, paint)}")
        if last < place.end_line:
            lines.append(f"{' ' * gutter} | ...")
        return lines

    def lines_of(self, file: str) -> list[str] | None:
        text = self.sources.get(file)
        if text is None:
            try:
                with open(file, encoding="utf-8", errors="replace") as opened:
                    text = opened.read()
            except (OSError, ValueError):
                return None
        # Only the line ends of Python and TOML: splitlines() would also split at form feeds and the like.
        return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")

    def paint(self, text: str, style: str) -> str:
        return f"\x1b[{style}m{text}\x1b[0m" if self.color else text


def shown_path(path: str) -> str:
    """A path for people: from the current folder where it lies below that, as it is elsewhere."""
    try:
        here = os.getcwd()
    except OSError:
        return path  # The current folder is gone.
    below = os.path.join(here, "")
    return path[len(below) :] if len(path) > len(below) and path.startswith(below) else path


def _cropped(line: str, start: int, end: int) -> tuple[str, int, int]:
    """The part of a very long line around ``start`` to ``end``, with dots where it is cut, and where these are in it."""
    if len(line) <= _SHOWN_BEFORE + _SHOWN_AFTER:
        return line, start, end
    first = max(0, start - _SHOWN_BEFORE)
    last = min(len(line), start + _SHOWN_AFTER)
    head = "..." if first else ""
    shown = head + line[first:last] + ("..." if last < len(line) else "")
    moved = len(head) - first
    return shown, start + moved, max(start, min(end, last)) + moved


def _expand(text: str) -> str:
    """The text as it is printed: tabs as spaces, control characters (a pasted escape sequence, say) as a blank."""
    shown: list[str] = []
    width = 0
    for character in text:
        if character == "\t":
            step = _TAB_WIDTH - width % _TAB_WIDTH
            shown.append(" " * step)
            width += step
        else:
            shown.append(character if character.isprintable() else " ")
            width += _columns(character)
    return "".join(shown)


def _columns(text: str, start: int = 0) -> int:
    """How many terminal columns the text takes when it begins at column ``start``."""
    width = start
    for character in text:
        if character == "\t":
            width += _TAB_WIDTH - width % _TAB_WIDTH
        elif unicodedata.combining(character):
            continue
        else:
            width += 2 if unicodedata.east_asian_width(character) in "WF" else 1
    return width - start


class GristmillError(Exception):
    """The base of all that Gristmill raises on purpose; ``exit_status`` is what the command line ends with."""

    exit_status = EXIT_INTERNAL


class UserError(GristmillError):
    """The user's input is wrong: one diagnostic or several, with the texts they point into.

    ``str(error)`` is the rendered text of all of them.
    """

    exit_status = EXIT_USER

    def __init__(
        self, diagnostics: Diagnostic | Iterable[Diagnostic], sources: Mapping[str, str] | None = None
    ) -> None:
        self.diagnostics: tuple[Diagnostic, ...] = (
            (diagnostics,) if isinstance(diagnostics, Diagnostic) else tuple(diagnostics)
        )
        self.sources: dict[str, str] = dict(sources or {})
        super().__init__(self.diagnostics, self.sources)

    @property
    def code(self) -> str:
        """The code of the first diagnostic."""
        return self.diagnostics[0].code

    def render(self, color: bool = False) -> str:
        return "\n\n".join(diagnostic.render(self.sources, color) for diagnostic in self.diagnostics)

    def __str__(self) -> str:
        return self.render()


class Unsupported(UserError):
    """A verified program asks for what a target does not have: construct, target, and what to do about it.

    The only exception that a code generator may raise for a verified module.
    """

    @classmethod
    def of(cls, code: str, construct: str, target: str, remedy: str, place: Place | None = None) -> Unsupported:
        """The usual form: ``construct`` and ``target`` make the message, ``remedy`` the hint."""
        return cls(Diagnostic(code, f"{construct} is not supported by target `{target}`", place, hint=remedy))


class MissingError(GristmillError):
    """Something of the environment is absent; the message says what, the hint how to get it."""

    exit_status = EXIT_MISSING

    def __init__(self, code: str, message: str, hint: str = "") -> None:
        self.diagnostic = Diagnostic(code, message, hint=hint)
        super().__init__(code, message, hint)

    @property
    def code(self) -> str:
        return self.diagnostic.code

    def __str__(self) -> str:
        return self.diagnostic.render()


@dataclass
class _Circumstances:
    """Where an internal fault happened; filled in on the way up by whoever knows."""

    pass_name: str = ""
    node: str = ""
    place: Place | None = None
    reproducer: str = ""
    notes: list[str] = field(default_factory=list)


class InternalError(GristmillError):
    """A fault of Gristmill or of a plugin: pass, node, the user's line and the reproducer, as far as they are known."""

    exit_status = EXIT_INTERNAL

    def __init__(
        self,
        message: str,
        *,
        pass_name: str = "",
        node: str = "",
        place: Place | None = None,
        reproducer: str = "",
    ) -> None:
        self.message = message
        self.where = _Circumstances(pass_name, node, place, reproducer)
        super().__init__(message)

    def __reduce__(self) -> tuple[Any, ...]:
        return (_restore_internal_error, (type(self), self.message, self.where))

    def __str__(self) -> str:
        where = self.where
        lines = [f"internal error: {self.message}"]
        if where.pass_name:
            lines.append(f"  in pass: {where.pass_name}")
        if where.place:
            lines.append(f"  at: {where.place}")
        if where.node:
            lines.append(f"  on: {where.node}")
        if where.reproducer:
            lines.append(f"  reproducer: {where.reproducer} (replay with `gristmill opt --repro {where.reproducer}`)")
        lines += [f"  {note}" for note in where.notes]
        lines.append("This is a fault of Gristmill or of a plugin, not of your kernel. Please report it.")
        return "\n".join(lines)


def _restore_internal_error(kind: type[InternalError], message: str, where: _Circumstances) -> InternalError:
    error = kind(message)
    error.where = where
    return error


class PluginError(InternalError):
    """A plugin is broken; the message names plugin, distribution and version."""


def close_match(word: str, known: Sequence[str]) -> str:
    """The known word that ``word`` was probably meant to be, or an empty string."""
    # difflib takes 5 ms to import and is wanted only when something is wrong already.
    from difflib import get_close_matches

    found = get_close_matches(word, known, n=1, cutoff=0.6)
    return found[0] if found else ""


def suggestion(word: str, known: Sequence[str], otherwise: str = "", form: str = "`{}`") -> str:
    """A hint that names the known word that was probably meant, written into ``form``; without one it is ``otherwise``."""
    meant = close_match(word, known)
    return f"did you mean {form.format(meant)}?" if meant else otherwise


def wants_color(stream: Any) -> bool:
    """Whether to colour what goes to ``stream``: NO_COLOR and FORCE_COLOR (no-color.org) first, then whether it is a terminal."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return bool(getattr(stream, "isatty", lambda: False)())
