"""Sizes and signatures as text for people: ``blur(src: Buffer((h, w), float32), radius: int32)``."""

from __future__ import annotations

from collections.abc import Sequence

from gristmill.ir.dtype import VOID, DType
from gristmill.ir.expr import (
    Add,
    BinaryExpr,
    Cast,
    Expr,
    FloatImm,
    FloorDiv,
    FloorMod,
    IntImm,
    Max,
    Min,
    Mul,
    Negate,
    Sub,
    Var,
)
from gristmill.ir.memory import Buffer, Scope

_SYMBOLS: dict[type[BinaryExpr], tuple[str, int]] = {
    Add: ("+", 1),
    Sub: ("-", 1),
    Mul: ("*", 2),
    FloorDiv: ("//", 2),
    FloorMod: ("%", 2),
}


def size_text(expr: Expr, binding: int = 0) -> str:
    """A size as its author would write it; widening casts are left out."""
    if isinstance(expr, Var):
        return expr.name
    if isinstance(expr, (IntImm, FloatImm)):
        return str(expr.value) if expr.value >= 0 or binding < 2 else f"({expr.value})"
    if isinstance(expr, Cast):
        return size_text(expr.value, binding)
    if isinstance(expr, Negate):
        return f"-{size_text(expr.a, 3)}"
    if isinstance(expr, BinaryExpr):
        if type(expr) in _SYMBOLS:
            symbol, strength = _SYMBOLS[type(expr)]
            text = f"{size_text(expr.a, strength)} {symbol} {size_text(expr.b, strength + 1)}"
            return f"({text})" if strength < binding else text
        if isinstance(expr, (Min, Max)):
            return f"{type(expr).__name__.lower()}({size_text(expr.a)}, {size_text(expr.b)})"
    return "..."


def shape_text(shape: Sequence[Expr]) -> str:
    """A shape as a tuple."""
    inside = ", ".join(size_text(size) for size in shape)
    return f"({inside},)" if len(shape) == 1 else f"({inside})"


def parameter_text(param: Var | Buffer) -> str:
    """One parameter with its type."""
    if isinstance(param, Var):
        return f"{param.name}: {param.dtype}"
    extra = ""
    if param.strides:
        extra += f", strides={shape_text(param.strides)}"
    if param.offset is not None:
        extra += f", elem_offset={size_text(param.offset)}"
    if param.scope is not Scope.GLOBAL:
        extra += f', scope="{param.scope.value}"'
    return f"{param.name}: Buffer({shape_text(param.shape)}, {param.dtype}{extra})"


def signature_text(name: str, params: Sequence[Var | Buffer], returns: DType) -> str:
    """The signature of a function, for messages."""
    result = "" if returns == VOID else f" -> {returns}"
    return f"{name}({', '.join(map(parameter_text, params))}){result}"
