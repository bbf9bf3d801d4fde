"""Casts between all scalar and vector types, with the results that the language states."""

from __future__ import annotations

from gristmill.ir.build import round_to
from gristmill.ir.dtype import DType
from gristmill_llvm.context import FunctionContext
from gristmill_llvm.types import floating, integer, register_type, suffix, zero


def cast(context: FunctionContext, operand: str, source: DType, target: DType) -> str:
    """The value in another type with the same lanes."""
    if source == target:
        return operand
    writer = context.writer
    before, after = register_type(source), register_type(target)
    if target.is_bool:
        # une: a NaN is not zero.
        test = "fcmp une" if source.is_float else "icmp ne"
        return writer.value(f"{test} {before} {operand}, {zero(source)}")
    if source.is_float and target.is_float:
        step = "fptrunc" if target.bits < source.bits else "fpext"
        return writer.value(f"{step} {before} {operand} to {after}")
    if target.is_float:
        step = "sitofp" if source.is_signed else "uitofp"
        return writer.value(f"{step} {before} {operand} to {after}")
    if source.is_float:
        return _to_integer(context, operand, source, target)
    if source.is_bool or target.bits > source.bits:
        step = "sext" if source.is_signed else "zext"
        return writer.value(f"{step} {before} {operand} to {after}")
    if target.bits < source.bits:
        return writer.value(f"trunc {before} {operand} to {after}")
    return operand


def _to_integer(context: FunctionContext, operand: str, source: DType, target: DType) -> str:
    """Truncate towards zero, saturate, NaN to 0."""
    writer = context.writer
    before, after = register_type(source), register_type(target)
    sign = "s" if target.is_signed else "u"
    if target.bits == 64:
        name = context.module.declare(f"llvm.fpto{sign}i.sat.{suffix(target)}.{suffix(source)}", after, before)
        return writer.value(f"call {after} {name}({before} {operand})")
    # The intrinsic is taken apart lane by lane on x86. Comparing first, and converting what is in range, keeps vectors.
    # Conversions truncate, so anything under maximum + 1 and over minimum - 1 is in range; minimum - 1 itself has no
    # exact float where the type is wide, but there nothing lies between it and the minimum.
    condition = before.replace(register_type(source.element), "i1")
    over = float(target.maximum) + 1.0
    least = float(target.minimum)
    strict = round_to(least - 1.0, source.element) == least - 1.0
    low = least - 1.0 if strict else least
    above = writer.value(f"fcmp oge {before} {operand}, {floating(over, source)}")
    below = writer.value(f"fcmp {'ole' if strict else 'olt'} {before} {operand}, {floating(low, source)}")
    number = writer.value(f"fcmp ord {before} {operand}, {zero(source)}")
    outside = writer.value(f"or {condition} {above}, {below}")
    unusual = writer.value(f"xor {condition} {number}, {_all_true(condition)}")
    unusual = writer.value(f"or {condition} {unusual}, {outside}")
    tame = writer.value(f"select {condition} {unusual}, {before} {zero(source)}, {before} {operand}")
    found = writer.value(f"fpto{sign}i {before} {tame} to {after}")
    found = writer.value(f"select {condition} {above}, {after} {integer(target.maximum, target)}, {after} {found}")
    return writer.value(f"select {condition} {below}, {after} {integer(target.minimum, target)}, {after} {found}")


def _all_true(condition: str) -> str:
    return "true" if condition == "i1" else "splat (i1 true)"


def reinterpret(context: FunctionContext, operand: str, source: DType, target: DType) -> str:
    """The bits of the value read as another type."""
    before, after = register_type(source), register_type(target)
    if before == after:
        return operand
    return context.writer.value(f"bitcast {before} {operand} to {after}")
