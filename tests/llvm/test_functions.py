"""Functions: results of every type, recursion, public calling public, failure through calls, names."""

from __future__ import annotations

import numpy as np
import pytest

from gristmill.errors import Unsupported
from gristmill.ir.build import const, equal, less
from gristmill.ir.dtype import BOOL, FLOAT32, FLOAT64, HANDLE, INT8, INT32, INT64, UINT64, VOID
from gristmill.ir.expr import Add, CallFunction, Cast, Load, Mul, Not, Sub, Var
from gristmill.ir.memory import Buffer, PointerType
from gristmill.ir.module import CallingConvention, Function, FunctionFacts
from gristmill.ir.stmt import Assert, Evaluate, For, If, LoopKind, Return, Seq, Store, View


def function_of(name, params, returns, *body, symbol=None, **facts):
    return Function(name, tuple(params), (), returns, Seq(body), FunctionFacts(symbol=symbol, **facts))


def call(name, returns, *args):
    return CallFunction(name, args, returns)


@pytest.mark.parametrize("dtype", [INT8, INT32, INT64, UINT64, FLOAT32, FLOAT64, BOOL], ids=str)
def test_private_helpers_with_typed_results(compile_module, dtype):
    x, y = Var("x", dtype), Var("y", dtype)
    helper = function_of("helper", [x], dtype, Return(Not(x) if dtype.is_bool else Add(x, x)))
    caller = function_of("caller", [y], dtype, Return(call("helper", dtype, y)), symbol="caller")
    loaded = compile_module([caller, helper])
    assert loaded.plain("caller")(3) == (False if dtype.is_bool else 6)
    assert "define internal" in loaded.text("llvm-ir")


def test_void_helper(compile_module):
    a, b = Var("a", HANDLE, PointerType(INT32)), Var("b", HANDLE, PointerType(INT32))
    one, zero = const(1, INT32), const(0, INT64)
    view = Buffer("A", INT32, (const(4, INT64),), a)
    helper = function_of("helper", [a], VOID, View(view), Store(view, (zero,), Add(Load(view, (zero,)), one)))
    twice = [Evaluate(call("helper", VOID, b))] * 2
    loaded = compile_module([function_of("caller", [b], VOID, *twice, symbol="caller"), helper])
    values = np.zeros(4, np.int32)
    loaded.plain("caller")(values.ctypes.data)
    assert values[0] == 2


def test_recursion(compile_module):
    n = Var("n", INT64)
    one, two = const(1, INT64), const(2, INT64)
    more = Add(call("fibonacci", INT64, Sub(n, one)), call("fibonacci", INT64, Sub(n, two)))
    function = function_of("fibonacci", [n], INT64, If(less(n, 2), Return(n)), Return(more), symbol="fibonacci")
    assert compile_module([function]).plain("fibonacci")(20) == 6765


def test_mutual_recursion(compile_module):
    n, m = Var("n", INT64), Var("m", INT64)
    one = const(1, INT64)
    is_even = function_of(
        "is_even",
        [n],
        BOOL,
        If(equal(n, 0), Return(const(True, BOOL))),
        Return(call("is_odd", BOOL, Sub(n, one))),
        symbol="is_even",
    )
    is_odd = function_of(
        "is_odd", [m], BOOL, If(equal(m, 0), Return(const(False, BOOL))), Return(call("is_even", BOOL, Sub(m, one)))
    )
    loaded = compile_module([is_even, is_odd])
    assert [loaded.plain("is_even")(value) for value in (0, 1, 7, 10)] == [True, False, False, True]


def test_public_calls_public(compile_module):
    n, m = Var("n", INT32), Var("m", INT32)
    first = function_of("first", [n], INT32, Return(Mul(n, n)), symbol="first")
    second = function_of("second", [m], INT32, Return(Add(call("first", INT32, m), m)), symbol="second")
    loaded = compile_module([second, first])
    assert loaded.plain("first")(5) == 25
    assert loaded.plain("second")(5) == 30


def test_names_of_c_functions_and_strange_symbols(compile_module):
    """A helper named as a C function is an ordinary function, and does not become that C function."""
    n, m = Var("n", INT32), Var("m", INT32)
    helper = function_of("memcpy", [n], INT32, Return(Add(n, const(1, INT32))))
    caller = function_of("sqrt", [m], INT32, Return(call("memcpy", INT32, m)), symbol='é "quoted" \\name')
    loaded = compile_module([helper, caller])
    assert loaded.plain("sqrt")(4) == 5


