"""How signatures are written, and that the numbers are those of the C headers that tvm-ffi ships."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import tvm_ffi

from gristmill.codegen.packed_interface import packed_dtype, signature_text
from gristmill.ir.dtype import BFLOAT16, BOOL, FLOAT32, INT8, UINT64
from gristmill.ir.host_interface import TypeIndex
from gristmill.ir.parser import parse_module


def test_type_indices_are_those_of_the_header() -> None:
    header = (Path(tvm_ffi.__file__).parent / "include" / "tvm" / "ffi" / "c_api.h").read_text()
    names = {
        "None": "NONE",
        "OpaquePtr": "POINTER",
        "DataType": "DTYPE",
        "DLTensorPtr": "DLTENSOR",
        "RawStr": "RAW_TEXT",
        "SmallStr": "SMALL_TEXT",
        "Str": "TEXT",
        "OpaquePyObject": "PYTHON_OBJECT",
        "BigInt": "BIG_INT",
    }
    stated = {name: int(value) for name, value in re.findall(r"kTVMFFI(\w+) = (\d+),?$", header, re.MULTILINE)}
    known = {names.get(name, name.upper()): value for name, value in stated.items()}
    assert {index.name: index.value for index in TypeIndex}.items() <= known.items()


@pytest.mark.parametrize(
    ("dtype", "code", "bits"), [(FLOAT32, 2, 32), (INT8, 0, 8), (UINT64, 1, 64), (BOOL, 6, 8), (BFLOAT16, 4, 16)]
)
def test_dtypes_as_tensors_have_them(dtype: object, code: int, bits: int) -> None:
    assert packed_dtype(dtype) == code | bits << 8 | 1 << 16  # type: ignore[arg-type]


def test_signatures() -> None:
    source = """gristmill ir 1

function @f<n: int64>(x: float32[n, 4], y: int8[], z: int8[n + 1], a: bool) -> int64
  symbol "g"
{
  return n
}

function @h()
  symbol "h"
  signature "h as its author wrote it"
{
}
"""
    made, written = parse_module(source).functions
    assert (
        signature_text(made)
        == "g(x: Buffer((n, 4), float32), y: Buffer((), int8), z: Buffer((n + 1,), int8), a: bool) -> int64"
    )
    assert signature_text(written) == "h as its author wrote it"
