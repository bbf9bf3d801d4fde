"""Explain an error code: what it means, an example that has it, and the example mended. Or print a page of the manual.

Without a code or page, lists all of them.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from gristmill.cli.output import add_json_option, write_json
from gristmill.errors import Diagnostic, UserError, close_match

PAGES = Path(__file__).parent.parent / "explain"
MANUAL = ("guide", "language", "manifest", "packs", "commands", "numerics", "plugins", "vulkan")
"""Pages of the manual, which a wheel carries as data."""
_PACKAGE = Path(__file__).resolve().parents[1]
_MANUAL_PLACES = (
    _PACKAGE / "docs",
    # A source checkout, installed editable: core/gristmill is beside docs.
    _PACKAGE.parents[1] / "docs",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("code", nargs="?", help=f"a code such as GM0102, or a page: {', '.join(MANUAL)}")
    add_json_option(parser)


def run(options: argparse.Namespace) -> int:
    if options.code is None:
        _list(options.json)
        return 0
    manual = manual_pages()
    if (name := options.code.strip().lower()) in manual:
        text = manual[name].read_text(encoding="utf-8")
        if options.json:
            write_json({"page": name, "title": title_of(manual[name]), "text": text})
        else:
            print(text.rstrip())
        return 0
    code = normalized(options.code)
    text = (PAGES / f"{code}.md").read_text(encoding="utf-8")
    if options.json:
        write_json({"code": code, "title": title_of(PAGES / f"{code}.md"), "text": text})
    else:
        print(text.rstrip())
    return 0


def manual_pages() -> dict[str, Path]:
    """The files of the pages of the manual that are installed, by name."""
    found = ((name, place / f"{name}.md") for name in MANUAL for place in reversed(_MANUAL_PLACES))
    return {name: path for name, path in found if path.is_file()}


def _list(as_json: bool) -> None:
    codes = {path.stem: title_of(path) for path in sorted(PAGES.glob("GM*.md"))}
    pages = {name: title_of(path) for name, path in manual_pages().items()}
    if as_json:
        write_json(
            {
                "codes": [{"code": code, "title": title} for code, title in codes.items()],
                "pages": [{"page": name, "title": title} for name, title in pages.items()],
            }
        )
        return
    for code, title in codes.items():
        print(f"{code}  {title}")
    print()
    for name, title in pages.items():
        print(f"{name:<8}  {title}")


def normalized(word: str) -> str:
    """The code that was meant, in its usual spelling; raises UserError where there is none."""
    match = re.fullmatch(r"(?:gm)?(\d{1,4})", word.strip(), re.IGNORECASE)
    code = f"GM{match[1]:0>4}" if match else ""
    if code and (PAGES / f"{code}.md").is_file():
        return code
    near = close_match(code or word.upper(), [path.stem for path in PAGES.glob("GM*.md")])
    near = near or close_match(word.lower(), MANUAL)
    hint = f"did you mean `{near}`? " if near else ""
    listed = f"{hint}`gristmill explain` lists the codes and pages"
    raise UserError(Diagnostic("GM0002", f"there is no error code or page `{word}`", hint=listed))


def title_of(page: Path) -> str:
    """The title in the first line of a page, without the code."""
    first = page.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
    code, colon, title = first.partition(": ")
    return title if colon and code.startswith("GM") else first
