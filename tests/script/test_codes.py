"""Every code of the language is raised once at least in the tests, and has a page that explains it."""

import re
from pathlib import Path

import pytest

import gristmill
from gristmill.errors import UserError
from gristmill.ir.verify import check
from gristmill.script import parse_source

SOURCES = Path(gristmill.__file__).parent / "script"
PAGES = Path(gristmill.__file__).parent / "explain"
TESTS = Path(__file__).parent
CODE = re.compile(r"GM0[23]\d\d")


def codes(folder, pattern):
    return {code for path in folder.rglob(pattern) for code in CODE.findall(path.read_text("utf-8"))}


def test_every_code_has_a_test():
    used = codes(SOURCES, "*.py")
    assert len(used) >= 75
    tested = {
        code for path in TESTS.glob("test_*.py") if path != Path(__file__) for code in CODE.findall(path.read_text())
    }
    assert used - tested == set()
    assert tested - used == set()


def test_every_code_has_a_page():
    used = codes(SOURCES, "*.py")
    pages = {path.stem: path.read_text("utf-8") for path in PAGES.glob("GM0[23]*.md")}
    assert set(pages) == used
    for code, page in pages.items():
        first, *rest = page.splitlines()
        assert re.fullmatch(rf"# {code}: [^.]+", first), first
        assert "## Wrong" in rest
        assert "## Right" in rest
        assert rest.index("## Wrong") < rest.index("## Right")


def _examples():
    for path in sorted(PAGES.glob("GM0[23]*.md")):
        blocks = re.findall(r"```python\n(.*?)```", path.read_text("utf-8"), re.DOTALL)
        if blocks:
            yield pytest.param(path.stem, *blocks, id=path.stem)


@pytest.mark.parametrize(("code", "wrong", "right"), list(_examples()))
def test_the_examples_of_a_page(code, wrong, right):
    """The wrong example has that mistake and no other; the right one has none."""
    with pytest.raises(UserError) as caught:
        parse_source(wrong, "kernel.py")
    assert {one.code for one in caught.value.diagnostics} == {code}, str(caught.value)
    check(parse_source(right, "kernel.py").module)
