"""What ``packed_kind_text`` and ``tensor_dtype_text`` say: the texts that messages about arguments are made of.

Dtypes have the codes of DLPack (``DLDataTypeCode`` in dlpack.h). A text may hold numbers; each stands as a name in braces.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from gristmill.ir.dtype import DLPACK_CODES, TypeCode
from gristmill.ir.host_interface import TypeIndex

KIND_TEXTS: Mapping[int, str] = MappingProxyType(
    {
        TypeIndex.NONE: "None",
        TypeIndex.INT: "an int",
        TypeIndex.BOOL: "a bool",
        TypeIndex.FLOAT: "a float",
        TypeIndex.POINTER: "a pointer",
        TypeIndex.DLTENSOR: "an array",
        TypeIndex.RAW_TEXT: "a str",
        TypeIndex.SMALL_TEXT: "a str",
        TypeIndex.TEXT: "a str",
        TypeIndex.TENSOR: "an array",
        TypeIndex.ARRAY: "a list or tuple",
        TypeIndex.PYTHON_OBJECT: "a Python object that is neither a number nor an array (for a numpy.bool_ write bool(...))",
        TypeIndex.LIST: "a list or tuple",
        TypeIndex.BIG_INT: "an int beyond 64 bits",
    }
)
"""Type index of an argument to what people call such a value."""

OTHER_KIND_TEXT = "an object of another type (TVM FFI type index {index})"
"""What an argument with any other type index is called."""

DTYPE_TEXTS: Mapping[int, str] = MappingProxyType(
    {
        DLPACK_CODES[TypeCode.INT]: "dtype int{bits}",
        DLPACK_CODES[TypeCode.UINT]: "dtype uint{bits}",
        DLPACK_CODES[TypeCode.FLOAT]: "dtype float{bits}",
        DLPACK_CODES[TypeCode.BFLOAT]: "dtype bfloat{bits}",
        5: "dtype complex{bits}",
        DLPACK_CODES[TypeCode.BOOL]: "dtype bool",
    }
)
"""Code of a dtype to the text for one without lanes."""

VECTOR_DTYPE_TEXT = "elements of {lanes} lanes (DLPack code {code}, {bits} bits)"
"""For a dtype with other than one lane."""

OTHER_DTYPE_TEXT = "a dtype of DLPack code {code} with {bits} bits"
"""For a dtype of any other code."""


def kind_text(index: int) -> str:
    """What an argument with this type index is called."""
    return KIND_TEXTS.get(index) or OTHER_KIND_TEXT.format(index=index)


def dtype_text(dtype: int) -> str:
    """What the dtype ``code | bits << 8 | lanes << 16`` is called."""
    code, bits, lanes = dtype & 0xFF, dtype >> 8 & 0xFF, dtype >> 16 & 0xFFFF
    text = DTYPE_TEXTS.get(code, OTHER_DTYPE_TEXT) if lanes == 1 else VECTOR_DTYPE_TEXT
    return text.format(code=code, bits=bits, lanes=lanes)
