"""What the library gives: verified, straight-line helpers for scalars and vectors that any module may take in."""

from __future__ import annotations

import pytest

from gristmill.ir import expr as e
from gristmill.ir.dtype import BFLOAT16, FLOAT32, FLOAT64, INT32
from gristmill.ir.equal import structural_equal
from gristmill.ir.functor import walk
from gristmill.ir.module import Module
from gristmill.ir.op import MATHEMATICS, OPS, Result
from gristmill.ir.parser import parse_module
from gristmill.ir.printer import print_module
from gristmill.ir.stmt import Bind, Return, Seq
from gristmill.ir.verify import verify
from gristmill.mathlib import USUALLY_NATIVE, function_for, function_name, library


@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT32.with_lanes(8), FLOAT64, FLOAT64.with_lanes(2)], ids=str)
def test_the_library_is_verified_and_round_trips(dtype):
    module = Module(tuple(library(dtype=dtype)))
    assert [found.message for found in verify(module)] == []
    assert structural_equal(parse_module(print_module(module)), module)


def test_every_operation_has_functions_of_its_signature():
    for op in MATHEMATICS:
        for dtype in (FLOAT32, FLOAT32.with_lanes(4), FLOAT64, FLOAT64.with_lanes(2)):
            function = function_for(op.name, dtype)
            assert function is not None, op.name
            assert function.name == function_name(op.name, dtype)
            assert [param.dtype for param in function.params] == [dtype] * op.arity
            assert function.returns.is_bool == (op.result is Result.BOOL)
            assert function.returns.lanes == dtype.lanes
            assert not function.is_public


def test_functions_are_straight_line_code_without_calls():
    looping = function_name("fmod", FLOAT64)
    for function in [*library(), *(found for found in library(dtype=FLOAT64) if found.name != looping)]:
        assert isinstance(function.body, Seq)
        kinds = {type(node) for node in walk(function.body)}
        assert not kinds & {e.Call, e.CallFunction, e.CallExtern, e.CallPacked, e.IfThenElse}
        assert {type(statement) for statement in function.body.body} <= {Bind, Return}
        # sin and cos of float64 have the longest table of digits.
        assert sum(1 for _ in walk(function.body)) < (800 if function.params[0].dtype.element == FLOAT32 else 1000)


def test_names_tell_operation_type_and_lanes():
    assert function_name("exp", FLOAT32) == "math_exp_float32"
    assert function_for("exp", FLOAT32.with_lanes(8)).name == "math_exp_float32x8"


def test_what_there_is_not_is_none():
    assert function_for("exp", INT32) is None
    assert function_for("exp", BFLOAT16) is None
    assert function_for("popcount", FLOAT32) is None
    assert function_for("no such operation", FLOAT32) is None
    assert {function.name for function in library(["exp", "log"])} == {"math_exp_float32", "math_log_float32"}
    with pytest.raises(KeyError, match="popcount"):
        library(["exp", "popcount"])


def test_usually_native_names_operations():
    assert set(OPS) >= USUALLY_NATIVE
