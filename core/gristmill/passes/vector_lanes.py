"""The vector form of a vectorised loop: every value that differs between iterations becomes a vector of lanes.

What has no vector form (a branch that lanes take differently, a call for each lane, several indices that differ)
raises :class:`NotVectorizable`; the loop then takes another way.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gristmill.ir.build import cast, const, sequence
from gristmill.ir.dtype import INT64
from gristmill.ir.effects import may_always_run
from gristmill.ir.expr import (
    And,
    BinaryExpr,
    Broadcast,
    Call,
    CallExtern,
    CallFunction,
    CallPacked,
    Cast,
    CompareExpr,
    Expr,
    IfThenElse,
    Load,
    Or,
    Ramp,
    Reinterpret,
    Select,
    UnaryExpr,
    Var,
)
from gristmill.ir.functor import ALL_NODES, Functor, walk
from gristmill.ir.memory import Buffer
from gristmill.ir.node import Node
from gristmill.ir.op import Operands
from gristmill.ir.stmt import (
    Allocate,
    Assert,
    Bind,
    Break,
    Continue,
    Evaluate,
    For,
    If,
    LoopKind,
    Seq,
    Stmt,
    Store,
    View,
    While,
)
from gristmill.passes.layout import as_int64, plus, times


class NotVectorizable(Exception):
    """The statement has no vector form; the argument says why."""


def vector_form(loop: For, lanes: int) -> Stmt:
    """The loop's body for all lanes at once; ``lanes`` is the extent. Raises NotVectorizable."""
    start = Var(loop.var.name, loop.var.type, span=loop.var.span)
    form = VectorForm(lanes)
    form.values[loop.var] = Ramp(start, const(1, start.type), lanes, loop.span)
    body = form.visit(loop.body)
    return sequence(Bind(start, loop.minimum, loop.span), body, span=loop.span)


