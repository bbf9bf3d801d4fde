"""Distances between the accesses of a loop's iterations, and what follows for loop hints."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gristmill.ir.build import const
from gristmill.ir.dtype import FLOAT32, HANDLE, INT32, INT64, VOID
from gristmill.ir.expr import Add, CallFunction, Cast, FloorDiv, Load, Mul, Negate, Sub, Var
from gristmill.ir.memory import Buffer, PointerType, Scope
from gristmill.ir.module import Function, FunctionFacts
from gristmill.ir.stmt import Allocate, Evaluate, For, LoopHints, LoopKind, Return, Seq, Store, View
from gristmill_llvm.strides import VARYING, has_jumping_loads, may_accumulate_floats, step_of

X, J, N = (Var(name, INT64) for name in "xjn")
NARROW = Var("narrow", INT32)


@pytest.mark.parametrize(
    ("index", "var", "step"),
    [
        (X, X, 1),
        (J, X, 0),
        (const(3, INT64), X, 0),
        (Add(X, J), X, 1),
        (Sub(J, X), X, -1),
        (Negate(X), X, -1),
        (Add(X, X), X, 2),
        (Mul(X, const(5, INT64)), X, 5),
        (Mul(const(5, INT64), Add(X, J)), X, 5),
        (Mul(X, N), X, VARYING),
        (Add(Mul(X, N), J), X, VARYING),
        (Add(Mul(X, N), J), J, 1),
        (Cast(INT64, Mul(NARROW, const(2, INT32))), NARROW, 2),
        (FloorDiv(X, const(2, INT64)), X, math.nan),
        (Mul(X, X), X, math.nan),
    ],
)
def test_step_of(index, var, step):
    found = step_of(index, var)
    assert math.isnan(found) if math.isnan(step) else found == step


def array(name, *shape):
    return Buffer(name, FLOAT32, shape, Var(name, HANDLE, PointerType(FLOAT32)))


def total():
    return Buffer("t", FLOAT32, (), Var("t", HANDLE, PointerType(FLOAT32, Scope.LOCAL)), scope=Scope.LOCAL)


def loop(var, body, hints=LoopHints()):  # noqa: B008
    return For(var, const(0, INT64), N, LoopKind.SERIAL, body, hints=hints)


def test_columns_jump_and_rows_do_not():
    a, t = array("A", N, N), total()
    assert has_jumping_loads(loop(X, Store(t, (), Load(a, (X, J)))))
    assert not has_jumping_loads(loop(J, Store(t, (), Load(a, (X, J)))))
    flat = array("F", N)
    assert has_jumping_loads(loop(X, Store(t, (), Load(flat, (Add(Mul(X, N), J),)))))
    assert has_jumping_loads(loop(X, Store(t, (), Load(flat, (Mul(X, const(16, INT64)),)))))
    assert not has_jumping_loads(loop(X, Store(t, (), Load(flat, (Mul(X, const(15, INT64)),)))))


def test_what_may_accumulate():
    a, t = array("A", N), total()
    assert may_accumulate_floats(loop(X, Store(t, (), Add(Load(t, ()), Load(a, (X,))))))
    assert may_accumulate_floats(loop(X, Store(a, (J,), Load(a, (X,)))))
    assert may_accumulate_floats(loop(X, Evaluate(CallFunction("f", (a.data,), VOID))))
    assert not may_accumulate_floats(loop(X, Store(a, (X,), Load(a, (X,)))))
    assert not may_accumulate_floats(loop(X, Evaluate(CallFunction("f", (X,), VOID))))


HINTS = [LoopHints(vector_width=8), LoopHints(vectorize=True), LoopHints(vector_width=4, vectorize=True, unroll=4)]


@pytest.mark.parametrize("hints", HINTS)
@pytest.mark.parametrize("flat", [False, True])
def test_hints_do_not_reorder_a_float_sum(compile_module, capfd, hints, flat):
    data, t = Var("a", HANDLE, PointerType(FLOAT32)), total()
    view = Buffer("A", FLOAT32, (N,), data)
    helper_data = Var("h", HANDLE, PointerType(FLOAT32, Scope.LOCAL))
    if flat:
        body = Store(t, (), Add(Load(t, ()), Load(view, (X,))))
    else:
        body = Evaluate(CallFunction("add", (t.data, Load(view, (X,))), VOID))
    x = Var("x", FLOAT32)
    inside = Buffer("H", FLOAT32, (), helper_data, scope=Scope.LOCAL)
    add = Function(
        "add",
        (helper_data, x),
        (),
        VOID,
        Seq((View(inside), Store(inside, (), Add(Load(inside, ()), x)))),
        FunctionFacts(),
    )
    statements = (
        View(view),
        Allocate(t),
        Store(t, (), const(0.0, FLOAT32)),
        loop(X, body, hints),
        Return(Load(t, ())),
    )
    function = Function("f", (data, N), (), FLOAT32, Seq(statements), FunctionFacts(symbol="f"))
    loaded = compile_module([function, add])
    values = np.random.default_rng(5).standard_normal(1000).astype(np.float32)
    expected = np.float32(0)
    for value in values:
        expected += value
    assert loaded.plain("f")(values.ctypes.data, len(values)) == expected
    # LLVM prints a warning for a wish that it cannot fulfil; users must not see it.
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("hints", [*HINTS, LoopHints(unroll=8), LoopHints(vectorize=False), LoopHints(unroll=3)])
@pytest.mark.parametrize("kind", [LoopKind.SERIAL, LoopKind.UNROLLED])
def test_wishes_that_cannot_be_fulfilled_print_nothing(compile_module, capfd, hints, kind):
    """Each iteration needs the one before, and a column is read: no vectors, whatever was asked."""
    data, column = Var("a", HANDLE, PointerType(FLOAT32)), Var("b", HANDLE, PointerType(FLOAT32))
    view, table = Buffer("A", FLOAT32, (N,), data), Buffer("B", FLOAT32, (N, N), column)
    step = Add(Mul(Load(view, (X,)), const(0.5, FLOAT32)), Load(table, (X, J)))
    chain = For(
        X, const(0, INT64), Sub(N, const(1, INT64)), kind, Store(view, (Add(X, const(1, INT64)),), step), hints=hints
    )
    body = For(J, const(0, INT64), const(2, INT64), LoopKind.SERIAL, chain)
    function = Function(
        "f", (data, column, N), (), VOID, Seq((View(view), View(table), body)), FunctionFacts(symbol="f")
    )
    loaded = compile_module([function])
    values, more = np.ones(20, np.float32), np.arange(400, dtype=np.float32).reshape(20, 20)
    loaded.plain("f")(values.ctypes.data, more.ctypes.data, 20)
    expected = np.ones(20, np.float32)
    for j in range(2):
        for i in range(19):
            expected[i + 1] = expected[i] * np.float32(0.5) + more[i, j]
    np.testing.assert_array_equal(values, expected)
    assert capfd.readouterr().err == ""
