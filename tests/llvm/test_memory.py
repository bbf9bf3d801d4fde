"""Buffers: shapes, strides, offsets, vectors that are contiguous or not, bools, views."""

from __future__ import annotations

import numpy as np
import pytest

from gristmill.ir.build import cast, const
from gristmill.ir.dtype import BOOL, FLOAT32, HANDLE, INT8, INT32, INT64, UINT8, UINT32, VOID, DType
from gristmill.ir.expr import Add, AddressOf, Broadcast, Cast, Expr, IntImm, Load, Mul, Ramp, Shuffle, Sub, Var
from gristmill.ir.memory import Buffer, PointerType
from gristmill.ir.module import Function, FunctionFacts
from gristmill.ir.stmt import Bind, For, LoopKind, Seq, Stmt, Store, View


def int64(value: int) -> IntImm:
    return IntImm(value, INT64)


def loop(var: Var, extent: Expr | int, body: Stmt, minimum: int = 0) -> For:
    extent = extent if isinstance(extent, Expr) else const(extent, var.dtype)
    return For(var, const(minimum, var.dtype), extent, LoopKind.SERIAL, body)


def function_of(name: str, params: list[Var], *body: Stmt) -> Function:
    return Function(name, tuple(params), (), VOID, Seq(body), FunctionFacts(symbol=name))


def pointer(name: str, dtype: DType) -> Var:
    return Var(name, HANDLE, PointerType(dtype))


def test_rank_three_with_sizes_of_mixed_types(compile_module):
    n, m, k = Var("n", INT32), Var("m", INT64), Var("k", UINT8)
    a, b = pointer("a", FLOAT32), pointer("b", FLOAT32)
    source = Buffer("A", FLOAT32, (n, m, k), a)
    target = Buffer("B", FLOAT32, (k, m, n), b)
    x, y, z = Var("x", INT32), Var("y", INT64), Var("z", UINT8)
    body = loop(x, n, loop(y, m, loop(z, k, Store(target, (z, y, x), Load(source, (x, y, z))))))
    loaded = compile_module([function_of("transpose", [a, b, n, m, k], View(source), View(target), body)])
    # 200 is negative as an int8: the unsigned size must be extended with zeros.
    values = np.random.default_rng(1).random((3, 4, 200), np.float32)
    out = np.zeros((200, 4, 3), np.float32)
    loaded.plain("transpose")(values.ctypes.data, out.ctypes.data, 3, 4, 200)
    np.testing.assert_array_equal(out, values.transpose(2, 1, 0))


def test_strides_and_offset(compile_module):
    n, s, o = Var("n", INT64), Var("s", INT64), Var("o", INT64)
    a, b = pointer("a", INT32), pointer("b", INT32)
    source = Buffer("A", INT32, (n, n), a, strides=(s, int64(-2)), offset=o)
    target = Buffer("B", INT32, (n, n), b)
    x, y = Var("x", INT64), Var("y", INT64)
    body = loop(x, n, loop(y, n, Store(target, (x, y), Load(source, (x, y)))))
    loaded = compile_module([function_of("f", [a, b, n, s, o], View(source), View(target), body)])
    values = np.arange(100, dtype=np.int32)
    out = np.zeros((4, 4), np.int32)
    loaded.plain("f")(values.ctypes.data, out.ctypes.data, 4, 17, 9)
    expected = [[9 + 17 * i - 2 * j for j in range(4)] for i in range(4)]
    np.testing.assert_array_equal(out, expected)


def test_negative_constant_offset_of_a_view(compile_module):
    a = pointer("a", INT32)
    view = Buffer("A", INT32, (int64(8),), a, offset=int64(-4))
    loaded = compile_module([function_of("f", [a], View(view), Store(view, (int64(4),), const(7, INT32)))])
    values = np.zeros(8, np.int32)
    loaded.plain("f")(values.ctypes.data)
    np.testing.assert_array_equal(values, [7, 0, 0, 0, 0, 0, 0, 0])


