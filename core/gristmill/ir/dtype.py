"""Element types: a code, a width in bits, and a number of lanes.

Written as in kernels: ``int8`` .. ``int64``, ``uint8`` .. ``uint64``, ``bool``, ``float16``, ``bfloat16``, ``float32``,
``float64``, with ``xN`` for N lanes (``float32x4``); ``handle`` is a pointer-sized opaque value and ``void`` no value.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from functools import cache, lru_cache


class TypeCode(Enum):
    """The kind of an element type."""

    INT = "int"
    UINT = "uint"
    FLOAT = "float"
    BFLOAT = "bfloat"
    BOOL = "bool"
    HANDLE = "handle"
    VOID = "void"


# DLPack's DLDataTypeCode (dlpack.h), as host functions see it in a tensor.
DLPACK_CODES = {
    TypeCode.INT: 0,
    TypeCode.UINT: 1,
    TypeCode.FLOAT: 2,
    TypeCode.HANDLE: 3,
    TypeCode.BFLOAT: 4,
    TypeCode.BOOL: 6,
}

LANES_AT_MOST = 1024


@dataclass(frozen=True, slots=True)
class DType:
    """An element type, compared by value.

    Integers are two's complement and wrap; ``bool`` takes one byte in memory and is 0 or 1; floats are IEEE 754
    (``bfloat16``: the upper half of a float32).
    """

    code: TypeCode
    bits: int
    lanes: int = 1

    def __str__(self) -> str:
        if self.code in (TypeCode.BOOL, TypeCode.HANDLE, TypeCode.VOID):
            name = self.code.value
        else:
            name = f"{self.code.value}{self.bits}"
        return name if self.lanes == 1 else f"{name}x{self.lanes}"

    def __repr__(self) -> str:
        return str(self)

    @property
    def is_signed(self) -> bool:
        """Whether this is a signed integer type (a vector of such counts too)."""
        return self.code is TypeCode.INT

    @property
    def is_unsigned(self) -> bool:
        return self.code is TypeCode.UINT

    @property
    def is_integer(self) -> bool:
        return self.code is TypeCode.INT or self.code is TypeCode.UINT

    @property
    def is_float(self) -> bool:
        """Whether this is a floating type of either format."""
        return self.code is TypeCode.FLOAT or self.code is TypeCode.BFLOAT

    @property
    def is_bool(self) -> bool:
        return self.code is TypeCode.BOOL

    @property
    def is_handle(self) -> bool:
        return self.code is TypeCode.HANDLE

    @property
    def is_void(self) -> bool:
        return self.code is TypeCode.VOID

    @property
    def is_vector(self) -> bool:
        return self.lanes > 1

    @property
    def element(self) -> DType:
        """The type of one lane."""
        return self if self.lanes == 1 else dtype_of(self.code, self.bits)

    def with_lanes(self, lanes: int) -> DType:
        return self if lanes == self.lanes else dtype_of(self.code, self.bits, lanes)

    @property
    def bytes(self) -> int:
        """How many bytes one value of all lanes takes in memory."""
        return self.bits // 8 * self.lanes

    @property
    def minimum(self) -> int:
        """The least value of an integer or bool type."""
        return -(1 << (self.bits - 1)) if self.code is TypeCode.INT else 0

    @property
    def maximum(self) -> int:
        """The greatest value of an integer or bool type."""
        if self.code is TypeCode.BOOL:
            return 1
        return (1 << (self.bits - 1)) - 1 if self.code is TypeCode.INT else (1 << self.bits) - 1

    def wrap(self, value: int) -> int:
        """``value`` reduced to this integer type, modulo 2**bits; to bool: whether it is not zero."""
        if self.code is TypeCode.BOOL:
            return int(value != 0)
        value &= (1 << self.bits) - 1
        if self.code is TypeCode.INT and value >> (self.bits - 1):
            value -= 1 << self.bits
        return value


def dtype_of(code: TypeCode, bits: int, lanes: int = 1) -> DType:
    """The one object for a type (types are interned, so that comparing them is cheap)."""
    return _interned(code, bits, lanes)


# The cache tells calls apart by how the arguments are passed, so it sits behind a function that passes all of them.
@cache
def _interned(code: TypeCode, bits: int, lanes: int) -> DType:
    return DType(code, bits, lanes)


BOOL = dtype_of(TypeCode.BOOL, 8)
INT8 = dtype_of(TypeCode.INT, 8)
INT16 = dtype_of(TypeCode.INT, 16)
INT32 = dtype_of(TypeCode.INT, 32)
INT64 = dtype_of(TypeCode.INT, 64)
UINT8 = dtype_of(TypeCode.UINT, 8)
UINT16 = dtype_of(TypeCode.UINT, 16)
UINT32 = dtype_of(TypeCode.UINT, 32)
UINT64 = dtype_of(TypeCode.UINT, 64)
FLOAT16 = dtype_of(TypeCode.FLOAT, 16)
BFLOAT16 = dtype_of(TypeCode.BFLOAT, 16)
FLOAT32 = dtype_of(TypeCode.FLOAT, 32)
FLOAT64 = dtype_of(TypeCode.FLOAT, 64)
HANDLE = dtype_of(TypeCode.HANDLE, 64)
VOID = dtype_of(TypeCode.VOID, 0)

SIGNED = (INT8, INT16, INT32, INT64)
UNSIGNED = (UINT8, UINT16, UINT32, UINT64)
FLOATS = (FLOAT16, BFLOAT16, FLOAT32, FLOAT64)
SCALARS = (BOOL, *SIGNED, *UNSIGNED, *FLOATS)
"""Every element type that a buffer or a scalar parameter may have."""

_BY_NAME = {str(dtype): dtype for dtype in (*SCALARS, HANDLE, VOID)}
_VECTOR = re.compile(r"(?P<element>[a-z]+\d*)x(?P<lanes>[1-9]\d{0,3})")


@lru_cache(maxsize=1024)
def parse_dtype(text: str) -> DType:
    """The type that ``text`` names, as ``float32`` or ``int8x16``.

    Raises ValueError for any other text, for lanes over ``LANES_AT_MOST``, and for lanes of ``handle`` or ``void``.
    """
    found = _BY_NAME.get(text)
    if found is not None:
        return found
    match = _VECTOR.fullmatch(text)
    element = _BY_NAME.get(match["element"]) if match else None
    if match is None or element is None or element.is_handle or element.is_void:
        raise ValueError(f"{text!r} is not a dtype; dtypes are {', '.join(_BY_NAME)}, with xN for N lanes")
    lanes = int(match["lanes"])
    if lanes > LANES_AT_MOST:
        raise ValueError(f"{text!r} has {lanes} lanes, and at most {LANES_AT_MOST} are allowed")
    return element.with_lanes(lanes)
