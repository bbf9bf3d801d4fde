"""From bytes to a syntax tree: encoding, size, syntax, nesting. Nothing of the source is executed or imported."""

from __future__ import annotations

import ast
import io
import tokenize
import warnings

from gristmill.errors import Place
from gristmill.script.depth import NESTING_AT_MOST
from gristmill.script.problems import Mistake, mistake
from gristmill.script.source import Source

SOURCE_BYTES_AT_MOST = 2 * 1024 * 1024


def decode(raw: bytes, file: str) -> str:
    """The text of a file, by its byte order mark or coding comment, UTF-8 by default. Raises Mistake."""
    if len(raw) > SOURCE_BYTES_AT_MOST:
        raise _too_large(file, len(raw))
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(raw).readline)
        return raw.decode(encoding)
    except (SyntaxError, UnicodeDecodeError, LookupError) as error:
        start = _first_wrong(raw) if not isinstance(error, UnicodeDecodeError) else error.start
        what = "the file is not" if start is None else f"byte 0x{raw[start]:02x} is not"
        start = start or 0
        before = raw[:start].replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        line = before.count(b"\n") + 1
        column = len(before[before.rfind(b"\n") + 1 :].decode("utf-8", "replace")) + 1
        raise mistake(
            "GM0201",
            Place(file, line, column, line, column + 1),
            f"{what} valid text in the file's encoding",
            label="not text",
            hint="save the file as UTF-8",
        ) from None


def _first_wrong(raw: bytes) -> int | None:
    """Where a file stops being UTF-8; None if the fault is its coding comment."""
    try:
        raw.decode()
    except UnicodeDecodeError as error:
        return error.start
    return None


def read_tree(source: Source) -> ast.Module:
    """The syntax tree of a file. Raises Mistake for what Python cannot read and for what is nested too deeply."""
    text, file = source.text, source.file
    if len(text) > SOURCE_BYTES_AT_MOST:
        raise _too_large(file, len(text))
    _refuse_odd_characters(source)
    try:
        with warnings.catch_warnings():
            # Python warns of doubtful literals here; that is for Python to say when the file is imported.
            warnings.simplefilter("ignore")
            tree = ast.parse(text, file)
    except SyntaxError as error:
        raise _syntax_error(source, error) from None
    except (RecursionError, MemoryError):
        raise mistake(
            "GM0204",
            Place(file, 1, 1, 1, 1),
            "the file is nested too deeply for Python to read",
            hint="split long expressions and deeply nested statements into smaller ones",
        ) from None
    except ValueError as error:
        raise mistake("GM0202", Place(file, 1, 1, 1, 1), f"the file cannot be read: {error}") from None
    _bound_nesting(source, tree)
    return tree


def _too_large(file: str, size: int) -> Mistake:
    return mistake(
        "GM0203",
        Place(file, 1, 1, 1, 1),
        f"the file has {size} bytes, and at most {SOURCE_BYTES_AT_MOST} are read",
        hint="split the kernels over several files",
    )


def _refuse_odd_characters(source: Source) -> None:
    for number, line in enumerate(source.lines, 1):
        for column, character in enumerate(line, 1):
            if character == "\0" or "\ud800" <= character <= "\udfff":
                raise mistake(
                    "GM0202",
                    Place(source.file, number, column, number, column + 1),
                    f"the character U+{ord(character):04X} cannot stand in a source file",
                    label="this character",
                    hint="remove the character",
                )


def _syntax_error(source: Source, error: SyntaxError) -> Mistake:
    line = min(max(error.lineno or 1, 1), len(source.lines))
    length = len(source.lines[line - 1])
    column = min(max(error.offset or 1, 1), length + 1)
    end_line = error.end_lineno or line
    end_column = error.end_offset or column + 1
    if isinstance(error, IndentationError):
        # Python's versions differ in where they see it; what stands out is the first character after the indent.
        column = length - len(source.lines[line - 1].lstrip()) + 1
        end_line, end_column = line, column + 1
    if not line <= end_line <= len(source.lines) or (end_line == line and end_column <= column):
        end_line, end_column = line, column + 1
    message = error.msg or "invalid syntax"
    place = Place(source.file, line, column, end_line, end_column)
    if "too many" in message and ("nested" in message or "indentation" in message):
        return mistake(
            "GM0204",
            place,
            f"the file is nested too deeply for Python to read: {message}",
            label="here",
            hint="split long expressions and deeply nested statements into smaller ones",
        )
    return mistake(
        "GM0200", place, f"Python cannot read this: {message}", label="here", hint="kernels are written as valid Python"
    )


def _bound_nesting(source: Source, tree: ast.Module) -> None:
    """Refuse what nests deeper than ``NESTING_AT_MOST``, so that all later recursion is bounded."""
    stack: list[tuple[ast.AST, int, int]] = [(tree, 0, 0)]
    while stack:
        node, statements, expressions = stack.pop()
        if isinstance(node, ast.stmt):
            statements, expressions = statements + 1, 0
        elif isinstance(node, ast.expr):
            expressions += 1
        if statements > NESTING_AT_MOST or expressions > NESTING_AT_MOST:
            what = "statements" if statements > NESTING_AT_MOST else "an expression"
            assert isinstance(node, (ast.stmt, ast.expr))
            place = source.place(node)
            raise mistake(
                "GM0204",
                Place(source.file, place.line, place.column, place.line, place.column + 1),
                f"{what} nested more than {NESTING_AT_MOST} levels deep",
                label="level 257 starts here",
                hint="give parts of it names of their own, or move them into a helper function",
            )
        stack.extend((child, statements, expressions) for child in ast.iter_child_nodes(node))
