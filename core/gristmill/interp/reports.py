"""What the executor reports: the exceptions, the places in code that reports speak of, and who was running.

Every report is an :class:`ExecutionError`, a user error with a code of the range GM05xx, at the user's line.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gristmill.errors import Diagnostic, Note, Place, UserError
from gristmill.ir.span import Span
from gristmill.ir.stmt import ThreadAxis


class ExecutionError(UserError):
    """The program did what the language does not allow, or was called wrongly."""


class AssertionFailed(ExecutionError):
    """An assert of the program was false: it left with the Python error ``kind`` and the text ``message``."""

    def __init__(
        self,
        diagnostics: Any,
        sources: Mapping[str, str] | None = None,
        kind: str = "AssertionError",
        message: str = "",
    ) -> None:
        super().__init__(diagnostics, sources)
        self.kind = kind
        self.message = message

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.diagnostics, self.sources, self.kind, self.message)


@dataclass(frozen=True, slots=True)
class Site:
    """A place in the program that a report may speak of.

    ``what`` names the buffer or thing that is used there; ``opened`` are the thread axes whose loops stand around it.
    """

    function: str
    span: Span | None
    what: str = ""
    opened: tuple[ThreadAxis, ...] = ()

    @property
    def place(self) -> Place | None:
        return None if self.span is None else self.span.place

    @property
    def notes(self) -> tuple[Note, ...]:
        return () if self.span is None else self.span.notes()

    def __str__(self) -> str:
        return str(self.span.place) if self.span is not None else f"in function `{self.function}`"


def report(
    code: str, message: str, site: Site | None, *, label: str = "", hint: str = "", notes: tuple[Note, ...] = ()
) -> ExecutionError:
    """The exception for one report; a site without a place is named in the message."""
    if site is not None and site.span is None:
        message = f"{message} (in function `{site.function}`)"
    place = None if site is None else site.place
    further = () if site is None else site.notes
    return ExecutionError(Diagnostic(code, message, place, label, hint, (*notes, *further)))


def counted(number: int, noun: str) -> str:
    """``1 element``, ``2 elements``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def listed(values: tuple[Any, ...] | list[Any]) -> str:
    """Indices or sizes as the user writes them: ``[1, 2]``."""
    return "[" + ", ".join(str(value) for value in values) + "]"
