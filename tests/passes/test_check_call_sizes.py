"""Calls with arrays of other constant sizes than the function states: refused, with both places."""

from __future__ import annotations

import pytest

from gristmill.errors import UserError
from gristmill.passes.check_call_sizes import CheckCallSizes
from gristmill.testing.pass_equivalence import kernels

HEAD = """
@T.prim_func(private=True)
def first(s: T.Buffer((32,), "int32"), t: T.int64):
    s[t] = s[t] + 1

@T.prim_func(private=True)
def both(a: T.Buffer(("n",), "int32"), b: T.Buffer(("n",), "int32")):
    a[0] = b[0]

@T.prim_func(private=True)
def pairs(a: T.Buffer(("n * 2",), "int32"), b: T.Buffer(("n",), "int32")):
    a[0] = b[0]

@T.prim_func
def f(x: T.Buffer((32,), "int32"), y: T.Buffer((64,), "int32"), z: T.Buffer(("m",), "int32")):
"""


def text_of(*lines: str) -> str:
    return HEAD + "".join(f"    {line}\n" for line in lines)


def run(*lines: str) -> None:
    module = kernels(text_of(*lines))
    assert CheckCallSizes().run(module) is module


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("first(y, 3)", "dimension 0 of `s` of `first` is 32, and this call gives it `y` with 64"),
        ("both(x, y)", "dimension 0 of `b` of `both` is 32, and this call gives it `y` with 64"),
        ("pairs(x, y)", "dimension 0 of `b` of `pairs` is 16, and this call gives it `y` with 64"),
    ],
)
def test_constant_sizes_that_differ(call: str, words: str) -> None:
    for lines in (
        [call],
        ['for t in T.thread_binding(32, "threadIdx.x"):', f"    {call}"],
        ["if m > 3:", f"    {call}"],
    ):
        with pytest.raises(UserError) as caught:
            run(*lines)
        (found,) = caught.value.diagnostics
        assert found.code == "GM0613"
        assert words in found.message
        assert found.place is not None
        source = ("from gristmill.script import tir as T\n" + text_of(*lines).strip()).split("\n")
        assert source[found.place.line - 1].strip() == call
        places = [note.place for note in found.notes]
        assert all(place is not None for place in places)
        stated = source[places[0].line - 1][places[0].column - 1 :]
        assert stated.startswith(words.split("`")[1] + ": T.Buffer(")


@pytest.mark.parametrize(
    "lines",
    [
        ("first(x, 3)",),
        ("both(x, z)",),
        ("first(z, 3)",),
        ("pairs(y, x)",),
        ("if 3 > 4:", "    first(y, 3)"),
        ("if 3 < 4:", "    first(x, 3)", "else:", "    first(y, 3)"),
    ],
)
def test_what_may_be_right_is_left_alone(lines: tuple[str, ...]) -> None:
    run(*lines)
