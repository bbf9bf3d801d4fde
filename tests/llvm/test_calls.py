"""Calls of C functions: the table that the loader fills, argument passing, what happens without an address."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from gristmill.codegen.extern_table import EXTERN_TABLE
from gristmill.errors import Unsupported
from gristmill.ir.build import call, const
from gristmill.ir.dtype import BOOL, FLOAT32, FLOAT64, HANDLE, INT8, INT16, INT32, INT64, UINT8, UINT16, VOID
from gristmill.ir.expr import AddressOf, Broadcast, BufferRef, CallExtern, Load, StringImm, Var
from gristmill.ir.memory import Buffer, PointerType, Scope
from gristmill.ir.module import CallingConvention, Extern, Function, FunctionFacts
from gristmill.ir.stmt import Allocate, Bind, Evaluate, Return, Seq, Store


class Entry(ctypes.Structure):
    _fields_ = (("symbol", ctypes.c_char_p), ("library", ctypes.c_char_p), ("slot", ctypes.c_void_p))


def table_of(library):
    """The entries of the table, as {symbol: (library, slot)}."""
    found, place = {}, ctypes.addressof(Entry.in_dll(library, EXTERN_TABLE))
    while (entry := Entry.from_address(place)).symbol is not None:
        found[entry.symbol.decode()] = (entry.library.decode(), entry.slot)
        place += ctypes.sizeof(Entry)
    return found


def fill(library, functions):
    for symbol, (_, slot) in table_of(library).items():
        ctypes.c_void_p.from_address(slot).value = ctypes.cast(functions[symbol], ctypes.c_void_p).value


@pytest.fixture
def caller(compile_module):
    """``caller(make, externs, *before)``: a packed function that returns the value of ``make(args)``."""

    def make(build, externs, *before, fill_with=None):
        self, args, count, result = Var("self", HANDLE), Var("args", HANDLE), Var("count", INT32), Var("result", HANDLE)
        made = build(args)
        effect = made if made.dtype.is_void else call("packed_return", result, made, dtype=VOID)
        statements = [each(args) if callable(each) else each for each in before]
        body = Seq((*statements, Evaluate(effect), Return(const(0, INT32))))
        facts = FunctionFacts(symbol="__tvm_ffi_f", convention=CallingConvention.PACKED_HOST)
        loaded = compile_module([Function("f", (self, args, count, result), (), INT32, body, facts)], externs=externs)
        if fill_with is not None:
            fill(loaded.library, fill_with)
        return loaded

    return make


def test_a_function_of_libm(caller):
    libm = ctypes.CDLL("libm.so.6")
    extern = Extern("erff", "libm.so.6")
    number = lambda args: call("packed_float", args, const(0, INT32), dtype=FLOAT64)  # noqa: E731
    from gristmill.ir.expr import Cast

    loaded = caller(
        lambda args: CallExtern("erff", (Cast(FLOAT32, number(args)),), FLOAT32),
        [extern],
        fill_with={"erff": libm.erff},
    )
    assert table_of(loaded.library)["erff"][0] == "libm.so.6"
    libm.erff.argtypes, libm.erff.restype = [ctypes.c_float], ctypes.c_float
    assert loaded.packed("f")(0.5) == libm.erff(0.5)


def test_small_integers_are_extended_as_c_expects(caller):
    """The callee reads whole registers: garbage above a small argument would show."""
    prototype = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int32] * 5)
    seen = []
    function = prototype(lambda *given: seen.append(given) or sum(given))
    arguments = (const(-3, INT8), const(200, UINT8), const(-300, INT16), const(60000, UINT16), const(True, BOOL))
    loaded = caller(
        lambda args: CallExtern("five", arguments, INT64), [Extern("five", "x")], fill_with={"five": function}
    )
    assert loaded.packed("f")() == -3 + 200 - 300 + 60000 + 1
    assert seen == [(-3, 200, -300, 60000, 1)]


@pytest.mark.parametrize(
    ("dtype", "restype", "given"),
    [
        (INT8, ctypes.c_int8, -5),
        (UINT8, ctypes.c_uint8, 250),
        (INT64, ctypes.c_int64, -(2**60)),
        (BOOL, ctypes.c_bool, True),
        (FLOAT32, ctypes.c_float, 0.5),
        (FLOAT64, ctypes.c_double, 0.1),
    ],
)
def test_results(caller, dtype, restype, given):
    function = ctypes.CFUNCTYPE(restype)(lambda: given)
    loaded = caller(lambda args: CallExtern("give", (), dtype), [Extern("give", "x")], fill_with={"give": function})
    assert loaded.packed("f")() == given


def test_pointers_and_text(caller):
    seen = []

    def callee(whole, element, text):
        values = (ctypes.c_float * 4).from_address(whole)
        seen.append((list(values), element - whole, ctypes.string_at(text)))
        values[1] = 99.0

    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(callee)
    data = Var("data", HANDLE, PointerType(FLOAT32, Scope.LOCAL))
    buffer = Buffer("A", FLOAT32, (const(4, INT64),), data, scope=Scope.LOCAL)
    before = [Allocate(buffer), *(Store(buffer, (const(i, INT64),), const(float(i), FLOAT32)) for i in range(4))]
    arguments = (BufferRef(buffer), AddressOf(buffer, (const(3, INT64),)), StringImm("text é"))
    done = Var("done", INT32)
    from gristmill.ir.expr import CallExtern as Extern_call

    before += [Evaluate(Extern_call("look", arguments, VOID)), Bind(done, const(0, INT32))]
    loaded = caller(
        lambda args: Load(buffer, (const(1, INT64),)), [Extern("look", "x")], *before, fill_with={"look": function}
    )
    # The store of the callee is seen: LLVM must not have kept the old value.
    assert loaded.packed("f")() == 99.0
    assert seen == [([0.0, 1.0, 2.0, 3.0], 12, "text é".encode())]


def test_without_an_address_the_call_raises(caller):
    loaded = caller(lambda args: CallExtern("erff", (const(0.5, FLOAT32),), FLOAT32), [Extern("erff", "libm.so.6")])
    with pytest.raises(RuntimeError, match="must be loaded by gristmill") as caught:
        loaded.packed("f")()
    assert "`erff`" in str(caught.value)
    assert "`libm.so.6`" in str(caught.value)


def test_the_blob_says_what_it_calls(caller):
    import json

    loaded = caller(
        lambda args: CallExtern("b", (), INT32), [Extern("b", "lib,with;marks.so"), Extern("a", "libother.so")]
    )
    assert json.loads(loaded.blob.requirements["externs"]) == [["a", "libother.so"], ["b", "lib,with;marks.so"]]
    assert list(table_of(loaded.library)) == ["a", "b"]
    assert loaded.blob.entry_points == ("__tvm_ffi_f",)


def test_an_undeclared_function_is_refused(caller):
    with pytest.raises(Unsupported) as caught:
        caller(lambda args: CallExtern("erff", (const(0.5, FLOAT32),), FLOAT32), [])
    assert caught.value.code == "GM0664"
    assert "`erff`" in str(caught.value)
    assert "kernels.toml" in str(caught.value)


def test_vectors_are_refused(caller):
    vector = Broadcast(const(0.5, FLOAT32), 4)
    with pytest.raises(Unsupported) as caught:
        caller(lambda args: CallExtern("f4", (vector,), FLOAT32), [Extern("f4", "x")])
    assert caught.value.code == "GM0664"
    assert "float32x4" in str(caught.value)


def test_no_module_without_externs_has_a_table(compile_module):
    n = Var("n", INT32)
    loaded = compile_module([Function("f", (n,), (), INT32, Return(n), FunctionFacts(symbol="f"))])
    assert not hasattr(loaded.library, EXTERN_TABLE)
    assert "externs" not in loaded.blob.requirements
    assert loaded.plain("f")(np.int32(4)) == 4
