"""Two functions cannot be exported under one name."""

import pytest

from gristmill.errors import UserError
from gristmill.passes.check_symbols import CheckSymbols
from gristmill.testing.pass_equivalence import kernels

TEXT = """
@T.prim_func
def first(a: T.Buffer((8,), "int64")):
    a[0] = 1

@T.prim_func
def second(a: T.Buffer((8,), "int64")):
    a[0] = 2
"""


def test_one_symbol_for_two_functions_is_refused():
    module = kernels(TEXT)
    twice = module.with_functions(function.with_facts(symbol="total") for function in module.functions)
    with pytest.raises(UserError) as caught:
        CheckSymbols().run(twice)
    assert caught.value.code == "GM0604"
    assert "`first` and `second` would both be exported as `total`" in str(caught.value)
    assert caught.value.diagnostics[0].place.line == 7
    assert caught.value.diagnostics[0].notes[0].place.line == 3


def test_different_symbols_pass():
    module = kernels(TEXT)
    assert CheckSymbols().run(module) is module
