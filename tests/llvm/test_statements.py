"""Control flow: loops with every hint and type, while, break, continue, early return, local memory."""

from __future__ import annotations

import numpy as np
import pytest

from gristmill.ir.build import const, equal, greater, less, not_equal, sequence
from gristmill.ir.dtype import BOOL, HANDLE, INT8, INT32, INT64, UINT8, UINT64, VOID, DType
from gristmill.ir.expr import Add, And, Expr, FloorMod, IntImm, Load, Mul, Or, Sub, Var
from gristmill.ir.memory import Buffer, PointerType, Scope
from gristmill.ir.module import Function, FunctionFacts
from gristmill.ir.stmt import (
    Allocate,
    Break,
    Continue,
    Evaluate,
    For,
    If,
    LoopHints,
    LoopKind,
    Return,
    Seq,
    Stmt,
    Store,
    View,
    While,
)


def int64(value: int) -> IntImm:
    return IntImm(value, INT64)


def local(name: str, dtype: DType) -> Buffer:
    """A local scalar."""
    return Buffer(name, dtype, (), Var(name, HANDLE, PointerType(dtype, Scope.LOCAL)), scope=Scope.LOCAL)


def add_to(buffer: Buffer, value: Expr) -> Store:
    return Store(buffer, (), Add(Load(buffer, ()), value))


def function_of(name: str, params: list[Var], returns: DType, *body: Stmt) -> Function:
    return Function(name, tuple(params), (), returns, Seq(body), FunctionFacts(symbol=name))


@pytest.mark.parametrize("kind", [LoopKind.SERIAL, LoopKind.PARALLEL, LoopKind.UNROLLED])
@pytest.mark.parametrize(
    "hints",
    [
        LoopHints(),
        LoopHints(unroll=4),
        LoopHints(unroll=1),
        LoopHints(vector_width=8),
        LoopHints(vectorize=False),
        LoopHints(2, 4, True),
    ],
)
def test_loops_with_hints(compile_module, kind, hints):
    n, total, i = Var("n", INT64), local("total", INT64), Var("i", INT64)
    fixed, j = local("fixed", INT64), Var("j", INT64)
    body = (
        Allocate(total),
        Allocate(fixed),
        Store(total, (), int64(0)),
        Store(fixed, (), int64(0)),
        For(i, int64(0), n, kind, add_to(total, Mul(i, i)), hints=hints),
        For(j, int64(3), int64(5), kind, add_to(fixed, j), hints=hints),
        Return(Add(Load(total, ()), Load(fixed, ()))),
    )
    loaded = compile_module([function_of("f", [n], INT64, *body)])
    for size in (-3, 0, 1, 2, 7, 1000):
        assert loaded.plain("f")(size) == sum(i * i for i in range(size)) + 3 + 4 + 5 + 6 + 7
    text = loaded.text("llvm-ir")
    assert ("llvm.loop.unroll.count" in text) == (hints.unroll > 1)
    assert ('"llvm.loop.vectorize.width", i32' in text) == (hints.vector_width > 0 or hints.vectorize is False)


@pytest.mark.parametrize("dtype", [INT8, UINT8, INT32, UINT64], ids=str)
def test_loop_over_the_ends_of_a_type(compile_module, dtype):
    """The count of iterations holds where ``minimum + extent`` leaves the type: the variable wraps."""
    minimum, extent = Var("minimum", dtype), Var("extent", dtype)
    count, i = local("count", INT64), Var("i", dtype)
    statements = (
        Allocate(count),
        Store(count, (), int64(0)),
        For(i, minimum, extent, LoopKind.SERIAL, add_to(count, int64(1))),
        Return(Load(count, ())),
    )
    loaded = compile_module([function_of("f", [minimum, extent], INT64, *statements)])
    most = min(dtype.maximum, 1000)
    assert loaded.plain("f")(dtype.maximum, most) == most
    assert loaded.plain("f")(0, 0) == 0
    if dtype.is_signed:
        assert loaded.plain("f")(dtype.minimum, -1) == 0


def test_break_continue_and_nesting(compile_module):
    n, total, i, j = Var("n", INT32), local("total", INT32), Var("i", INT32), Var("j", INT32)
    inner = Seq(
        (
            If(equal(FloorMod(j, const(3, INT32)), 0), Continue()),
            If(greater(j, i), Break()),
            add_to(total, j),
        )
    )
    outer = Seq(
        (
            If(equal(FloorMod(i, const(5, INT32)), 4), Continue()),
            For(j, const(0, INT32), n, LoopKind.SERIAL, inner),
            If(greater(Load(total, ()), 100_000), Break()),
        )
    )
    body = (
        Allocate(total),
        Store(total, (), const(0, INT32)),
        For(i, const(0, INT32), n, LoopKind.SERIAL, outer),
        Return(Load(total, ())),
    )

    def expected(size):
        total = 0
        for i in range(size):
            if i % 5 == 4:
                continue
            for j in range(size):
                if j % 3 == 0:
                    continue
                if j > i:
                    break
                total += j
            if total > 100_000:
                break
        return total

    loaded = compile_module([function_of("f", [n], INT32, *body)])
    for size in (0, 1, 10, 50, 200):
        assert loaded.plain("f")(size) == expected(size)


