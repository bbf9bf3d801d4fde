"""What nothing uses goes; what has an effect stays."""

import pytest

from gristmill.passes.manager import Pipeline
from gristmill.passes.remove_dead_code import RemoveDeadCode
from gristmill.testing.pass_equivalence import check_pass, kernels


def function(body):
    head = "function @f(a: int64[8] data a_data: ptr<int64, global>, m: int64) -> int64"
    return f'gristmill ir 1\n\n{head}\n  symbol "f"\n{{\n{body}\n}}\n'


CASES = {
    "a name": ("let x: int64 = m + 1\nreturn m", "return m"),
    "names that only each other use": ("let x: int64 = m\nlet y: int64 = x + 1\nreturn m", "return m"),
    "memory that is only written": (
        "allocate t: int64[4] in local\nt[0] = m\nallocate s: int64[] in local\ns[] = 1\nreturn m",
        "return m",
    ),
    "a view": ("view v: int64[4] over a_data\nreturn m", "return m"),
    "what is never reached": ("if m < 1 {\nreturn 2\na[0] = 1\n}\nreturn m", "if m < 1 {\nreturn 2\n}\nreturn m"),
    "an empty branch": ("if m < 1 {\nlet x: int64 = m\n}\nreturn m", "return m"),
    "an empty first branch": (
        "if m < 1 {\n} else {\na[0] = 1\n}\nreturn m",
        "if not m < 1 {\na[0] = 1\n}\nreturn m",
    ),
    "an empty loop": ("for i: int64 in 0 +: m {\nlet x: int64 = i\n}\nreturn m", "return m"),
    "an exchange": ("let x: int64 = warp_shuffle(m, 1i32, 32i32)\nreturn m", "return m"),
    "an exchange of what has an effect": (
        'let x: int64 = warp_shuffle(packed "p"(m) as int64, 1i32, 32i32)\nreturn m',
        'evaluate packed "p"(m) as int64\nreturn m',
    ),
    "an expression": ("evaluate m + 1\nreturn m", "return m"),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_before_and_expected(case):
    before, expected = case
    check_pass(RemoveDeadCode(), function(before), function(expected))


KEPT = {
    "memory that is read": "allocate t: int64[1] in local\nt[0] = m\nreturn t[0]",
    "memory that is read through a view": (
        "allocate t: int64[1] in local data t_data: ptr<int64, local>\n"
        "view v: uint64[1] over t_data\nt[0] = m\nreturn int64(v[0])"
    ),
    "a loop that may not end": "while m < 1 {\n}\nreturn m",
    "an assert": 'assert m < 1, "ValueError", "m"\nreturn m',
    "a call": 'evaluate extern "work"(m) as int64\nreturn m',
}


@pytest.mark.parametrize("body", KEPT.values(), ids=KEPT.keys())
def test_what_has_an_effect_stays(body):
    text = function(body).replace("gristmill ir 1\n", 'gristmill ir 1\n\nextern "work" from "acme"\n')
    module = kernels(text)
    assert Pipeline.of([RemoveDeadCode()]).run(module) is module


def test_helpers_that_nothing_calls_go():
    module = kernels(
        """
@T.prim_func(private=True)
def used(x: T.int64) -> T.int64:
    return used_by_used(x)

@T.prim_func(private=True)
def used_by_used(x: T.int64) -> T.int64:
    return x

@T.prim_func(private=True)
def unused(x: T.int64) -> T.int64:
    return unused(x)

@T.prim_func
def f(a: T.Buffer((8,), "int64")):
    a[0] = used(a[1])
"""
    )
    found = Pipeline.of([RemoveDeadCode()]).run(module)
    assert [function.name for function in found.functions] == ["used", "used_by_used", "f"]
