"""Reading arguments and tensors through the packed interface, and returning values."""

from __future__ import annotations

import numpy as np
import pytest

from gristmill.ir.build import call, const, equal
from gristmill.ir.dtype import BOOL, FLOAT32, FLOAT64, HANDLE, INT8, INT32, INT64, UINT8, UINT32, UINT64, VOID
from gristmill.ir.expr import Cast, IfThenElse, Load, Var
from gristmill.ir.memory import Buffer, PointerType
from gristmill.ir.module import CallingConvention, Function, FunctionFacts
from gristmill.ir.stmt import Evaluate, Return, Seq, View


@pytest.fixture
def answer(compile_module):
    """``answer(build, dtype)``: a packed function that returns ``build(args)``."""

    def make(build, *before):
        self, args, count, result = Var("self", HANDLE), Var("args", HANDLE), Var("count", INT32), Var("result", HANDLE)
        value = build(args)
        body = Seq(
            (
                *(make(args) for make in before),
                Evaluate(call("packed_return", result, value, dtype=VOID)),
                Return(const(0, INT32)),
            )
        )
        facts = FunctionFacts(symbol="__tvm_ffi_f", convention=CallingConvention.PACKED_HOST)
        return compile_module([Function("f", (self, args, count, result), (), INT32, body, facts)]).packed("f")

    return make


def tensor(args, place=0):
    return call("packed_tensor", args, const(place, INT32), dtype=HANDLE)


def of_tensor(name, dtype, *rest):
    return lambda args: call(name, tensor(args), *(const(value, INT32) for value in rest), dtype=dtype)


def test_kinds_of_arguments(answer):
    function = answer(lambda args: call("packed_kind", args, const(1, INT32), dtype=INT32))
    assert function(None, None) == 0
    assert function(None, 5) == 1
    assert function(None, True) == 2
    assert function(None, 2.5) == 3
    assert function(None, np.zeros(3)) in (7, 70)


def test_scalars(answer):
    assert answer(lambda args: call("packed_int", args, const(0, INT32), dtype=INT64))(-(2**62)) == -(2**62)
    assert answer(lambda args: call("packed_float", args, const(2, INT32), dtype=FLOAT64))(0, 0, 0.1) == 0.1


@pytest.mark.parametrize("dtype", [INT8, INT32, INT64, UINT8, UINT32], ids=str)
def test_integers_are_returned_with_their_sign(answer, dtype):
    function = answer(lambda args: Cast(dtype, call("packed_int", args, const(0, INT32), dtype=INT64)))
    for value in (0, 1, -1, 200, 2**31, -(2**31)):
        found = function(value)
        assert type(found) is int
        assert found == dtype.wrap(value)


def test_floats_and_bools_are_returned(answer):
    found = answer(lambda args: Cast(FLOAT32, call("packed_float", args, const(0, INT32), dtype=FLOAT64)))(0.1)
    assert found == float(np.float32(0.1))
    found = answer(lambda args: Cast(BOOL, call("packed_int", args, const(0, INT32), dtype=INT64)))(17)
    assert found is True


def test_pointers_are_returned(answer):
    data = answer(of_tensor("tensor_data", HANDLE))
    values = np.zeros(4)
    assert data(values).value == values.ctypes.data


def test_shape_rank_dtype(answer):
    values = np.zeros((3, 5, 7), np.float32)
    assert answer(of_tensor("tensor_rank", INT32))(values) == 3
    assert [answer(of_tensor("tensor_size", INT64, place))(values) for place in range(3)] == [3, 5, 7]
    dtype = answer(of_tensor("tensor_dtype", INT32))
    assert dtype(values) == 2 | 32 << 8 | 1 << 16
    assert dtype(np.zeros(1, np.uint8)) == 1 | 8 << 8 | 1 << 16
    assert dtype(np.zeros(1, bool)) == 6 | 8 << 8 | 1 << 16
    assert answer(of_tensor("tensor_device_type", INT32))(values) == 1
    assert answer(of_tensor("tensor_device_id", INT32))(values) == 0


def test_strides(answer):
    values = np.zeros((6, 10), np.int16)[::2, ::5]
    assert answer(of_tensor("tensor_has_strides", BOOL))(values) is True
    assert [answer(of_tensor("tensor_stride", INT64, place))(values) for place in range(2)] == [20, 5]


def test_data_and_alignment(answer):
    whole = np.zeros(64, np.uint8)
    start = -whole.ctypes.data % 16
    aligned = answer(of_tensor("tensor_is_aligned", BOOL, 16))
    assert aligned(whole[start : start + 8]) is True
    assert aligned(whole[start + 4 : start + 8]) is False
    assert answer(of_tensor("tensor_is_aligned", BOOL, 4))(whole[start + 4 : start + 8]) is True
    assert answer(of_tensor("tensor_is_null", BOOL))(whole) is False


def test_data_of_a_tensor_object_and_of_a_bare_dltensor(answer):
    """NumPy arrays come as a tensor object or as a DLTensor; both lead to the same element."""
    import tvm_ffi

    data = Var("data", HANDLE, PointerType(INT32))
    view = Buffer("A", INT32, (const(4, INT64),), data)
    function = answer(
        lambda args: Load(view, (const(2, INT64),)),
        lambda args: View(view, call("tensor_data", tensor(args), dtype=HANDLE)),
    )
    values = np.array([1, 2, 3, 4], np.int32)
    assert function(values) == 3
    assert function(tvm_ffi.from_dlpack(values)) == 3


def test_index_that_is_not_constant(answer):
    function = answer(
        lambda args: call(
            "packed_int", args, Cast(INT32, call("packed_int", args, const(0, INT32), dtype=INT64)), dtype=INT64
        )
    )
    assert function(2, 10, 20, 30) == 20


@pytest.mark.parametrize("value", [0, 5, 2**63 - 1, 2**63, 2**64 - 1])
def test_unsigned_integers_beyond_int64(answer, value):
    def build(args):
        place = const(0, INT32)
        is_big = equal(call("packed_kind", args, place, dtype=INT32), 78)
        small = Cast(UINT64, call("packed_int", args, place, dtype=INT64))
        return IfThenElse(is_big, call("packed_big", args, place, dtype=UINT64), small)

    assert answer(build)(value) == value


@pytest.mark.parametrize("value", [2**63, 2**64 - 1, 2**64, -(2**63) - 1, -(2**64), 2**127, 2**200])
def test_which_large_integers_fit(answer, value):
    function = answer(lambda args: call("packed_big_fits", args, const(0, INT32), dtype=BOOL))
    assert function(value) is (2**63 <= value < 2**64)
