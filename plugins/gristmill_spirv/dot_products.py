"""Sums of products of bytes, by the instructions for them (SPV_KHR_integer_dot_product) where the target has them."""

from __future__ import annotations

from gristmill.ir.dtype import DType
from gristmill_spirv.enumerants import Capability, Op, PackedVectorFormat
from gristmill_spirv.function_writer import FunctionWriter
from gristmill_spirv.registers import word

FEATURE = "dot_product"


def dot4(writer: FunctionWriter, dtype: DType, a: int, b: int, total: int) -> int:
    """One lane of the operation ``dot4``."""
    return _dot(writer, Op.SDot if dtype.is_signed else Op.UDot, a, b, total)


def dot4_mixed(writer: FunctionWriter, dtype: DType, a: int, b: int, total: int) -> int:
    """One lane of the operation ``dot4_mixed``."""
    return _dot(writer, Op.SUDot, a, b, total)


def _dot(writer: FunctionWriter, op: Op, a: int, b: int, total: int) -> int:
    module = writer.module
    module.capability(Capability.DotProduct)
    module.capability(Capability.DotProductInput4x8BitPacked)
    if module.version < (1, 6):
        module.extension("SPV_KHR_integer_dot_product")
    products = writer.value(op, word(writer), a, b, PackedVectorFormat.PackedVectorFormat4x8Bit)
    return writer.value(Op.IAdd, word(writer), products, total)


OPERATIONS = {"dot4": dot4, "dot4_mixed": dot4_mixed}
"""There only where the target states the feature."""
