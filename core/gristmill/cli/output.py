"""How commands write: JSON for programs, tables for people, and files."""

from __future__ import annotations

import argparse
import json
import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

from gristmill.errors import Diagnostic, UserError
from gristmill.files import replace_file
from gristmill.version import __version__

JSON_SCHEMA = 1
"""Version of the JSON that commands write: fields may be added under one number, not changed or removed."""


def add_json_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="write one JSON object instead of text")


def write_json(content: Mapping[str, Any]) -> None:
    """One object on standard output, whole or not at all, with the schema's number and Gristmill's version first.

    In ASCII, which every encoding of standard output has, and which keeps what is no Unicode in a path. Floats that JSON
    has not are texts: "nan", "inf", "-inf".
    """
    whole = {"schema": JSON_SCHEMA, "version": __version__, **content}
    print(json.dumps(_of_json(whole), indent=2, allow_nan=False))


def _of_json(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {key: _of_json(each) for key, each in value.items()}
    return [_of_json(each) for each in value] if isinstance(value, (list, tuple)) else value


def write_table(titles: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[str] = ()) -> None:
    """Rows under titles, each column as wide as its widest cell; the columns named in ``numbers`` align to the right."""
    lines = [list(titles), *[list(row) for row in rows]]
    widths = [max(len(line[column]) for line in lines) for column in range(len(titles))]
    for line in lines:
        cells = [
            cell.rjust(width) if title in numbers else cell.ljust(width)
            for title, cell, width in zip(titles, line, widths, strict=True)
        ]
        print("  ".join(cells).rstrip())


def size_text(size: int) -> str:
    """A number of bytes for people: ``512 B``, ``3.4 KiB``, ``1.2 MiB``."""
    if size < 1024:
        return f"{size} B"
    if size < 1024 * 1024:
        return f"{size / 1024:.1f} KiB"
    return f"{size / 1024 / 1024:.1f} MiB"


def write_file(path: str, content: bytes, force: bool) -> None:
    """Write a file whole or not at all. Raises UserError where it is there already (unless forced) or can't be written."""
    if os.path.lexists(path) and not force:
        raise UserError(Diagnostic("GM0004", f"would overwrite {path}", hint="choose another name, or use --force"))
    try:
        replace_file(path, content, follow_links=True)
    except OSError as error:
        message = f"can't write `{path}`: {error.strerror}"
        raise UserError(Diagnostic("GM0006", message, hint="name a file in a folder that can be written to")) from None
