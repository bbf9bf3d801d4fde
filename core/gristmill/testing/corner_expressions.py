"""Modules of many random expressions over all element types of CPUs, rich in constants at the ends of their types.

The random programs of :mod:`gristmill.testing.programs` show what statements do together; these show what folding,
simplification and code generation make of single expressions: each one is stored for every element of its inputs.
Some modules compute them in a plain loop, others in an unrolled or parallel one, others in the lanes of vectors.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import numpy as np

from gristmill.ir import expr as e
from gristmill.ir.build import call, const, round_to
from gristmill.ir.dtype import BOOL, FLOAT32, FLOAT64, HANDLE, INT64, SIGNED, UNSIGNED, VOID, DType, TypeCode, dtype_of
from gristmill.ir.memory import Buffer, PointerType
from gristmill.ir.module import Function, FunctionFacts, Module
from gristmill.ir.stmt import Bind, For, LoopKind, Seq, Stmt, Store

INTEGERS = (*SIGNED, *UNSIGNED)
FLOATS = (FLOAT32, FLOAT64)
DTYPES = (BOOL, *INTEGERS, *FLOATS)
ELEMENTS = 32
_UNROLLED = 4

_INTEGER_BINARY: tuple[Any, ...] = (
    *(e.Add, e.Sub, e.Mul, e.Add, e.Sub, e.Mul, e.Div, e.Mod, e.FloorDiv, e.FloorMod, e.FloorDiv, e.FloorMod),
    *(e.Min, e.Max, e.BitAnd, e.BitOr, e.BitXor, e.ShiftLeft, e.ShiftRight),
)
_COMPARISONS: tuple[Any, ...] = (e.Equal, e.NotEqual, e.Less, e.LessEqual, e.Greater, e.GreaterEqual)
_FLOAT_CORNERS = (
    *(0.0, -0.0, 1.0, -1.0, 0.5, 2.0, float("inf"), float("-inf"), float("nan"), 1e30, -1e-30, 5e-324, 1e-40),
    *(2.0**31, 2.0**63, -(2.0**63), 2.0**32 - 1, 127.5, -128.5),
)


def corner_constant(chance: random.Random, dtype: DType) -> e.Expr:
    """A constant of a scalar type, often one at which arithmetic goes wrong."""
    if dtype.is_float:
        value = chance.choice((*_FLOAT_CORNERS, chance.gauss(0, 1), chance.gauss(0, 100)))
        return e.FloatImm(round_to(value, dtype), dtype)
    if dtype.is_bool:
        return e.IntImm(chance.randrange(2), dtype)
    bit = chance.randrange(dtype.bits)
    ends = (dtype.minimum, dtype.maximum, dtype.maximum - 1, dtype.minimum + 1, dtype.bits, dtype.bits - 1, 0, 1, 2, 3)
    choices = (
        chance.choice(ends),
        chance.choice(ends),
        1 << bit,
        -(1 << bit),
        (1 << bit) - 1,
        chance.randrange(-9, 10),
    )
    return e.IntImm(dtype.wrap(chance.choice((*choices, chance.getrandbits(dtype.bits)))), dtype)


class Expressions:
    """Makes random expressions over the elements of one buffer of each type, at one index."""

    def __init__(self, chance: random.Random, buffers: Mapping[DType, Buffer], index: e.Var) -> None:
        self.chance = chance
        self.buffers = buffers
        self.index = index

    def leaf(self, dtype: DType) -> e.Expr:
        if self.chance.random() < 0.45:
            return corner_constant(self.chance, dtype)
        if dtype == INT64 and self.chance.random() < 0.25:
            return self.index
        place = self.index if self.chance.random() < 0.8 else const(self.chance.randrange(ELEMENTS), INT64)
        return e.Load(self.buffers[dtype], (place,))

    def expression(self, dtype: DType, depth: int) -> e.Expr:
        """An exact expression of a scalar type, at most ``depth`` operations deep."""
        choice = self.chance.random()
        if depth <= 0 or choice < 0.1:
            return self.leaf(dtype)
        depth -= 1
        if choice < 0.2:
            source = self.chance.choice(DTYPES)
            inner = self.expression(source, depth)
            return inner if source == dtype else e.Cast(dtype, inner)
        if choice < 0.27:
            kind = self.chance.choice((e.Select, e.IfThenElse))
            return kind(self.expression(BOOL, depth), self.expression(dtype, depth), self.expression(dtype, depth))
        if dtype.is_bool:
            return self.condition(depth)
        return self.integer(dtype, depth) if dtype.is_integer else self.number(dtype, depth)

    def pair(self, dtype: DType, depth: int) -> tuple[e.Expr, e.Expr]:
        """Two operands, now and then the same one twice."""
        a = self.expression(dtype, depth)
        return a, a if self.chance.random() < 0.15 else self.expression(dtype, depth)

    def condition(self, depth: int) -> e.Expr:
        choice = self.chance.random()
        if choice < 0.15:
            return e.Not(self.expression(BOOL, depth))
        if choice < 0.5:
            kind: Any = self.chance.choice((e.And, e.Or, e.Equal, e.NotEqual))
            return kind(*self.pair(BOOL, depth))  # type: ignore[no-any-return]
        if choice < 0.56:
            test = self.chance.choice(("isnan", "isinf", "isfinite"))
            return call(test, self.expression(self.chance.choice(FLOATS), depth))
        compare = self.chance.choice(_COMPARISONS)
        return compare(*self.pair(self.chance.choice((*INTEGERS, *FLOATS)), depth))  # type: ignore[no-any-return]

    def integer(self, dtype: DType, depth: int) -> e.Expr:
        choice = self.chance.random()
        if choice < 0.09:
            kind: Any = self.chance.choice((e.Negate, e.BitNot))
            return kind(self.expression(dtype, depth))  # type: ignore[no-any-return]
        if choice < 0.15:
            return call(self.chance.choice(("popcount", "clz", "ctz", "abs")), self.expression(dtype, depth))
        if choice < 0.18:
            other = dtype_of(TypeCode.UINT if dtype.is_signed else TypeCode.INT, dtype.bits)
            return e.Reinterpret(dtype, self.expression(other, depth))
        return self.chance.choice(_INTEGER_BINARY)(*self.pair(dtype, depth))  # type: ignore[no-any-return]

    def number(self, dtype: DType, depth: int) -> e.Expr:
        choice = self.chance.random()
        if choice < 0.1:
            return e.Negate(self.expression(dtype, depth))
        if choice < 0.25:
            name = self.chance.choice(("floor", "ceil", "round", "trunc", "abs"))
            return call(name, self.expression(dtype, depth))
        a, b = self.pair(dtype, depth)
        if choice < 0.3:
            # The sign of a NaN is not determined.
            return call("copysign", a, e.Select(call("isnan", b), const(1.0, dtype), b))
        if choice < 0.38:
            # Of zeros of two signs either may come out; the sum hides which.
            extreme: Any = self.chance.choice((e.Min, e.Max))
            return e.Add(extreme(a, b), const(1.0, dtype))
        kind: Any = self.chance.choice((e.Add, e.Sub, e.Mul))
        return kind(a, b)  # type: ignore[no-any-return]


def corner_module(seed: int, count: int = 40) -> Module:
    """A module with one public function ``f`` of an input and then of an output for each of :data:`DTYPES`."""
    chance = random.Random(seed)
    inputs = {dtype: _buffer(f"in_{dtype}", dtype, ELEMENTS) for dtype in DTYPES}
    outputs = {dtype: _buffer(f"out_{dtype}", dtype, count, ELEMENTS) for dtype in DTYPES}
    lanes = chance.choice((1, 1, 1, 2, 4, 8, 16))
    index = e.Var("i", INT64)
    expressions = Expressions(chance, inputs, index)
    stores: list[Stmt] = []
    for row in range(count):
        dtype = chance.choice(DTYPES)
        value = expressions.expression(dtype, chance.choice((1, 2, 2, 3, 3, 4)))
        stores.append(Store(outputs[dtype], (const(row, INT64), index), value))
    if lanes == 1:
        kind = chance.choice((LoopKind.SERIAL, LoopKind.SERIAL, LoopKind.PARALLEL, LoopKind.UNROLLED))
        extent = _UNROLLED if kind is LoopKind.UNROLLED else ELEMENTS
        body: Stmt = For(index, const(0, INT64), const(extent, INT64), kind, Seq(tuple(stores)))
    else:
        group, lane = e.Var("group", INT64), e.Var("lane", INT64)
        bind = Bind(index, e.Add(e.Mul(group, const(lanes, INT64)), lane))
        inner = For(lane, const(0, INT64), const(lanes, INT64), LoopKind.VECTORIZED, Seq((bind, *stores)))
        body = For(group, const(0, INT64), const(ELEMENTS // lanes, INT64), LoopKind.SERIAL, inner)
    facts = FunctionFacts(symbol="f", no_alias=chance.random() < 0.5)
    return Module((Function("f", (*inputs.values(), *outputs.values()), (), VOID, Seq((body,)), facts),))


def corner_arguments(seed: int, count: int = 40) -> list[np.ndarray[Any, Any]]:
    """Arguments for :func:`corner_module` with the same ``count``: inputs with corner values, outputs of zeros."""
    generator = np.random.default_rng(seed)
    found = [_values(generator, dtype) for dtype in DTYPES]
    return [*found, *(np.zeros((count, ELEMENTS), str(dtype)) for dtype in DTYPES)]


def _values(generator: np.random.Generator, dtype: DType) -> np.ndarray[Any, Any]:
    kind = np.dtype(str(dtype))
    if dtype.is_bool:
        return generator.random(ELEMENTS) < 0.5
    if dtype.is_float:
        values = (generator.standard_normal(ELEMENTS) * 10.0 ** generator.integers(-3, 12, ELEMENTS)).astype(kind)
        info = np.finfo(kind)
        values[:8] = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, info.smallest_subnormal, info.max]
    else:
        values = generator.integers(dtype.minimum, dtype.maximum, ELEMENTS, kind, endpoint=True)
        small = generator.integers(-5 if dtype.is_signed else 0, 16, ELEMENTS, kind)
        values = np.where(generator.random(ELEMENTS) < 0.5, small, values)
        values[:4] = [dtype.minimum, dtype.maximum, 0, 1]
    generator.shuffle(values)
    return values


def _buffer(name: str, dtype: DType, *shape: int) -> Buffer:
    data = e.Var(f"{name}_data", HANDLE, PointerType(dtype))
    return Buffer(name, dtype, tuple(const(size, INT64) for size in shape), data)
