"""Loops that reduce: all that their iterations leave behind is combined into elements that the loop does not move.

A loop (or several, one directly in the other) reduces if each of its stores goes to memory of its own, or has the form
``c[i] = c[i] op x`` with an ``i`` that is the same in all iterations and an ``op`` whose order does not matter: ``+``,
``-``, ``*``, ``&``, ``|`` and ``^`` of integers, ``min`` and ``max`` of any type, ``and`` and ``or``. Sums and products
of floats are exact operations in a stated order, so they count only where the function has ``fast_math``. The element
is not used in the loop in any other way. What stands around the update may be anything: conditions, loops, names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from gristmill.arith.simplify import Simplifier
from gristmill.ir import expr as e
from gristmill.ir.build import cast, conjunction, constant_value, equal, sequence, true
from gristmill.ir.expr import Expr, Load, Var
from gristmill.ir.functor import Mutator, substitute, walk
from gristmill.ir.memory import Buffer, Scope
from gristmill.ir.node import Node
from gristmill.ir.stmt import (
    Allocate,
    AxisKind,
    Bind,
    Block,
    For,
    If,
    LoopKind,
    Seq,
    Stmt,
    Store,
    View,
)
from gristmill.passes.renewal import defined_variables
from gristmill.schedule.iteration_space import has_fewer_than
from gristmill.schedule.jumps import escaping_jumps, leaves

LONG = 64
"""A loop of fewer iterations is left to each thread: bringing the partial results together would take longer."""

Operation = Callable[[Expr, Expr], Expr]
_OPERATIONS = (e.Add, e.Mul, e.Min, e.Max, e.BitAnd, e.BitOr, e.BitXor, e.And, e.Or)
_Key = tuple[Var, tuple[int, ...]]


@dataclass
class Accumulator:
    """An element into which a loop combines values."""

    buffer: Buffer
    indices: tuple[Expr, ...]
    operation: Operation
    always: bool = False
    """Whether each iteration updates it; else perhaps none does, and the element must not be touched."""


@dataclass(frozen=True)
class LoopReduction:
    """Loops, from outside to inside, whose iterations may be run in any order once each thread has partial results."""

    loops: tuple[For, ...]
    body: Stmt
    accumulators: dict[_Key, Accumulator] = field(default_factory=dict)
    start: Stmt | None = None
    """What is run before the first iteration, if there is one (the ``init`` of a block)."""

    def with_partials(self, partials: Sequence[Buffer], touched: Sequence[Buffer | None]) -> Stmt:
        """The body with its updates made to other elements, one of rank 0 for each accumulator.

        Where there is an element of ``touched`` (bool, of rank 0), an update makes it true.
        """
        places = dict(zip(self.accumulators, zip(partials, touched, strict=True), strict=True))
        return _Partial(places).visit(self.body)  # type: ignore[no-any-return]


class _Partial(Mutator):
    """Puts the partial results in the place of the accumulators."""

    def __init__(self, places: dict[_Key, tuple[Buffer, Buffer | None]]) -> None:
        super().__init__()
        self.places = places

    def visit_Load(self, node: Load) -> Any:
        found = self.places.get(_key(node))
        return self.generic(node) if found is None else Load(found[0], (), node.span)

    def visit_Store(self, node: Store) -> Any:
        found = self.places.get(_key(node))
        node = self.generic(node)
        if found is None:
            return node
        partial, touched = found
        update = Store(partial, (), node.value, node.span)
        return update if touched is None else sequence(update, Store(touched, (), true(), node.span))


def _key(access: Load | Store) -> _Key:
    """What tells accumulators apart: the memory, and the index if it is constant."""
    constants = [constant_value(index) for index in access.indices]
    return access.buffer.data, tuple(int(value) for value in constants if value is not None)


class Reductions:
    """Finds loops that reduce, in code that one thread would run. ``hinders`` names nodes that rule a loop out."""

    def __init__(self, fast_math: bool, hinders: Callable[[Node], bool]) -> None:
        self.fast_math = fast_math
        self.hinders = hinders
        self._known: dict[For, LoopReduction | None] = {}

    def in_any_loop(self, body: Stmt) -> bool:
        """Whether a loop anywhere in the statement reduces, and is not known to be short."""
        return any(isinstance(node, For) and self.of(node) is not None for node in walk(body))

    def of(self, loop: For) -> LoopReduction | None:
        """The loop as a reduction that is worth to be shared by threads; None if it is none."""
        if loop not in self._known:
            self._known[loop] = self._find(loop)
        return self._known[loop]

    def _find(self, loop: For) -> LoopReduction | None:
        loops = _chain(loop)
        if not loops or has_fewer_than(loops, LONG):
            return None
        body, start = loops[-1].body, None
        if isinstance(body, Block):
            plain = _plain(body, loops)
            if plain is None:
                return None
            body, start = plain
        if leaves(body) or any(self._rules_out(node) for node in walk(body)):
            return None
        found = self._accumulators(body, loops, defined_variables(loop) | defined_variables(body))
        if not found or (start is not None and not _starts(start, found)):
            return None
        return LoopReduction(tuple(loops), body, found, start)

    def _rules_out(self, node: Node) -> bool:
        return isinstance(node, (Block, View)) or self.hinders(node)

    def _accumulators(self, body: Stmt, loops: Sequence[For], inside: set[Var]) -> dict[_Key, Accumulator] | None:
        """The accumulators of a loop; None if it does anything else than to combine into them."""
        own = {node.buffer.data for node in walk(body) if isinstance(node, Allocate)}
        always = set() if escaping_jumps(body) else {part for part in _parts(body) if isinstance(part, Store)}
        values = {node.var: node.value for node in walk(body) if isinstance(node, Bind)}
        lanes = [node for node in walk(body) if isinstance(node, For) and node.kind is LoopKind.VECTORIZED]
        in_lanes = {part for loop in lanes for part in walk(loop) if isinstance(part, Store)}
        same = Simplifier()
        found: dict[_Key, Accumulator] = {}
        updating: set[Load] = set()
        for node in walk(body):
            if not isinstance(node, Store) or node.buffer.data in own:
                continue
            update = _update(node, same)
            if update is None or node in in_lanes or not self._is_free(update[0], node):
                return None
            operation, mine, value = update
            if operation in (e.And, e.Or) and not all(_is_inside(part, loops, same) for part in walk(value)):
                # Where the result is known already, the serial loop does not evaluate the rest, which may be outside.
                return None
            indices = tuple(_without(index, values) for index in node.indices)
            if any(_moves(index, inside) for index in indices):
                return None
            key = _key(node)
            known = found.setdefault(key, Accumulator(node.buffer, indices, operation))
            if known.buffer is not node.buffer or known.operation is not operation:
                return None
            if not all(same.same(a, b) for a, b in zip(known.indices, indices, strict=True)):
                return None
            known.always = known.always or node in always
            updating.add(mine)
        for node in walk(body):
            if isinstance(node, Load) and node not in updating and any(key[0] is node.buffer.data for key in found):
                return None
        return found if all(_are_apart(found, key) for key in found) else None

    def _is_free(self, operation: Operation, store: Store) -> bool:
        """Whether the order does not matter."""
        dtype = store.buffer.dtype
        if dtype.is_vector or store.value.dtype.is_vector or store.buffer.scope not in (Scope.LOCAL, Scope.GLOBAL):
            return False
        return self.fast_math or not dtype.is_float or operation in (e.Min, e.Max)


def _chain(loop: For) -> list[For]:
    """The loops that directly contain each other and run equally often whatever the iteration of the outer ones."""
    loops: list[For] = []
    inner: Stmt = loop
    variables: set[Var] = set()
    while isinstance(inner, For) and inner.kind in (LoopKind.SERIAL, LoopKind.PARALLEL):
        ends = [part for end in (inner.minimum, inner.extent) for part in walk(end)]
        if loops and any(part in variables or isinstance(part, Load) for part in ends):
            break
        loops.append(inner)
        variables.add(inner.var)
        inner = inner.body
    return loops


def _plain(block: Block, loops: Sequence[For]) -> tuple[Stmt, Stmt | None] | None:
    """A block as plain statements, and what it runs before the first iteration; None if that is not so simple."""
    if block.matches or block.allocations:
        return None
    names = [Bind(axis.var, cast(axis.value, axis.var.dtype), axis.span) for axis in block.axes]
    body = block.body if block.predicate is None else If(block.predicate, block.body, None, block.span)
    if block.init is None:
        return sequence(*names, body), None
    # The init runs where all reduce axes are at their start: that must be the first iteration, and no other.
    variables = {loop.var for loop in loops}
    reduced = [axis for axis in block.axes if axis.kind is AxisKind.REDUCE]
    if block.predicate is not None or {axis.value for axis in reduced} != variables:
        return None
    fixed: dict[Var, Expr] = {}
    starts = []
    for axis in block.axes:
        if axis.kind is AxisKind.REDUCE:
            loop = next(loop for loop in loops if loop.var is axis.value)
            fixed[axis.var] = cast(loop.minimum, axis.var.dtype)
            if constant_value(loop.minimum) is None or constant_value(loop.minimum) != constant_value(
                axis.domain.minimum
            ):
                starts.append(equal(loop.minimum, cast(axis.domain.minimum, loop.minimum.dtype)))
        elif any(part in variables for part in walk(axis.value)):
            return None
        else:
            fixed[axis.var] = cast(axis.value, axis.var.dtype)
    init = substitute(block.init, fixed)
    return sequence(*names, body), If(conjunction(starts), init) if starts else init


def _starts(start: Stmt, accumulators: dict[_Key, Accumulator]) -> bool:
    """Whether the init of a block does nothing but to store to accumulators."""
    known = {key[0] for key in accumulators}
    return all(
        not isinstance(node, (For, Bind, Allocate, Load)) and (not isinstance(node, Store) or node.buffer.data in known)
        for node in walk(start)
    )


def _update(store: Store, same: Simplifier) -> tuple[Operation, Load, Expr] | None:
    """The operation of an update, its load of the element, and the other operand."""
    value = store.value
    if not isinstance(value, (*_OPERATIONS, e.Sub)):
        return None
    sides = [(value.a, value.b)] if isinstance(value, e.Sub) else [(value.a, value.b), (value.b, value.a)]
    for mine, other in sides:
        if (
            isinstance(mine, Load)
            and mine.buffer is store.buffer
            and all(same.same(a, b) for a, b in zip(mine.indices, store.indices, strict=True))
        ):
            # Taking away from a partial result that starts at 0, and then adding it, is the same.
            return e.Add if isinstance(value, e.Sub) else type(value), mine, other
    return None


def _parts(body: Stmt) -> list[Stmt]:
    """The statements that are run in each iteration, unless a jump leaves it."""
    return list(body.body) if isinstance(body, Seq) else [body]


def _without(index: Expr, values: dict[Var, Expr]) -> Expr:
    """The index without names of the loop, as far as they stand for what is the same in all iterations."""
    while used := {part: values[part] for part in walk(index) if isinstance(part, Var) and part in values}:
        index = substitute(index, used)
        if sum(1 for _ in walk(index)) > 1000:
            break
    return index


def _is_inside(part: Node, loops: Sequence[For], same: Simplifier) -> bool:
    """Whether a load is of an element that there is; true for anything else."""
    if not isinstance(part, Load):
        return True
    for index, size in zip(part.indices, part.buffer.shape, strict=True):
        loop = next((loop for loop in loops if loop.var is index), None)
        first = None if loop is None else constant_value(loop.minimum)
        if loop is None or first is None or first < 0:
            return False
        if not same.same(same.simplify(loop.extent + loop.minimum), same.simplify(size)):
            return False
    return True


def _moves(index: Expr, inside: set[Var]) -> bool:
    """Whether an index may differ from one iteration to another."""
    return index.dtype.is_vector or any(
        part in inside or isinstance(part, (Load, e.CallFunction)) for part in walk(index)
    )


def _are_apart(accumulators: dict[_Key, Accumulator], key: _Key) -> bool:
    """Whether no other accumulator is the same element: one of its memory alone, or one of several constant indices."""
    return all(
        other == key
        or other[0] is not key[0]
        or (
            len(other[1]) == len(key[1]) == len(accumulators[key].indices)
            and accumulators[other].buffer is accumulators[key].buffer
        )
        for other in accumulators
    )