@pytest.mark.parametrize("stride", [1, 2, -1, 0])
@pytest.mark.parametrize("dtype", [FLOAT32, BOOL, INT8], ids=str)
def test_vector_load_and_store_along_a_ramp(compile_module, dtype, stride):
    a, b = pointer("a", dtype), pointer("b", dtype)
    source, target = Buffer("A", dtype, (int64(64),), a), Buffer("B", dtype, (int64(64),), b)
    s, start = Var("s", INT64), Var("start", INT64)
    for step in (int64(stride), s):
        index = Ramp(start, step, 8)
        gather = Store(target, (Ramp(int64(0), int64(1), 8),), Load(source, (index,)))
        scatter = Store(target, (Add(index, Broadcast(int64(0), 8)),), Load(source, (Ramp(int64(0), int64(1), 8),)))
        functions = [
            function_of("gather", [a, b, s, start], View(source), View(target), gather),
            function_of("scatter", [a, b, s, start], View(source), View(target), scatter),
        ]
        for level in ("cpu:x86-64-v2", "cpu:x86-64-v4"):
            if level.endswith("v4"):
                # Compiled and verified; run only where the processor is known to have it.
                compile_module(functions, level)
                continue
            loaded = compile_module(functions, level)
            values = (np.arange(64) * 7 % 5 % 2 if dtype.is_bool else np.arange(64)).astype(str(dtype))
            places = 20 + stride * np.arange(8)
            out = np.zeros(64, values.dtype)
            loaded.plain("gather")(values.ctypes.data, out.ctypes.data, stride, 20)
            np.testing.assert_array_equal(out[:8], values[places])
            out[:] = 0
            loaded.plain("scatter")(values.ctypes.data, out.ctypes.data, stride, 20)
            expected = np.zeros_like(out)
            for lane, place in enumerate(places):  # ascending: the last lane wins
                expected[place] = values[lane]
            np.testing.assert_array_equal(out, expected)


def test_vector_index_into_a_strided_row(compile_module):
    a, b = pointer("a", INT32), pointer("b", INT32)
    source = Buffer("A", INT32, (int64(4), int64(8)), a, strides=(int64(16), int64(2)), offset=int64(1))
    target = Buffer("B", INT32, (int64(4), int64(8)), b)
    row = Var("row", INT32)
    index = Ramp(const(0, INT32), const(1, INT32), 8)
    body = loop(row, 4, Store(target, (row, index), Load(source, (row, index))))
    loaded = compile_module([function_of("f", [a, b], View(source), View(target), body)])
    values, out = np.arange(70, dtype=np.int32), np.zeros((4, 8), np.int32)
    loaded.plain("f")(values.ctypes.data, out.ctypes.data)
    np.testing.assert_array_equal(out, 1 + 16 * np.arange(4)[:, None] + 2 * np.arange(8))


def test_negative_and_unsigned_lanes_of_a_vector_index(compile_module):
    a, b = pointer("a", INT32), pointer("b", INT32)
    source, target = Buffer("A", INT32, (int64(256),), a), Buffer("B", INT32, (int64(4),), b)
    # 250..253 as uint8: negative if extended with the sign.
    index = Ramp(const(250, UINT8), const(1, UINT8), 4)
    unsigned = Store(target, (Ramp(int64(0), int64(1), 4),), Load(source, (Add(index, Broadcast(const(0, UINT8), 4)),)))
    loaded = compile_module([function_of("f", [a, b], View(source), View(target), unsigned)])
    values, out = np.arange(256, dtype=np.int32), np.zeros(4, np.int32)
    loaded.plain("f")(values.ctypes.data, out.ctypes.data)
    np.testing.assert_array_equal(out, [250, 251, 252, 253])


