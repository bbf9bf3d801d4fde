"""What is said where a barrier is missing and has no place."""

from __future__ import annotations

from gristmill.errors import Diagnostic, Note, UserError
from gristmill.ir.span import place_of
from gristmill.passes.region_tree import Access, Branch, Loop


def divergent_hazard(earlier: Access, later: Access, cause: Branch | Loop) -> UserError:
    """The error (GM0607) for two accesses in code that ``cause`` keeps some threads of the block from."""
    first = "write" if earlier.writes else "read"
    second = "write" if later.writes else "read"
    what = "loop" if isinstance(cause, Loop) else "`if`" if cause.stmt is not None else "`continue`"
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
