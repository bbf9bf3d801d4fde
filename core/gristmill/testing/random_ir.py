"""Random IR to test what handles IR, as printing and parsing: verified, of no meaning, and not made to be run."""

from __future__ import annotations

import random
from typing import Any

from gristmill.ir import dtype as d
from gristmill.ir import expr as e
from gristmill.ir import stmt as s
from gristmill.ir.build import call, const, round_to
from gristmill.ir.memory import Buffer, Scope
from gristmill.ir.module import Function, FunctionFacts, Module
from gristmill.ir.op import ATOMICS, ATOMICS_OF_FLOATS, OPS, WARP, WARP_WIDTH_AT_MOST, Result
from gristmill.ir.stmt import LoopKind, ThreadAxis
from gristmill.ir.target import Target
from gristmill.ir.verify_atomics import ATOMIC_SCOPES, ATOMIC_TYPES
from gristmill.testing.ir_samples import index, new_buffer


class RandomIR:
    """Random well-typed IR from a seed. ``module()`` gives one that the verifier accepts."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.variables: list[e.Var] = []
        self.buffers: list[Buffer] = []
        self.loops: list[LoopKind] = []
        self.in_region = False

    def module(self) -> Module:
        return Module(tuple(self.function(f"f{number}") for number in range(self.random.randint(1, 3))))

    def function(self, name: str) -> Function:
        n = e.Var(self.name(), d.INT64)
        params: list[e.Var | Buffer] = [e.Var(self.name(), self.random.choice(d.SCALARS)) for _ in range(3)]
        self.variables = [n, *(param for param in params if isinstance(param, e.Var))]
        buffer = new_buffer(self.name(), self.random.choice(d.SCALARS), (n, n + 1))
        self.buffers = [buffer]
        params.insert(self.random.randrange(3), buffer)
        facts = FunctionFacts(symbol=name if self.random.random() < 0.5 else None)
        return Function(name, tuple(params), (n,), d.VOID, self.body(3), facts)

    def name(self) -> str:
        return self.random.choice(("x", "x_1", "y", "for", "let", "nan_f32", "a.b", "e5", "2x", "", "\u03b1", "x y"))

    def body(self, depth: int) -> s.Stmt:
        variables, buffers = len(self.variables), len(self.buffers)
        found = tuple(self.statement(depth) for _ in range(self.random.randint(0, 4)))
        del self.variables[variables:], self.buffers[buffers:]
        return found[0] if len(found) == 1 and self.random.random() < 0.8 else s.Seq(found)

    def statement(self, depth: int) -> s.Stmt:
        choice = self.random.randrange(11 if depth else 5)
        if choice == 0:
            return self.bind()
        if choice == 1:
            return self.allocate()
        if choice == 2:
            return s.Evaluate(self.expression(self.random.choice(d.SCALARS), 4))
        if choice in (3, 4):
            buffer = self.random.choice(self.buffers)
            return s.Store(buffer, self.indices(buffer), self.expression(buffer.dtype, 4))
        if choice == 5:
            return self.loop(depth)
        if choice == 6:
            self.loops.append(LoopKind.SERIAL)
            found = s.While(self.expression(d.BOOL, 3), self.body(depth - 1))
            self.loops.pop()
            return found
        if choice == 7:
            otherwise = self.body(depth - 1) if self.random.random() < 0.6 else None
            return s.If(self.expression(d.BOOL, 3), self.body(depth - 1), otherwise)
        if choice == 8 and not self.in_region:
            return self.region(depth)
        if choice == 9 and self.in_region:
            return self.thread_loop(depth)
        return s.Assert(self.expression(d.BOOL, 2), "ValueError", ("x", self.expression(d.INT8, 2)))

    def region(self, depth: int) -> s.Stmt:
        self.in_region = True
        target = Target(self.random.choice(("reference", "vulkan", "no target")), "a", ("b",), (("c", 1),))
        found = s.DeviceRegion(self.body(depth - 1), target)
        self.in_region = False
        return found

    def thread_loop(self, depth: int) -> s.Stmt:
        var = e.Var(self.name(), d.INT64)
        extent = self.expression(d.INT64, 2)
        self.variables.append(var)
        # Loops over one axis have equal extents; constants that differ would break that.
        extent = index(4) if isinstance(extent, e.IntImm) else extent
        axis = self.random.choice(tuple(ThreadAxis))
        found = s.For(var, index(0), extent, LoopKind.THREAD, self.body(depth - 1), axis)
        self.variables.remove(var)
        return found

    def bind(self) -> s.Stmt:
        dtype = self.random.choice(d.SCALARS)
        value = self.expression(dtype, 4)
        alone = any(kind in (LoopKind.PARALLEL, LoopKind.VECTORIZED) for kind in self.loops)
        if not alone and self.random.random() < 0.2:
            value = self.exchange(value)
        elif self.random.random() < 0.2:
            value = self.atomic(value)
        self.variables.append(e.Var(self.name(), value.dtype))
        return s.Bind(self.variables[-1], value)

    def atomic(self, value: e.Expr) -> e.Expr:
        """An atomic operation with a value on an element of its type, if there is one."""
        known = [found for found in self.buffers if found.dtype == value.dtype and found.scope in ATOMIC_SCOPES]
        if not known or value.dtype not in ATOMIC_TYPES:
            return value
        names = ATOMICS_OF_FLOATS if value.dtype.is_float else frozenset(op.name for op in ATOMICS)
        name = self.random.choice(sorted(names - {"atomic_store"}))
        buffer = self.random.choice(known)
        operands = [value, self.expression(value.dtype, 2)][: OPS[name].arity - 1]
        return call(name, e.AddressOf(buffer, self.indices(buffer)), *operands)

    def exchange(self, value: e.Expr) -> e.Expr:
        """An exchange of a value between threads."""
        op = self.random.choice(WARP)
        operands = [value if op.arity == 3 else self.expression(d.BOOL, 2)]
        if op.arity == 3:
            operands.append(self.expression(d.INT32, 2))
        width = const(1 << self.random.randrange(WARP_WIDTH_AT_MOST.bit_length()), d.INT32)
        return call(op.name, *operands, width, dtype=d.UINT64 if op.result is Result.STATED else None)

    def allocate(self) -> s.Stmt:
        shape = tuple(self.expression(d.INT64, 1) for _ in range(self.random.randrange(3)))
        scope = self.random.choice((Scope.LOCAL, Scope.GLOBAL))
        shape = tuple(size if not isinstance(size, e.IntImm) else index(abs(size.value) >> 1) for size in shape)
        self.buffers.append(new_buffer(self.name(), self.random.choice(d.SCALARS), shape, scope))
        return s.Allocate(self.buffers[-1])

    def loop(self, depth: int) -> s.Stmt:
        var = e.Var(self.name(), self.random.choice(d.SIGNED))
        kind = self.random.choice((LoopKind.SERIAL, LoopKind.PARALLEL, LoopKind.UNROLLED, LoopKind.VECTORIZED))
        minimum = self.expression(var.type, 2)
        extent = const(4, var.type) if kind is LoopKind.VECTORIZED else self.expression(var.type, 2)
        self.variables.append(var)
        self.loops.append(kind)
        found = s.For(var, minimum, extent, kind, self.body(depth - 1))
        self.loops.pop()
        self.variables.remove(var)
        return found

    def indices(self, buffer: Buffer) -> tuple[e.Expr, ...]:
        return tuple(self.expression(self.random.choice((d.INT32, d.INT64)), 2) for _ in buffer.shape)

    def expression(self, dtype: d.DType, depth: int) -> e.Expr:
        """An expression of a scalar type."""
        choice = self.random.randrange(8) if depth else self.random.randrange(2)
        if choice == 0:
            known = [var for var in self.variables if var.type == dtype]
            return self.random.choice(known) if known else self.constant(dtype)
        if choice == 1:
            return self.constant(dtype)
        if choice == 2:
            known_buffers = [buffer for buffer in self.buffers if buffer.dtype == dtype]
            if not known_buffers:
                return self.constant(dtype)
            buffer = self.random.choice(known_buffers)
            return e.Load(buffer, tuple(self.expression(d.INT64, depth - 1) for _ in buffer.shape))
        if choice == 3:
            given = self.random.choice(d.SCALARS)
            return e.Cast(dtype, self.expression(given, depth - 1))
        if choice == 4:
            kind = self.random.choice((e.Select, e.IfThenElse))
            a, b = self.expression(dtype, depth - 1), self.expression(dtype, depth - 1)
            return kind(self.expression(d.BOOL, depth - 1), a, b)
        return self.operator(dtype, depth - 1)

    def operator(self, dtype: d.DType, depth: int) -> e.Expr:
        if dtype.is_bool:
            if self.random.random() < 0.3:
                return e.Not(self.expression(dtype, depth))
            if self.random.random() < 0.5:
                logic = self.random.choice((e.And, e.Or, e.BitXor, e.Equal))
                return logic(self.expression(dtype, depth), self.expression(dtype, depth))
            compare = self.random.choice((e.Equal, e.NotEqual, e.Less, e.LessEqual, e.Greater, e.GreaterEqual))
            given = self.random.choice((d.INT32, d.FLOAT32, d.UINT8))
            return compare(self.expression(given, depth), self.expression(given, depth))
        if self.random.random() < 0.2:
            return e.Negate(self.expression(dtype, depth))
        kinds: tuple[type[e.BinaryExpr], ...] = (e.Add, e.Sub, e.Mul, e.Div, e.Min, e.Max)
        if dtype.is_integer:
            kinds += (e.Mod, e.FloorDiv, e.FloorMod, e.BitAnd, e.BitOr, e.BitXor, e.ShiftLeft, e.ShiftRight)
        kind: Any = self.random.choice(kinds)
        found: e.Expr = kind(self.expression(dtype, depth), self.expression(dtype, depth))
        return found

    def constant(self, dtype: d.DType) -> e.Expr:
        if not dtype.is_float:
            return e.IntImm(self.random.choice((dtype.minimum, dtype.maximum, 0, 1)), dtype)
        special = (0.0, -0.0, float("inf"), float("-inf"), float("nan"), 1.0)
        value = self.random.choice(special) if self.random.random() < 0.3 else self.random.gauss(0, 1)
        value *= 2.0 ** self.random.randint(-40, 40)
        return e.FloatImm(round_to(value, dtype), dtype)
