"""Integer division, remainder and shifts as the language defines them for every operand.

Machines trap or give anything for a zero divisor, for ``MIN / -1`` and for shifts by the width or more. The pass
``guard_arithmetic`` removes these nodes where bounds prove operands harmless; what is left gets its guards here.
"""

from __future__ import annotations

from gristmill.ir.build import constant_value
from gristmill.ir.expr import BinaryExpr, Div, FloorDiv, FloorMod
from gristmill_llvm.context import FunctionContext
from gristmill_llvm.types import integer, register_type


def divide(context: FunctionContext, node: BinaryExpr, a: str, b: str) -> str:
    """The value of an integer :class:`Div`, ``Mod``, :class:`FloorDiv` or :class:`FloorMod` of the operands."""
    writer, dtype = context.writer, node.dtype
    text = register_type(dtype)
    signed = dtype.is_signed
    sign = "s" if signed else "u"
    zero, one = integer(0, dtype), integer(1, dtype)
    condition = register_type(dtype).replace(f"i{dtype.bits}", "i1")
    quotient = isinstance(node, (Div, FloorDiv))
    divisor = constant_value(node.b)
    is_zero = ""
    if divisor is None or divisor == 0:
        is_zero = writer.value(f"icmp eq {text} {b}, {zero}")
        b = writer.value(f"select {condition} {is_zero}, {text} {one}, {text} {b}")
    if signed and (divisor is None or divisor == -1):
        least = writer.value(f"icmp eq {text} {a}, {integer(dtype.minimum, dtype)}")
        minus = writer.value(f"icmp eq {text} {b}, {integer(-1, dtype)}")
        both = writer.value(f"and {condition} {least}, {minus}")
        # MIN / 1 = MIN and MIN % 1 = 0 are what MIN / -1 and MIN % -1 shall be.
        b = writer.value(f"select {condition} {both}, {text} {one}, {text} {b}")
    floors = signed and isinstance(node, (FloorDiv, FloorMod))
    if quotient:
        result = writer.value(f"{sign}div {text} {a}, {b}")
        if floors:
            product = writer.value(f"mul {text} {result}, {b}")
            remainder = writer.value(f"sub {text} {a}, {product}")
            below = _needs_floor(context, text, condition, remainder, b, zero)
            less = writer.value(f"add {text} {result}, {integer(-1, dtype)}")
            result = writer.value(f"select {condition} {below}, {text} {less}, {text} {result}")
        if is_zero:
            result = writer.value(f"select {condition} {is_zero}, {text} {zero}, {text} {result}")
        return result
    # x % 1 = 0, so a zero divisor needs nothing more.
    result = writer.value(f"{sign}rem {text} {a}, {b}")
    if floors:
        below = _needs_floor(context, text, condition, result, b, zero)
        more = writer.value(f"add {text} {result}, {b}")
        result = writer.value(f"select {condition} {below}, {text} {more}, {text} {result}")
    return result


def _needs_floor(context: FunctionContext, text: str, condition: str, remainder: str, b: str, zero: str) -> str:
    """Whether rounding towards zero went up: the remainder is not zero and its sign is not that of the divisor."""
    writer = context.writer
    some = writer.value(f"icmp ne {text} {remainder}, {zero}")
    mixed = writer.value(f"xor {text} {remainder}, {b}")
    opposite = writer.value(f"icmp slt {text} {mixed}, {zero}")
    return writer.value(f"and {condition} {some}, {opposite}")


def shift_left(context: FunctionContext, node: BinaryExpr, a: str, b: str) -> str:
    """``a << b`` for any ``b``, read as unsigned."""
    return _shift(context, node, "shl", a, b)


def shift_right(context: FunctionContext, node: BinaryExpr, a: str, b: str) -> str:
    """``a >> b`` for any ``b``, read as unsigned."""
    dtype = node.dtype
    if not dtype.is_signed:
        return _shift(context, node, "lshr", a, b)
    writer, text = context.writer, register_type(dtype)
    if not _within(node):
        most = integer(dtype.bits - 1, dtype)
        condition = text.replace(f"i{dtype.bits}", "i1")
        fits = writer.value(f"icmp ult {text} {b}, {most}")
        b = writer.value(f"select {condition} {fits}, {text} {b}, {text} {most}")
    return writer.value(f"ashr {text} {a}, {b}")


def _shift(context: FunctionContext, node: BinaryExpr, instruction: str, a: str, b: str) -> str:
    writer, dtype = context.writer, node.dtype
    text = register_type(dtype)
    if _within(node):
        return writer.value(f"{instruction} {text} {a}, {b}")
    condition = text.replace(f"i{dtype.bits}", "i1")
    zero = integer(0, dtype)
    fits = writer.value(f"icmp ult {text} {b}, {integer(dtype.bits, dtype)}")
    amount = writer.value(f"select {condition} {fits}, {text} {b}, {text} {zero}")
    shifted = writer.value(f"{instruction} {text} {a}, {amount}")
    return writer.value(f"select {condition} {fits}, {text} {shifted}, {text} {zero}")


def _within(node: BinaryExpr) -> bool:
    amount = constant_value(node.b)
    return amount is not None and 0 <= amount < node.dtype.bits
