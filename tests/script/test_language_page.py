"""docs/language.md: every example is read, and gives the mistakes that it is marked with and no others."""

import re
from pathlib import Path

import pytest

from gristmill.errors import UserError
from gristmill.ir.verify import check
from gristmill.script import parse_source

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "language.md").read_text("utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
IMPORT = BLOCKS[0]
FRAME = BLOCKS[1]
CODE = re.compile(r"# (GM\d{4})$")


def whole(block):
    """A block as a file: with the import, and without a ``def`` in the kernel that the page shows for that."""
    if "def " in block:
        return block if block.startswith("import") else IMPORT + block
    body = "".join(f"    {line}\n" for line in block.splitlines())
    return IMPORT + FRAME.replace("    pass\n", body)


@pytest.mark.parametrize("block", BLOCKS[1:], ids=range(1, len(BLOCKS)))
def test_example(block):
    text = whole(block)
    if text.startswith("import"):
        text = IMPORT + text
    expected = [(match[1], number) for number, line in enumerate(text.splitlines(), 1) if (match := CODE.search(line))]
    if not expected:
        check(parse_source(text, "page.py").module)
        return
    with pytest.raises(UserError) as caught:
        parse_source(text, "page.py")
    assert [(one.code, one.place.line) for one in caught.value.diagnostics] == expected, str(caught.value)


def test_codes_on_the_page_exist():
    pages = ROOT / "core" / "gristmill" / "explain"
    for code in set(re.findall(r"GM\d{4}", PAGE)):
        assert (pages / f"{code}.md").is_file(), code


def test_functions_on_the_page_exist():
    from gristmill.script.calls import NAMESPACES

    for name in set(re.findall(r"T\.(\w+)", PAGE)) - {"axis"}:
        assert name in NAMESPACES["T"], name
    listed = re.search(r"`T\.exp exp2 (.*?)` of\s+floats", PAGE, re.DOTALL)[1].split()
    assert all(name in NAMESPACES["T"] for name in listed)
