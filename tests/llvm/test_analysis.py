"""Call graphs: recursion, failure through calls, what is inlined."""

from __future__ import annotations

from gristmill.ir.build import const, less
from gristmill.ir.dtype import HANDLE, INT32, INT64, UINT8, VOID
from gristmill.ir.expr import Add, CallFunction, CallPacked, Var
from gristmill.ir.memory import Buffer, PointerType
from gristmill.ir.module import CallingConvention, Function, FunctionFacts, Module
from gristmill.ir.stmt import Allocate, Assert, Evaluate, For, LoopKind, Return, Seq
from gristmill_llvm.allocation import CHAIN_STACK_BYTES, STACK_BYTES
from gristmill_llvm.analysis import INLINE_NODES, CallGraph


def function_of(name, *calls, body=(), symbol=None):
    n = Var("n", INT32)
    statements = [Evaluate(CallFunction(called, (n,), INT32)) for called in calls]
    return Function(name, (n,), (), INT32, Seq((*statements, *body, Return(n))), FunctionFacts(symbol=symbol))


def graph_of(*functions):
    return CallGraph.of(Module(functions))


def test_recursion_through_others():
    graph = graph_of(
        function_of("a", "b"),
        function_of("b", "c"),
        function_of("c", "b", "d"),
        function_of("d"),
        function_of("e", "e"),
    )
    assert graph.recursive == {"b", "c", "e"}
    assert graph.always_inlined() == {"d"}


def test_failure_spreads_to_callers():
    check = Assert(less(const(1, INT32), 2), "ValueError", ("no",))
    packed = Evaluate(CallPacked("x", (), VOID))
    graph = graph_of(
        function_of("top", "middle", "quiet"),
        function_of("middle", "loud"),
        function_of("loud", body=(check,)),
        function_of("asks", body=(packed,)),
        function_of("quiet"),
    )
    assert graph.failing() == {"top", "middle", "loud", "asks"}


def test_memory_that_may_lack_is_a_failure():
    def allocate(size):
        return Allocate(Buffer("t", INT64, (size,), Var("t", HANDLE, PointerType(INT64))))

    half = const(STACK_BYTES // 16, INT64)
    graph = graph_of(
        function_of("small", body=(allocate(half), allocate(half))),
        function_of("large", body=(allocate(half), allocate(half), allocate(half))),
        function_of("sized", body=(allocate(Var("n", INT64)),)),
        function_of("deep", "deep", body=(allocate(half),)),
    )
    assert graph.failing() == {"large", "sized", "deep"}


def test_what_is_inlined():
    n = Var("n", INT32)
    long = n
    for _ in range(INLINE_NODES // 4):
        long = Add(long, n)
    loop = For(Var("i", INT32), const(0, INT32), n, LoopKind.SERIAL, Evaluate(n))
    interface = function_of("interface", "called", symbol="interface")
    graph = graph_of(
        function_of("small"),
        interface.with_facts(convention=CallingConvention.PACKED_HOST),
        function_of("called"),
        function_of("public", symbol="public"),
        function_of("loops", body=(loop,)),
        function_of("calls_loops", "loops"),
        function_of("half", body=(Evaluate(long),)),
        function_of("twice", "half", "half"),
        function_of("nested", "small", "small"),
    )
    assert graph.always_inlined() == {"small", "half", "nested"}


def test_a_chain_of_calls_does_not_exhaust_the_stack():
    large = const(STACK_BYTES, INT64)
    buffers = [Buffer(f"b{place}", UINT8, (large,), Var(f"b{place}", HANDLE, PointerType(UINT8))) for place in range(6)]
    functions = [
        function_of(f"f{place}", *([f"f{place - 1}"] if place else []), body=(Allocate(buffer),))
        for place, buffer in enumerate(buffers)
    ]
    graph = graph_of(*reversed(functions))
    assert graph.stack_budgets["f0"] == STACK_BYTES
    assert sum(STACK_BYTES for budget in graph.stack_budgets.values() if budget >= STACK_BYTES) == CHAIN_STACK_BYTES
    # Whoever has no room maps pages, which may fail; so may whoever calls it.
    assert graph.failing() == {"f2", "f3", "f4", "f5"}
    assert "f0" not in graph.always_inlined()
