"""What conditions say of sums: ``t + 8 * u < 5`` holds of the same sum wherever it is an index inside of the branch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gristmill.arith.interval import Interval
from gristmill.ir.expr import And, CompareExpr, Equal, Expr, Greater, GreaterEqual, Less, LessEqual, NotEqual, Or, Var
from gristmill.passes.element_forms import FAR, Form, FormReader


@dataclass(frozen=True, slots=True)
class Fact:
    """The sum, constant left out, lies in an interval."""

    form: Form
    interval: Interval


def facts_of(condition: Expr, holds: bool, forms: FormReader) -> Iterator[tuple[Fact, dict[Var, Interval]]]:
    """What the condition says when it holds (or does not), each with the variables that can have one value only then."""
    if isinstance(condition, (And if holds else Or)):
        yield from facts_of(condition.a, holds, forms)
        yield from facts_of(condition.b, holds, forms)
        return
    if not isinstance(condition, CompareExpr) or not condition.a.dtype.is_integer or condition.a.dtype.lanes > 1:
        return
    span = _span(condition, holds)
    if span is None:
        return
    form = Form()
    forms.collect(condition.a, 1, form, None)
    forms.collect(condition.b, -1, form, None)
    span = Interval(span.low - form.constant, span.high - form.constant)
    if not form.terms:
        return
    yield Fact(Form(terms=form.terms), span), _pinned(form, span)


def _span(condition: CompareExpr, holds: bool) -> Interval | None:
    """Where ``a - b`` lies."""
    match condition:
        case Less():
            return Interval(-FAR, -1) if holds else Interval(0, FAR)
        case LessEqual():
            return Interval(-FAR, 0) if holds else Interval(1, FAR)
        case Greater():
            return Interval(1, FAR) if holds else Interval(-FAR, 0)
        case GreaterEqual():
            return Interval(0, FAR) if holds else Interval(-FAR, -1)
        case Equal() if holds:
            return Interval(0, 0)
        case NotEqual() if not holds:
            return Interval(0, 0)
    return None


def _pinned(form: Form, span: Interval) -> dict[Var, Interval]:
    """The variables of a sum that must be as small (or as great) as possible."""
    low = sum(atom.interval.scaled(coefficient).low for atom, coefficient in form.terms.values())
    high = sum(atom.interval.scaled(coefficient).high for atom, coefficient in form.terms.values())
    found = {}
    for atom, coefficient in form.terms.values():
        if atom.var is None:
            continue
        if span.high == low:
            end = atom.interval.low if coefficient > 0 else atom.interval.high
        elif span.low == high:
            end = atom.interval.high if coefficient > 0 else atom.interval.low
        else:
            continue
        found[atom.var] = Interval.point(end)
    return found
