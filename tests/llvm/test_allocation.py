"""Memory that functions allocate: on the stack, in pages of its own, released on every way out."""

from __future__ import annotations

import pytest

from gristmill.errors import Unsupported
from gristmill.ir.build import call, const, equal, greater
from gristmill.ir.dtype import BOOL, FLOAT32, HANDLE, INT32, INT64, VOID
from gristmill.ir.expr import Add, CallFunction, Expr, FloorMod, IntImm, Load, Sub, Var
from gristmill.ir.memory import Buffer, PointerType, Scope
from gristmill.ir.module import CallingConvention, Function, FunctionFacts
from gristmill.ir.stmt import Allocate, Assert, Bind, Break, Continue, Evaluate, For, If, LoopKind, Return, Seq, Store
from gristmill_llvm.allocation import RECURSIVE_STACK_BYTES, STACK_BYTES


def int64(value: int) -> IntImm:
    return IntImm(value, INT64)


def temporary(name: str, *shape: Expr, dtype=INT64, scope=Scope.GLOBAL, **fields) -> Buffer:
    return Buffer(name, dtype, shape, Var(name, HANDLE, PointerType(dtype, scope)), scope=scope, **fields)


def loop(var, extent, *body):
    return For(var, int64(0), extent if isinstance(extent, Expr) else int64(extent), LoopKind.SERIAL, Seq(body))


def packed(make):
    """A packed function ``f(n)`` that returns a number; ``make(n)`` gives its statements and its result."""
    self, args, count, result = Var("self", HANDLE), Var("args", HANDLE), Var("count", INT32), Var("result", HANDLE)
    n = Var("n", INT64)
    statements, value = make(n)
    body = Seq(
        (
            Bind(n, call("packed_int", args, const(0, INT32), dtype=INT64)),
            *statements,
            Evaluate(call("packed_return", result, value, dtype=VOID)),
            Return(const(0, INT32)),
        )
    )
    facts = FunctionFacts(symbol="__tvm_ffi_f", convention=CallingConvention.PACKED_HOST)
    return Function("f", (self, args, count, result), (), INT32, body, facts)


def mapped_kilobytes() -> int:
    with open("/proc/self/status", encoding="ascii") as opened:
        return next(int(line.split()[1]) for line in opened if line.startswith("VmSize"))


def squares(n, size, buffer):
    i, j, total = Var("i", INT64), Var("j", INT64), temporary("total", scope=Scope.LOCAL)
    statements = (
        Allocate(buffer),
        Allocate(total),
        Store(total, (), int64(0)),
        loop(i, size, Store(buffer, (i,), Add(i, n))),
        loop(j, size, Store(total, (), Add(Load(total, ()), Load(buffer, (Sub(Sub(size, j), int64(1)),))))),
    )
    return statements, Load(total, ())