class VectorForm(Functor[Any], over=ALL_NODES):
    """Rewrites code for one iteration into code for all; scalars that are the same in all lanes stay scalars."""

    def __init__(self, lanes: int) -> None:
        self.lanes = lanes
        self.values: dict[Var, Expr] = {}
        self.private: dict[Buffer, Buffer] = {}
        self.loops = 0

    def visit_Node(self, node: Node) -> Any:
        raise NotVectorizable(f"a {type(node).__name__} differs between lanes or runs once for each")

    # Expressions ------------------------------------------------------------------------------------------------------

    def expression(self, node: Expr) -> Expr:
        """The expression for all lanes: itself if no part of it differs."""
        if self.is_same(node):
            return node
        if node.dtype.lanes > 1:
            raise NotVectorizable("a vector differs between lanes")
        return self.visit(node)  # type: ignore[no-any-return]

    def is_same(self, node: Expr) -> bool:
        """Whether all lanes see the same value, and evaluating once is as good as once for each."""
        for part in walk(node):
            if isinstance(part, Var) and part in self.values:
                return False
            if getattr(part, "buffer", None) in self.private:
                return False
            if isinstance(part, (CallFunction, CallExtern, CallPacked)) or (
                isinstance(part, Call) and not part.op.pure
            ):
                raise NotVectorizable("a call runs once for each lane")
        return True

    def wide(self, node: Expr) -> Expr:
        found = self.expression(node)
        return found if found.dtype.lanes == self.lanes else Broadcast(found, self.lanes, found.span)

    def visit_Var(self, node: Var) -> Expr:
        return self.values.get(node, node)

    def visit_UnaryExpr(self, node: UnaryExpr) -> Expr:
        return type(node)(self.wide(node.a), node.span)  # type: ignore[call-arg]

    def visit_BinaryExpr(self, node: BinaryExpr) -> Expr:
        return type(node)(self.wide(node.a), self.wide(node.b), node.span)  # type: ignore[call-arg]

    def visit_CompareExpr(self, node: CompareExpr) -> Expr:
        return type(node)(self.wide(node.a), self.wide(node.b), node.span)  # type: ignore[call-arg]

    def visit_And(self, node: And) -> Expr:
        return self.logic(node)

    def visit_Or(self, node: Or) -> Expr:
        return self.logic(node)

    def logic(self, node: And | Or) -> Expr:
        # Vectors evaluate both operands.
        if not may_always_run(node.b):
            raise NotVectorizable("an operand that only some lanes evaluate")
        return type(node)(self.wide(node.a), self.wide(node.b), node.span)

    def visit_Select(self, node: Select) -> Expr:
        return Select(self.wide(node.condition), self.wide(node.a), self.wide(node.b), node.span)

    def visit_IfThenElse(self, node: IfThenElse) -> Expr:
        if self.is_same(node.condition):
            return IfThenElse(node.condition, self.wide(node.a), self.wide(node.b), node.span)
        if not (may_always_run(node.a) and may_always_run(node.b)):
            raise NotVectorizable("an operand that only some lanes evaluate")
        return Select(self.wide(node.condition), self.wide(node.a), self.wide(node.b), node.span)

    def visit_Cast(self, node: Cast) -> Expr:
        return Cast(node.type.with_lanes(self.lanes), self.wide(node.value), node.span)

    def visit_Reinterpret(self, node: Reinterpret) -> Expr:
        if node.type.lanes > 1 or node.value.dtype.lanes > 1:
            raise NotVectorizable("a vector differs between lanes")
        return Reinterpret(node.type.with_lanes(self.lanes), self.wide(node.value), node.span)

    def visit_Call(self, node: Call) -> Expr:
        if node.op.operands is Operands.ANY or not node.op.pure or node.type.lanes > 1:
            raise NotVectorizable(f"{node.op.name} of values that differ between lanes")
        if node.op.name == "likely":
            return self.wide(node.args[0])
        args = tuple(self.wide(arg) for arg in node.args)
        return Call(node.op, args, node.type.with_lanes(self.lanes), node.span)

    def visit_Load(self, node: Load) -> Expr:
        buffer, indices = self.access(node.buffer, node.indices)
        return Load(buffer, indices, node.span)

    def access(self, buffer: Buffer, indices: tuple[Expr, ...]) -> tuple[Buffer, tuple[Expr, ...]]:
        """The buffer and indices that reach the elements of all lanes."""
        if buffer.dtype.lanes > 1:
            raise NotVectorizable("elements that are vectors")
        own = self.private.get(buffer)
        if own is not None:
            index = as_int64(self.expression(indices[0])) if indices else const(0, INT64)
            lane = Ramp(const(0, INT64), const(1, INT64), self.lanes)
            return own, (plus(times(index, const(self.lanes, INT64)), lane),)
        found = tuple(self.expression(index) for index in indices)
        if any(index.dtype.lanes > 1 for index in found[:-1]):
            raise NotVectorizable("an index before the last differs between lanes")
        return buffer, found

    # Statements -------------------------------------------------------------------------------------------------------

    def visit_Seq(self, node: Seq) -> Stmt:
        return sequence(*(self.visit(part) for part in node.body), span=node.span)

    def visit_Bind(self, node: Bind) -> Stmt:
        value = self.expression(node.value)
        if value is node.value:
            return node
        var = Var(node.var.name, value.dtype, span=node.var.span)
        self.values[node.var] = var
        return Bind(var, value, node.span)

    def visit_Store(self, node: Store) -> Stmt:
        buffer, indices = self.access(node.buffer, node.indices)
        value = self.expression(node.value)
        parts = (*indices, value)
        if buffer is node.buffer and parts == (*node.indices, node.value):
            return node
        if any(part.dtype.lanes > 1 for part in (*node.indices, node.value)):
            raise NotVectorizable("a vector is stored, to a place that differs between lanes")
        if not indices:
            raise NotVectorizable("lanes write different values into one scalar")
        if indices[-1].dtype.lanes == 1:
            # All lanes write one element, one after the other.
            indices = (*indices[:-1], Broadcast(indices[-1], self.lanes, node.span))
        return Store(buffer, indices, cast(value, node.value.dtype.with_lanes(self.lanes)), node.span)

    def visit_Allocate(self, node: Allocate) -> Stmt:
        buffer = node.buffer
        if buffer.rank > 1 or buffer.strides or buffer.offset is not None or buffer.dtype.lanes > 1:
            raise NotVectorizable("memory of its own for each lane, of several dimensions")
        size = buffer.shape[0] if buffer.shape else const(1, INT64)
        if not self.is_same(size):
            raise NotVectorizable("memory of its own for each lane, of unequal size")
        own = replace(
            buffer,
            shape=(times(as_int64(size), const(self.lanes, INT64)),),
            data=Var(buffer.data.name, buffer.data.type, buffer.data.pointer, buffer.data.span),
        )
        self.private[buffer] = own
        return replace(node, buffer=own)

    def visit_View(self, node: View) -> Stmt:
        buffer = node.buffer
        parts = (*buffer.shape, *buffer.strides, *((buffer.offset,) if buffer.offset is not None else ()))
        if any(own.data is buffer.data for own in self.private) or not all(self.is_same(part) for part in parts):
            raise NotVectorizable("a view that differs between lanes")
        if node.source is not None and not self.is_same(node.source):
            raise NotVectorizable("a view that differs between lanes")
        return node

    def visit_Evaluate(self, node: Evaluate) -> Stmt:
        self.is_same(node.value)  # raises for a call
        return Seq((), node.span)

    def visit_Assert(self, node: Assert) -> Stmt:
        values = (node.condition, *(part for part in node.message if isinstance(part, Expr)))
        if not all(self.is_same(value) for value in values):
            raise NotVectorizable("an assertion that differs between lanes")
        return node

    def visit_If(self, node: If) -> Stmt:
        if not self.is_same(node.condition):
            raise NotVectorizable("lanes take different branches")
        otherwise = None if node.otherwise is None else self.visit(node.otherwise)
        return replace(node, then=self.visit(node.then), otherwise=otherwise)

    def visit_For(self, node: For) -> Stmt:
        if node.kind not in (LoopKind.SERIAL, LoopKind.UNROLLED):
            raise NotVectorizable(f"a {node.kind.value} loop")
        if not self.is_same(node.minimum) or not self.is_same(node.extent):
            raise NotVectorizable("lanes run a loop differently often")
        return replace(node, body=self.inner(node.body))

    def visit_While(self, node: While) -> Stmt:
        if not self.is_same(node.condition):
            raise NotVectorizable("lanes run a loop differently often")
        return replace(node, body=self.inner(node.body))

    def inner(self, body: Stmt) -> Stmt:
        self.loops += 1
        found: Stmt = self.visit(body)
        self.loops -= 1
        return found

    def visit_Break(self, node: Break) -> Stmt:
        if not self.loops:
            raise NotVectorizable("break")
        return node

    def visit_Continue(self, node: Continue) -> Stmt:
        if not self.loops:
            raise NotVectorizable("continue")
        return node
