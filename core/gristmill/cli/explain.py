"""Explain an error code: what it means, an example that has it, and the example mended.

Without a code, lists all codes.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from gristmill.cli.output import add_json_option, write_json
from gristmill.errors import Diagnostic, UserError, close_match

PAGES = Path(__file__).parent.parent / "explain"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("code", nargs="?", help="a code such as GM0102")
    add_json_option(parser)


def run(options: argparse.Namespace) -> int:
    if options.code is None:
        titles = {path.stem: title_of(path) for path in sorted(PAGES.glob("GM*.md"))}
        if options.json:
            write_json({"codes": [{"code": code, "title": title} for code, title in titles.items()]})
        else:
            for code, title in titles.items():
                print(f"{code}  {title}")
        return 0
    code = normalized(options.code)
    text = (PAGES / f"{code}.md").read_text(encoding="utf-8")
    if options.json:
        write_json({"code": code, "title": title_of(PAGES / f"{code}.md"), "text": text})
    else:
        print(text.rstrip())
    return 0


def normalized(word: str) -> str:
    """The code that was meant, in its usual spelling; raises UserError where there is none."""
    match = re.fullmatch(r"(?:gm)?(\d{1,4})", word.strip(), re.IGNORECASE)
    code = f"GM{match[1]:0>4}" if match else ""
    if code and (PAGES / f"{code}.md").is_file():
        return code
    near = close_match(code or word.upper(), [path.stem for path in PAGES.glob("GM*.md")])
    hint = f"did you mean `{near}`? " if near else ""
    raise UserError(
        Diagnostic("GM0002", f"there is no error code `{word}`", hint=f"{hint}`gristmill explain` lists the codes")
    )


def title_of(page: Path) -> str:
    """The title in the first line of a page, without the code."""
    first = page.read_text(encoding="utf-8").partition("\n")[0]
    return first.partition(": ")[2]
