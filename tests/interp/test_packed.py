"""Functions of the packed host interface: arguments as any values, tensors as the interface has them."""

from __future__ import annotations

import numpy as np
import pytest

from gristmill.interp import AssertionFailed, ExecutionError, Executor, execute_packed
from gristmill.interp.packed import PACKED_HELPERS
from gristmill.ir.op import PACKED_INTERFACE
from gristmill.ir.packed_texts import dtype_text
from gristmill.testing.placed import placed_module

SIGNATURE = "(self: handle, args: handle, count: int32, result: handle) -> int32"

ADD = f"""
function @add{SIGNATURE}
  symbol "add"
  convention packed
{{
  assert count == 3i32, "TypeError", "expected 3 arguments, got ", count
  let k0: int32 = packed_kind(args, 0i32) as int32
  assert k0 == 7i32 or k0 == 70i32, "TypeError", "argument 0 is not a tensor"
  let t: handle = packed_tensor(args, 0i32) as handle
  assert tensor_rank(t) as int32 == 1i32, "ValueError", "rank ", tensor_rank(t) as int32
  assert tensor_dtype(t) as int32 == 73730i32, "TypeError", "dtype ", tensor_dtype(t) as int32
  let n: int64 = tensor_size(t, 0i32) as int64
  assert not tensor_is_null(t) as bool, "ValueError", "null"
  assert tensor_is_aligned(t, 4i32) as bool, "ValueError", "alignment"
  assert tensor_device_type(t) as int32 == 1i32 and tensor_device_id(t) as int32 == 0i32, "ValueError", "device"
  assert not tensor_has_strides(t) as bool or tensor_stride(t, 0i32) as int64 == 1, "ValueError", "strides"
  view x: float32[n] from tensor_data(t) as handle
  let k1: int32 = packed_kind(args, 1i32) as int32
  assert k1 >= 1i32 and k1 <= 3i32, "TypeError", "argument 1 is not a number"
  let y: float64 = if_then_else(k1 == 3i32, packed_float(args, 1i32) as float64, float64(packed_int(args, 1i32) as int64))
  evaluate packed_pointer(args, 2i32) as handle
  for i: int64 in 0 +: n {{
    x[i] = x[i] + float32(y)
  }}
  evaluate packed_return(result, n) as void
  return 0i32
}}
""".replace("73730", str(2 | 32 << 8 | 1 << 16))


def run(*args: object) -> object:
    return execute_packed(placed_module(ADD)[0], "add", args).value


@pytest.mark.parametrize(("y", "added"), [(2, 2), (2.5, 2.5), (True, 1)])
def test_a_packed_function(y: object, added: float) -> None:
    x = np.arange(3, dtype=np.float32)
    assert run(x, y, None) == 3
    assert x.tolist() == [added, 1 + added, 2 + added]


@pytest.mark.parametrize(
    ("args", "kind", "message"),
    [
        ((), "TypeError", "expected 3 arguments, got 0"),
        ((1, 2, None), "TypeError", "argument 0 is not a tensor"),
        ((np.zeros((2, 2), np.float32), 2, None), "ValueError", "rank 2"),
        ((np.zeros(2, np.int32), 2, None), "TypeError", "dtype 73728"),
        ((np.zeros(4, np.float32)[::2], 2, None), "ValueError", "strides"),
        ((np.zeros(2, np.float32), "two", None), "TypeError", "argument 1 is not a number"),
    ],
)
def test_checks_that_fail(args: tuple[object, ...], kind: str, message: str) -> None:
    with pytest.raises(AssertionFailed) as caught:
        run(*args)
    assert caught.value.code == "GM0507"
    assert caught.value.kind == kind
    assert caught.value.message == message.replace("73728", str(0 | 32 << 8 | 1 << 16))


@pytest.mark.parametrize(
    ("line", "args"),
    [
        ("packed_int(args, 0i32) as int64", (1.5,)),
        ("packed_float(args, 0i32) as float64", (1,)),
        ("packed_tensor(args, 0i32) as handle", (1,)),
        ("packed_pointer(args, 0i32) as handle", (1,)),
        ("packed_kind(args, 1i32) as int32", (1,)),
        ("packed_kind(result, 0i32) as int32", (1,)),
        ("packed_big(args, 0i32) as uint64", (1 << 64,)),
        ("packed_big_fits(args, 0i32) as bool", (7,)),
        ("tensor_rank(args) as int32", ()),
        ("tensor_size(packed_tensor(args, 0i32) as handle, 1i32) as int64", (np.zeros(3),)),
    ],
)
def test_reads_that_the_checks_should_have_prevented(line: str, args: tuple[object, ...]) -> None:
    text = f'function @f{SIGNATURE}\n symbol "f"\n convention packed\n{{\n evaluate {line}\n return 0i32\n}}\n'
    module, texts = placed_module(text)
    with pytest.raises(ExecutionError) as caught:
        Executor(module).call_packed("f", args)
    found = caught.value.diagnostics[0]
    assert found.code == "GM0506"
    assert found.place is not None
    assert texts[found.place] == line


