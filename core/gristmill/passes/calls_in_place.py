"""Statements with calls taken out of them: the code of each call, and then the statement with the call's value.

What :mod:`gristmill.passes.inline_memory_functions` does to the statements of a launch.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from gristmill.errors import Diagnostic, UserError
from gristmill.ir.build import const, sequence
from gristmill.ir.dtype import BOOL
from gristmill.ir.effects import atomic_element, is_atomic
from gristmill.ir.expr import Call, CallExtern, CallFunction, CallPacked, Expr, Load, Var
from gristmill.ir.functor import Mutator, walk
from gristmill.ir.memory import Buffer
from gristmill.ir.module import Function
from gristmill.ir.operators import And, Not, Or
from gristmill.ir.span import place_of
from gristmill.ir.stmt import (
    Allocate,
    Assert,
    Bind,
    Break,
    Evaluate,
    For,
    If,
    LoopKind,
    Return,
    Seq,
    Stmt,
    Store,
    While,
)
from gristmill.passes.function_copies import arguments_of, copied, local_scalar
from gristmill.passes.lower_buffer_arguments import BufferCalls

NODES_AT_MOST = 20_000
"""So many nodes may be put into one launch. Functions that call others twice, and those others twice, double at each
level: without an end, forty short functions would fill all memory."""
_IN_ORDER = (LoopKind.SERIAL, LoopKind.UNROLLED, LoopKind.THREAD)


class Functions:
    """The functions to put in the place of calls, and what solves the sizes of their buffers."""

    def __init__(self, taken: dict[str, Function], names: frozenset[str]) -> None:
        self.taken = taken
        self.sizes = BufferCalls(taken, set(names))

    def is_taken(self, node: object) -> bool:
        return isinstance(node, CallFunction) and node.function in self.taken

    def has_calls(self, node: Expr) -> bool:
        return any(self.is_taken(part) for part in walk(node))


class CallsInPlace(Mutator):
    """Changes a statement; ``done`` are the functions that were put in, ``shared`` their shared memory in the launch."""

    def __init__(self, functions: Functions) -> None:
        super().__init__()
        self.functions = functions
        self.done: list[Function] = []
        self.shared: dict[Buffer, Buffer] = {}
        self.nodes = 0

    # Statements -------------------------------------------------------------------------------------------------------

    def visit_Expr(self, node: Expr) -> Any:
        return node

    def visit_Bind(self, node: Bind) -> Any:
        return self.with_calls_before(node, ("value",))

    def visit_Evaluate(self, node: Evaluate) -> Any:
        return self.with_calls_before(node, ("value",))

    def visit_Return(self, node: Return) -> Any:
        return self.with_calls_before(node, ("value",))

    def visit_Store(self, node: Store) -> Any:
        return self.with_calls_before(node, ("indices", "value"))

    def visit_Assert(self, node: Assert) -> Any:
        return self.with_calls_before(node, ("condition",))

    def visit_If(self, node: If) -> Any:
        return self.with_calls_before(super().visit_If(node), ("condition",))

    def visit_For(self, node: For) -> Any:
        if node.kind not in _IN_ORDER:
            return node
        found = self.generic(node)
        return found if node.kind is LoopKind.THREAD else self.with_calls_before(found, ("minimum", "extent"))

    def visit_While(self, node: While) -> Any:
        found = self.generic(node)
        if not self.functions.has_calls(node.condition):
            return found
        before, (condition,) = self.parts([node.condition])
        leave = If(Not(condition), Break(node.span), None, node.span)
        return replace(found, condition=const(True, BOOL), body=sequence(*before, leave, found.body))

    def with_calls_before(self, node: Stmt, fields: Sequence[str]) -> Stmt:
        """The statement after the code of the calls in its fields; the same object if there are none."""
        exprs: list[Expr] = []
        places: list[tuple[str, slice | None]] = []
        for name in fields:
            part = getattr(node, name)
            if type(part) is tuple:
                places.append((name, slice(len(exprs), len(exprs) + len(part))))
                exprs += part
            elif part is not None:
                places.append((name, None))
                exprs.append(part)
        if not any(self.functions.has_calls(expr) for expr in exprs):
            return node
        if isinstance(node, Evaluate) and isinstance(node.value, CallFunction) and self.functions.is_taken(node.value):
            before, value = self.call(node.value)
            return sequence(*before, None if value is None else replace(node, value=value), span=node.span)
        before, found = self.parts(exprs)
        queue = iter(found)
        changes: dict[str, Any] = {}
        for name, where in places:
            changes[name] = next(queue) if where is None else tuple(found[where])
            if where is not None:
                for _ in range(where.stop - where.start):
                    next(queue)
        return sequence(*before, replace(node, **changes), span=node.span)  # type: ignore[type-var]

    # Expressions ------------------------------------------------------------------------------------------------------

    def parts(self, exprs: Sequence[Expr]) -> tuple[list[Stmt], list[Expr]]:
        """Expressions that are evaluated one after the other: what runs before, and what is then left of them."""
        last = max((number for number, expr in enumerate(exprs) if self.functions.has_calls(expr)), default=-1)
        before: list[Stmt] = []
        found: list[Expr] = []
        for number, expr in enumerate(exprs):
            steps, value = self.expression(expr)
            before += steps
            if number < last and _may_change(value):
                var = Var("value", value.dtype, span=value.span)
                before.append(Bind(var, value, value.span))
                value = var
            found.append(value)
        return before, found

    def expression(self, expr: Expr) -> tuple[list[Stmt], Expr]:
        if not self.functions.has_calls(expr):
            return [], expr
        if isinstance(expr, CallFunction) and self.functions.is_taken(expr):
            before, value = self.call(expr)
            assert value is not None, "a function without a result stands alone"
            return before, value
        if isinstance(expr, (And, Or)) and not expr.dtype.is_vector and self.functions.has_calls(expr.b):
            return self.perhaps(expr)
        return self.operands(expr)

    def operands(self, expr: Expr) -> tuple[list[Stmt], Expr]:
        """The operands' calls, in order, and the expression of what is left."""
        if is_atomic(expr) and (element := atomic_element(expr)) is not None:
            # The address stays where it is; its indices and the values are operands.
            before, found = self.parts([*element.indices, *expr.args[1:]])
            count = len(element.indices)
            place = replace(element, indices=tuple(found[:count]))
            return before, replace(expr, args=(place, *found[count:]))
        names: list[str] = []
        exprs: list[Expr] = []
        for name in type(expr).CHILDREN:
            child = getattr(expr, name)
            items: Iterable[Any] = child if type(child) is tuple else (child,)
            for item in items:
                if isinstance(item, Expr):
                    names.append(name)
                    exprs.append(item)
        before, found = self.parts(exprs)
        changes: dict[str, Any] = {}
        for name in dict.fromkeys(names):
            values = [value for of, value in zip(names, found, strict=True) if of == name]
            changes[name] = tuple(values) if type(getattr(expr, name)) is tuple else values[0]
        return before, replace(expr, **changes)  # type: ignore[type-var]

    def perhaps(self, expr: And | Or) -> tuple[list[Stmt], Expr]:
        """Of ``and`` and ``or``: the second operand is evaluated only if the first one does not decide."""
        first, a = self.expression(expr.a)
        second, b = self.expression(expr.b)
        known = local_scalar("known", BOOL)
        goes_on: Expr = Load(known, ())
        if isinstance(expr, Or):
            goes_on = Not(goes_on)
        inner = sequence(*second, Store(known, (), b, expr.span))
        steps = [*first, Allocate(known), Store(known, (), a, expr.span), If(goes_on, inner, None, expr.span)]
        return steps, Load(known, ())

    def call(self, node: CallFunction) -> tuple[list[Stmt], Expr | None]:
        """The code of a call, and its value."""
        before: list[Stmt] = []
        if any(self.functions.has_calls(arg) for arg in node.args):
            before, args = self.parts(node.args)
            node = replace(node, args=tuple(args))
        function = self.functions.taken[node.function]
        self.done.append(function)
        arguments = arguments_of(function, node, self.functions.sizes)
        self.nodes += sum(1 for _ in walk(function.body))
        if self.nodes > NODES_AT_MOST:
            raise _too_large(node, len(self.done))
        steps, value = copied(function, arguments, node.span, self.shared)
        # What the function calls itself.
        body = self.visit(sequence(*steps))
        before += [*arguments.before, *(body.body if isinstance(body, Seq) else [body])]
        if value is not None:
            more, value = self.expression(value)
            before += more
        return before, value


def _too_large(node: CallFunction, calls: int) -> UserError:
    span = node.span
    while span is not None and span.inlined_at is not None:
        span = span.inlined_at
    return UserError(
        Diagnostic(
            "GM0612",
            f"calls of functions make this launch too large: after {calls:,} of them, with that of `{node.function}`, "
            f"their code has more than {NODES_AT_MOST:,} nodes",
            place_of(span),
            label="leads to all those calls",
            hint="call functions that are given memory, or wait at barriers, fewer times: in a loop instead of one "
            "after the other",
        )
    )


def _may_change(expr: Expr) -> bool:
    """Whether the expression may give something else later, or must not be evaluated twice or in another order."""
    if expr.dtype.is_handle:
        return False
    return any(
        isinstance(part, (Load, CallFunction, CallExtern, CallPacked)) or (isinstance(part, Call) and not part.op.pure)
        for part in walk(expr)
    )
