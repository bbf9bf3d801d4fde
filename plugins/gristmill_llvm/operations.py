"""The operations of the language that machines have themselves: rounding, bit counting, tests of floats, fma.

Everything else (exp, sin, ...) has been replaced by functions of mathlib before a generator sees it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from gristmill.ir.dtype import DType
from gristmill.ir.effects import is_collective, is_matrix
from gristmill.ir.expr import Call
from gristmill_llvm.context import FunctionContext
from gristmill_llvm.refusals import refused_construct, refused_operation
from gristmill_llvm.types import floating, integer, register_type, suffix, zero

Emit = Callable[[FunctionContext, Call, list[str]], str]


def intrinsic(
    context: FunctionContext, name: str, dtype: DType, operands: list[str], extra: str = "", flags: str = ""
) -> str:
    """Call an intrinsic that is overloaded on one type, which all its operands and its result have.

    ``extra`` is a constant flag operand (``i1 false``) that some take at the end.
    """
    text = register_type(dtype)
    parameters = ", ".join([text] * len(operands) + ([extra.split()[0]] if extra else []))
    reference = context.module.declare(f"llvm.{name}.{suffix(dtype)}", text, parameters)
    given = ", ".join([f"{text} {operand}" for operand in operands] + ([extra] if extra else []))
    return context.writer.value(f"call {flags}{text} {reference}({given})")


def _float_intrinsic(name: str) -> Emit:
    def emit(context: FunctionContext, node: Call, operands: list[str]) -> str:
        return intrinsic(context, name, node.dtype, operands)

    return emit


def _integer_intrinsic(name: str, extra: str = "") -> Emit:
    def emit(context: FunctionContext, node: Call, operands: list[str]) -> str:
        return intrinsic(context, name, node.dtype, operands, extra)

    return emit


def _instruction(signed: str, unsigned: str) -> Emit:
    def emit(context: FunctionContext, node: Call, operands: list[str]) -> str:
        instruction = signed if node.dtype.is_signed else unsigned
        return context.writer.value(f"{instruction} {register_type(node.dtype)} {operands[0]}, {operands[1]}")

    return emit


def _absolute(context: FunctionContext, node: Call, operands: list[str]) -> str:
    dtype = node.dtype
    if dtype.is_float:
        return intrinsic(context, "fabs", dtype, operands)
    if not dtype.is_signed:
        return operands[0]
    return intrinsic(context, "abs", dtype, operands, "i1 false")


def _reciprocal_root(context: FunctionContext, node: Call, operands: list[str]) -> str:
    dtype = node.dtype
    root = intrinsic(context, "sqrt", dtype, operands)
    return context.writer.value(f"fdiv {register_type(dtype)} {floating(1.0, dtype)}, {root}")


def _is_nan(context: FunctionContext, node: Call, operands: list[str]) -> str:
    dtype = node.args[0].dtype
    return context.writer.value(f"fcmp uno {register_type(dtype)} {operands[0]}, {zero(dtype)}")


def _against_infinity(comparison: str) -> Emit:
    def emit(context: FunctionContext, node: Call, operands: list[str]) -> str:
        dtype = node.args[0].dtype
        magnitude = intrinsic(context, "fabs", dtype, operands)
        infinity = floating(math.inf, dtype)
        return context.writer.value(f"fcmp {comparison} {register_type(dtype)} {magnitude}, {infinity}")

    return emit


def _likely(context: FunctionContext, node: Call, operands: list[str]) -> str:
    if node.dtype.is_vector:
        return operands[0]
    name = context.module.declare("llvm.expect.i1", "i1", "i1, i1")
    return context.writer.value(f"call i1 {name}(i1 {operands[0]}, i1 {integer(1, node.dtype)})")


def _disjoint(context: FunctionContext, node: Call, operands: list[str]) -> str:
    # Addresses and their sums are numbers below 2**64, since ranges of memory do not run over the end of it.
    writer = context.writer
    first, first_bytes, second, second_bytes = operands
    starts = [writer.value(f"ptrtoint ptr {pointer} to i64") for pointer in (first, second)]
    counts = [first_bytes, second_bytes]
    ends = [writer.value(f"add i64 {start}, {count}") for start, count in zip(starts, counts, strict=True)]
    apart = [writer.value(f"icmp ule i64 {ends[one]}, {starts[1 - one]}") for one in (0, 1)]
    empty = [writer.value(f"icmp sle i64 {count}, 0") for count in counts]
    found = apart[0]
    for other in (apart[1], *empty):
        found = writer.value(f"or i1 {found}, {other}")
    return found


def _aligned(context: FunctionContext, node: Call, operands: list[str]) -> str:
    pointer, alignment = operands
    address = context.writer.value(f"ptrtoint ptr {pointer} to i64")
    below = context.writer.value(f"urem i64 {address}, {alignment}")
    return context.writer.value(f"icmp eq i64 {below}, 0")


NATIVE: Mapping[str, Emit] = {
    "sqrt": _float_intrinsic("sqrt"),
    "rsqrt": _reciprocal_root,
    "floor": _float_intrinsic("floor"),
    "ceil": _float_intrinsic("ceil"),
    "round": _float_intrinsic("roundeven"),
    "trunc": _float_intrinsic("trunc"),
    "abs": _absolute,
    "fma": _float_intrinsic("fma"),
    "copysign": _float_intrinsic("copysign"),
    "isnan": _is_nan,
    "isinf": _against_infinity("oeq"),
    "isfinite": _against_infinity("one"),
    "popcount": _integer_intrinsic("ctpop"),
    "clz": _integer_intrinsic("ctlz", "i1 false"),
    "ctz": _integer_intrinsic("cttz", "i1 false"),
    "likely": _likely,
    "disjoint": _disjoint,
    "aligned": _aligned,
    "quotient": _instruction("sdiv", "udiv"),
    "remainder": _instruction("srem", "urem"),
    "shift_left": _instruction("shl", "shl"),
    "shift_right": _instruction("ashr", "lshr"),
}
"""Operation name to the function that writes it. A profile says which of them its machine has."""


def emit_operation(context: FunctionContext, node: Call) -> str:
    """The value of an operation other than those of the packed interface. Raises Unsupported (GM0661, GM0663)."""
    if is_collective(node):
        remedy = "write a plain loop for the CPU, or build the function for a device"
        kind = "an operation of a warp on tiles of matrices" if is_matrix(node) else "an exchange between threads"
        what = f"`{node.op}`, {kind},"
        raise refused_construct(what, context.profile.target, remedy, node.span)
    emit = NATIVE.get(node.op.name)
    if emit is None or node.op.name not in context.profile.operations:
        raise refused_operation(node.op.name, node.dtype, context.profile.target, node.span)
    return emit(context, node, [context.evaluate(argument) for argument in node.args])