@pytest.mark.parametrize("dtype", [FLOAT32.with_lanes(4), INT32.with_lanes(3), BOOL.with_lanes(2)], ids=str)
def test_buffers_of_vectors_are_dense(compile_module, dtype):
    a, b, i = pointer("a", dtype), pointer("b", dtype), Var("i", INT64)
    source, target = Buffer("A", dtype, (int64(6),), a), Buffer("B", dtype, (int64(6),), b)
    reverse = loop(i, 6, Store(target, (Sub(int64(5), i),), Load(source, (i,))))
    strided = Ramp(int64(0), int64(2), 3)
    gather = Store(target, (Ramp(int64(3), int64(-1), 3),), Load(source, (strided,)))
    contiguous = Store(target, (Ramp(int64(1), int64(1), 3),), Load(source, (Ramp(int64(2), int64(1), 3),)))
    functions = [
        function_of("reverse", [a, b], View(source), View(target), reverse),
        function_of("gather", [a, b], View(source), View(target), gather),
        function_of("contiguous", [a, b], View(source), View(target), contiguous),
    ]
    loaded = compile_module(functions)
    values = np.arange(6 * dtype.lanes).reshape(6, dtype.lanes)
    values = (values % 3 == 0 if dtype.is_bool else values).astype(str(dtype.element))
    out = np.zeros_like(values)
    loaded.plain("reverse")(values.ctypes.data, out.ctypes.data)
    np.testing.assert_array_equal(out, values[::-1])
    out[:] = 0
    loaded.plain("gather")(values.ctypes.data, out.ctypes.data)
    np.testing.assert_array_equal(out[3:0:-1], values[0:6:2])
    loaded.plain("contiguous")(values.ctypes.data, out.ctypes.data)
    np.testing.assert_array_equal(out[1:4], values[2:5])


def test_bools_in_memory(compile_module):
    a, b = pointer("a", BOOL), pointer("b", UINT8)
    source, target = Buffer("A", BOOL, (int64(4),), a), Buffer("B", UINT8, (int64(4),), b)
    i = Var("i", INT64)
    body = loop(i, 4, Store(target, (i,), Cast(UINT8, Load(source, (i,)))))
    loaded = compile_module([function_of("f", [a, b], View(source), View(target), body)])
    # Any byte but 0 is true, and comes out as 1.
    values, out = np.array([0, 1, 2, 255], np.uint8), np.zeros(4, np.uint8)
    loaded.plain("f")(values.ctypes.data, out.ctypes.data)
    np.testing.assert_array_equal(out, [0, 1, 1, 1])


def test_views_of_one_memory_with_two_types_see_each_other(compile_module):
    a = pointer("a", UINT32)
    words, bytes_of = Buffer("A", UINT32, (int64(2),), a), Buffer("B", UINT8, (int64(8),), a)
    body = (
        Store(words, (int64(1),), const(0, UINT32)),
        Store(bytes_of, (int64(5),), const(2, UINT8)),
        Store(words, (int64(0),), Load(words, (int64(1),))),
    )
    loaded = compile_module([function_of("f", [a], View(words), View(bytes_of), *body)])
    values = np.array([9, 9], np.uint32)
    loaded.plain("f")(values.ctypes.data)
    np.testing.assert_array_equal(values, [512, 512])


def test_view_of_an_address(compile_module):
    a = pointer("a", INT32)
    whole = Buffer("A", INT32, (int64(4), int64(4)), a)
    row_data, bound = pointer("row", INT32), pointer("bound", INT32)
    row = Buffer("R", INT32, (int64(4),), row_data)
    same = Buffer("S", INT32, (int64(4),), bound)
    body = (
        View(whole),
        View(row, AddressOf(whole, (int64(2), int64(0)))),
        Bind(bound, AddressOf(whole, (int64(3), int64(1)))),
        View(same),
        Store(row, (int64(1),), const(5, INT32)),
        Store(same, (int64(0),), const(6, INT32)),
    )
    loaded = compile_module([function_of("f", [a], *body)])
    values = np.zeros((4, 4), np.int32)
    loaded.plain("f")(values.ctypes.data)
    assert values[2, 1] == 5
    assert values[3, 1] == 6
    assert values.sum() == 11


def test_rank_zero(compile_module):
    a = pointer("a", FLOAT32)
    scalar = Buffer("A", FLOAT32, (), a)
    body = Store(scalar, (), Mul(Load(scalar, ()), const(3.0, FLOAT32)))
    loaded = compile_module([function_of("f", [a], View(scalar), body)])
    values = np.array(2, np.float32)
    loaded.plain("f")(values.ctypes.data)
    assert values == 6


