"""One source file: its text, and where the nodes of its syntax tree stand in it."""

from __future__ import annotations

import ast
import re
from typing import Protocol

from gristmill.errors import Place
from gristmill.ir.span import Span


class Positioned(Protocol):
    """A syntax tree node that has a place: a statement, an expression, an argument, a keyword, an alias."""

    lineno: int
    col_offset: int
    end_lineno: int | None
    end_col_offset: int | None


class Source:
    """A file's name and text, without a byte order mark."""

    def __init__(self, file: str, text: str) -> None:
        self.file = file
        self.text = text = text.removeprefix("\ufeff")
        # The line ends of Python's tokenizer, and no others (splitlines() would also split at form feeds).
        self.lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        self._spans: dict[int, tuple[Positioned, Span]] = {}

    def column(self, line: int, offset: int) -> int:
        """The 1-based column in characters of a 0-based offset in UTF-8 bytes."""
        text = self.lines[line - 1] if 1 <= line <= len(self.lines) else ""
        if text.isascii():
            return offset + 1
        return len(text.encode("utf-8", "surrogatepass")[:offset].decode("utf-8", "ignore")) + 1

    def place(self, node: Positioned) -> Place:
        """The range of a node."""
        end_line = node.end_lineno or node.lineno
        end_offset = node.end_col_offset if node.end_col_offset is not None else node.col_offset + 1
        return Place(
            self.file,
            node.lineno,
            self.column(node.lineno, node.col_offset),
            end_line,
            self.column(end_line, end_offset),
        )

    def name_place(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> Place:
        """The range of the name in a ``def`` or ``class`` statement (the node itself spans the whole body)."""
        line = self.lines[node.lineno - 1]
        found = re.compile(r"(?:def|class)\s+").search(line, self.column(node.lineno, node.col_offset) - 1)
        column = (found.end() if found else node.col_offset) + 1
        return Place(self.file, node.lineno, column, node.lineno, column + len(node.name))

    def head_place(self, node: ast.stmt) -> Place:
        """The first word of a statement (a compound one spans its whole body)."""
        place = self.place(node)
        line = self.lines[place.line - 1][place.column - 1 :]
        word = line.split("#")[0].rstrip()
        first = word.split()[0].rstrip(":(") if word.split() else word
        return Place(self.file, place.line, place.column, place.line, place.column + max(1, len(first)))

    def span(self, node: Positioned) -> Span:
        """The range of a node as IR nodes carry it; one object a node."""
        found = self._spans.get(id(node))
        # The node is kept beside its span, so that its id is not given to another one.
        if found is None or found[0] is not node:
            found = self._spans[id(node)] = (node, Span(self.place(node)))
        return found[1]

    def segment(self, node: Positioned) -> str:
        """The text of a node as its author wrote it, on one line, shortened if it is long."""
        place = self.place(node)
        rows = self.lines[place.line - 1 : place.end_line]
        if not rows:
            return ""
        if len(rows) == 1:
            text = rows[0][place.column - 1 : place.end_column - 1]
        else:
            middle = [row.strip() for row in rows[1:-1]]
            text = " ".join([rows[0][place.column - 1 :].strip(), *middle, rows[-1][: place.end_column - 1].strip()])
        return text if len(text) <= 80 else text[:77] + "..."
