"""Random functions of scalars whose loops, names and branches say much about integers, and whose expressions use it.

They try what bounds conclude: which divisions need no guard, which comparisons are decided, which casts lose nothing.
Each value is mixed into an element of the output, so that code of any depth shows in the result.
"""

from __future__ import annotations

import random
from typing import Any

from gristmill.ir import expr as e
from gristmill.ir.build import call, const
from gristmill.ir.dtype import HANDLE, INT8, INT16, INT32, INT64, UINT8, UINT32, UINT64, VOID, DType
from gristmill.ir.memory import Buffer, PointerType
from gristmill.ir.module import Function, FunctionFacts, Module
from gristmill.ir.stmt import Bind, For, If, LoopKind, Seq, Stmt, Store

SIZE = 64
PARAMETERS = (INT64, INT32, UINT8, INT64)
"""The types of the scalar parameters, which follow the output."""
_DTYPES = (INT64, INT64, INT64, INT32, INT32, UINT8, INT8, UINT32, UINT64, INT16)
_BINARY: tuple[Any, ...] = (
    *(e.Add, e.Add, e.Sub, e.Mul, e.FloorDiv, e.FloorMod, e.FloorDiv, e.FloorMod, e.Div, e.Mod),
    *(e.Min, e.Max, e.BitAnd, e.BitOr, e.BitXor, e.ShiftLeft, e.ShiftRight),
)
_COMPARISONS: tuple[Any, ...] = (e.Less, e.LessEqual, e.Greater, e.GreaterEqual, e.Equal, e.NotEqual)
_MOST_LOOPS = 3


def range_module(seed: int) -> Module:
    """A module with one public function ``f(out: int64[64], ...)`` and a scalar of each of :data:`PARAMETERS`."""
    maker = _Maker(random.Random(seed))
    params = tuple(maker.variables)
    body = maker.body(4, 0)
    return Module((Function("f", (maker.out, *params), (), VOID, body, FunctionFacts(symbol="f")),))


class _Maker:
    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.variables = [e.Var(f"n{place}", dtype) for place, dtype in enumerate(PARAMETERS)]
        self.names = 0
        self.stores = 0
        self.out = Buffer("out", INT64, (const(SIZE, INT64),), e.Var("out_data", HANDLE, PointerType(INT64)))

    def name(self) -> str:
        self.names += 1
        return f"v{self.names}"

    def constant(self, dtype: DType) -> e.Expr:
        ends = (dtype.maximum, dtype.minimum, -1, -2, -4, 31, 32, 64, 100)
        return const(self.chance.choice((0, 1, 2, 3, 4, 5, 7, 8, 16, *ends)), dtype)

    def leaf(self, dtype: DType) -> e.Expr:
        own = [var for var in self.variables if var.type == dtype]
        if own and self.chance.random() < 0.75:
            return self.chance.choice(own)
        if self.chance.random() < 0.5:
            var = self.chance.choice(self.variables)
            return var if var.type == dtype else e.Cast(dtype, var)
        return self.constant(dtype)

    def expression(self, dtype: DType, depth: int) -> e.Expr:
        choice = self.chance.random()
        if depth <= 0 or choice < 0.2:
            return self.leaf(dtype)
        depth -= 1
        if choice < 0.3:
            source = self.chance.choice(_DTYPES)
            inner = self.expression(source, depth)
            return inner if source == dtype else e.Cast(dtype, inner)
        if choice < 0.36:
            kind: Any = self.chance.choice((e.Select, e.IfThenElse))
            arms = self.expression(dtype, depth), self.expression(dtype, depth)
            return kind(self.condition(depth), *arms)  # type: ignore[no-any-return]
        if choice < 0.4:
            return call(self.chance.choice(("abs", "popcount", "clz", "ctz")), self.expression(dtype, depth))
        if choice < 0.43:
            unary: Any = self.chance.choice((e.Negate, e.BitNot))
            return unary(self.expression(dtype, depth))  # type: ignore[no-any-return]
        b = self.constant(dtype) if self.chance.random() < 0.6 else self.expression(dtype, depth)
        return self.chance.choice(_BINARY)(self.expression(dtype, depth), b)  # type: ignore[no-any-return]

    def condition(self, depth: int) -> e.Expr:
        choice = self.chance.random()
        if depth > 0 and choice < 0.15:
            kind: Any = self.chance.choice((e.And, e.Or))
            return kind(self.condition(depth - 1), self.condition(depth - 1))  # type: ignore[no-any-return]
        if depth > 0 and choice < 0.25:
            return e.Not(self.condition(depth - 1))
        dtype = self.chance.choice(_DTYPES)
        own = [var for var in self.variables if var.type == dtype]
        sides: list[e.Expr] = [
            self.chance.choice(own) if own and self.chance.random() < 0.6 else self.expression(dtype, depth),
            self.constant(dtype) if self.chance.random() < 0.6 else self.expression(dtype, depth),
        ]
        if self.chance.random() < 0.3:
            sides.reverse()
        return self.chance.choice(_COMPARISONS)(*sides)  # type: ignore[no-any-return]

    def store(self) -> Stmt:
        dtype = self.chance.choice(_DTYPES)
        value = self.expression(dtype, self.chance.choice((2, 3, 3, 4)))
        wide = value if dtype == INT64 else e.Cast(INT64, value)
        place = (const(self.stores % SIZE, INT64),)
        self.stores += 1
        mixed = e.Add(e.Mul(e.Load(self.out, place), const(31, INT64)), wide)
        return Store(self.out, place, mixed)

    def loop(self, depth: int, loops: int) -> Stmt:
        dtype = self.chance.choice((INT64, INT64, INT32, INT8, UINT8))
        minimum = self.chance.choice((const(0, dtype), self.constant(dtype), self.expression(dtype, 1)))
        small = const(self.chance.randrange(1, 5), dtype)
        bounded: Any = self.chance.choice((e.Min, e.FloorMod))
        extent = self.chance.choice((small, bounded(self.expression(dtype, 1), small)))
        kind = self.chance.choice((LoopKind.SERIAL, LoopKind.SERIAL, LoopKind.UNROLLED))
        var = e.Var(self.name(), dtype)
        self.variables.append(var)
        body = self.body(depth, loops + 1)
        self.variables.remove(var)
        return For(var, minimum, extent, kind, body)

    def body(self, depth: int, loops: int) -> Seq:
        known = len(self.variables)
        found: list[Stmt] = []
        for _ in range(self.chance.randrange(2, 5)):
            choice = self.chance.random()
            if depth > 0 and 0.4 <= choice < 0.55:
                dtype = self.chance.choice(_DTYPES)
                found.append(Bind(e.Var(self.name(), dtype), self.expression(dtype, 2)))
                self.variables.append(found[-1].var)  # type: ignore[attr-defined]
            elif depth > 0 and 0.55 <= choice < 0.75:
                otherwise = self.body(depth - 1, loops) if self.chance.random() < 0.5 else None
                found.append(If(self.condition(2), self.body(depth - 1, loops), otherwise))
            elif depth > 0 and choice >= 0.75 and loops < _MOST_LOOPS:
                found.append(self.loop(depth - 1, loops))
            else:
                found.append(self.store())
        del self.variables[known:]
        return Seq(tuple(found))
