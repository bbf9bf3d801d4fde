"""What is said where a barrier is missing and has no place, and where one stands that only some threads come to."""

from __future__ import annotations

from gristmill.errors import Diagnostic, Note, UserError
from gristmill.ir.span import Span, place_of
from gristmill.ir.stmt import Barrier, For, If, LoopKind, While
from gristmill.passes.region_tree import Access, Branch, Loop


def divergent_hazard(earlier: Access, later: Access, cause: Branch | Loop) -> UserError:
    """The error (GM0607) for two accesses in code that ``cause`` keeps some threads of the block from."""
    first = "write" if earlier.writes else "read"
    second = "write" if later.writes else "read"
    what = _name_of(cause)
    notes = []
    if earlier.span is not None:
        notes.append(Note(f"the other thread's {first} is here", place_of(earlier.span)))
    if cause.cause is not None:
        notes.append(Note(f"this {what} is not the same for all threads of the block", place_of(cause.cause)))
    if later.span is not None:
        notes += later.span.notes()
    return UserError(
        Diagnostic(
            "GM0607",
            f"this {second} of `{later.name}` may meet the {first} of another thread, and no barrier can stand "
            f"between them: only some threads of the block come here",
            place_of(later.span),
            label="needs a barrier before it",
            hint=f"end the {what} before this, so that all threads come to the barrier, and begin another one",
            notes=tuple(notes),
        )
    )


def check_barrier(barrier: Barrier, cause: Branch | Loop) -> None:
    """Refuse a barrier of the block that the program has in code that ``cause`` keeps some of its threads from.

    Raises UserError (GM0607). Iterations of vectorised loops are lanes of one thread, which comes by once.
    """
    if isinstance(cause.stmt, For) and cause.stmt.kind not in (LoopKind.SERIAL, LoopKind.UNROLLED):
        return
    what = _name_of(cause)
    notes = []
    decides = _deciding(cause)
    if decides is not None:
        notes.append(Note(f"this {what} is not the same for all threads of the block", place_of(decides)))
    if barrier.span is not None:
        notes += barrier.span.notes()
    raise UserError(
        Diagnostic(
            "GM0607",
            f"only some threads of the block come to this barrier: the {what} around it need not be the same for all",
            place_of(barrier.span),
            label="all threads of the block must come here",
            hint=f"end the {what} before the barrier and begin another one after it; "
            "barriers between accesses of several threads also come by themselves",
            notes=tuple(notes),
        )
    )


def _name_of(cause: Branch | Loop) -> str:
    return "loop" if isinstance(cause, Loop) else "`if`" if cause.stmt is not None else "`continue`"


def _deciding(cause: Branch | Loop) -> Span | None:
    """Where it is decided which threads come by: the condition, or the extent of the loop."""
    match cause.stmt:
        case If(condition=condition) | While(condition=condition):
            return condition.span or cause.cause
        case _:
            return cause.cause