@pytest.mark.parametrize("dtype", [INT8, INT32, INT64, UINT8], ids=str)
def test_ramps_wrap(compile_module, dtype):
    a = pointer("a", dtype)
    target = Buffer("A", dtype, (int64(8),), a)
    base, stride = Var("base", dtype), Var("stride", dtype)
    by_value = Store(target, (Ramp(int64(0), int64(1), 8),), Ramp(base, stride, 8))
    by_constant = Store(target, (Ramp(int64(0), int64(1), 8),), Ramp(base, const(dtype.maximum, dtype), 8))
    loaded = compile_module(
        [
            function_of("values", [a, base, stride], View(target), by_value),
            function_of("constant", [a, base], View(target), by_constant),
        ]
    )
    out = np.zeros(8, str(dtype))
    loaded.plain("values")(out.ctypes.data, dtype.maximum, dtype.maximum // 3)
    expected = [dtype.wrap(dtype.maximum + lane * (dtype.maximum // 3)) for lane in range(8)]
    np.testing.assert_array_equal(out, np.array(expected, out.dtype))
    loaded.plain("constant")(out.ctypes.data, 5)
    expected = [dtype.wrap(5 + lane * dtype.maximum) for lane in range(8)]
    np.testing.assert_array_equal(out, np.array(expected, out.dtype))


@pytest.mark.parametrize("indices", [(0, 1, 2, 3), (7, 0, 3, 3), (4, 5), (2,), (8,), (3, 8, 0)])
def test_shuffles(compile_module, indices):
    """Lanes of two vectors of four and, where 8 is named, of a scalar after them."""
    a, b, single = pointer("a", INT32), pointer("b", INT32), Var("single", INT32)
    source, target = Buffer("A", INT32, (int64(8),), a), Buffer("B", INT32, (int64(8),), b)
    one = int64(1)
    vectors: tuple[Expr, ...] = (Load(source, (Ramp(int64(0), one, 4),)), Load(source, (Ramp(int64(4), one, 4),)))
    if 8 in indices:
        vectors = (*vectors, single)
    value = Shuffle(vectors, indices)
    index: Expr = int64(0) if len(indices) == 1 else Ramp(int64(0), one, len(indices))
    loaded = compile_module(
        [function_of("f", [a, b, single], View(source), View(target), Store(target, (index,), value))]
    )
    values, out = np.arange(8, dtype=np.int32) * 10, np.zeros(8, np.int32)
    loaded.plain("f")(values.ctypes.data, out.ctypes.data, 77)
    np.testing.assert_array_equal(out[: len(indices)], [(*values, 77)[index] for index in indices])


def test_broadcast_of_a_value(compile_module):
    a, value = pointer("a", FLOAT32), Var("value", FLOAT32)
    target = Buffer("A", FLOAT32, (int64(8),), a)
    body = Store(target, (Ramp(int64(0), int64(1), 8),), cast(value, FLOAT32.with_lanes(8)))
    loaded = compile_module([function_of("f", [a, value], View(target), body)])
    out = np.zeros(8, np.float32)
    loaded.plain("f")(out.ctypes.data, 2.5)
    np.testing.assert_array_equal(out, np.full(8, 2.5))


def test_a_view_of_bytes_may_lie_at_any_address(compile_module):
    a, b = pointer("a", UINT8), pointer("b", FLOAT32)
    source, target = Buffer("A", FLOAT32, (int64(8),), a), Buffer("B", FLOAT32, (int64(8),), b)
    lanes = (Ramp(int64(0), int64(1), 8),)
    body = Store(target, lanes, Load(source, lanes))
    loaded = compile_module([function_of("f", [a, b], View(source), View(target), body)], texts=frozenset(("llvm-ir",)))
    assert "load <8 x float>, ptr %p0, align 1" in loaded.text("llvm-ir")
    assert "ptr %p1, align 4" in loaded.text("llvm-ir")
    values = np.arange(8, dtype=np.float32)
    memory = np.frombuffer(bytearray(b"\0" + values.tobytes()), np.uint8)
    out = np.zeros(8, np.float32)
    loaded.plain("f")(memory.ctypes.data + 1, out.ctypes.data)
    np.testing.assert_array_equal(out, values)
