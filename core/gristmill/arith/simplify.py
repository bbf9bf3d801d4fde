"""The simplifier: rewrites expressions into a canonical, usually cheaper form with exactly the same value.

Integer sums become linear forms, constants are folded by the language's own arithmetic, and what bounds decide is
decided. Floats are never reassociated. Each kind of node has a list of named rules, by topic in ``rules_*`` modules;
a rule returns the new expression, or None if it has nothing to say. Simplifying twice changes nothing more, and an
expression that is simple already comes back as the same object.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gristmill.arith import (
    rules_bits,
    rules_choice,
    rules_compare,
    rules_constant,
    rules_conversion,
    rules_division,
    rules_float,
    rules_logic,
    rules_vector,
)
from gristmill.arith.bounds import Bounds
from gristmill.arith.interval import Interval
from gristmill.arith.linear import LinearForm, SymbolicRanges, rejoin_divisions
from gristmill.arith.numbering import Numbering
from gristmill.ir import expr as nodes
from gristmill.ir.expr import Add, Broadcast, Cast, Expr, IntImm, Mul, Negate, Ramp, ShiftLeft, Sub, Var
from gristmill.ir.functor import Mutator

Rule = Callable[["Simplifier", Any], Expr | None]

_LINEAR = (Add, Sub, Mul, Negate, ShiftLeft)


class Simplifier(Mutator):
    """Simplifies expressions under ranges of variables. One instance may serve a whole function."""

    def __init__(self, ranges: Mapping[Var, Interval] | None = None) -> None:
        super().__init__()
        self.bounds = Bounds(ranges)
        self.symbolic = SymbolicRanges(self.form)
        self.numbers = Numbering()
        self._simple: set[Expr] = set()

    def simplify(self, expr: Expr) -> Expr:
        """The expression in its canonical form; the same object if it is in it already."""
        return self.visit(expr)  # type: ignore[no-any-return]

    def visit_Expr(self, node: Expr) -> Expr:
        if node in self._simple:
            return node
        kind = type(node)
        result: Expr = self.linear(node) if kind in _LINEAR and node.dtype.is_integer else self.generic(node)
        result = self._by_rules(result)
        self._simple.add(result)
        return result

    def _by_rules(self, node: Expr) -> Expr:
        """What the first rule that fits makes of a node whose children are simple, simplified in turn; else the node."""
        for rule in RULES.get(type(node), ()):
            found = rule(self, node)
            if found is not None:
                return self.visit(found)  # type: ignore[no-any-return]
        return node

    def visit_Var(self, node: Var) -> Any:
        return node

    def visit_IntImm(self, node: IntImm) -> Any:
        return node

    def visit_FloatImm(self, node: nodes.FloatImm) -> Any:
        return node

    def same(self, a: Expr, b: Expr) -> bool:
        """Whether both are the same pure expression."""
        return self.numbers.same(a, b)

    def pure(self, *exprs: Expr) -> bool:
        """Whether evaluating them twice or not at all makes no difference."""
        return all(self.numbers.is_pure(expr) for expr in exprs)

    # Linear forms -----------------------------------------------------------------------------------------------------

    def linear(self, node: Expr) -> Expr:
        """An integer sum, difference or product in canonical form."""
        if not self.pure(node):
            return self.generic(node)
        if node.dtype.lanes > 1:
            result = self._vector_form(node)
        else:
            result = self.form(node, simplify=True).build(node.span)
        return node if self.numbers.of(result) == self.numbers.of(node) else result

    def form(self, expr: Expr, simplify: bool = False) -> LinearForm:
        """The linear form of a scalar integer expression; with ``simplify`` its atoms are simplified on the way."""
        form = LinearForm(expr.dtype)
        self._collect(expr, 1, form, simplify)
        return rejoin_divisions(form, self.numbers, self.form)

    def _collect(self, expr: Expr, factor: int, form: LinearForm, simplify: bool) -> None:
        # A loop instead of a tail call: what is left over when an operation has been taken apart.
        while True:
            kind = type(expr)
            if kind is IntImm:
                form.add_constant(expr.value * factor)  # type: ignore[attr-defined]
                return
            if kind is Add or kind is Sub:
                self._collect(expr.a, factor, form, simplify)  # type: ignore[attr-defined]
                factor = factor if kind is Add else -factor
                expr = expr.b  # type: ignore[attr-defined]
                continue
            if kind is Negate:
                expr, factor = expr.a, -factor  # type: ignore[attr-defined]
                continue
            if kind is Mul:
                a = self.visit(expr.a) if simplify else expr.a  # type: ignore[attr-defined]
                b = self.visit(expr.b) if simplify else expr.b  # type: ignore[attr-defined]
                if isinstance(a, IntImm):
                    a, b = b, a
                if isinstance(b, IntImm):
                    expr, factor, simplify = a, factor * b.value, False
                    continue
                if a is not expr.a or b is not expr.b:  # type: ignore[attr-defined]
                    expr = Mul(a, b, expr.span)
                form.add_term(self.numbers.of(expr), expr, factor)
                return
            if kind is ShiftLeft:
                amount = self.visit(expr.b) if simplify else expr.b  # type: ignore[attr-defined]
                if isinstance(amount, IntImm) and 0 <= amount.value < expr.dtype.bits:
                    expr, factor = expr.a, factor << amount.value  # type: ignore[attr-defined]
                    continue
                if simplify:
                    expr, simplify = self._by_rules(self.generic(expr)), False
                    if type(expr) is not ShiftLeft:
                        continue
                form.add_term(self.numbers.of(expr), expr, factor)
                return
            if simplify:
                simple = self.visit(expr)
                simplify = False
                if simple is not expr:
                    expr = simple
                    continue
            if kind is Cast and self._collect_cast(expr, factor, form):  # type: ignore[arg-type]
                return
            form.add_term(self.numbers.of(expr), expr, factor)
            return

    def _collect_cast(self, expr: Cast, factor: int, form: LinearForm) -> bool:
        """Collect what is inside a widening cast of a sum that provably does not wrap."""
        inner = expr.value
        if type(inner) not in _LINEAR or not inner.dtype.is_integer or expr.type.bits <= inner.dtype.bits:
            return False
        below = self.form(inner)
        if below.terms.get(self.numbers.of(inner)) is not None or not below.fits(self.bounds):
            return False
        form.add_constant(below.constant * factor)
        for atom, coefficient in below.terms.values():
            wide = self.visit(Cast(expr.type, atom, expr.span))
            form.add_term(self.numbers.of(wide), wide, coefficient * factor)
        return True

    def _vector_form(self, node: Expr) -> Expr:
        """A vector sum: broadcasts and ramps become one ramp or broadcast of scalar forms, after the other terms."""
        element = node.dtype.element
        rest, base, stride = LinearForm(node.dtype), LinearForm(element), LinearForm(element)
        self._collect_vector(node, 1, rest, base, stride)
        if not stride.is_constant or stride.constant:
            regular: Expr = Ramp(base.build(), stride.build(), node.dtype.lanes, node.span)
        elif base.is_constant:
            rest.add_constant(base.constant)
            return rest.build(node.span)
        else:
            regular = Broadcast(base.build(), node.dtype.lanes, node.span)
        if not rest.terms:
            return regular
        return Add(rest.build(node.span), regular, node.span)

    def _collect_vector(self, expr: Expr, factor: int, rest: LinearForm, base: LinearForm, stride: LinearForm) -> None:
        match expr:
            case Add() | Sub():
                self._collect_vector(expr.a, factor, rest, base, stride)
                self._collect_vector(expr.b, factor if type(expr) is Add else -factor, rest, base, stride)
                return
            case Negate():
                self._collect_vector(expr.a, -factor, rest, base, stride)
                return
            case Mul(a=a, b=Broadcast(value=IntImm(value=value))) | Mul(a=Broadcast(value=IntImm(value=value)), b=a):
                self._collect_vector(a, factor * value, rest, base, stride)
                return
        simple = self.generic(expr) if type(expr) in _LINEAR else self.visit(expr)
        match simple:
            case Broadcast():
                base.add(self.form(simple.value), factor)
            case Ramp():
                base.add(self.form(simple.base), factor)
                stride.add(self.form(simple.stride), factor)
            case Add() | Sub() | Negate() | Mul() if simple is not expr:
                self._collect_vector(simple, factor, rest, base, stride)
            case _:
                rest.add_term(self.numbers.of(simple), simple, factor)


_TOPICS = (
    rules_constant,
    rules_conversion,
    rules_division,
    rules_bits,
    rules_compare,
    rules_logic,
    rules_choice,
    rules_float,
    rules_vector,
)


def _rules_by_kind() -> Mapping[type[Expr], tuple[Rule, ...]]:
    found: dict[type[Expr], tuple[Rule, ...]] = {}
    for topic in _TOPICS:
        for kind, rules in topic.RULES.items():
            found[kind] = (*found.get(kind, ()), *rules)
    return found


RULES = _rules_by_kind()
"""The rules to try on a node of each class, in order."""


def simplify(expr: Expr, ranges: Mapping[Var, Interval] | None = None) -> Expr:
    """The expression in canonical form, given ranges of its variables; the same object if it is in it already."""
    return Simplifier(ranges).simplify(expr)
