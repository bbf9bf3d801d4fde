"""Collecting what is wrong: one mistake ends the statement it stands in, and reading goes on with the next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gristmill.errors import Diagnostic, Note, Place, UserError

PROBLEMS_AT_MOST = 50
"""Further mistakes are left out: they rarely help before the first are mended."""


class Mistake(Exception):
    """One mistake of the user; caught where reading can go on, never shown to anybody as it is."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        self.diagnostic = diagnostic
        super().__init__(diagnostic.message)


class Reported(Exception):
    """What is asked for depends on something whose mistake has been reported already: leave quietly."""


def mistake(
    code: str,
    place: Place | None,
    message: str,
    *,
    label: str = "",
    hint: str = "",
    notes: Sequence[Note] = (),
) -> Mistake:
    """A :class:`Mistake` to raise."""
    return Mistake(Diagnostic(code, message, place, label, hint, tuple(notes)))


class Problems:
    """The mistakes found so far in one reading, and the texts that they point into."""

    def __init__(self) -> None:
        self.found: list[Diagnostic] = []
        self.sources: dict[str, str] = {}

    def add(self, problem: Mistake | Reported) -> None:
        """Take a mistake in; the same one at the same place only once."""
        if isinstance(problem, Mistake) and problem.diagnostic not in self.found:
            self.found.append(problem.diagnostic)

    @property
    def are_many(self) -> bool:
        return len(self.found) >= PROBLEMS_AT_MOST

    def check(self) -> None:
        """Raise UserError if anything was found, in the order of the text."""
        if self.found:
            raise self.error()

    def error(self) -> UserError:
        files = list(self.sources)

        def order(found: Diagnostic) -> tuple[int, int, int]:
            place = found.place
            if place is None:
                return (-1, 0, 0)
            return (files.index(place.file) if place.file in files else len(files), place.line, place.column)

        found = sorted(self.found, key=order)
        if self.are_many:
            more = Note(f"no more than {PROBLEMS_AT_MOST} mistakes are shown at a time")
            found[-1] = replace(found[-1], notes=(*found[-1].notes, more))
        return UserError(found, self.sources)
