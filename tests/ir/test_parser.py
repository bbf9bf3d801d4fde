"""The text form: what is printed reads back as it was, and any text gives a module or a coded error with a place."""

from __future__ import annotations

import random
import time

import pytest

from gristmill.errors import UserError
from gristmill.ir.dtype import FLOAT32, INT64
from gristmill.ir.equal import first_difference
from gristmill.ir.expr import Add, FloatImm, Load, Negate, Var
from gristmill.ir.functor import ALL_NODES, walk
from gristmill.ir.module import Module
from gristmill.ir.parser import parse_module
from gristmill.ir.printer import print_function, print_module, print_node
from gristmill.ir.stmt import Store
from gristmill.ir.verify import verify
from gristmill.testing.ir_samples import every_node, new_buffer, with_spans
from gristmill.testing.random_ir import RandomIR

SEEDS = 150


def spans_of(module: Module) -> list[object]:
    """The spans of all nodes as they are walked, those of data variables too."""
    found: list[object] = []
    for node in walk(module):
        found.append(node.span)
        if hasattr(node, "data"):
            found.append(node.data.span)
    return found


def test_every_node_class_occurs_and_is_verified():
    module = every_node()
    assert {type(node) for node in walk(module)} >= set(ALL_NODES) - {type(module)} | {Module}
    assert [found.message for found in verify(module)] == []


def test_every_node_round_trips():
    module = every_node()
    text = print_module(module)
    again = parse_module(text)
    assert first_difference(module, again) is None
    assert print_module(again) == text


def test_spans_round_trip():
    module = with_spans(every_node())
    assert all(span is not None for span in spans_of(module))
    text = print_module(module, spans=True)
    again = parse_module(text)
    assert spans_of(again) == spans_of(module)
    assert print_module(again, spans=True) == text
    assert print_module(again) == print_module(every_node())


@pytest.mark.parametrize("start", range(0, SEEDS, 50))
def test_random_modules_round_trip(start: int):
    for seed in range(start, start + 50):
        module = RandomIR(seed).module()
        assert verify(module) == [], f"seed {seed}"
        text = print_module(module)
        again = parse_module(text)
        assert first_difference(module, again) is None, f"seed {seed}"
        assert print_module(again) == text, f"seed {seed}"
        spanned = with_spans(module)
        with_table = print_module(spanned, spans=True)
        reread = parse_module(with_table)
        assert spans_of(reread) == spans_of(spanned), f"seed {seed}"
        assert print_module(reread, spans=True) == with_table, f"seed {seed}"


def read(text: str) -> Module | UserError:
    try:
        return parse_module(text)
    except UserError as error:
        return error


def test_damaged_text_gives_a_module_or_a_coded_error():
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    texts = [print_module(every_node()), print_module(with_spans(every_node()), spans=True)]
    texts += [print_module(RandomIR(number).module()) for number in range(4)]
    pieces = ["(", ")", "[", "]", "{", "}", "#1", "#999", "not", "-", "&", '"', "let", "x", ";", "as", "float32x4"]
    pieces += ["shuffle[", "1.5e999", "@", "\u0663", "inlined", "*", "exp(", "+:", "\x00", "\n", "9" * 500, "\ud800"]
    pieces += ["seq {", "inlined #1", "else if true {"]
    deadline = time.monotonic() + 4
    count = 0
    while time.monotonic() < deadline and count < 800:
        count += 1
        text = chance.choice(texts)
        for _ in range(chance.randint(1, 4)):
            at = chance.randrange(len(text) + 1)
            end = min(len(text), at + chance.choice((0, 0, 1, 5, 200)))
            text = text[:at] + (chance.choice(pieces) if chance.random() < 0.8 else text[:at][-40:]) + text[end:]
        found = read(text)
        if isinstance(found, Module):
            verify(found)
            assert print_module(parse_module(print_module(found))) == print_module(found)
        else:
            assert found.code in ("GM0401", "GM0402", "GM0403", "GM0404")
            assert found.diagnostics[0].place is not None
            assert found.render()
    assert count > 50


WRAPPED = "gristmill ir 1\n\nfunction @f(x: float32[4], n: int64) {{\n  {}\n}}\n"


