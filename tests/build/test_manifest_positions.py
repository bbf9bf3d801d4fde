"""The span finder against tomli: each span that it names must read as the value that tomli gives at that path."""

from __future__ import annotations

import datetime
import math
import random
from typing import Any

import pytest
import tomli
import tomli_w

from gristmill.build.manifest_positions import Path, SourceText, find_spans

NASTY_STRINGS = [
    "",
    "plain",
    'q"uote',
    "apostrophe's",
    "a#b",
    "[x]",
    "{y = 1}",
    "back\\slash",
    "new\nline",
    "tab\t",
    "é漢字",
    '"""',
    "'''",
    ",",
    "=",
    "a.b",
    "\x7f",
    "\U0001f680",
]
SEED = 20240817


def leaves(value: Any, path: Path = ()) -> list[tuple[Path, Any]]:
    """All values under ``value`` that are neither tables nor lists, with their paths."""
    if isinstance(value, dict):
        return [leaf for name, inner in value.items() for leaf in leaves(inner, (*path, name))]
    if isinstance(value, list):
        return [leaf for index, inner in enumerate(value) for leaf in leaves(inner, (*path, index))]
    return [(path, value)]


def same(left: Any, right: Any) -> bool:
    if isinstance(left, float) and isinstance(right, float) and math.isnan(left):
        return math.isnan(right)
    return type(left) is type(right) and left == right


def check(text: str) -> int:
    """Compare every span of ``text`` with what tomli reads; how many leaves there were."""
    document = tomli.loads(text)
    spans = find_spans(text)
    found = leaves(document)
    for path, value in found:
        span = spans[path]
        read = tomli.loads("value = " + text[span.start : span.end])["value"]
        assert same(read, value), f"{path}: {text[span.start : span.end]!r} is not {value!r} in\n{text}"
        if isinstance(path[-1], str):
            key = text[span.key_start : span.key_end]
            assert list(tomli.loads(f"{key} = 1")) == [path[-1]], f"{path}: {key!r}\n{text}"
    return len(found)


class Writer:
    """Writes random TOML in all its spellings, which a plain serializer would not use."""

    def __init__(self, random_source: random.Random) -> None:
        self.random = random_source

    def key(self, name: str) -> str:
        choices = [tomli_w.dumps({name: 1}).rsplit(" = ", 1)[0]]
        if "'" not in name and name.isprintable():
            choices.append(f"'{name}'")
        return self.random.choice(choices)

    def blank(self) -> str:
        return self.random.choice(["", " ", "\t", "  "])

    def gap(self) -> str:
        """What may stand between elements of a list."""
        return self.random.choice(["", " ", "\n", "\n\t", " # a ] \" ' comment\n", "\r\n"])

    def name(self) -> str:
        return self.random.choice(["a", "b", "c-d", "1", "e_f", *NASTY_STRINGS])

    def string(self) -> str:
        value = "".join(self.random.choice(NASTY_STRINGS) for _ in range(self.random.randrange(3)))
        basic = tomli_w.dumps({"k": value}).removeprefix("k = ").strip("\n")
        choices = [basic, f'"""{basic[1:-1]}"""']
        if "'" not in value and "\n" not in value and "\x7f" not in value:
            choices.append(f"'{value}'")
        if "'''" not in value and not value.endswith("'") and "\x7f" not in value:
            choices.append(f"'''\n{value}'''")
        if not value:
            choices += ['"""a"""""', "'''b'''''", '"""x""y"""', '"""\\"""" "" """', '"""\\\n   joined"""']
        return self.random.choice(choices)

    def scalar(self) -> str:
        plain = ["1", "-7", "0x1F", "1_000", "3.5", "-1e9", "inf", "-nan", "true", "false"]
        dates = ["1979-05-27", "1979-05-27 07:32:00", "1979-05-27T07:32:00.5Z", "07:32:00", "1979-05-27 07:32:00+01:00"]
        return self.random.choice([self.string(), self.string(), self.random.choice(plain), self.random.choice(dates)])

    def value(self, depth: int = 0) -> str:
        kind = self.random.random()
        if depth < 4 and kind < 0.25:
            inner = [self.gap() + self.value(depth + 1) + self.gap() for _ in range(self.random.randrange(4))]
            return "[" + ",".join(inner) + ("," + self.gap() if inner and self.random.random() < 0.3 else "") + "]"
        if depth < 4 and kind < 0.4:
            names = {self.name() for _ in range(self.random.randrange(3))}
            pairs = [f" {self.dotted(name)}{self.blank()}= {self.value(depth + 1)} " for name in sorted(names)]
            return "{" + ",".join(pairs) + "}"
        return self.scalar()

    def dotted(self, name: str) -> str:
        parts = [self.key(name)] + [self.key(self.name()) for _ in range(self.random.choice([0, 0, 0, 1, 2]))]
        return f"{self.blank()}.{self.blank()}".join(parts)

    def document(self) -> str:
        lines = []
        headers: set[str] = set()
        for _ in range(self.random.randrange(6)):
            lines.append(self.random.choice(["", "# comment [x]", "  "]))
            if self.random.random() < 0.4:
                name = self.random.choice(["list", "list.inner", "list.more", "table", "table.list", 'table."q\\"t"'])
                is_list = name in {"list", "list.more", "table.list"}
                if is_list or name not in headers:
                    headers.add(name)
                    spaced = name.replace(".", self.random.choice([".", " . "]))
                    lines.append(f"[[{spaced}]]" if is_list else f"[ {spaced} ]  # {name}")
            for name in sorted({self.name() for _ in range(self.random.randrange(3))}):
                lines.append(f"{self.blank()}{self.dotted(name)} = {self.value()}{self.blank()}")
        return self.random.choice(["\n", "\r\n"]).join(lines)