def test_failure_passes_through_calls(compile_module):
    """A failing helper ends all of its callers: nothing after the call runs."""
    n, a = Var("n", INT32), Var("a", HANDLE, PointerType(INT32))
    view = Buffer("A", INT32, (const(4, INT64),), a)
    zero = const(0, INT64)
    helper = function_of(
        "helper", [n], INT32, Assert(less(n, 3), "ValueError", ("n is ", n)), Return(Mul(n, const(10, INT32)))
    )
    p = Var("p", INT32)
    middle = function_of("middle", [p], INT32, Return(Add(call("helper", INT32, p), const(1, INT32))))
    i = Var("i", INT32)
    loop = For(i, const(0, INT32), const(8, INT32), LoopKind.SERIAL, Store(view, (zero,), call("middle", INT32, i)))
    self, args, count, result = (Var(name, HANDLE) for name in ("self", "args", "count", "result"))
    count = Var("count", INT32)
    from gristmill.ir.build import call as operation

    pointer = operation("tensor_data", operation("packed_tensor", args, const(0, INT32), dtype=HANDLE), dtype=HANDLE)
    public = Function(
        "public",
        (self, args, count, result),
        (),
        INT32,
        Seq((View(view, pointer), loop, Return(const(0, INT32)))),
        FunctionFacts(symbol="__tvm_ffi_public", convention=CallingConvention.PACKED_HOST),
    )
    loaded = compile_module([public, middle, helper])
    values = np.zeros(4, np.int32)
    with pytest.raises(ValueError, match=r"^n is 3$"):
        loaded.packed("public")(values)
    assert values[0] == 21


def test_two_functions_with_one_symbol_are_refused(compile_module):
    n = Var("n", INT32)
    functions = [function_of(name, [n], INT32, Return(n), symbol="same") for name in ("first", "second")]
    with pytest.raises(Unsupported) as caught:
        compile_module(functions)
    assert caught.value.code == "GM0662"
    for part in ("`first`", "`second`", "`same`"):
        assert part in str(caught.value)


def test_fast_math_is_a_fact_of_the_function(compile_module):
    x, y = Var("x", FLOAT32), Var("y", FLOAT32)
    plain = function_of("plain", [x], FLOAT32, Return(Add(Mul(x, x), x)), symbol="plain")
    fast = function_of("fast", [y], FLOAT32, Return(Add(Mul(y, y), y)), symbol="fast", fast_math=True)
    text = compile_module([plain, fast]).text("llvm-ir")
    assert text.count("fmul reassoc") == 1
    assert text.count("fmul float") == 1


def test_fast_math_makes_a_sum_a_vector_sum(compile_module):
    """Reductions of floats are reordered only on request."""

    def total(fast):
        a, n, i = Var("a", HANDLE, PointerType(FLOAT32)), Var("n", INT64), Var("i", INT64)
        from gristmill.ir.memory import Scope
        from gristmill.ir.stmt import Allocate

        view = Buffer("A", FLOAT32, (n,), a)
        acc = Buffer("acc", FLOAT32, (), Var("acc", HANDLE, PointerType(FLOAT32, Scope.LOCAL)), scope=Scope.LOCAL)
        add = Store(acc, (), Add(Load(acc, ()), Load(view, (i,))))
        body = (
            View(view),
            Allocate(acc),
            Store(acc, (), const(0.0, FLOAT32)),
            For(i, const(0, INT64), n, LoopKind.SERIAL, add),
            Return(Load(acc, ())),
        )
        return compile_module([function_of("f", [a, n], FLOAT32, *body, symbol="f", fast_math=fast)])

    assert "vaddps" not in total(False).text("assembly")
    assert "vaddps" in total(True).text("assembly")
    values = np.random.default_rng(3).random(1000, np.float32)
    exact = np.float32(0)
    for value in values:
        exact = exact + value
    assert total(False).plain("f")(values.ctypes.data, 1000) == exact
    assert abs(total(True).plain("f")(values.ctypes.data, 1000) - exact) < 1e-2


def test_small_helpers_are_inlined_into_vectorised_loops(compile_module):
    a, n, i, x = Var("a", HANDLE, PointerType(FLOAT32)), Var("n", INT64), Var("i", INT64), Var("x", FLOAT32)
    view = Buffer("A", FLOAT32, (n,), a)
    helper = function_of(
        "clamp", [x], FLOAT32, If(less(x, 0.0), Return(const(0.0, FLOAT32))), Return(Mul(x, const(2.0, FLOAT32)))
    )
    body = For(i, const(0, INT64), n, LoopKind.SERIAL, Store(view, (i,), call("clamp", FLOAT32, Load(view, (i,)))))
    loaded = compile_module([function_of("f", [a, n], VOID, View(view), body, symbol="f"), helper])
    assert "ymm" in loaded.text("assembly")
    assert "call" not in loaded.text("assembly")
    values = np.array([-1, 2, np.nan, 3] * 20, np.float32)
    expected = np.where(values < 0, np.float32(0), values * 2)
    loaded.plain("f")(values.ctypes.data, len(values))
    np.testing.assert_array_equal(values, expected)


def test_casts_of_results(compile_module):
    n, m = Var("n", INT8), Var("m", INT8)
    helper = function_of("helper", [n], INT8, Return(Add(n, n)))
    caller = function_of("caller", [m], INT64, Return(Cast(INT64, call("helper", INT8, m))), symbol="caller")
    assert compile_module([caller, helper]).plain("caller")(100) == -56
