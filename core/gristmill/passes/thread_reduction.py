"""One reduction over threads: the statements that :mod:`gristmill.passes.lower_thread_reductions` puts for a block."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from gristmill.arith.simplify import Simplifier, simplify
from gristmill.errors import Diagnostic, UserError
from gristmill.ir import expr as e
from gristmill.ir.build import cast, conjunction, const, constant_value, equal, greater, sequence
from gristmill.ir.dtype import HANDLE, INT64, DType
from gristmill.ir.expr import Expr, Load, Var
from gristmill.ir.functor import Mutator, substitute, walk
from gristmill.ir.memory import Buffer, PointerType, Scope
from gristmill.ir.span import Span, place_of
from gristmill.ir.stmt import (
    Allocate,
    AxisKind,
    Bind,
    Block,
    For,
    If,
    Seq,
    Stmt,
    Store,
    ThreadAxis,
)
from gristmill.passes.launch_regions import is_region
from gristmill.passes.layout import as_int64, plus, times
from gristmill.passes.reduction_tree import OpenTeam, Team, open_tree, tree, width_for
from gristmill.passes.renewal import renewed

_KINDS = (e.Add, e.Mul, e.Min, e.Max, e.BitAnd, e.BitOr, e.BitXor, e.And, e.Or)
_THREADS = (ThreadAxis.THREAD_X, ThreadAxis.THREAD_Y, ThreadAxis.THREAD_Z)


@dataclass(frozen=True, slots=True)
class _Update:
    """One reduction of a block: ``target[indices] = kind(target[indices], value)``."""

    store: Store
    kind: Callable[[Expr, Expr], Expr]
    value: Expr


def neutral(kind: Callable[[Expr, Expr], Expr], dtype: DType) -> Expr:
    """The value that combined with any other gives the other, bit for bit (NaNs count as one)."""
    element = dtype.element
    value: float
    if kind is e.Add:
        value = -0.0 if element.is_float else 0
    elif kind in (e.Min, e.Max):
        value = float("nan") if element.is_float else element.maximum if kind is e.Min else element.minimum
    elif kind is e.BitAnd:
        value = 1 if element.is_bool else -1
    else:
        value = 1 if kind in (e.Mul, e.And) else 0
    return const(value, dtype)


def refuse(span: Span | None, message: str, hint: str) -> NoReturn:
    raise UserError(Diagnostic("GM0610", message, place_of(span), hint=hint))


class Reduction:
    """One block that reduces over threads, with the serial loops that belong to it alone."""

    def __init__(
        self,
        block: Block,
        loops: list[For],
        over: list[For],
        threads: list[For],
        region: For,
        values: Mapping[Var, Expr],
        warp_size: int,
        max_threads: int,
    ) -> None:
        self.block = block
        self.max_threads = max_threads
        self.warp_size = warp_size
        self.values = values
        self.serial = [loop for loop in loops if not is_region(loop)]
        self.inner_threads = [loop for loop in loops if is_region(loop)]
        opened: dict[ThreadAxis, For] = {}
        for loop in (*threads, *self.inner_threads):
            if loop.thread is not None and not loop.thread.is_block:
                opened.setdefault(loop.thread, loop)
        self.missing: list[For] = []
        for node in walk(region):
            if isinstance(node, For) and node.thread in _THREADS and node.thread not in opened:
                # Threads along this axis all do this one piece of work; each row of them does it for itself.
                loop = replace(node, var=replace(node.var), minimum=const(0, node.var.dtype), body=Seq(()))
                opened[node.thread] = loop
                self.missing.append(loop)
        axes = {loop.thread for loop in over}
        self.reduce = [opened[axis] for axis in _THREADS if axis in axes and axis in opened]
        self.groups = [opened[axis] for axis in _THREADS if axis not in axes and axis in opened]
        self.free = {loop.var for loop in self.serial} | {loop.var for loop in over}
        self.start = {
            loop.var: loop.minimum for loop in (*self.serial, *over)
        }  # fmt: skip

    def lowered(self) -> Stmt:
        block = self.block
        if block.allocations or block.matches:
            self.refuse("has buffers of its own", "declare them outside of the block")
        bindings, updates = self.updates()
        self.check_start({update.store.buffer for update in updates})
        team = self.team()
        for axis in block.axes:
            if axis.kind is AxisKind.SPATIAL and self.depends(axis.value):
                self.refuse(
                    f"its axis `{axis.var.name}`, which is none of the reduction, runs over the same threads",
                    "bind each axis of threads to one kind of axis of the block",
                    axis.span,
                )
        own, once = self.predicates()
        partials = [_buffer(update.store.buffer, "partial", (), Scope.LOCAL) for update in updates]
        # First each thread by itself.
        code: list[Stmt | None] = []
        for update, partial in zip(updates, partials, strict=True):
            start = neutral(update.kind, partial.dtype)
            code += [Allocate(partial), Store(partial, (), start, update.store.span)]
        body: Stmt = sequence(
            *bindings,
            *(
                Store(partial, (), update.kind(Load(partial, ()), update.value), update.store.span)
                for update, partial in zip(updates, partials, strict=True)
            ),
        )
        body = sequence(*self.axes(), If(own, body) if constant_value(own) != 1 else body)
        for loop in reversed(self.serial):
            body = replace(loop, body=body)
        code.append(body)
        # Then all of them together.
        totals: list[Expr] = []
        for update, partial in zip(updates, partials, strict=True):
            if isinstance(team, Team) and team.count == 1:
                totals.append(Load(partial, ()))
                continue
            target = update.store.buffer
            everywhere = target.scope is Scope.LOCAL
            if isinstance(team, OpenTeam):
                steps, total = open_tree(update.kind, partial, target, team, everywhere, update.store.span)
            else:
                steps, total = tree(update.kind, partial, target, team, everywhere, update.store.span)
            code += steps
            totals.append(total)
        begun: set[Buffer] = set()
        for update, total in zip(updates, totals, strict=True):
            # Several results may be elements of one buffer, which starts once.
            code.append(self.result(update, total, once, starts=update.store.buffer not in begun))
            begun.add(update.store.buffer)
        found = sequence(*code, span=block.span)
        for loop in (*self.missing, *reversed(self.inner_threads)):
            found = replace(loop, body=found)
        return found

    def team(self) -> Team | OpenTeam:
        """How the threads of a block combine: along some axes, each row of them for itself."""
        count = rows = 1
        # Whether the threads of a row are consecutive: axes along which it does not go count slower.
        in_order = True
        for axis in _THREADS:
            for loop in (*self.reduce, *self.groups):
                if loop.thread is not axis:
                    continue
                extent = constant_value(simplify(loop.extent))
                if extent is None:
                    return self.open_team(axis)
                if loop in self.groups:
                    rows *= int(extent)
                else:
                    in_order = in_order and (rows == 1 or extent == 1)
                    count *= int(extent)
        width = width_for(count, rows, self.warp_size) if in_order and count > 0 else 1
        return Team(count, rows, self.rank(self.reduce), self.rank(self.groups), width)

    def open_team(self, axis: ThreadAxis) -> OpenTeam:
        """The team where the extent along an axis is no constant."""
        if not self.max_threads:
            self.refuse(
                f"runs on a number of threads along `{axis.value}` that is no constant, and the target does not say how "
                "many a block has at most",
                "give the axis a constant extent, or the target `max_threads_per_block`",
            )
        count: Expr = const(1, INT64)
        for loop in self.reduce:
            count = times(count, _extent(loop))
        return OpenTeam(count, self.rank(self.reduce), times(self.rank(self.groups), count), self.max_threads)

    def refuse(self, what: str, hint: str, span: Span | None = None) -> NoReturn:
        refuse(span or self.block.span, f"the block `{self.block.name}` reduces over threads and {what}", hint)

    def updates(self) -> tuple[list[Bind], list[_Update]]:
        """The bindings of the body and its reductions."""
        parts = self.block.body.body if isinstance(self.block.body, Seq) else (self.block.body,)
        bindings: list[Bind] = []
        found: list[_Update] = []
        hint = "write each result as `c[...] = c[...] + value` (or `*`, `T.min`, `T.max`, `&`, `|`, `^`, `and`, `or`)"
        results = {part.buffer.data for part in parts if isinstance(part, Store)}
        names = {axis.var for axis in self.block.axes if axis.kind is AxisKind.REDUCE}
        for part in parts:
            if isinstance(part, Bind) and not found:
                bindings.append(part)
                names.add(part.var)
                continue
            update = _update_of(part) if isinstance(part, Store) else None
            if update is None:
                if isinstance(part, If):
                    hint = "take no branch but a value that changes nothing: `c[0] += x if x > limit else 0`"
                elif isinstance(part, Store) and isinstance(part.value, e.Sub):
                    hint = "add what is subtracted, negated: `c[0] += -x`"
                self.refuse("is no reduction that can be done in another order", hint, getattr(part, "span", None))
            found.append(update)
        for update in found:
            inside = names | self.free
            if any(isinstance(part, Var) and part in inside for index in update.store.indices for part in walk(index)):
                self.refuse("writes different results in different steps of it", hint, update.store.span)
        values: list[Expr] = [*(binding.value for binding in bindings), *(update.value for update in found)]
        for value in values:
            if any(isinstance(part, Load) and part.buffer.data in results for part in walk(value)):
                self.refuse("uses its result before it is complete", hint)
        return bindings, found

    def axes(self) -> list[Stmt]:
        return [Bind(axis.var, cast(axis.value, axis.var.dtype), axis.span) for axis in self.block.axes]

    def predicates(self) -> tuple[Expr, Expr]:
        """What a thread asks before each of its elements; and what is asked once, where the result is written: whether
        there is any element."""
        own: list[Expr] = []
        once: list[Expr] = []
        for loop in self.serial:
            if constant_value(loop.extent) is None:
                once.append(greater(loop.extent, 0))
            elif int(constant_value(loop.extent) or 0) <= 0:
                once.append(const(0, e.Less(loop.extent, loop.extent).dtype))
        for part in _conjuncts(self.block.predicate):
            own.append(part)
            if not self.depends(part):
                once.append(part)
                continue
            least = self.least(part)
            if least is None:
                self.refuse(
                    "its condition picks steps that are not the first ones",
                    "let the condition compare an index that grows with a bound, as `T.where(k * 32 + t < n)`",
                    part.span,
                )
            once.append(least)
        return conjunction(own), conjunction(once)

    def check_start(self, results: set[Buffer]) -> None:
        """Refuse an ``init`` that writes more than the results."""
        for part in walk(self.block.init) if self.block.init is not None else ():
            if isinstance(part, Store) and part.buffer not in results:
                self.refuse(
                    f"its `T.init` writes to `{part.buffer.name}`, which is no result of it",
                    "start only what the block reduces into, and write the rest outside of the block",
                    part.span,
                )

    def depends(self, expr: Expr) -> bool:
        return any(part in self.free for part in walk(substitute(expr, self.values)))

    def least(self, condition: Expr) -> Expr | None:
        """A condition that holds for the first step if for any; None if that is not known."""
        if isinstance(condition, (e.Less, e.LessEqual)) and not self.depends(condition.b) and self.grows(condition.a):
            return self.at_start(condition)
        if (
            isinstance(condition, (e.Greater, e.GreaterEqual))
            and not self.depends(condition.a)
            and self.grows(condition.b)
        ):
            return self.at_start(condition)
        return None

    def at_start(self, expr: Expr) -> Expr:
        return simplify(substitute(substitute(expr, self.values), self.start))

    def grows(self, expr: Expr) -> bool:
        """Whether the value is least at the first step."""
        simplifier = Simplifier()
        form = simplifier.form(simplifier.simplify(substitute(expr, self.values)))
        return all(
            coefficient > 0 and self.grows_alone(atom)
            for atom, coefficient in form.terms.values()
            if any(part in self.free for part in walk(atom))
        )

    def grows_alone(self, atom: Expr) -> bool:
        if atom in self.free:
            return True
        if isinstance(atom, e.Cast):
            return atom.value.dtype.is_integer and self.grows(atom.value)
        if (
            isinstance(atom, (e.FloorDiv, e.FloorMod, e.Div, e.Mod))
            and isinstance(atom.b, e.IntImm)
            and atom.b.value > 0
        ):
            zero = constant_value(self.at_start(atom.a)) == 0
            return self.grows(atom.a) and (zero or isinstance(atom, (e.FloorDiv, e.Div)))
        return False

    def rank(self, loops: list[For]) -> Expr:
        """The number of the running thread along the axes, x fastest."""
        total: Expr = const(0, INT64)
        step: Expr = const(1, INT64)
        for loop in loops:
            coordinate: Expr = loop.var if constant_value(loop.minimum) == 0 else e.Sub(loop.var, loop.minimum)
            total = plus(total, times(cast(coordinate, INT64), step))
            step = times(step, _extent(loop))
        return total

    def result(self, update: _Update, total: Expr, once: Expr, *, starts: bool) -> Stmt:
        """Combine with what is in the result, or with what ``init`` puts there if the buffer ``starts`` here."""
        target = update.store
        begins: list[Expr] = []
        for axis in self.block.axes:
            if axis.kind is AxisKind.REDUCE:
                if not self.grows(axis.value):
                    self.refuse(
                        f"its axis `{axis.var.name}` does not begin with the first step",
                        "bind the axis to an index that grows with the loops, as `k * 32 + t`",
                        axis.span,
                    )
                begins.append(simplify(equal(self.at_start(axis.value), self.at_start(axis.domain.minimum))))
        init = None
        if starts and self.block.init is not None:
            init = _Only(target.buffer).visit(self.block.init)
            first = conjunction(begins)
            init = If(first, init) if constant_value(first) != 1 else init
        final = Store(
            target.buffer, target.indices, update.kind(Load(target.buffer, target.indices), total), target.span
        )
        spatial = [axis for axis in self.axes() if isinstance(axis, Bind) and not self.depends(axis.value)]
        guards = [equal(self.rank([loop]), 0) for loop in self.missing]
        if target.buffer.scope is not Scope.LOCAL and self.reduce:
            guards = [*(equal(self.rank([loop]), 0) for loop in self.reduce), *guards]
        condition = conjunction([*guards, *_conjuncts(once)])
        body = sequence(init, final)
        body = If(condition, body) if constant_value(condition) != 1 else body
        return renewed(sequence(*spatial, body))


def _extent(loop: For) -> Expr:
    return simplify(as_int64(loop.extent))


class _Only(Mutator):
    """Keeps the stores to one buffer."""

    def __init__(self, buffer: Buffer) -> None:
        super().__init__()
        self.buffer = buffer

    def visit_Store(self, node: Store) -> Any:
        return node if node.buffer is self.buffer else Seq(())


def _update_of(store: Store) -> _Update | None:
    """A store as a reduction, if it is one."""
    value = store.value
    if not isinstance(value, _KINDS):
        return None
    same = Simplifier()
    for mine, other in ((value.a, value.b), (value.b, value.a)):
        if (
            isinstance(mine, Load)
            and mine.buffer is store.buffer
            and all(same.same(a, b) for a, b in zip(mine.indices, store.indices, strict=True))
        ):
            return _Update(store, type(value), other)
    return None


def _conjuncts(condition: Expr | None) -> Iterator[Expr]:
    if condition is None:
        return
    if isinstance(condition, e.And):
        yield from _conjuncts(condition.a)
        yield from _conjuncts(condition.b)
    elif isinstance(condition, e.Call) and condition.op.name == "likely":
        yield from _conjuncts(condition.args[0])
    else:
        yield condition


def _buffer(of: Buffer, what: str, shape: tuple[Expr, ...], scope: Scope) -> Buffer:
    name = f"{of.name}_{what}"
    return Buffer(name, of.dtype, shape, Var(name, HANDLE, PointerType(of.dtype, scope)), scope=scope)