def test_random_documents_agree_with_tomli() -> None:
    print("seed", SEED)
    writer = Writer(random.Random(SEED))
    accepted = found = 0
    while accepted < 600:
        text = writer.document()
        try:
            tomli.loads(text)
        except tomli.TOMLDecodeError:
            continue  # a name given twice, or a header in conflict with an earlier one
        accepted += 1
        found += check(text)
    assert found > 1500


@pytest.mark.parametrize(
    "text",
    [
        'a = """"quoted""""',
        "a = ''''quoted''''",
        'a = """\\"""\\""""\nb = 1',
        "a.b.c = 1\na.b.d = [1, [2, [3]]]\n",
        "[[a]]\n[[a.b]]\nx = 1\n[[a.b]]\nx = 2\n[a.c]\ny = 3\n[[a]]\n[[a.b]]\nx = 4\n",
        'k = [ { a = { b = "cpu", c = "say \\"hi\\"" }, d = false } ]',
        "[a]\n[a.b]\nc = 1\n[a.b.d]\ne = 2\n",
        '"q\\"t" = "="\n[ "x.y" . z ]\nw = 1',
        "when = 1979-05-27 07:32:00 # comment\nnext = 1",
        'empty = []\nnothing = {}\n"" = 1',
        'a = """\n\\u00e9 # no comment\n"""# comment\nb = 2',
        "a = [\n  # ] comment\n  1, # 2\n]",
        "a={b.c=1,'d'.\"e\"=2}",
        "a = 1\r\nb = '''x\r\ny'''\r\nc = 3\r\n",
    ],
)
def test_hand_made_documents_agree_with_tomli(text: str) -> None:
    assert check(text) > 0


def test_tables_have_their_headers_as_places() -> None:
    source = SourceText("kernels.toml", "[project]\nname = 'x'\n\n[[module]]\nname = 'é'\n[module.target.gpu]\nz = 1\n")
    assert str(source.value_place(("project",))) == "kernels.toml:1:1"
    assert str(source.key_place(("project",))) == "kernels.toml:1:2"
    header = source.value_place(("module", 0))
    assert (header.line, header.column, header.end_column) == (4, 1, 11)
    name = source.value_place(("module", 0, "name"))
    assert (name.line, name.column, name.end_line, name.end_column) == (5, 8, 5, 11)
    assert source.value_place(("module", 0, "target", "gpu")).line == 6
    # What is not written is placed at what encloses it.
    assert source.value_place(("module", 0, "absent")) == header


def test_deep_nesting_is_scanned_without_recursion() -> None:
    depth = 3_000
    spans = find_spans("a = " + "[" * depth + "1" + "]" * depth)
    assert spans[("a",) + (0,) * 3].start == 7


def test_dates_are_whole_values() -> None:
    text = "a = [1979-05-27 07:32:00, 1979-05-27]"
    assert leaves(tomli.loads(text))[0][1] == datetime.datetime(1979, 5, 27, 7, 32)
    assert check(text) == 2
