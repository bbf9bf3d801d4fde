"""Where each key and each value of a TOML text stands.

A TOML reader gives values without their places. This module finds the places afterwards, in a text that tomli has
accepted: since the text is known to be valid, a scanner of keys, brackets and strings is enough. It is only run when
there is something to complain about.

A value is named by its path, as one would index the parsed document: ``("module", 0, "targets", 1)``.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from gristmill.errors import Place

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Span:
    """Offsets into the text: of the key that names a value, and of the value.

    A table that a header opens (``[project]``) has the header's last name as its key and the whole header as its value.
    An element of a list has no key of its own: both ranges are the element's.
    """

    key_start: int
    key_end: int
    start: int
    end: int


@dataclass(frozen=True)
class SourceText:
    """A manifest's text and the name of its file; finds the place of any key or value in it."""

    file: str
    text: str = field(repr=False)

    @cached_property
    def spans(self) -> dict[Path, Span]:
        return find_spans(self.text)

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0] + [match.end() for match in re.finditer("\n", self.text)]

    def place(self, start: int, end: int) -> Place:
        """The place of the characters from ``start`` up to but without ``end``."""
        line, column = self._line_and_column(start)
        end_line, end_column = self._line_and_column(max(end, start))
        return Place(self.file, line, column, end_line, end_column)

    def value_place(self, path: Path) -> Place:
        """Where the value stands, or the nearest enclosing one that is written in the text."""
        span = self._nearest(path)
        return self.place(span.start, span.end) if span else self.place(0, 0)

    def key_place(self, path: Path) -> Place:
        """Where the key stands, or the nearest enclosing one that is written in the text."""
        span = self._nearest(path)
        return self.place(span.key_start, span.key_end) if span else self.place(0, 0)

    def _nearest(self, path: Path) -> Span | None:
        for length in range(len(path), 0, -1):
            found = self.spans.get(path[:length])
            if found is not None:
                return found
        return None

    def _line_and_column(self, offset: int) -> tuple[int, int]:
        line = bisect_right(self._line_starts, offset)
        return line, offset - self._line_starts[line - 1] + 1


def find_spans(text: str) -> dict[Path, Span]:
    """The spans of all keys and values of ``text``, which tomli must have accepted."""
    return _Scanner(text).scan()


_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_SPACE = re.compile(r"[ \t]*")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_BASIC = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_LITERAL = re.compile(r"'[^'\n]*'")
# Up to two quotes may stand directly before the closing three.
_BASIC_LINES = re.compile(r'"""(?:[^"\\]|\\.|"{1,2}(?!"))*"""(?:""(?!")|"(?!"))?', re.DOTALL)
_LITERAL_LINES = re.compile(r"'''(?:[^']|'{1,2}(?!'))*'''(?:''(?!')|'(?!'))?", re.DOTALL)
# A number, a boolean or a date; a date and its time may be parted by one blank.
_SCALAR = re.compile(r"\d{4}-\d{2}-\d{2} \d{2}:[^\s,\]}#]*|[^\s,\]}#]+")


