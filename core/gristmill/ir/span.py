"""Where a node comes from: a place in the user's text, and the calls it was inlined through."""

from __future__ import annotations

from dataclasses import dataclass

from gristmill.errors import Note, Place


@dataclass(frozen=True, slots=True)
class Span:
    """A place in a source file. ``inlined_at`` is the call that this code was inlined into, innermost first."""

    place: Place
    inlined_at: Span | None = None

    def __str__(self) -> str:
        return str(self.place)

    @classmethod
    def at(cls, file: str, line: int, column: int, end_line: int, end_column: int) -> Span:
        return cls(Place(file, line, column, end_line, end_column))

    def notes(self) -> tuple[Note, ...]:
        """One note for each call on the way to the code, for diagnostics."""
        found = []
        outer = self.inlined_at
        while outer is not None:
            found.append(Note("inlined from this call", outer.place))
            outer = outer.inlined_at
        return tuple(found)


def place_of(span: Span | None) -> Place | None:
    """The place of a span that may be missing."""
    return None if span is None else span.place
