"""Numbers for expressions: two pure expressions get the same number exactly if they are structurally the same.

Computed once per node, so comparing is comparing two integers. An expression with an effect (a call of a function) is
the same as no other. Loads of one element are the same within one expression, where no memory changes.
"""

from __future__ import annotations

import math

from gristmill.ir.expr import (
    AddressOf,
    Broadcast,
    BufferRef,
    Call,
    CallExtern,
    CallFunction,
    CallPacked,
    Cast,
    Expr,
    FloatImm,
    IntImm,
    Load,
    Ramp,
    Reinterpret,
    Shuffle,
    StringImm,
    Var,
)
from gristmill.ir.functor import EXPRESSIONS, Functor


class Numbering(Functor[object], over=EXPRESSIONS):
    """Gives numbers to expressions and knows which are pure; nodes it has seen are kept alive by it."""

    def __init__(self) -> None:
        self._of_node: dict[Expr, int] = {}
        self._of_key: dict[object, int] = {}
        self._impure: set[int] = set()
        self._loading: set[int] = set()

    def of(self, expr: Expr) -> int:
        """The number of the expression."""
        found = self._of_node.get(expr)
        if found is not None:
            return found
        key = self.visit(expr)
        found = self._of_key.get(key)
        if found is None:
            found = self._of_key[key] = len(self._of_key)
            self._mark(expr, found)
        self._of_node[expr] = found
        return found

    def same(self, a: Expr, b: Expr) -> bool:
        """Whether both are the same pure expression."""
        return (a is b and self.is_pure(a)) or self.of(a) == self.of(b)

    def is_pure(self, expr: Expr) -> bool:
        """Whether evaluating it twice or not at all makes no difference."""
        return self.of(expr) not in self._impure

    def has_load(self, expr: Expr) -> bool:
        """Whether it reads memory."""
        return self.of(expr) in self._loading

    def _mark(self, expr: Expr, number: int) -> None:
        kind = type(expr)
        if kind in _CALLS or (kind is Call and not expr.op.pure):  # type: ignore[attr-defined]
            self._impure.add(number)
        if kind is Load:
            self._loading.add(number)
        for name in kind.CHILDREN:
            child = getattr(expr, name)
            for item in child if type(child) is tuple else (child,):
                below = self.of(item)
                if below in self._impure:
                    self._impure.add(number)
                if below in self._loading:
                    self._loading.add(number)

    def _parts(self, node: Expr) -> tuple[int, ...]:
        return tuple(
            self.of(item)
            for name in type(node).CHILDREN
            for child in (getattr(node, name),)
            for item in (child if type(child) is tuple else (child,))
        )

    # Keys -------------------------------------------------------------------------------------------------------------

    def visit_Expr(self, node: Expr) -> object:
        return type(node), self._parts(node)

    def visit_UnaryExpr(self, node: Expr) -> object:
        return type(node), self.of(node.a)  # type: ignore[attr-defined]

    def visit_BinaryExpr(self, node: Expr) -> object:
        return type(node), self.of(node.a), self.of(node.b)  # type: ignore[attr-defined]

    visit_CompareExpr = visit_BinaryExpr

    def visit_Var(self, node: Var) -> object:
        return node

    def visit_IntImm(self, node: IntImm) -> object:
        return IntImm, node.value, node.type

    def visit_FloatImm(self, node: FloatImm) -> object:
        # Zeros of two signs are two constants; NaNs count as one.
        shown = "nan" if math.isnan(node.value) else node.value.hex()
        return FloatImm, shown, node.type

    def visit_StringImm(self, node: StringImm) -> object:
        return StringImm, node.value

    def visit_Cast(self, node: Cast) -> object:
        return Cast, node.type, self.of(node.value)

    def visit_Reinterpret(self, node: Reinterpret) -> object:
        return Reinterpret, node.type, self.of(node.value)

    def visit_Ramp(self, node: Ramp) -> object:
        return Ramp, node.lanes, self.of(node.base), self.of(node.stride)

    def visit_Broadcast(self, node: Broadcast) -> object:
        return Broadcast, node.lanes, self.of(node.value)

    def visit_Shuffle(self, node: Shuffle) -> object:
        return Shuffle, node.indices, self._parts(node)

    def visit_Load(self, node: Load) -> object:
        return Load, node.buffer, self._parts(node)

    def visit_AddressOf(self, node: AddressOf) -> object:
        return AddressOf, node.buffer, self._parts(node)

    def visit_BufferRef(self, node: BufferRef) -> object:
        return BufferRef, node.buffer

    def visit_Call(self, node: Call) -> object:
        return (Call, node.op.name, node.type, self._parts(node)) if node.op.pure else node

    def visit_CallFunction(self, node: CallFunction) -> object:
        return node

    def visit_CallExtern(self, node: CallExtern) -> object:
        return node

    def visit_CallPacked(self, node: CallPacked) -> object:
        return node


_CALLS = frozenset((CallFunction, CallExtern, CallPacked))