def test_while_with_break_and_continue(compile_module):
    """Collatz steps, counted without the first even one, given up after 300."""
    n, x, steps = Var("n", INT64), local("x", INT64), local("steps", INT64)
    even = equal(FloorMod(Load(x, ()), int64(2)), 0)
    from gristmill.ir.expr import FloorDiv

    body = Seq(
        (
            add_to(steps, int64(1)),
            If(greater(Load(steps, ()), 300), Break()),
            If(even, Seq((Store(x, (), FloorDiv(Load(x, ()), int64(2))), Continue()))),
            Store(x, (), Add(Mul(Load(x, ()), int64(3)), int64(1))),
        )
    )
    statements = (
        Allocate(x),
        Allocate(steps),
        Store(x, (), n),
        Store(steps, (), int64(0)),
        While(not_equal(Load(x, ()), 1), body),
        Return(Load(steps, ())),
    )
    loaded = compile_module([function_of("f", [n], INT64, *statements)])

    def expected(value):
        count = 0
        while value != 1:
            count += 1
            if count > 300:
                break
            value = value // 2 if value % 2 == 0 else 3 * value + 1
        return count

    for value in (1, 2, 7, 27, 97, 0):
        assert loaded.plain("f")(value) == expected(value)


def test_early_return_and_falling_off_the_end(compile_module):
    n, i = Var("n", INT32), Var("i", INT32)
    found = If(equal(Mul(i, i), n), Return(i))
    body = For(i, const(0, INT32), const(100, INT32), LoopKind.SERIAL, found)
    both = If(less(n, 0), Return(const(-1, INT32)), Return(const(1, INT32)))
    loaded = compile_module(
        [
            function_of("root", [n], INT32, body),
            function_of("sign", [n], INT32, both, Return(const(9, INT32))),
            function_of("nothing", [n], INT32),
        ]
    )
    assert loaded.plain("root")(49) == 7
    assert loaded.plain("root")(50) == 0
    assert loaded.plain("sign")(-4) == -1
    assert loaded.plain("sign")(4) == 1
    assert loaded.plain("nothing")(4) == 0


def test_logic_stops_where_it_is_decided(compile_module):
    """Reading ``a[i]`` for an i outside would crash: the index is checked first, in the same expression."""
    a, i = Var("a", HANDLE, PointerType(INT32)), Var("i", INT64)
    buffer = Buffer("A", INT32, (int64(4),), a)
    inside = And(And(greater(i, -1), less(i, 4)), greater(Load(buffer, (i,)), 10))
    outside = Or(Or(less(i, 0), greater(i, 3)), greater(Load(buffer, (i,)), 10))
    loaded = compile_module(
        [
            function_of("both", [a, i], BOOL, View(buffer), Return(inside)),
            function_of("either", [a, i], BOOL, View(buffer), Return(outside)),
        ]
    )
    values = np.array([5, 15, 25, 0], np.int32)
    far = 1 << 50
    for index in (-far, -1, 0, 1, 2, 3, 4, far):
        within = 0 <= index < 4
        assert loaded.plain("both")(values.ctypes.data, index) == (within and values[index] > 10)
        assert loaded.plain("either")(values.ctypes.data, index) == (not within or values[index] > 10)


def test_if_with_and_without_else(compile_module):
    n, x = Var("n", INT32), local("x", INT32)
    body = (
        Allocate(x),
        Store(x, (), const(0, INT32)),
        If(
            greater(n, 0),
            Seq((If(greater(n, 10), Store(x, (), const(2, INT32)), Store(x, (), const(1, INT32))),)),
            Seq(()),
        ),
        If(equal(n, 5), add_to(x, const(100, INT32))),
        Evaluate(Load(x, ())),
        Return(Load(x, ())),
    )
    loaded = compile_module([function_of("f", [n], INT32, *body)])
    assert [loaded.plain("f")(value) for value in (-1, 0, 1, 5, 11)] == [0, 0, 1, 101, 2]


def test_infinite_loops_stay(compile_module):
    """A loop without end that does nothing is not removed: what stands after it never runs."""
    n = Var("n", INT32)
    body = (If(equal(n, 1), While(const(True, BOOL), Seq(()))), Return(Sub(n, const(1, INT32))))
    loaded = compile_module([function_of("f", [n], INT32, *body)])
    assert loaded.plain("f")(2) == 1
    assert "jmp" in loaded.text("assembly")


def test_statements_after_a_return_are_left_out(compile_module):
    n = Var("n", INT32)
    body = sequence(Return(n), Return(const(1, INT32)))
    loaded = compile_module([function_of("f", [n], INT32, body)])
    assert loaded.plain("f")(12) == 12


def test_void_functions(compile_module):
    a = Var("a", HANDLE, PointerType(INT32))
    buffer = Buffer("A", INT32, (int64(1),), a)
    body = (
        View(buffer),
        If(equal(Load(buffer, (int64(0),)), 0), Return()),
        Store(buffer, (int64(0),), const(3, INT32)),
    )
    loaded = compile_module([function_of("f", [a], VOID, *body)])
    values = np.array([0], np.int32)
    loaded.plain("f")(values.ctypes.data)
    assert values[0] == 0
    values[0] = 1
    loaded.plain("f")(values.ctypes.data)
    assert values[0] == 3
