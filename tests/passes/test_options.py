"""Passes as text: names with options, read and printed back."""

import pytest

from gristmill.errors import UserError
from gristmill.ir.target import Target
from gristmill.passes.lower_mathematics import LowerMathematics
from gristmill.passes.options import parse_passes, print_pass
from gristmill.passes.pipeline import known_passes
from gristmill.passes.simplify import Simplify
from gristmill.passes.unroll_loops import UnrollLoops
from gristmill.plugin.artifacts import Capabilities
from gristmill.plugin.protocols import PassContext, PassEntry

TEXTS = (
    "simplify",
    "unroll_loops{limit=8}",
    "unroll_loops{limit=8, nodes=100}",
    "lower_mathematics{native=floor|sqrt}",
)


@pytest.mark.parametrize("text", TEXTS)
def test_texts_come_back_as_they_were(text):
    (work,) = parse_passes(text, known_passes())
    assert print_pass(work) == text


def test_a_list_of_passes():
    found = parse_passes(" simplify , unroll_loops{ limit = 3 },simplify", known_passes())
    assert found == (Simplify(), UnrollLoops(limit=3), Simplify())


def test_defaults_are_not_printed():
    assert print_pass(UnrollLoops(limit=64)) == "unroll_loops"


def test_options_follow_from_the_target_unless_stated():
    context = PassContext(Target("cpu"), Capabilities(native_operations=frozenset({"sqrt"})))
    known = known_passes((), context)
    assert parse_passes("lower_mathematics", known, context) == (LowerMathematics(("sqrt",)),)
    assert parse_passes("lower_mathematics{native=exp}", known, context) == (LowerMathematics(("exp",)),)


def test_passes_of_plugins_are_made_for_the_context():
    context = PassContext(Target("cpu"), Capabilities())
    entry = PassEntry("acme", "loops", lambda given: UnrollLoops(limit=len(given.target.kind)), "unroll a little")
    assert parse_passes("acme", known_passes([entry], context)) == (UnrollLoops(limit=3),)


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("", "GM0601", "is not a list of passes"),
        ("simplify,", "GM0601", "is not a list of passes"),
        ("simplify unroll_loops", "GM0601", "is not a list of passes"),
        ("unroll_loops{limit}", "GM0601", "`limit` is not an option"),
        ("simplfy", "GM0602", "did you mean `simplify`?"),
        ("unroll_loops{count=3}", "GM0603", "it takes limit, nodes"),
        ("simplify{count=3}", "GM0603", "it takes none"),
        ("unroll_loops{limit=many}", "GM0603", "it takes a value of type int"),
    ],
)
def test_mistakes(text, code, words):
    with pytest.raises(UserError) as caught:
        parse_passes(text, known_passes())
    assert caught.value.code == code
    assert words in str(caught.value)