@pytest.mark.parametrize(
    ("line", "code", "column", "width", "words"),
    [
        ("x[n] = ", "GM0401", 10, 1, "expected an expression, found the end of the line"),
        ("x[n] = 1.0 2.0", "GM0401", 14, 3, "expected the end of the statement"),
        ("x[n] = $", "GM0401", 10, 1, "`$` does not begin"),
        ("x[n] = 1q", "GM0401", 10, 2, "is not a number"),
        ("x[n] = 1e99", "GM0401", 10, 4, "too large for float32"),
        ("x[n] = select(true, 1.0)", "GM0401", 10, 6, "takes 3 operands, not 2"),
        ("evaluate n < n < n", "GM0401", 18, 1, "comparisons do not chain"),
        ("leet y: int64 = n", "GM0401", 3, 4, "begins no statement"),
        ("let for: int64 = n", "GM0401", 7, 3, "is a word of the text form"),
        ("evaluate packed_int(n, n)", "GM0401", 12, 10, "result type of `packed_int` must be stated"),
        ("evaluate broadcast(n, 0)", "GM0401", 12, 9, "a number from 1 to 1024"),
        ("y[n] = 1.0", "GM0402", 3, 1, "no buffer is named `y`"),
        ("x[m] = 1.0", "GM0402", 5, 1, "no variable is named `m`"),
        ("n[0] = 1.0", "GM0402", 3, 1, "no buffer is named `n`"),
        ("evaluate exq(n)", "GM0402", 12, 3, "neither an operation nor a type"),
        ("evaluate n#7", "GM0402", 13, 2, "the table of spans has no `#7`"),
        ("let n: int64 = 3", "GM0403", 7, 1, "`n` is defined already"),
        ("evaluate " + "-" * 1001 + "n", "GM0404", 1012, 1, "more than 1000 levels"),
        ("evaluate " + "9" * 401, "GM0404", 12, 401, "at most 400 characters"),
        ("seq {\n" * 256, "GM0404", 5, 1, "more than 256 levels"),
    ],
)
def test_wrong_text_is_refused_with_its_place(line: str, code: str, column: int, width: int, words: str):
    with pytest.raises(UserError) as caught:
        parse_module(WRAPPED.format(line), "wrong.ir")
    found = caught.value.diagnostics[0]
    assert (found.code, found.place.column, found.place.end_column - found.place.column) == (code, column, width)
    assert found.place.file == "wrong.ir"
    assert found.place.line >= 4
    assert words in found.message
    assert "^" in str(caught.value)


def test_wrong_names_are_answered_with_the_nearest():
    with pytest.raises(UserError) as caught:
        parse_module(WRAPPED.format("evaluate sigmoit(1.0)"))
    assert caught.value.diagnostics[0].hint == "did you mean `sigmoid`?"


def test_other_texts_are_refused():
    for text in ("", "gristmill ir 2", "module {}", "gristmill ir 1 #1", "gristmill ir 1\nspans {\n #1 = 3\n}"):
        with pytest.raises(UserError) as caught:
            parse_module(text)
        assert caught.value.code in ("GM0401", "GM0402")


def test_spans_inlined_in_a_circle_are_refused():
    row = '  #1 = "f" 1 1 1 1 inlined #2\n  #2 = "f" 1 1 1 1 inlined #1\n'
    with pytest.raises(UserError) as caught:
        parse_module(f"gristmill ir 1\nspans {{\n{row}}}\n")
    assert caught.value.code == "GM0404"


def test_comments_and_blank_lines_are_skipped():
    text = "; head\n\ngristmill ir 1 ; version\n\n; nothing\nfunction @f() { ; body\n\n  return ; done\n\n}\n"
    assert print_module(parse_module(text)) == "gristmill ir 1\n\nfunction @f() {\n  return\n}\n"


def test_long_sums_are_no_nesting_of_the_text_but_bounded():
    def chain(count: int) -> str:
        return WRAPPED.format("evaluate " + " + ".join(["n"] * count))

    parse_module(chain(900))
    with pytest.raises(UserError) as caught:
        parse_module(chain(1100))
    assert caught.value.code == "GM0404"


def test_deep_expressions_print_without_recursion():
    value = deep = Var("x", FLOAT32)
    for number in range(5000):
        deep = Add(value, deep) if number % 2 else Negate(deep)
    assert print_node(deep).count("+") == 2500
    buffer = new_buffer("A", INT64, (FloatImm(0.0, FLOAT32),))
    index = Var("i", INT64)
    for _ in range(5000):
        index = Load(buffer, (index,))
    assert print_node(Store(buffer, (index,), index)).count("A[") == 10_001
    assert index.dtype == INT64


def test_fragments_print_with_the_names_of_what_is_outside():
    x, other = Var("x", FLOAT32), Var("x", FLOAT32)
    assert repr(x + other * 2.0) == "x + x_1 * 2.0"
    assert print_function(every_node().functions[-1]) == (
        "function @helper<n: int64>(x: int32[n], y: int64) -> float32 {\n  return 1.0\n}\n"
    )
    for node in walk(every_node()):
        assert print_node(node)
        assert repr(node) == print_node(node)
