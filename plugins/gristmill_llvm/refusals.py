"""What this generator refuses, in words: one function a reason, each with its code."""

from __future__ import annotations

from gristmill.errors import Diagnostic, Note, Unsupported
from gristmill.ir.dtype import DType
from gristmill.ir.span import Span, place_of


def refused_dtype(dtype: DType, target: str, span: Span | None) -> Unsupported:
    """GM0660: an element type that the target has no code for yet."""
    return _refusal(
        "GM0660",
        f"dtype `{dtype}`",
        target,
        "use float32 here, and convert where the array is read and written",
        span,
    )


def refused_construct(construct: str, target: str, remedy: str, span: Span | None) -> Unsupported:
    """GM0661: a construct of devices (threads, barriers, launches) or one that a pass should have lowered."""
    return _refusal("GM0661", construct, target, remedy, span)


def duplicate_symbol(symbol: str, first: str, second: str, target: str, span: Span | None) -> Unsupported:
    """GM0662: two functions that would be exported under one name."""
    return _refusal(
        "GM0662",
        f"exporting the functions `{first}` and `{second}` under one symbol, `{symbol}`,",
        target,
        "give each public function its own symbol",
        span,
    )


def refused_operation(name: str, dtype: DType, target: str, span: Span | None) -> Unsupported:
    """GM0663: an operation that the machine does not have and that no pass replaced by a function."""
    return _refusal(
        "GM0663",
        f"the operation `{name}` of {dtype}",
        target,
        "use another dtype (float32 has every function), or a target that has the operation",
        span,
    )


def refused_extern(symbol: str, problem: str, target: str, remedy: str, span: Span | None) -> Unsupported:
    """GM0664: a call of a C symbol that cannot be made."""
    return _refusal("GM0664", f"the call of the C function `{symbol}` {problem}", target, remedy, span)


def refused_packed(name: str, problem: str, target: str, span: Span | None) -> Unsupported:
    """GM0665: a packed call whose arguments or result cannot travel through the packed interface."""
    return _refusal(
        "GM0665",
        f"the packed call of `{name}` {problem}",
        target,
        "pass whole buffers and scalars: integers, floats, bools, text",
        span,
    )


def _refusal(code: str, construct: str, target: str, remedy: str, span: Span | None) -> Unsupported:
    message = f"{construct} is not supported by target `{target}`"
    notes: tuple[Note, ...] = span.notes() if span is not None else ()
    return Unsupported(Diagnostic(code, message, place_of(span), hint=remedy, notes=notes))
