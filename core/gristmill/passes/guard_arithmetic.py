"""Use the division and shifts of machines where bounds prove that their preconditions hold.

Before::

    for i in range(64):
        a[i] = x[i] // n + (i << 2) + i // 8

After::

    for i in range(64):
        a[i] = x[i] // n + shift_left(i, 2) + shift_right(i, 3)

Integer division and shifts are total in the language; those of machines are not. An operation whose operands are
proven harmless becomes a partial operation (quotient, remainder, shift_left, shift_right); division that rounds down
by a power of two becomes a shift or a mask. What is not proven stays, and the code generator guards it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gristmill.ir.build import call, const, constant_value
from gristmill.ir.expr import (
    BinaryExpr,
    BitAnd,
    Div,
    Expr,
    FloorDiv,
    FloorMod,
    Mod,
    ShiftLeft,
    ShiftRight,
)
from gristmill.ir.functor import walk
from gristmill.ir.module import Function, Module
from gristmill.passes.manager import Pass, is_interface
from gristmill.passes.ranges import RangeMutator


@dataclass(frozen=True)
class GuardArithmetic(Pass):
    """Use the division and shifts of machines where bounds prove that their preconditions hold."""

    def run(self, module: Module) -> Module:
        return module.with_functions(
            function if is_interface(function) else guard_arithmetic(function) for function in module.functions
        )


def guard_arithmetic(function: Function) -> Function:
    """The function with partial operations where they are proven; the same object if there are none."""
    if not any(isinstance(node, _TOTAL) for node in walk(function.body)):
        return function
    return function.with_body(_Guarding(function).visit(function.body))


_TOTAL = (Div, Mod, FloorDiv, FloorMod, ShiftLeft, ShiftRight)


class _Guarding(RangeMutator):
    def visit_Div(self, node: Div) -> Any:
        node = self.generic(node)
        return call("quotient", node.a, node.b, span=node.span) if self.may_divide(node) else node

    def visit_Mod(self, node: Mod) -> Any:
        node = self.generic(node)
        return call("remainder", node.a, node.b, span=node.span) if self.may_divide(node) else node

    def visit_FloorDiv(self, node: FloorDiv) -> Any:
        node = self.generic(node)
        shift = _power_of_two(node.b)
        if shift is not None:
            return call("shift_right", node.a, const(shift, node.dtype), span=node.span) if shift else node.a
        if self.is_not_negative(node) and self.may_divide(node):
            return call("quotient", node.a, node.b, span=node.span)
        return node

    def visit_FloorMod(self, node: FloorMod) -> Any:
        node = self.generic(node)
        shift = _power_of_two(node.b)
        if shift is not None:
            return BitAnd(node.a, const((1 << shift) - 1, node.dtype), node.span)
        if self.is_not_negative(node) and self.may_divide(node):
            return call("remainder", node.a, node.b, span=node.span)
        return node

    def visit_ShiftLeft(self, node: ShiftLeft) -> Any:
        node = self.generic(node)
        return call("shift_left", node.a, node.b, span=node.span) if self.may_shift(node) else node

    def visit_ShiftRight(self, node: ShiftRight) -> Any:
        node = self.generic(node)
        return call("shift_right", node.a, node.b, span=node.span) if self.may_shift(node) else node

    def may_divide(self, node: BinaryExpr) -> bool:
        """Whether the divisor is never 0, and never -1 where the dividend is the least integer."""
        if not node.dtype.is_integer:
            return False
        divisor, dividend = self.simplifier.bounds.of(node.b), self.simplifier.bounds.of(node.a)
        if divisor.contains(0):
            return False
        return not (node.dtype.is_signed and divisor.contains(-1) and dividend.contains(node.dtype.minimum))

    def is_not_negative(self, node: BinaryExpr) -> bool:
        """Whether rounding down and rounding towards zero are the same."""
        bounds = self.simplifier.bounds
        return bounds.of(node.a).low >= 0 and bounds.of(node.b).low >= 0

    def may_shift(self, node: BinaryExpr) -> bool:
        amount = self.simplifier.bounds.of(node.b)
        return amount.low >= 0 and amount.high < node.dtype.bits


def _power_of_two(divisor: Expr) -> int | None:
    """The exponent of a constant that is a power of two."""
    value = constant_value(divisor)
    if not isinstance(value, int) or value <= 0 or value & (value - 1):
        return None
    return value.bit_length() - 1
