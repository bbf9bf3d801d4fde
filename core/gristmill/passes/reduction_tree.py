"""The tree in which threads combine their partial results: through shared memory, and by exchanges where there are any.

Either way number ``i`` of ``n`` takes number ``i + ceil(n / 2)``, so the results are the same bits. An exchange needs no
memory and no barrier, but only reaches a thread's own group; so it does the last steps, those whose threads all stand in
the first group of their row.

Where the number of threads is known only when the program runs, the same steps are a loop, through memory for as many threads
as a block can have::

    for step in range(10):                              ; 1024 threads at most
        left = (count - 1 >> step) + 1                  ; ceil(count / 2 ** step)
        half = (count - 1 >> step + 1) + 1
        if left == 1:
            break
        if number < left - half:
            c_threads[number] = c_threads[number] + c_threads[number + half]
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from gristmill.ir.build import call, const, equal, less, sequence
from gristmill.ir.dtype import HANDLE, INT32, INT64
from gristmill.ir.expr import Add, Expr, Load, ShiftRight, Sub, Var
from gristmill.ir.memory import Buffer, PointerType, Scope
from gristmill.ir.op import WARP_WIDTH_AT_MOST
from gristmill.ir.span import Span
from gristmill.ir.stmt import Allocate, Bind, Break, For, If, LoopKind, Stmt, Store
from gristmill.passes.layout import plus


@dataclass(frozen=True, slots=True)
class Team:
    """The threads of a block in rows of ``count``, each of which combines its own partial results.

    ``number`` is a thread's place in its row, ``row`` that of its row (unused where there is one). ``width`` is that of the
    groups whose threads may exchange values; 1: none. Groups begin where rows begin.
    """

    count: int
    rows: int
    number: Expr
    row: Expr
    width: int = 1


@dataclass(frozen=True, slots=True)
class OpenTeam:
    """The threads of a block in rows of a number that only the launch knows.

    ``number`` is a thread's place in its row of ``count``, ``start`` the number of its row's first thread among all of the
    block, of which there are ``most`` at most.
    """

    count: Expr
    number: Expr
    start: Expr
    most: int


def width_for(count: int, rows: int, warp_size: int) -> int:
    """The widest groups that begin where rows begin, for rows of consecutive threads; 1 if the target has no exchanges."""
    widest = min(warp_size, WARP_WIDTH_AT_MOST)
    if widest < 1 or widest & (widest - 1):
        return 1
    return min(widest, 1 << (count - 1).bit_length()) if rows == 1 else math.gcd(count, widest)


def tree(
    kind: Callable[[Expr, Expr], Expr], partial: Buffer, result: Buffer, team: Team, everywhere: bool, span: Span | None
) -> tuple[list[Stmt], Expr]:
    """The statements that combine the partial results, and the value that they end in.

    The value is right in the thread of number 0 of each row; in all threads if it is wanted ``everywhere``.
    """
    count, width = team.count, 1 if partial.dtype.is_vector else team.width
    code: list[Stmt] = []
    mine = Load(partial, ())
    shape = (const(count, INT64),) if team.rows == 1 else (const(team.rows, INT64), const(count, INT64))
    shared = _shared(result, shape)
    row = () if team.rows == 1 else (team.row,)
    place, first = (*row, team.number), (*row, const(0, INT64))
    in_memory = count > width
    if in_memory:
        code += [Allocate(shared), Store(shared, place, mine, span)]
    left = count
    while left > width:
        half = (left + 1) // 2
        there = Load(shared, (*row, plus(team.number, const(half, INT64))))
        step = Store(shared, place, kind(Load(shared, place), there), span)
        code.append(If(less(team.number, left - half), step))
        left = half
    if left == 1:
        return code, Load(shared, first) if in_memory else mine
    if in_memory:
        code.append(Store(partial, (), Load(shared, place), span))
    lanes = const(width, INT32)
    while left > 1:
        half = (left + 1) // 2
        other = Var(f"{result.name}_other", partial.dtype)
        # All threads of a group come to the exchange; what those beyond the rest get is of no use, and dropped.
        code.append(Bind(other, call("warp_shuffle_down", mine, const(half, INT32), lanes, span=span), span))
        code.append(If(less(team.number, left - half), Store(partial, (), kind(mine, other), span)))
        left = half
    if not everywhere:
        return code, mine
    if not in_memory:
        total = Var(f"{result.name}_total", partial.dtype)
        code.append(Bind(total, call("warp_shuffle", mine, const(0, INT32), lanes, span=span), span))
        return code, total
    code.append(If(equal(team.number, 0), Store(shared, place, mine, span)))
    return code, Load(shared, first)


def open_tree(
    kind: Callable[[Expr, Expr], Expr],
    partial: Buffer,
    result: Buffer,
    team: OpenTeam,
    everywhere: bool,
    span: Span | None,
) -> tuple[list[Stmt], Expr]:
    """What :func:`tree` makes, as a loop, for a number of threads that is no constant."""
    shared = _shared(result, (const(team.most, INT64),))
    place = plus(team.start, team.number)
    step, left, half = Var("step", INT64), Var("left", INT64), Var("half", INT64)
    one = const(1, INT64)
    before = Sub(team.count, one)
    combined = kind(Load(shared, (place,)), Load(shared, (plus(place, half),)))
    body = sequence(
        Bind(left, Add(ShiftRight(before, step), one), span),
        Bind(half, Add(ShiftRight(before, Add(step, one)), one), span),
        If(equal(left, 1), Break(span), None, span),
        If(less(team.number, Sub(left, half)), Store(shared, (place,), combined, span), None, span),
    )
    steps = const((team.most - 1).bit_length(), INT64)
    code: list[Stmt] = [
        Allocate(shared),
        Store(shared, (place,), Load(partial, ()), span),
        For(step, const(0, INT64), steps, LoopKind.SERIAL, body, span=span),
    ]
    return code, Load(shared, (team.start,) if everywhere else (place,))


def _shared(result: Buffer, shape: tuple[Expr, ...]) -> Buffer:
    name = f"{result.name}_threads"
    data = Var(name, HANDLE, PointerType(result.dtype, Scope.SHARED))
    return Buffer(name, result.dtype, shape, data, scope=Scope.SHARED)
