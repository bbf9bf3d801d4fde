"""How element types look in LLVM: in a register, in memory, and as constants."""

from __future__ import annotations

import math
import struct
from functools import lru_cache

from gristmill.ir.dtype import DType


@lru_cache(maxsize=512)
def register_type(dtype: DType) -> str:
    """The LLVM type of a value: bools are ``i1``, handles ``ptr``, vectors LLVM vectors."""
    if dtype.is_vector:
        return f"<{dtype.lanes} x {register_type(dtype.element)}>"
    if dtype.is_bool:
        return "i1"
    if dtype.is_integer:
        return f"i{dtype.bits}"
    if dtype.is_handle:
        return "ptr"
    if dtype.is_void:
        return "void"
    return {"float16": "half", "bfloat16": "bfloat", "float32": "float", "float64": "double"}[str(dtype)]


@lru_cache(maxsize=512)
def memory_type(dtype: DType) -> str:
    """The LLVM type of a value in memory: as in a register, but a bool takes a byte."""
    if not dtype.is_bool:
        return register_type(dtype)
    return f"<{dtype.lanes} x i8>" if dtype.is_vector else "i8"


@lru_cache(maxsize=512)
def suffix(dtype: DType) -> str:
    """How overloaded intrinsics name the register type: ``i32``, ``f64``, ``v4f32``."""
    if dtype.is_vector:
        return f"v{dtype.lanes}{suffix(dtype.element)}"
    if dtype.is_bool:
        return "i1"
    if dtype.is_integer:
        return f"i{dtype.bits}"
    if dtype.is_handle:
        return "p0"
    return {"float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64"}[str(dtype)]


def integer(value: int, dtype: DType) -> str:
    """An integer or bool constant; in every lane of a vector type."""
    element = dtype.element
    text = ("true" if value else "false") if element.is_bool else str(_as_signed(value, element.bits))
    return splat(text, dtype)


def floating(value: float, dtype: DType) -> str:
    """A float constant; in every lane of a vector type.

    LLVM reads float and double constants as the bits of a double in hexadecimal, exact for both.
    """
    bits = 0x7FF8000000000000 if math.isnan(value) else struct.unpack("<Q", struct.pack("<d", value))[0]
    return splat(f"0x{bits:016X}", dtype)


def zero(dtype: DType) -> str:
    """The value whose bits are all 0."""
    if dtype.is_vector:
        return "zeroinitializer"
    if dtype.is_handle:
        return "null"
    return floating(0.0, dtype) if dtype.is_float else integer(0, dtype)


def splat(constant: str, dtype: DType) -> str:
    """The scalar constant in every lane of ``dtype``, or as it is for a scalar type."""
    return f"splat ({register_type(dtype.element)} {constant})" if dtype.is_vector else constant


def typed(operand: str, dtype: DType) -> str:
    """An operand with its type before it, as most instructions want it."""
    return f"{register_type(dtype)} {operand}"


def _as_signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) > 0 else value