@pytest.mark.parametrize(
    ("text", "value"),
    [("-1i8", -1), ("18446744073709551615u64", (1 << 64) - 1), ("true", True), ("0.5f16", 0.5)],
)
def test_results(text: str, value: object) -> None:
    body = f"evaluate packed_return(result, {text}) as void"
    module, _ = placed_module(
        f'function @f{SIGNATURE}\n symbol "f"\n convention packed\n{{\n {body}\n return 0i32\n}}\n'
    )
    found = execute_packed(module, "f", []).value
    assert found == value
    assert type(found) is type(value)


def test_big_integers() -> None:
    text = f"""
function @f{SIGNATURE}
  symbol "f"
  convention packed
{{
  assert packed_kind(args, 0i32) as int32 == 78i32, "TypeError", "not big"
  assert packed_big_fits(args, 0i32) as bool, "ValueError", "too big"
  evaluate packed_return(result, packed_big(args, 0i32) as uint64 >> 1u64) as void
  return 0i32
}}
"""
    module, _ = placed_module(text)
    assert execute_packed(module, "f", [(1 << 64) - 1]).value == (1 << 63) - 1
    with pytest.raises(AssertionFailed, match="too big"):
        execute_packed(module, "f", [1 << 64])
    with pytest.raises(AssertionFailed, match="not big"):
        execute_packed(module, "f", [1])


def test_texts_of_what_was_given() -> None:
    body = """  assert packed_is_null(args) as bool, "TypeError", "given: ", packed_kind_text(args, 0i32) as handle, "; ", \
packed_kind_text(args, 1i32) as handle
"""
    module, _ = placed_module(
        f'function @f{SIGNATURE}\n symbol "f"\n convention packed\n{{\n{body}\n return 0i32\n}}\n'
    )
    for given, shown in (
        (None, "None"),
        (1.5, "a float"),
        (1 << 70, "an int beyond 64 bits"),
        (np.zeros(2), "an array"),
    ):
        with pytest.raises(AssertionFailed) as caught:
            execute_packed(module, "f", [given, True])
        assert caught.value.message == f"given: {shown}; a bool"


@pytest.mark.parametrize(
    ("dtype", "shown"),
    [
        (0 | 64 << 8 | 1 << 16, "dtype int64"),
        (1 | 8 << 8 | 1 << 16, "dtype uint8"),
        (2 | 32 << 8 | 1 << 16, "dtype float32"),
        (4 | 16 << 8 | 1 << 16, "dtype bfloat16"),
        (6 | 8 << 8 | 1 << 16, "dtype bool"),
        (0 | 8 << 8 | 4 << 16, "elements of 4 lanes (DLPack code 0, 8 bits)"),
        (9 | 3 << 8 | 1 << 16, "a dtype of DLPack code 9 with 3 bits"),
    ],
)
def test_texts_of_dtypes(dtype: int, shown: str) -> None:
    assert dtype_text(dtype) == shown


def test_a_status_without_an_error() -> None:
    module, _ = placed_module(f'function @f{SIGNATURE}\n symbol "f"\n convention packed\n{{\n return -1i32\n}}\n')
    with pytest.raises(ExecutionError) as caught:
        execute_packed(module, "f", [])
    assert caught.value.code == "GM0519"


def test_arrays_of_types_that_the_language_lacks() -> None:
    with pytest.raises(ExecutionError) as caught:
        run(np.zeros(2, np.complex64), 1, None)
    assert caught.value.code == "GM0510"


def test_every_operation_of_the_interface_has_a_model() -> None:
    assert {op.name for op in PACKED_INTERFACE} == set(PACKED_HELPERS)


def test_texts_of_kinds_and_dtypes_in_messages() -> None:
    text = f"""
function @f{SIGNATURE}
  symbol "f"
  convention packed
{{
  let t: handle = packed_tensor(args, 1i32) as handle
  let k: bool = packed_is_null(args) as bool
  assert k, "TypeError", packed_kind_text(args, 0i32) as handle, " and ", tensor_dtype_text(t) as handle
  return 0i32
}}
"""
    with pytest.raises(AssertionFailed) as caught:
        execute_packed(placed_module(text)[0], "f", [1.5, np.zeros(2, np.uint16)])
    assert caught.value.message == "a float and dtype uint16"
