"""The small constructors."""

from __future__ import annotations

import math

import pytest

from gristmill.ir import build as b
from gristmill.ir import expr as e
from gristmill.ir import stmt as s
from gristmill.ir.dtype import BOOL, FLOAT16, FLOAT32, INT8, INT32, UINT8

X = e.Var("x", FLOAT32)
V = e.Var("v", FLOAT32.with_lanes(4))
FLAG = e.Var("flag", BOOL)


def test_constants_wrap_round_and_spread():
    assert repr(b.const(300, UINT8)) == "44u8"
    assert repr(b.const(200, INT8)) == "-56i8"
    assert repr(b.const(1e9, FLOAT16)) == "inf_f16"
    assert repr(b.const(0.1, FLOAT16)) == "0.1f16"
    assert b.const(0.1, FLOAT32).value == 0.10000000149011612
    assert repr(b.const(2, V.dtype)) == "broadcast(2.0, 4)"
    assert repr(b.const(7, BOOL)) == "true"
    assert b.constant_value(b.const(3, INT32.with_lanes(2))) == 3
    assert b.constant_value(X) is None
    assert b.is_constant(b.const(3, INT32), 3)
    assert math.isnan(b.const(math.nan, FLOAT32).value)


def test_operators_take_numbers_of_the_other_sides_type():
    assert repr(1 - X * 2 + 0.5) == "1.0 - x * 2.0 + 0.5"
    assert repr(V * 2) == "v * broadcast(2.0, 4)"
    assert repr(-X) == "-x"


def test_comparisons_need_an_expression():
    assert repr(b.less(X, 1)) == "x < 1.0"
    assert repr(b.less(1, X)) == "1.0 < x"
    assert b.greater_equal(V, 0).dtype == BOOL.with_lanes(4)
    with pytest.raises(TypeError, match="needs an expression"):
        b.equal(1, 2)
    with pytest.raises(TypeError, match="needs an expression"):
        b.select(FLAG, 1, 2)


def test_conditions_join_without_what_is_known():
    assert repr(b.conjunction([FLAG, b.true(), FLAG])) == "flag and flag"
    assert repr(b.conjunction([])) == "true"
    assert repr(b.disjunction([b.false(), FLAG])) == "flag"
    assert repr(b.disjunction([])) == "false"


def test_casts_and_calls():
    assert b.cast(X, FLOAT32) is X
    assert repr(b.cast(X, INT32.with_lanes(4))) == "broadcast(int32(x), 4)"
    assert b.call("isnan", V).dtype == BOOL.with_lanes(4)
    with pytest.raises(TypeError, match="needs its result type stated"):
        b.call("packed_kind", X, X)


def test_sequences_are_flat():
    one, two = s.Break(), s.Continue()
    assert b.sequence(one) is one
    assert b.sequence(one, None, s.Seq((two, one))).body == (one, two, one)
    assert b.sequence().body == ()
