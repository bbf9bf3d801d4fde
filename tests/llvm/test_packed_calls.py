"""Calls of functions registered with TVM FFI: arguments, results, errors, references."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import tvm_ffi

from gristmill.errors import Unsupported
from gristmill.ir.build import call, const
from gristmill.ir.dtype import BOOL, FLOAT32, FLOAT64, HANDLE, INT8, INT32, INT64, UINT8, VOID
from gristmill.ir.expr import Broadcast, BufferRef, CallPacked, IntImm, StringImm, Var
from gristmill.ir.memory import Buffer, PointerType, Scope
from gristmill.ir.module import CallingConvention, Function, FunctionFacts
from gristmill.ir.stmt import Allocate, Evaluate, For, LoopKind, Return, Seq, Store, View

NAME = "gristmill.test.callee"


def int64(value: int) -> IntImm:
    return IntImm(value, INT64)


@pytest.fixture
def callee():
    """Registers what it is called with, and removes it after the test."""

    def register(function):
        tvm_ffi.register_global_func(NAME, function, override=True)

    yield register
    if tvm_ffi.get_global_func(NAME, allow_missing=True) is not None:
        tvm_ffi.registry.remove_global_func(NAME)


@pytest.fixture
def caller(compile_module):
    """``caller(node, *before)``: a packed function that returns the value of a packed call (nothing for void)."""

    def make(node, *before, loop=1):
        self, args, count, result = Var("self", HANDLE), Var("args", HANDLE), Var("count", INT32), Var("result", HANDLE)
        made = node(args) if callable(node) else node
        effect = made if made.dtype.is_void else call("packed_return", result, made, dtype=VOID)
        repeated = For(Var("i", INT32), const(0, INT32), const(loop, INT32), LoopKind.SERIAL, Evaluate(effect))
        statements = [each(args) if callable(each) else each for each in before]
        body = Seq((*statements, repeated, Return(const(0, INT32))))
        facts = FunctionFacts(symbol="__tvm_ffi_f", convention=CallingConvention.PACKED_HOST)
        return compile_module([Function("f", (self, args, count, result), (), INT32, body, facts)]).packed("f")

    return make


def test_scalars_and_text_arrive(callee, caller):
    seen = []
    callee(lambda *given: seen.append(given))
    arguments = (
        const(-3, INT8),
        const(200, UINT8),
        const(2**40, INT64),
        const(0.5, FLOAT32),
        const(0.1, FLOAT64),
        const(True, BOOL),
        StringImm("café and a much longer text than seven bytes"),
    )
    assert caller(CallPacked(NAME, arguments, VOID))() is None
    assert seen == [(-3, 200, 2**40, 0.5, 0.1, True, "café and a much longer text than seven bytes")]
    assert [type(value) for value in seen[0][:6]] == [int, int, int, float, float, bool]


def test_no_arguments(callee, caller):
    callee(lambda: 42)
    assert caller(CallPacked(NAME, (), INT32))() == 42


@pytest.mark.parametrize(
    ("given", "dtype", "expected"),
    [
        (-5, INT64, -5),
        (300, UINT8, 44),
        (True, INT32, 1),
        (7, BOOL, True),
        (False, BOOL, False),
        (0.1, FLOAT64, 0.1),
        (0.1, FLOAT32, float(np.float32(0.1))),
        (3, FLOAT64, 3.0),
        (True, FLOAT32, 1.0),
    ],
)
def test_results_are_converted(callee, caller, given, dtype, expected):
    callee(lambda: given)
    found = caller(CallPacked(NAME, (), dtype))()
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("given", "dtype", "text"),
    [
        (2.5, INT32, "not an int"),
        ("text", FLOAT64, "not a float"),
        (None, INT64, "not an int"),
        ([1], BOOL, "not a bool"),
    ],
)
def test_a_result_of_another_kind_is_a_type_error(callee, caller, given, dtype, text):
    callee(lambda: given)
    with pytest.raises(TypeError, match=text) as caught:
        caller(CallPacked(NAME, (), dtype))()
    assert NAME in str(caught.value)


def test_an_error_of_the_callee_leaves_the_caller(callee, caller):
    calls = []

    def fail():
        calls.append(1)
        raise KeyError("lost")

    callee(fail)
    with pytest.raises(KeyError, match="lost"):
        caller(CallPacked(NAME, (), VOID), loop=3)()
    assert len(calls) == 1


def test_a_function_that_is_not_registered(caller):
    with pytest.raises(ValueError, match=r"gristmill.test.absent"):
        caller(CallPacked("gristmill.test.absent", (), VOID))()


def test_a_tensor_arrives_with_its_shape_and_is_written(callee, caller):
    seen = []

    def double(tensor):
        array = np.from_dlpack(tensor)
        seen.append((tensor.shape, str(tensor.dtype), array.copy()))
        array *= 2

    callee(double)
    data = Var("data", HANDLE, PointerType(FLOAT32))
    view = Buffer("A", FLOAT32, (int64(2), int64(3)), data)

    def bind(args):
        tensor = call("packed_tensor", args, const(0, INT32), dtype=HANDLE)
        return View(view, call("tensor_data", tensor, dtype=HANDLE))

    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    before = values.copy()
    caller(CallPacked(NAME, (BufferRef(view),), VOID), bind)(values)
    ((shape, dtype, array),) = seen
    assert tuple(shape) == (2, 3)
    assert dtype == "float32"
    np.testing.assert_array_equal(array, before)
    np.testing.assert_array_equal(values, before * 2)


def test_a_local_buffer_with_strides_and_offset(callee, caller):
    seen = []
    callee(lambda tensor: seen.append((tuple(tensor.shape), tuple(tensor.strides), np.from_dlpack(tensor).copy())))
    data = Var("data", HANDLE, PointerType(INT32, Scope.LOCAL))
    whole = Buffer("A", INT32, (int64(12),), data, scope=Scope.LOCAL)
    part = Buffer("P", INT32, (int64(2), int64(3)), data, (int64(5), int64(2)), int64(1), Scope.LOCAL)
    i = Var("i", INT32)
    fill = For(i, const(0, INT32), const(12, INT32), LoopKind.SERIAL, Store(whole, (i,), i))
    caller(CallPacked(NAME, (BufferRef(part),), VOID), Allocate(whole), View(part), fill)()
    ((shape, strides, array),) = seen
    assert shape == (2, 3)
    assert strides == (5, 2)
    np.testing.assert_array_equal(array, [[1, 3, 5], [6, 8, 10]])


def test_rank_zero_buffer(callee, caller):
    seen = []
    callee(lambda tensor: seen.append((tuple(tensor.shape), float(np.from_dlpack(tensor)))))
    data = Var("data", HANDLE, PointerType(FLOAT64, Scope.LOCAL))
    scalar = Buffer("A", FLOAT64, (), data, scope=Scope.LOCAL)
    caller(CallPacked(NAME, (BufferRef(scalar),), VOID), Allocate(scalar), Store(scalar, (), const(2.5, FLOAT64)))()
    assert seen == [((), 2.5)]


def test_nested_calls(callee, caller):
    callee(lambda *given: sum(given))
    inner = CallPacked(NAME, (const(1, INT32), const(2, INT32)), INT32)
    assert caller(CallPacked(NAME, (const(10, INT32), inner), INT32))() == 13


def test_references_are_given_back(callee, caller):
    """Neither the function nor an object that it returns (dropped, or of the wrong kind) stays alive."""

    def give():
        return tvm_ffi.convert(["a list that takes some memory"])

    callee(give)
    before = sys.getrefcount(give)
    dropped = caller(CallPacked(NAME, (), VOID), loop=100)
    refused = caller(CallPacked(NAME, (), INT32))
    shared = tvm_ffi.convert([1, 2, 3])
    callee(lambda: shared)
    del give
    held = _strong_references(shared)
    for _ in range(50):
        dropped()
        with pytest.raises(TypeError):
            refused()
    assert _strong_references(shared) == held
    assert before >= 1


def _strong_references(value):
    """The count in the header of a TVM FFI object: the lower half of its first eight bytes."""
    import ctypes

    address = value.__chandle__() if callable(value.__chandle__) else value.__chandle__
    return ctypes.c_uint64.from_address(address).value & 0xFFFFFFFF


def test_a_vector_argument_is_refused(caller):
    node = CallPacked(NAME, (Broadcast(const(1, INT32), 4),), VOID)
    with pytest.raises(Unsupported) as caught:
        caller(node)
    assert caught.value.code == "GM0665"
    assert "int32x4" in str(caught.value)
