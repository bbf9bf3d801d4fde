"""What ``packed_kind_text`` and ``tensor_dtype_text`` say: the texts that messages about arguments are made of.

The numbers are those of TVM FFI (``TVMFFITypeIndex`` in tvm/ffi/c_api.h) and of DLPack (``DLDataTypeCode`` in
dlpack.h). A text may hold numbers; each stands as a name in braces.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from gristmill.ir.dtype import DLPACK_CODES, TypeCode

KIND_TEXTS: Mapping[int, str] = MappingProxyType(
    {
        0: "None",
        1: "an int",
        2: "a bool",
        3: "a float",
        4: "a pointer",
        7: "an array",
        8: "a str",
        11: "a str",
        65: "a str",
        70: "an array",
        71: "a list or tuple",
        74: "a Python object that is neither a number nor an array (for a numpy.bool_ write bool(...))",
        75: "a list or tuple",
        78: "an int beyond 64 bits",
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
