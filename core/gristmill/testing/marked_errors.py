"""Kernels with the mistakes marked in the text, for tests of diagnostics.

Under a wrong line stands a line of carets with the code and a part of the hint::

    x[0] = 1.5
           ^^^ GM0260 write a whole number

A range over several lines is marked under its last line, as ``^^^ GM0200 12:5- hint`` with the place where it starts.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from gristmill.errors import Diagnostic, UserError

_MARK = re.compile(
    r"(?P<indent> *)(?P<carets>\^+) (?P<code>GM\d{4})(?: (?P<line>\d+):(?P<column>\d+)-)?(?: (?P<hint>.*))?"
)


@dataclass(frozen=True, slots=True)
class Expected:
    """A diagnostic that a text is marked to give."""

    code: str
    line: int
    column: int
    end_line: int
    end_column: int
    hint: str


def marked(text: str) -> tuple[str, tuple[Expected, ...]]:
    """The text without its marks, and what they expect, in the order of the text."""
    lines: list[str] = []
    expected: list[Expected] = []
    for line in text.split("\n"):
        match = _MARK.fullmatch(line)
        if match is None:
            lines.append(line)
            continue
        start = len(match["indent"]) + 1
        end = start + len(match["carets"])
        first_line = int(match["line"]) if match["line"] else len(lines)
        first_column = int(match["column"]) if match["column"] else start
        expected.append(Expected(match["code"], first_line, first_column, len(lines), end, match["hint"] or ""))
    return "\n".join(lines), tuple(expected)


def check_marked(text: str, read: Callable[[str], object]) -> tuple[Diagnostic, ...]:
    """Read a marked text and compare: each mark one diagnostic with that code, range and hint, and none beside them.

    Raises AssertionError that shows what was found. Returns the diagnostics.
    """
    plain, expected = marked(text)
    assert expected, "the text marks no mistake"
    try:
        read(plain)
    except UserError as error:
        found = error
    else:
        raise AssertionError(f"no mistake was found in\n{text}")
    shown = f"expected {[(one.code, one.line, one.column) for one in expected]}, found\n{found}"
    assert len(found.diagnostics) == len(expected), shown
    for one, mark in zip(found.diagnostics, expected, strict=True):
        place = one.place
        assert place is not None, shown
        assert one.code == mark.code, shown
        assert (place.line, place.column) == (mark.line, mark.column), shown
        assert (place.end_line, place.end_column) == (mark.end_line, mark.end_column), shown
        assert one.hint, f"no hint: {shown}"
        assert mark.hint, f"the mark of {mark.code} states no hint"
        assert mark.hint in one.hint, f"expected the hint {mark.hint!r}: {shown}"
        assert one.label or one.code in ("GM0205",), f"no label: {shown}"
        assert one.message, shown
        assert not one.message.endswith("."), shown
    return found.diagnostics
