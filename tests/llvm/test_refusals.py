"""What the generator refuses, each with its code, its place and what to do."""

from __future__ import annotations

import pytest

from gristmill.errors import Unsupported
from gristmill.ir.build import call, const
from gristmill.ir.dtype import BFLOAT16, BOOL, FLOAT16, FLOAT32, HANDLE, INT32, INT64, VOID
from gristmill.ir.expr import Add, Cast, Load, Reinterpret, Var
from gristmill.ir.memory import Buffer, PointerType, Scope
from gristmill.ir.module import CallingConvention, Function, FunctionFacts
from gristmill.ir.span import Span
from gristmill.ir.stmt import (
    Allocate,
    Barrier,
    BarrierScope,
    Bind,
    Block,
    Evaluate,
    For,
    Launch,
    LoopKind,
    Return,
    Seq,
    Store,
    ThreadAxis,
    View,
)

HERE = Span.at("kernel.py", 7, 3, 7, 12)
ONE = const(1, INT64)


def function_of(*body, params=(), returns=VOID, **facts):
    return Function("f", params, (), returns, Seq(body), FunctionFacts(symbol="f", **facts), HERE)


def refusal(compile_module, *functions):
    with pytest.raises(Unsupported) as caught:
        compile_module(functions, "cpu:x86-64-v3")
    (diagnostic,) = caught.value.diagnostics
    assert "target `cpu:x86-64-v3`" in diagnostic.message
    assert diagnostic.hint
    assert diagnostic.place == HERE.place
    return diagnostic


@pytest.mark.parametrize("dtype", [FLOAT16, BFLOAT16, FLOAT16.with_lanes(4)], ids=str)
def test_half_types(compile_module, dtype):
    data = Var("a", HANDLE, PointerType(dtype), HERE)
    buffer = Buffer("A", dtype, (ONE,), data, span=HERE)
    x = Var("x", FLOAT32.with_lanes(dtype.lanes))
    value = const(1.0, x.dtype)
    cases = [
        [View(buffer, span=HERE), Store(buffer, (const(0, INT64),), Cast(dtype, value, HERE), HERE)],
        [Allocate(buffer, HERE)],
        [Bind(x, Cast(x.dtype, Cast(dtype, value, HERE), HERE), HERE)],
        [Evaluate(Load(buffer, (const(0, INT64),), HERE), HERE)],
    ]
    for body in cases:
        found = refusal(compile_module, function_of(*body, params=(data,)))
        assert found.code == "GM0660"
        assert f"`{dtype.element}`" in found.message
        assert "float32" in found.hint


def test_half_parameters_and_results(compile_module):
    x = Var("x", FLOAT16, span=HERE)
    assert refusal(compile_module, function_of(params=(x,))).code == "GM0660"
    assert refusal(compile_module, function_of(returns=BFLOAT16)).code == "GM0660"
    bits = Reinterpret(FLOAT16, const(1, INT32), HERE)
    assert refusal(compile_module, function_of(Evaluate(bits))).code == "GM0660"
    total = Add(Cast(FLOAT16, const(1, INT32), HERE), Cast(FLOAT16, const(1, INT32), HERE), HERE)
    assert refusal(compile_module, function_of(Evaluate(total))).code == "GM0660"


def nothing():
    return Evaluate(const(0, INT32))


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        (
            For(
                Var("i", INT32),
                const(0, INT32),
                const(4, INT32),
                LoopKind.THREAD,
                nothing(),
                ThreadAxis.THREAD_X,
                span=HERE,
            ),
            "threadIdx.x",
        ),
        (
            For(Var("i", INT32), const(0, INT32), const(4, INT32), LoopKind.VECTORIZED, nothing(), span=HERE),
            "vectorized",
        ),
        (Barrier(BarrierScope.BLOCK, HERE), "barrier"),
        (Launch("kernel", (), (), (), span=HERE), "`kernel`"),
        (
            Bind(Var("b", BOOL), call("warp_any", const(1, BOOL), const(32, INT32), span=HERE), HERE),
            "`warp_any`, an exchange between threads,",
        ),
        (Block("b", (), None, None, None, (), (), None, nothing(), HERE), "block `b`"),
    ],
)
def test_constructs_of_devices_and_what_was_not_lowered(compile_module, statement, words):
    found = refusal(compile_module, function_of(statement))
    assert found.code == "GM0661"
    assert words in found.message


def test_kernels_and_buffer_parameters(compile_module):
    kernel = function_of(convention=CallingConvention.DEVICE_KERNEL)
    assert "the kernel `f`" in refusal(compile_module, kernel).message
    buffer = Buffer("A", FLOAT32, (ONE,), Var("a", HANDLE, PointerType(FLOAT32)), span=HERE)
    assert "buffer parameter `A`" in refusal(compile_module, function_of(params=(buffer,))).message


def test_thread_memory_is_local_memory_on_a_cpu(compile_module):
    """Shared and warp memory need no threads to make sense: one instance for the one thread."""
    for scope in (Scope.SHARED, Scope.WARP, Scope.LOCAL):
        buffer = Buffer("A", INT32, (const(4, INT64),), Var("a", HANDLE, PointerType(INT32, scope)), scope=scope)
        body = (Allocate(buffer), Store(buffer, (ONE,), const(5, INT32)), Return(Load(buffer, (ONE,))))
        assert compile_module([function_of(*body, returns=INT32)]).plain("f")() == 5
