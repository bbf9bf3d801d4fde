"""How values of the language are held in SPIR-V: the types of registers, constants, and the raw bits of a value.

A value is a tuple of ids, one a lane (:data:`Lanes`): GPUs work lane by lane, so vectors of any length need no case of
their own. Of one lane:

* ``bool`` is OpTypeBool;
* integers are unsigned SPIR-V integers (signedness is in the instructions) of 32 or 64 bits; those of 8 and 16 bits are
  held in 32 bits, sign-extended or zero-extended as their type says, so no device needs 8-bit or 16-bit arithmetic;
* ``float16`` and ``bfloat16`` are held as the float32 of the same value;
* a pointer is no register (see :mod:`gristmill_spirv.places`).
"""

from __future__ import annotations

import struct

from gristmill.ir.dtype import DType
from gristmill_spirv.builder import ModuleBuilder
from gristmill_spirv.enumerants import Op
from gristmill_spirv.function_writer import FunctionWriter

Lanes = tuple[int, ...]


def width_of(dtype: DType) -> int:
    """How many bits a register of this element type has: 32 or 64 (a bool counts as 32)."""
    return 64 if dtype.bits == 64 else 32


def is_narrow(dtype: DType) -> bool:
    """Whether values are held wider than they are."""
    return dtype.bits < 32 and not dtype.is_bool


def word(writer: FunctionWriter, bits: int = 32) -> int:
    """The type of unsigned integers of 32 or 64 bits."""
    return writer.module.type_int(bits, signed=False)


def register_type(module: ModuleBuilder, dtype: DType) -> int:
    """The type of one lane."""
    if dtype.is_bool:
        return module.type_bool()
    if dtype.is_float:
        return module.type_float(width_of(dtype))
    return module.type_int(width_of(dtype), signed=False)


def word_constant(writer: FunctionWriter, value: int, bits: int = 32) -> int:
    return writer.module.constant_int(value, bits, signed=False)


def constant(writer: FunctionWriter, dtype: DType, value: int | float) -> int:
    """A constant of an element type. Floats are rounded to it already; integers are reduced to it."""
    if dtype.is_bool:
        return writer.module.constant_bool(bool(value))
    if not dtype.is_float:
        return word_constant(writer, dtype.wrap(int(value)), width_of(dtype))
    type_ = register_type(writer.module, dtype)
    if dtype.bits == 64:
        (bits,) = struct.unpack("<Q", struct.pack("<d", value))
        return writer.module.constant(type_, (bits & 0xFFFFFFFF, bits >> 32))
    (bits,) = struct.unpack("<I", struct.pack("<f", value))
    return writer.module.constant(type_, (bits,))


def select(writer: FunctionWriter, dtype: DType, condition: int, a: int, b: int) -> int:
    return writer.value(Op.Select, register_type(writer.module, dtype), condition, a, b)


def float_bits(writer: FunctionWriter, dtype: DType, value: int) -> int:
    """The bits of a register of a float type, as an unsigned integer of its width."""
    return writer.value(Op.Bitcast, word(writer, width_of(dtype)), value)


def float_from_bits(writer: FunctionWriter, dtype: DType, bits: int) -> int:
    return writer.value(Op.Bitcast, register_type(writer.module, dtype), bits)
