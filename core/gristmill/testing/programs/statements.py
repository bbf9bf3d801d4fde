"""Random statements: valid, ending, and without races, because each is made so.

Memory is filled when it is allocated. Loops have bounded lengths; a ``while`` counts down. An iteration of a parallel
loop writes only to elements whose first index is its own, and to memory that it made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from gristmill.ir import expr as e
from gristmill.ir import stmt as s
from gristmill.ir.build import const, less, sequence
from gristmill.ir.dtype import BOOL, HANDLE, INT64, VOID, DType
from gristmill.ir.memory import Buffer, PointerType, Range, Region, Scope
from gristmill.testing.programs.atomics import AtomicMaker
from gristmill.testing.programs.scope import STEPS_AT_MOST, Memory, Place, extent_bound, size_of

_LANES = (2, 3, 4, 8, 16)


class StatementMaker(AtomicMaker):
    """Makes statements of one function, whose result is ``returns``."""

    returns: DType = VOID
    serial_number: int = 0

    def name(self, stem: str) -> str:
        self.serial_number += 1
        return f"{stem}{self.serial_number}"

    def new_buffer(self, stem: str, dtype: DType, shape: Iterable[e.Expr], scope: Scope = Scope.GLOBAL) -> Buffer:
        name = self.name(stem)
        data = e.Var(f"{name}_data", HANDLE, PointerType(dtype, scope))
        return Buffer(name, dtype, tuple(shape), data, scope=scope)

    def depth(self) -> int:
        """How deep an expression may nest here: less where it is run often."""
        return self.chance.number(1, 3) if self.place.cost < 200 else self.chance.number(0, 2)

    # Sequences --------------------------------------------------------------------------------------------------------

    def body(self, place: Place, most: int) -> s.Stmt:
        """A few statements with names of their own."""
        outer = self.place
        with self.scope.nested():
            found: list[s.Stmt] = []
            for _ in range(self.chance.number(1, most)):
                self.place = place
                found.append(self.statement())
                if isinstance(found[-1], (s.Break, s.Continue, s.Return)):
                    break
        self.place = outer
        return sequence(*found)

    def statement(self) -> s.Stmt:
        place = self.place
        choices: list[tuple[float, Callable[[], s.Stmt | None]]] = [(6.0, self.store), (3.0, self.bind)]
        choices += [(2.0, self.local_scalar), (1.2, self.local_buffer)]
        if any(memory.writable and not memory.readable for memory in self.scope.memory):
            choices.append((1.5, self.bounded_store))
        if self.allowed("view"):
            choices.append((0.6, self.view))
        if self.allowed("vector"):
            choices.append((1.5, self.vector_store))
        if place.depth < 4:
            choices.append((2.0, self.conditional))
            if place.cost * 4 <= STEPS_AT_MOST:
                choices += [(2.5, self.loop), (0.7, self.while_loop)]
                if self.allowed("block"):
                    choices.append((0.7, self.block))
        if self.allowed("assert"):
            choices.append((0.4, self.assertion))
        if self.allowed("atomic"):
            choices.append((0.8, self.atomic))
        choices.append((0.4, self.call_statement))
        if place.depth and (place.may_continue or place.may_return):
            choices.append((0.6, self.jump))
        while True:
            found = self.chance.weighted(choices)()
            if found is not None:
                return found

    # Simple statements ------------------------------------------------------------------------------------------------

    def writable(self, scalar: bool | None = None) -> list[Memory]:
        return [m for m in self.scope.memory if m.writable and (scalar is None or m.is_scalar is scalar)]

    def value_for(self, memory: Memory, dtype: DType) -> e.Expr:
        """A value to store: exact, or bounded for a bounded output."""
        if memory.readable:
            return self.make(dtype, self.depth())
        return self.bounded(dtype, dtype.element in self.mathematics_in)

    def store(self) -> s.Stmt | None:
        memory = self.writable()
        if not memory:
            return None
        chosen = self.chance.pick(memory)
        return s.Store(chosen.buffer, self.indices(chosen), self.value_for(chosen, chosen.dtype))

    def bounded_store(self) -> s.Stmt:
        """A store to a bounded output."""
        chosen = self.chance.pick([memory for memory in self.writable() if not memory.readable])
        return s.Store(chosen.buffer, self.indices(chosen), self.value_for(chosen, chosen.dtype))

    def vector_store(self) -> s.Stmt | None:
        memory = [m for m in self.writable(scalar=False) if len(m.buffer.shape) > 1 or m.first is None]
        if not memory:
            return None
        chosen = self.chance.pick(memory)
        lanes = self.chance.pick(_LANES)
        indices = self.indices(chosen, lanes)
        return s.Store(chosen.buffer, indices, self.value_for(chosen, chosen.dtype.with_lanes(lanes)))

    def bind(self) -> s.Stmt:
        dtype = self.chance.pick(self.dtypes)
        if self.allowed("vector") and self.chance.happens(0.25):
            dtype = dtype.with_lanes(self.chance.pick(_LANES))
        value = self.make(dtype, self.depth())
        var = e.Var(self.name("v"), dtype)
        self.scope.variables.append(var)
        return s.Bind(var, value)

    def local_scalar(self) -> s.Stmt:
        dtype = self.chance.pick(self.dtypes)
        buffer = self.new_buffer("x", dtype, (), Scope.LOCAL)
        value = self.make(dtype, self.depth())
        self.scope.memory.append(Memory(buffer))
        return s.Seq((s.Allocate(buffer), s.Store(buffer, (), value)))

    def local_buffer(self) -> s.Stmt | None:
        shape = tuple(size_of(self.chance.number(1, 5)) for _ in range(self.chance.number(1, 2)))
        return self.filled("t", self.chance.pick(self.dtypes), shape)[0]

    def filled(self, stem: str, dtype: DType, shape: tuple[e.Expr, ...]) -> tuple[s.Stmt, Buffer]:
        """New memory, every element of it written."""
        buffer = self.new_buffer(stem, dtype, shape, Scope.LOCAL)
        indices = tuple(e.Var(self.name("k"), INT64) for _ in shape)
        outer = self.place
        for size in shape:
            self.place = self.place.inside(extent_bound(size), s.LoopKind.SERIAL)
        with self.scope.nested():
            self.scope.positions.extend(zip(indices, shape, strict=True))
            fill: s.Stmt = s.Store(buffer, indices, self.make(dtype, min(self.depth(), 2)))
        self.place = outer
        for index, size in reversed(list(zip(indices, shape, strict=True))):
            kind = self.chance.pick((s.LoopKind.SERIAL, s.LoopKind.SERIAL, s.LoopKind.UNROLLED))
            fill = s.For(index, size_of(0), size, kind, fill)
        self.scope.memory.append(Memory(buffer))
        return s.Seq((s.Allocate(buffer), fill)), buffer

    def view(self) -> s.Stmt | None:
        """Another buffer over local memory: other element sizes of integers, other strides, an offset, a pointer."""
        integers = [
            m
            for m in self.scope.memory
            if m.dtype.is_integer and m.readable and m.writable and m.first is None and _is_local_vector(m)
        ]
        if not integers:
            return None
        chosen = self.chance.pick(integers)
        size = extent_bound(chosen.buffer.shape[0])
        roll = self.chance.random()
        if roll < 0.4:
            total = size * chosen.dtype.bytes
            others = [dtype for dtype in self.integers if total % dtype.bytes == 0]
            dtype = self.chance.pick(others)
            view = Buffer(
                self.name("w"), dtype, (size_of(total // dtype.bytes),), chosen.buffer.data, scope=chosen.buffer.scope
            )
            statement = s.View(view)
        elif roll < 0.7:
            # A stride that has a name is one that no pass knows where optional ones are left out.
            step: e.Expr = size_of(-1) if size % 2 else e.Var(self.name("step"), INT64)
            back = Buffer(
                self.name("w"),
                chosen.dtype,
                (size_of(size),),
                chosen.buffer.data,
                strides=(step,),
                offset=size_of(size - 1),
                scope=chosen.buffer.scope,
            )
            view, statement = back, s.View(back)
            if isinstance(step, e.Var):
                self.scope.memory.append(Memory(view, view_of=chosen.root))
                return s.Seq((s.Bind(step, size_of(-1)), statement))
        else:
            start = self.chance.number(0, size - 1)
            view = self.new_buffer("w", chosen.dtype, (size_of(size - start),), chosen.buffer.scope)
            statement = s.View(view, e.AddressOf(chosen.buffer, (size_of(start),)))
        self.scope.memory.append(Memory(view, view_of=chosen.root))
        return statement

    def assertion(self) -> s.Stmt:
        value = self.make(INT64 if INT64 in self.dtypes or not self.integers else self.chance.pick(self.integers), 1)
        divisor = const(self.chance.number(2, 9), value.dtype)
        condition = less(e.FloorMod(value, divisor), divisor)
        return s.Assert(condition, self.chance.pick(("ValueError", "RuntimeError")), ("the value ", value, " is odd"))

    def jump(self) -> s.Stmt | None:
        """A break, a continue or a return: under a condition, so that what follows is reached."""
        choices: list[s.Stmt] = []
        if self.place.may_break:
            choices.append(s.Break())
        if self.place.may_continue:
            choices.append(s.Continue())
        # Rarely a return: what follows one is seldom run.
        if self.place.may_return and (not choices or self.chance.happens(0.3)):
            choices.append(self.return_statement())
        if not choices:
            return None
        return s.If(self.make(BOOL, 1), self.chance.pick(choices))

    def return_statement(self) -> s.Stmt:
        return s.Return(None if self.returns.is_void else self.make(self.returns, 1))

    def call_statement(self) -> s.Stmt | None:
        """A call for its effect on a buffer that it gets."""
        place = self.place
        found = [h for h in self.helpers if not h.is_pure and h.cost * place.cost <= STEPS_AT_MOST]
        if not found or place.in_parallel or place.in_lock_step:
            return None
        helper = self.chance.pick(found)
        target = helper.function.params[0]
        buffers = [
            m
            for m in self.writable(scalar=False)
            if m.readable and m.dtype == target.dtype and len(m.buffer.shape) == 1
        ]
        compact = [m for m in buffers if not m.buffer.strides]
        if not compact:
            return None
        rest = tuple(self.make(param.dtype, 1) for param in helper.function.params[1:])
        args = (e.BufferRef(self.chance.pick(compact).buffer), *rest)
        return s.Evaluate(e.CallFunction(helper.function.name, args, helper.function.returns))

    # Control ----------------------------------------------------------------------------------------------------------

    def conditional(self) -> s.Stmt:
        condition = self.make(BOOL, self.depth())
        place = replace(self.place, depth=self.place.depth + 1)
        otherwise = self.body(place, 2) if self.chance.happens(0.5) else None
        return s.If(condition, self.body(place, 3), otherwise)

    def loop(self) -> s.Stmt:
        """A loop over a dimension of memory, or of some length."""
        place = self.place
        kinds: list[tuple[float, s.LoopKind]] = [(4.0, s.LoopKind.SERIAL), (1.0, s.LoopKind.UNROLLED)]
        if self.allowed("vectorized"):
            kinds.append((1.5, s.LoopKind.VECTORIZED))
        if self.allowed("parallel") and not place.in_lock_step:
            kinds.append((1.5, s.LoopKind.PARALLEL))
        kind = self.chance.weighted(kinds)
        if kind is s.LoopKind.PARALLEL:
            return self.parallel_loop()
        sizes = [size for m in self.scope.memory for size in m.buffer.shape]
        if kind is s.LoopKind.VECTORIZED:
            sizes = [size for size in sizes if isinstance(size, e.IntImm)]
        roll = self.chance.random()
        if sizes and roll < 0.7:
            extent = self.chance.pick(sizes)
            if extent_bound(extent) * place.cost > STEPS_AT_MOST:
                extent = size_of(2)
            var = e.Var(self.name("i"), INT64)
            return self.loop_over(var, size_of(0), extent, kind, extent_bound(extent), extent)
        if roll < 0.85 or kind is s.LoopKind.VECTORIZED or not self.integers:
            dtype = self.chance.pick(self.integers or (INT64,))
            times = self.chance.number(0, 5)
            start = self.chance.pick((0, 1, -2, 100)) if dtype.is_signed else self.chance.pick((0, 1, 100))
            var = e.Var(self.name("i"), dtype)
            return self.loop_over(var, const(start, dtype), const(times, dtype), kind, times, None)
        dtype = self.chance.pick(self.integers)
        extent = e.FloorMod(self.make(dtype, 1), const(6, dtype))
        var = e.Var(self.name("i"), dtype)
        return self.loop_over(var, const(self.chance.number(0, 9), dtype), extent, kind, 5, None)

    def loop_over(
        self, var: e.Var, minimum: e.Expr, extent: e.Expr, kind: s.LoopKind, times: int, position_in: e.Expr | None
    ) -> s.Stmt:
        with self.scope.nested():
            self.scope.variables.append(var)
            if position_in is not None:
                self.scope.positions.append((var, position_in))
            body = self.body(self.place.inside(times, kind), 3)
        hints = s.LoopHints()
        if kind is s.LoopKind.SERIAL and self.chance.happens(0.1):
            hints = s.LoopHints(unroll=self.chance.pick((0, 2, 4)), vectorize=self.chance.pick((None, True, False)))
        return s.For(var, minimum, extent, kind, body, hints=hints)

    def parallel_loop(self) -> s.Stmt:
        """Iterations that write only where the first index is their own."""
        place = self.place
        by_size: dict[object, list[Memory]] = {}
        for memory in self.writable(scalar=False):
            # Of memory with views an element would have several first indices.
            if memory.first is None and sum(other.root is memory.root for other in self.scope.memory) == 1:
                size = memory.buffer.shape[0]
                by_size.setdefault(size.value if isinstance(size, e.IntImm) else size, []).append(memory)
        groups = [
            group for group in by_size.values() if extent_bound(group[0].buffer.shape[0]) * place.cost <= STEPS_AT_MOST
        ]
        if not groups:
            return self.loop_over(e.Var(self.name("i"), INT64), size_of(0), size_of(2), s.LoopKind.SERIAL, 2, None)
        owned = self.chance.pick(groups)
        size = owned[0].buffer.shape[0]
        var = e.Var(self.name("i"), INT64)
        with self.scope.nested():
            chosen = set(owned)
            self.scope.memory[:] = [
                replace(m, first=var) if m in chosen else replace(m, writable=False) for m in self.scope.memory
            ]
            return self.loop_over(var, size_of(0), size, s.LoopKind.PARALLEL, extent_bound(size), size)

    def while_loop(self) -> s.Stmt:
        """A loop that counts down something nobody else writes, while a condition holds."""
        dtype = self.chance.pick(self.integers or (INT64,))
        counter = self.new_buffer("c", dtype, (), Scope.LOCAL)
        times = self.chance.number(1, 6)
        here = e.Load(counter, ())
        condition: e.Expr = e.Greater(here, const(0, dtype))
        self.scope.memory.append(Memory(counter, writable=False))
        if self.chance.happens(0.5):
            condition = e.And(condition, self.make(BOOL, 1))
        step = s.Store(counter, (), e.Sub(here, const(1, dtype)))
        body = sequence(step, self.body(self.place.inside(times, None, is_while=True), 3))
        start = s.Store(counter, (), const(times, dtype))
        return s.Seq((s.Allocate(counter), start, s.While(condition, body)))

    # Blocks -----------------------------------------------------------------------------------------------------------

    def block(self) -> s.Stmt | None:
        """Loops around a block that reduces into, or maps to, a buffer of one dimension."""
        targets = [
            m
            for m in self.writable(scalar=False)
            if len(m.buffer.shape) == 1 and m.readable and m.first is None and not m.buffer.strides
        ]
        if not targets:
            return None
        target = self.chance.pick(targets)
        size = target.buffer.shape[0]
        reduced = size_of(self.chance.number(1, 4))
        if extent_bound(size) * extent_bound(reduced) * self.place.cost > STEPS_AT_MOST:
            return None
        i, k = (e.Var(self.name("i"), INT64) for _ in range(2))
        vi, vk = (e.Var(self.name("a"), INT64) for _ in range(2))
        outer = self.place
        place = outer.inside(extent_bound(size) * extent_bound(reduced), s.LoopKind.SERIAL)
        self.place = replace(place, may_return=False, loop=None, in_parallel=True)
        with self.scope.nested():
            self.scope.variables += [vi, vk]
            self.scope.positions += [(vi, size), (vk, reduced)]
            # Only the element of its own is written, and nothing else of the target is read.
            self.scope.memory[:] = [replace(m, writable=False) for m in self.scope.memory if m.root is not target.root]
            init = s.Store(target.buffer, (vi,), self.make(target.dtype, 1))
            own = e.Load(target.buffer, (vi,))
            row: list[s.MatchBuffer] = []
            update = self.make(target.dtype, 2)
            combine: e.Expr = update
            if not target.dtype.is_bool:
                combine = self.chance.pick((e.Add, e.Sub, e.Mul))(own, update)
            matched = self.new_buffer("m", target.dtype, (size_of(1),), target.buffer.scope)
            store: s.Stmt = s.Store(target.buffer, (vi,), combine)
            if self.chance.happens(0.3):
                region = Region(target.buffer, (Range(vi, size_of(1)),))
                row.append(s.MatchBuffer(matched, region))
                store = s.Store(matched, (size_of(0),), combine)
            allocations: tuple[Buffer, ...] = ()
            if self.chance.happens(0.3):
                extra = self.new_buffer("t", target.dtype, (size_of(2),), Scope.LOCAL)
                allocations = (extra,)
                store = sequence(
                    s.Store(extra, (size_of(1),), self.make(target.dtype, 1)),
                    s.Store(target.buffer, (vi,), e.Load(extra, (size_of(1),))) if self.chance.happens(0.3) else store,
                )
            predicate = e.NotEqual(e.FloorMod(i, size_of(3)), size_of(1)) if self.chance.happens(0.3) else None
        self.place = outer
        axes = (
            s.BlockAxis(vi, Range(size_of(0), size), s.AxisKind.SPATIAL, i),
            s.BlockAxis(vk, Range(size_of(0), reduced), s.AxisKind.REDUCE, k),
        )
        writes = (Region(target.buffer, (Range(vi, size_of(1)),)),)
        block = s.Block(self.name("block"), axes, predicate, None, writes, allocations, tuple(row), init, store)
        inner = s.For(k, size_of(0), reduced, s.LoopKind.SERIAL, block)
        return s.For(i, size_of(0), size, s.LoopKind.SERIAL, inner)


def _is_local_vector(memory: Memory) -> bool:
    buffer = memory.buffer
    return buffer.scope is Scope.LOCAL and len(buffer.shape) == 1 and isinstance(buffer.shape[0], e.IntImm)
