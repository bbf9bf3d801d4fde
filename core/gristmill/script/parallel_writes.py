"""Parallel loops all of whose iterations write one element: a race whatever the arguments are.

Only what is certain is a mistake: a store that every iteration comes by, in memory from outside of the loop, at indices
that are the same in every iteration. What hangs on a condition or a loaded value may be the work of one iteration alone,
and is left to the reference executor, which sees the accesses themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gristmill.errors import Note
from gristmill.ir.expr import Call, CallExtern, CallFunction, CallPacked, Expr, IntImm, Load, Var
from gristmill.ir.functor import walk
from gristmill.ir.memory import Buffer, Scope
from gristmill.ir.stmt import Allocate, Bind, Break, Continue, For, LoopKind, Return, Seq, Stmt, Store, View
from gristmill.script.context import Context

_MAY_DIFFER = (Load, Call, CallFunction, CallExtern, CallPacked)
"""Expressions that may have another value in another iteration, whatever their operands are."""


def check_parallel_writes(context: Context, body: Stmt) -> None:
    """Report a mistake (GM0259) for each element that all iterations of a parallel loop write."""
    reported: set[Store] = set()
    for loop in walk(body):
        if not isinstance(loop, For) or loop.kind is not LoopKind.PARALLEL:
            continue
        if isinstance(loop.extent, IntImm) and loop.extent.value < 2:
            continue
        if any(isinstance(part, Break | Continue | Return) for part in walk(loop.body)):
            continue
        for store in _same_in_all(loop.body, {loop.var}, set()):
            if store not in reported:
                reported.add(store)
                _report(context, loop, store)


def _same_in_all(body: Stmt, varying: set[Var], own: set[Buffer]) -> Iterator[Store]:
    """The stores that every iteration makes at one place. ``varying`` differ between iterations, ``own`` are of each."""
    match body:
        case Seq(body=statements):
            for one in statements:
                yield from _same_in_all(one, varying, own)
        case Allocate(buffer=buffer) | View(buffer=buffer):
            own.add(buffer)
        case Bind(var=var, value=value):
            # Also pointers, which views take their memory from.
            if var.dtype.is_handle or _varies([value], varying):
                varying.add(var)
        case For(var=var, minimum=minimum, extent=extent, body=inner):
            if _varies([minimum, extent], varying):
                varying.add(var)
            yield from _same_in_all(inner, varying, own)
        case Store(buffer=buffer, indices=indices):
            if buffer not in own and buffer.scope is Scope.GLOBAL and not _varies(indices, varying):
                yield body


def _varies(values: Iterable[Expr], varying: set[Var]) -> bool:
    return any(part in varying or isinstance(part, _MAY_DIFFER) for value in values for part in walk(value))


def _report(context: Context, loop: For, store: Store) -> None:
    name = loop.var.name
    notes = [] if loop.var.span is None else [Note("the loop is here", loop.var.span.place)]
    context.problems.add(
        context.mistake(
            "GM0259",
            None if store.span is None else store.span.place,
            f"every iteration of the parallel loop over `{name}` writes this element of `{store.buffer.name}`",
            label=f"the same for every `{name}`",
            hint=f"use a serial loop, `for {name} in range(...)`, or let each iteration write an element of its own",
            notes=(*notes, *(() if store.span is None else store.span.notes())),
        )
    )
    context.failed = True
