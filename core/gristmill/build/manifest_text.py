"""From a manifest's file to its text, and from its text to the document that tomli reads, with caps on both.

What goes wrong here is reported alone: without a document there is nothing else to check.
"""

from __future__ import annotations

import os
import re
from typing import Any

from gristmill.build.manifest_positions import SourceText
from gristmill.errors import Diagnostic, Place, UserError

MANIFEST_NAME = "kernels.toml"
MOST_BYTES = 1 << 20
MOST_NESTING = 16


def read_text(path: str | os.PathLike[str]) -> tuple[str, str]:
    """The manifest's file name and text; ``path`` is the file, or a folder that has a ``kernels.toml``."""
    file = os.fspath(path)
    if os.path.isdir(file):
        file = os.path.join(file, MANIFEST_NAME)
    try:
        with open(file, "rb") as opened:
            data = opened.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        # ValueError: a path with a null character.
        why = (error.strerror if isinstance(error, OSError) else None) or error
        hint = "run `gristmill init` to begin a project here, or name the manifest's path"
        raise UserError(Diagnostic("GM0112", f"can't read `{file}`: {why}", hint=hint)) from None
    if len(data) > MOST_BYTES:
        message = f"`{file}` is larger than {MOST_BYTES} bytes"
        raise UserError(Diagnostic("GM0114", message, hint="split the project into several manifests"))
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = len(data[data.rfind(b"\n", 0, error.start) + 1 : error.start].decode("utf-8")) + 1
        place = Place(file, line, column, line, column + 1)
        message = f"the byte 0x{data[error.start]:02x} is not UTF-8"
        raise UserError(Diagnostic("GM0115", message, place, hint="save the file as UTF-8")) from None
    return file, text


def read_document(source: SourceText) -> dict[str, Any]:
    """The text parsed by tomli. Raises UserError where it is not TOML or nests too deeply."""
    import tomli

    file, text = source.file, source.text

    def refuse(code: str, message: str, place: Place | None, hint: str) -> UserError:
        return UserError(Diagnostic(code, message, place, hint=hint), {file: text})

    if text.startswith("\ufeff"):
        message = "the file begins with a byte order mark"
        raise refuse("GM0115", message, Place(file, 1, 1, 1, 2), "save it as UTF-8 without a byte order mark")
    try:
        document = tomli.loads(text)
    except tomli.TOMLDecodeError as error:
        at = min(error.pos, len(text))
        message = f"not valid TOML: {error.msg[:1].lower()}{error.msg[1:]}"
        raise refuse("GM0101", message, source.place(at, min(at + 1, len(text))), _syntax_hint(text, at)) from None
    except RecursionError:
        raise refuse("GM0114", "the manifest nests too deeply", None, f"the most is {MOST_NESTING} levels") from None
    except ValueError:
        # The one thing that tomli leaves to Python: integers of thousands of digits.
        digits = re.search(r"[0-9_]{4000,}", text)
        start, end = digits.span() if digits else (0, 0)
        hint = "integers have 64 bits"
        raise refuse("GM0101", "not valid TOML: a number has too many digits", source.place(start, end), hint) from None
    if _nests_too_deeply(document):
        deep = min(
            (path for path in source.spans if len(path) > MOST_NESTING), key=lambda path: source.spans[path].start
        )
        named = max(index for index, part in enumerate(deep) if isinstance(part, str))
        key = deep[: named + 1]
        message = f"`{key[-1]}` nests deeper than {MOST_NESTING} levels"
        raise refuse("GM0114", message, source.key_place(key), "flatten it")
    return document


def _syntax_hint(text: str, at: int) -> str:
    line = text[text.rfind("\n", 0, at) + 1 :].partition("\n")[0]
    value = re.match(r"\s*[^=\[\]]+=\s*(.*)", line)
    if re.match(r"\s*[A-Za-z0-9_-]+\s*:", line):
        return "TOML writes `key = value`, not `key: value`"
    if value and re.match(r"(True|False)\b", value[1]):
        return f"write {value[1][:5].strip().lower()}, in small letters"
    if value and re.match(r"[A-Za-z_/.]", value[1]) and not re.match(r"(true|false|inf|nan)\b", value[1]):
        return "put strings in quotes"
    if line.count('"') % 2:
        return "close the string with a quote"
    return "see the reference of kernels.toml in the documentation, or toml.io"


def _nests_too_deeply(document: dict[str, Any]) -> bool:
    """Whether tables and lists are deeper in one another than allowed; found without recursion."""
    level: list[Any] = [document]
    for _ in range(MOST_NESTING):
        inner: list[Any] = []
        for value in level:
            inner += value.values() if isinstance(value, dict) else value
        level = [value for value in inner if isinstance(value, dict | list)]
    return bool(level)
