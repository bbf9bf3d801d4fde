"""What this generator refuses, in words: one function a reason, each with its code."""

from __future__ import annotations

from collections.abc import Sequence

from gristmill.errors import Diagnostic, Note, Unsupported
from gristmill.ir.span import Span, place_of


def refused_feature(what: str, feature: str, target: str, span: Span | None) -> Unsupported:
    """GM0680: a dtype or an operation that not every Vulkan device has, and that the target does not say it has."""
    return _refusal(
        "GM0680",
        what,
        target,
        f"if your devices have it, add `{feature} = true` to the target in kernels.toml (or `+{feature}` to its name)",
        span,
    )


def refused_construct(construct: str, target: str, remedy: str, span: Span | None) -> Unsupported:
    """GM0681: a construct that shaders do not have, or one that a pass should have lowered."""
    return _refusal("GM0681", construct, target, remedy, span)


def refused_operation(name: str, dtype: object, target: str, span: Span | None) -> Unsupported:
    """GM0682: an operation that the device does not have and that no pass replaced by a function."""
    return _refusal(
        "GM0682",
        f"the operation `{name}` of {dtype}",
        target,
        "use another dtype (float32 has every function), or a target that has the operation",
        span,
    )


def refused_matrices(what: str, known: Sequence[object], target: str, span: Span | None) -> Unsupported:
    """GM0684: tiles of matrices, or a product of them, that the target does not list."""
    listed = ", ".join(map(str, known)) or "none"
    remedy = f"`matrices` of the target in kernels.toml lists what its devices multiply (MxNxK:TYPE:SUM): {listed}"
    return _refusal("GM0684", what, target, remedy, span)


def over_limit(
    what: str, used: int, limit: int, key: str, target: str, span: Span | None, unit: str = "bytes"
) -> Unsupported:
    """GM0683: more of something than the target says its devices have."""
    message = f"{what} takes {used} {unit}, and target `{target}` has {limit}"
    hint = f"use less, or, if your devices have more, set `{key}` of the target in kernels.toml"
    notes: tuple[Note, ...] = span.notes() if span is not None else ()
    return Unsupported(Diagnostic("GM0683", message, place_of(span), hint=hint, notes=notes))


def _refusal(code: str, construct: str, target: str, remedy: str, span: Span | None) -> Unsupported:
    message = f"{construct} is not supported by target `{target}`"
    notes: tuple[Note, ...] = span.notes() if span is not None else ()
    return Unsupported(Diagnostic(code, message, place_of(span), hint=remedy, notes=notes))
