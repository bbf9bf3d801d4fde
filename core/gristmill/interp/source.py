"""Writing Python text: lines with indentation, fresh names, and parts that become functions of their own.

All names of values are ``_`` + a letter + a number, and numbers only grow. So the names that a stretch of lines takes
from outside are those with a number lower than the first one given out inside; that is how a part's parameters are
found. No text of the user ever becomes part of a line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

_NAME = re.compile(r"\b_[a-z](\d+)\b")

# Python allows 100 levels of indentation and 20 loops within loops in one function; a part is begun well before.
INDENTATION_AT_MOST = 50
LOOPS_AT_MOST = 12


@dataclass(frozen=True, slots=True)
class Line:
    """One line: its indentation, its text, and the number of the site that it may fail at (-1: none)."""

    indent: int
    text: str
    site: int = -1


class Writer:
    """Collects the lines of one function, and gives out names."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.indent = 1
        self.loops = 0
        self.names = 0

    def fresh(self, letter: str) -> str:
        """A name not used before in this function."""
        self.names += 1
        return f"_{letter}{self.names}"

    def emit(self, text: str, site: int = -1) -> None:
        self.lines.append(Line(self.indent, text, site))

    @contextmanager
    def block(self, head: str, loop: bool = False, site: int = -1) -> Iterator[None]:
        """Lines under a head that ends in a colon; ``pass`` if there are none."""
        self.emit(head, site)
        start = len(self.lines)
        self.indent += 1
        self.loops += loop
        yield
        if len(self.lines) == start:
            self.emit("pass")
        self.indent -= 1
        self.loops -= loop

    @contextmanager
    def captured(self, indent: int, in_part: bool = False) -> Iterator[list[Line]]:
        """Lines written inside go to a list of their own, with indentation from ``indent`` on.

        ``in_part``: they become a function of their own, in which no loop is open yet.
        """
        outer, outer_indent, outer_loops = self.lines, self.indent, self.loops
        self.lines = []
        self.indent = indent
        if in_part:
            self.loops = 0
        yield self.lines
        self.lines, self.indent, self.loops = outer, outer_indent, outer_loops


def names_in(lines: Sequence[Line]) -> dict[str, int]:
    """The names of values in some lines, with their numbers."""
    return {match[0]: int(match[1]) for line in lines for match in _NAME.finditer(line.text)}


def captures(lines: Sequence[Line], before: int) -> list[str]:
    """The names that lines take from outside: those given out up to number ``before``, in that order."""
    found = [(number, name) for name, number in names_in(lines).items() if number <= before]
    return [name for _, name in sorted(found)]