@pytest.mark.parametrize("scope", [Scope.GLOBAL, Scope.LOCAL, Scope.SHARED])
@pytest.mark.parametrize("count", [1, 100, STACK_BYTES // 8 - 1, STACK_BYTES // 8, 3_000_000])
def test_constant_sizes(compile_module, scope, count):
    function = packed(lambda n: squares(n, int64(count), temporary("t", int64(count), scope=scope)))
    loaded = compile_module([function])
    # `total` takes eight bytes beside it.
    assert loaded.packed("f")(3) == count * (count - 1) // 2 + 3 * count
    assert ("gristmill.allocate" in loaded.text("llvm-ir")) == (count * 8 + 8 > STACK_BYTES)


def test_sizes_that_are_not_constant(compile_module):
    function = compile_module([packed(lambda n: squares(n, n, temporary("t", n)))]).packed("f")
    for size in (0, -5, 1, 10, 100_000):
        count = max(size, 0)
        assert function(size) == count * (count - 1) // 2 + size * count


def test_pages_are_released_on_every_way_out(compile_module):
    """Returns, errors, break, continue and the end of a loop's body: a thousand rounds do not grow the process."""

    def make(n):
        i = Var("i", INT64)
        t, u = temporary("t", Add(n, int64(1 << 20))), temporary("u", Add(n, int64(1 << 20)))
        body = (
            Allocate(t),
            Store(t, (i,), i),
            If(equal(FloorMod(i, int64(5)), 1), Continue()),
            Allocate(u),
            Store(u, (i,), n),
            If(equal(i, 7), Break()),
            If(greater(n, 100), If(equal(i, 2), Return(const(0, INT32)))),
            Assert(greater(n, 0), "ValueError", ("n is ", Load(u, (i,)))),
        )
        return (loop(i, 10, *body),), n

    function = compile_module([packed(make)]).packed("f")

    def rounds():
        for _ in range(40):
            assert function(50) == 50
            assert function(101) is None
            with pytest.raises(ValueError, match=r"^n is -3$"):
                function(-3)

    rounds()
    before = mapped_kilobytes()
    rounds()
    # One forgotten buffer a call would be 120 times 8 MiB.
    assert mapped_kilobytes() - before < 100_000


@pytest.mark.parametrize("size", [2**62, 2**61 + 5, 2**50])
def test_too_much_memory_is_a_memory_error(compile_module, size):
    function = compile_module([packed(lambda n: ((Allocate(temporary("huge", n, int64(8))),), n))]).packed("f")
    with pytest.raises(MemoryError, match="no memory for the buffer `huge`"):
        function(size)


def test_recursive_functions_keep_large_buffers_off_the_stack(compile_module):
    """Each call has a megabyte of its own; a hundred of them would not fit the stack."""
    depth = Var("depth", INT64)
    count = 1 << 17
    t = temporary("t", int64(count))
    one = int64(1)
    body = Seq(
        (
            If(equal(depth, 0), Return(int64(0))),
            Allocate(t),
            Store(t, (int64(5),), depth),
            Store(t, (int64(6),), CallFunction("deep", (Sub(depth, one),), INT64)),
            Return(Add(Load(t, (int64(5),)), Load(t, (int64(6),)))),
        )
    )
    deep = Function("deep", (depth,), (), INT64, body)
    loaded = compile_module([packed(lambda n: ((), CallFunction("deep", (n,), INT64))), deep])
    assert loaded.packed("f")(100) == 5050
    assert count * 8 > RECURSIVE_STACK_BYTES


def test_strides_and_offset_count_in_the_size(compile_module):
    def make(n):
        i = Var("i", INT64)
        t = temporary("t", n, n, strides=(Add(n, int64(3)), int64(1)), offset=int64(7), dtype=FLOAT32)
        fill = loop(i, n, Store(t, (i, Sub(n, int64(1))), const(1.0, FLOAT32)))
        return (Allocate(t), fill), n

    # 1021 * 1024 + 1021 + 7 elements: the last store is in the last page.
    assert compile_module([packed(make)]).packed("f")(1021) == 1021


def test_local_vectors_and_bools(compile_module):
    def make(n):
        i = Var("i", INT64)
        flags = temporary("flags", int64(64), dtype=BOOL, scope=Scope.LOCAL)
        fill = loop(i, 64, Store(flags, (i,), greater(i, n)))
        return (Allocate(flags), fill), Load(flags, (int64(9),))

    function = compile_module([packed(make)]).packed("f")
    assert function(8) is True
    assert function(9) is False


def test_alignment_is_kept(compile_module):
    from gristmill.ir.expr import AddressOf, CallExtern
    from gristmill.ir.module import Extern

    def make(n):
        aligned = temporary("t", int64(32), dtype=FLOAT32, scope=Scope.LOCAL, alignment=256)
        address = CallExtern("look", (AddressOf(aligned, (int64(0),)),), INT64)
        return (Allocate(aligned),), address

    text = compile_module([packed(make)], externs=[Extern("look", "x")]).text("llvm-ir")
    assert "alloca [32 x float], align 256" in text


def test_pages_for_another_machine_are_refused(compile_module, monkeypatch):
    """LLVM's binding has no assembler for other machines, and would end the process."""
    monkeypatch.setattr("gristmill_llvm.allocation.assembles_for", lambda triple: False)
    with pytest.raises(Unsupported) as caught:
        compile_module([packed(lambda n: ((Allocate(temporary("t", n)),), n))])
    assert caught.value.code == "GM0661"
    assert "`t` of a size that is not constant" in str(caught.value)
