"""Differences of index expressions: the length of ``A[i * 4 : i * 4 + 4]`` is 4."""

from __future__ import annotations

from gristmill.ir.expr import Add, Expr, IntImm, Load, Mul, Negate, Sub, Var
from gristmill.ir.functor import children

Key = tuple[object, ...]


def difference(stop: Expr, start: Expr) -> int | None:
    """``stop - start`` if it is a constant whatever the variables are, else None."""
    terms: dict[Key, int] = {}
    _gather(stop, 1, terms)
    _gather(start, -1, terms)
    constant = terms.pop((), 0)
    return constant if not any(terms.values()) else None


def same(a: Expr, b: Expr) -> bool:
    """Whether two expressions have the same structure over the same variables and buffers."""
    return a is b or _key(a) == _key(b)


def _gather(expr: Expr, factor: int, terms: dict[Key, int]) -> None:
    if isinstance(expr, IntImm):
        terms[()] = terms.get((), 0) + factor * expr.value
    elif isinstance(expr, Add):
        _gather(expr.a, factor, terms)
        _gather(expr.b, factor, terms)
    elif isinstance(expr, Sub):
        _gather(expr.a, factor, terms)
        _gather(expr.b, -factor, terms)
    elif isinstance(expr, Negate):
        _gather(expr.a, -factor, terms)
    elif isinstance(expr, Mul) and isinstance(expr.b, IntImm):
        _gather(expr.a, factor * expr.b.value, terms)
    elif isinstance(expr, Mul) and isinstance(expr.a, IntImm):
        _gather(expr.b, factor * expr.a.value, terms)
    else:
        key = _key(expr)
        terms[key] = terms.get(key, 0) + factor


def _key(expr: Expr) -> Key:
    """Equal for expressions of the same structure. Loads count as equal: between the two nothing is stored."""
    if isinstance(expr, Var):
        return (id(expr),)
    parts: list[object] = [type(expr).__name__, str(expr.dtype)]
    for name in ("value", "op", "function", "symbol", "name", "lanes", "indices"):
        plain = getattr(expr, name, None)
        if isinstance(plain, (int, float, str)) or name == "op":
            parts.append(str(plain))
    if isinstance(expr, Load):
        parts.append(id(expr.buffer))
    parts.extend(_key(child) for child in children(expr) if isinstance(child, Expr))
    return tuple(parts)
