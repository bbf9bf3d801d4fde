"""Errors that compiled code raises: kinds, messages, values, and that memory is released on the way."""

from __future__ import annotations

import builtins
import ctypes

import numpy as np
import pytest

from gristmill.errors import Unsupported
from gristmill.ir.build import call, const, equal, greater
from gristmill.ir.dtype import BOOL, FLOAT64, HANDLE, INT8, INT32, INT64, UINT8, UINT64
from gristmill.ir.expr import And, Cast, Var
from gristmill.ir.module import CallingConvention, Function, FunctionFacts
from gristmill.ir.packed_texts import dtype_text, kind_text
from gristmill.ir.stmt import Assert, Bind, For, If, LoopKind, Return, Seq
from gristmill_llvm.messages import Form, MessageTable


def public(*body, name="f"):
    """A packed function with these statements; ``args`` of the statements is made by ``argument``."""
    self, args, count, result = Var("self", HANDLE), Var("args", HANDLE), Var("count", INT32), Var("result", HANDLE)
    facts = FunctionFacts(symbol=f"__tvm_ffi_{name}", convention=CallingConvention.PACKED_HOST)
    statements = [make(args) if callable(make) else make for make in body]
    return Function(name, (self, args, count, result), (), INT32, Seq((*statements, Return(const(0, INT32)))), facts)


def argument(place, dtype=INT64):
    value = lambda args: call("packed_int", args, const(place, INT32), dtype=INT64)  # noqa: E731
    return (lambda args: Cast(dtype, value(args))) if dtype != INT64 else value


@pytest.mark.parametrize("kind", ["ValueError", "TypeError", "RuntimeError", "IndexError", "AssertionError"])
def test_kinds_become_python_exceptions(compile_module, kind):
    loaded = compile_module([public(Assert(const(False, BOOL), kind, ("something is wrong",)))])
    with pytest.raises(getattr(builtins, kind), match=r"^something is wrong$"):
        loaded.packed("f")()


@pytest.mark.parametrize("dtype", [INT8, INT32, INT64, UINT8, UINT64, BOOL], ids=str)
@pytest.mark.parametrize("value", [0, 1, -1, 9, 10, 127, 128, 255, -128, 2**31, 2**63 - 1, -(2**63)])
def test_values_in_messages(compile_module, dtype, value):
    def check(args):
        given = argument(0, dtype)(args)
        return Assert(const(False, BOOL), "ValueError", ("got ", given, " and ", given, ", not good"))

    with pytest.raises(ValueError, match="not good") as caught:
        compile_module([public(check)], texts=frozenset()).packed("f")(value)
    shown = bool(value) if dtype.is_bool else dtype.wrap(value)
    assert str(caught.value) == f"got {shown} and {shown}, not good"


def test_messages_of_several_asserts(compile_module):
    x = Var("x", INT64)
    body = (
        lambda args: Bind(x, argument(0)(args)),
        Assert(greater(x, 0), "ValueError", ("x is ", x, ", and must be positive")),
        Assert(greater(const(100, INT64), x), "ValueError", (x, " is too large: the most is ", const(100, INT64))),
        Assert(equal(x, 7), "TypeError", ("not seven",)),
    )
    function = compile_module([public(*body)]).packed("f")
    assert function(7) is None
    for given, kind, message in (
        (-5, ValueError, "x is -5, and must be positive"),
        (1000, ValueError, "1000 is too large: the most is 100"),
        (8, TypeError, "not seven"),
    ):
        with pytest.raises(kind) as caught:
            function(given)
        assert str(caught.value) == message


def test_empty_and_long_and_unicode_messages(compile_module):
    texts = ("", 'café ☕ %s %d \\ " ', "x" * 5000)
    loaded = compile_module([public(Assert(const(False, BOOL), "ValueError", texts))])
    with pytest.raises(ValueError, match="café") as caught:
        loaded.packed("f")()
    assert str(caught.value) == "".join(texts)


def test_assert_in_a_loop_and_under_a_condition(compile_module):
    x, i = Var("x", INT64), Var("i", INT64)
    check = If(equal(i, x), Assert(const(False, BOOL), "IndexError", ("stopped at ", i)))
    body = (
        lambda args: Bind(x, argument(0)(args)),
        For(i, const(0, INT64), const(50, INT64), LoopKind.PARALLEL, check),
    )
    function = compile_module([public(*body)]).packed("f")
    assert function(50) is None
    with pytest.raises(IndexError, match=r"^stopped at 49$"):
        function(49)


def test_condition_is_evaluated_once_and_in_order(compile_module):
    """The second half of a condition is not evaluated when the first is false: no division by the zero shows."""
    x = Var("x", INT64)
    ten = call("quotient", const(10, INT64), x)
    body = (
        lambda args: Bind(x, argument(0)(args)),
        Assert(And(greater(x, 0), greater(ten, 1)), "ValueError", ("x = ", x)),
    )
    function = compile_module([public(*body)]).packed("f")
    assert function(3) is None
    with pytest.raises(ValueError, match=r"^x = 0$"):
        function(0)


def test_every_kind_and_dtype_is_shown_as_the_executor_shows_it(compile_module):
    """Type index and dtype are read from memory that the test makes, so that every number can be tried."""
    zero, tensor = const(0, INT32), Var("t", HANDLE)
    body = (
        lambda args: Bind(tensor, call("packed_pointer", args, const(1, INT32), dtype=HANDLE)),
        lambda args: Assert(
            const(False, BOOL),
            "TypeError",
            (
                "<",
                call("packed_kind_text", call("packed_pointer", args, zero, dtype=HANDLE), zero, dtype=HANDLE),
                "|",
                call("tensor_dtype_text", tensor, dtype=HANDLE),
                "|",
                argument(2)(args),
                ">",
            ),
        ),
    )
    function = compile_module([public(*body)]).packed("f")
    kinds = [*range(-3, 100), 2**31 - 1, -(2**31)]
    dtypes = [
        code | bits << 8 | lanes << 16
        for code in (*range(12), 255)
        for bits in (0, 1, 8, 16, 64, 255)
        for lanes in (0, 1, 4, 65535)
    ]
    for number in range(max(len(kinds), len(dtypes))):
        kind, dtype = kinds[number % len(kinds)], dtypes[number % len(dtypes)]
        any_value = np.array([kind & 0xFFFFFFFF, 0, 0, 0], np.uint32)
        described = np.zeros(12, np.uint32)
        described[5] = dtype
        with pytest.raises(TypeError) as caught:
            function(ctypes.c_void_p(any_value.ctypes.data), ctypes.c_void_p(described.ctypes.data), -number)
        assert str(caught.value) == f"<{kind_text(kind)}|{dtype_text(dtype)}|{-number}>"


def test_equal_messages_and_texts_are_kept_once():
    table = MessageTable()
    first = table.message("ValueError", ("f: ", Form.SIGNED, " is wrong"))
    assert table.message("TypeError", ("f: ", Form.BOOL, " is wrong")) != first
    assert table.message("ValueError", ("f: ", Form.SIGNED, " is wrong")) == first
    assert table.text("f: ") == table.text("f: ")


def test_a_float_in_a_message_is_refused(compile_module):
    body = Assert(const(False, BOOL), "ValueError", ("x = ", const(1.5, FLOAT64)))
    with pytest.raises(Unsupported) as caught:
        compile_module([public(body)])
    assert caught.value.code == "GM0661"
    assert "float64" in str(caught.value)