@dataclass(slots=True)
class _Open:
    """A list or inline table whose end has not been reached; ``index`` counts the elements of a list."""

    path: Path
    start: int
    key: tuple[int, int] | None
    index: int | None


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0
        self.spans: dict[Path, Span] = {}
        # How many elements each list of tables has by now; also tells such lists from plain tables in a header's name.
        self.table_lists: dict[Path, int] = {}

    def scan(self) -> dict[Path, Span]:
        table: Path = ()
        while True:
            self.skip(_BLANK)
            if self.position >= len(self.text):
                return self.spans
            if self.text[self.position] == "[":
                table = self.header()
            else:
                path, key = self.dotted_key(table)
                self.position += 1  # the equals sign
                self.skip(_SPACE)
                self.value(path, key)

    def skip(self, pattern: re.Pattern[str]) -> None:
        match = pattern.match(self.text, self.position)
        if match:
            self.position = match.end()

    def header(self) -> Path:
        """``[a.b]`` or ``[[a.b]]``: the path of the table that it opens."""
        start = self.position
        is_list = self.text.startswith("[[", start)
        self.position += 2 if is_list else 1
        self.skip(_SPACE)
        parts = self.key_parts()
        self.position += 2 if is_list else 1
        path: Path = ()
        for number, (name, key_start, key_end) in enumerate(parts, start=1):
            last = number == len(parts)
            path = (*path, name)
            if last and is_list:
                index = self.table_lists.get(path, 0)
                self.table_lists[path] = index + 1
                span = Span(key_start, key_end, start, self.position)
                self.spans.setdefault(path, span)
                path = (*path, index)
                self.spans[path] = span
                continue
            span = Span(key_start, key_end, start, self.position)
            if last:
                # The table's own header is a better place than one that only passed through its name.
                self.spans[path] = span
            else:
                self.spans.setdefault(path, span)
            if path in self.table_lists:
                path = (*path, self.table_lists[path] - 1)
        return path

    def dotted_key(self, table: Path) -> tuple[Path, tuple[int, int]]:
        """A key up to its equals sign: the path it names, and where the last part of it stands."""
        path = table
        parts = self.key_parts()
        for name, start, end in parts[:-1]:
            path = (*path, name)
            self.spans.setdefault(path, Span(start, end, start, end))
        name, start, end = parts[-1]
        return (*path, name), (start, end)

    def key_parts(self) -> list[tuple[str, int, int]]:
        parts = []
        while True:
            start = self.position
            first = self.text[start]
            pattern = _BASIC if first == '"' else _LITERAL if first == "'" else _BARE_KEY
            match = pattern.match(self.text, start)
            assert match is not None, "tomli accepted this text"
            self.position = match.end()
            parts.append((_key_name(match.group()), start, self.position))
            self.skip(_SPACE)
            if self.text[self.position] != ".":
                return parts
            self.position += 1
            self.skip(_SPACE)

    def value(self, path: Path, key: tuple[int, int]) -> None:
        """A value with all that it holds. Without recursion: the text may nest as deeply as it likes."""
        opened: list[_Open] = []
        self.begin(opened, path, key)
        while opened:
            inner = opened[-1]
            self.skip(_BLANK)
            character = self.text[self.position]
            if character == ",":
                self.position += 1
            elif character in "]}":
                self.position += 1
                self.note(inner.path, inner.key, inner.start)
                opened.pop()
            elif inner.index is not None:
                inner.index += 1
                self.begin(opened, (*inner.path, inner.index - 1), None)
            else:
                inner_path, inner_key = self.dotted_key(inner.path)
                self.position += 1
                self.skip(_BLANK)
                self.begin(opened, inner_path, inner_key)

    def begin(self, opened: list[_Open], path: Path, key: tuple[int, int] | None) -> None:
        """Read a scalar whole, or go into a list or inline table."""
        start = self.position
        character = self.text[start]
        if character in "[{":
            self.position += 1
            opened.append(_Open(path, start, key, 0 if character == "[" else None))
            return
        if character == '"':
            pattern = _BASIC_LINES if self.text.startswith('"""', start) else _BASIC
        elif character == "'":
            pattern = _LITERAL_LINES if self.text.startswith("'''", start) else _LITERAL
        else:
            pattern = _SCALAR
        self.skip(pattern)
        self.note(path, key, start)

    def note(self, path: Path, key: tuple[int, int] | None, start: int) -> None:
        key_start, key_end = key if key is not None else (start, self.position)
        self.spans[path] = Span(key_start, key_end, start, self.position)


def _key_name(text: str) -> str:
    if text[0] == "'":
        return text[1:-1]
    if text[0] == '"':
        if "\\" not in text:
            return text[1:-1]
        # Escapes in keys are rare: let the reader that accepted them say what they mean.
        import tomli

        document: dict[str, Any] = tomli.loads(f"key = {text}")
        return str(document["key"])
    return text
