"""Random expressions of a wanted type. What they give is exact: every back end must agree on every bit.

So nothing bounded goes in (division and mathematics of floats are only stored to bounded outputs), nor what the
language leaves open: the sign of a zero from ``min`` and ``max``, and the sign and bits of a NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from gristmill.ir import expr as e
from gristmill.ir.build import call, cast, const
from gristmill.ir.dtype import BOOL, INT32, INT64, DType
from gristmill.ir.op import OPS
from gristmill.testing.programs.chance import Chance
from gristmill.testing.programs.scope import STEPS_AT_MOST, Helper, Memory, Place, Scope, size_of

MATHEMATICS = ("exp", "exp2", "log", "log2", "sqrt", "rsqrt", "sin", "cos", "tanh", "sigmoid")

_BITS = ("abs", "popcount", "clz", "ctz")
_INTEGER_BINARY = (
    e.Add, e.Sub, e.Mul, e.Div, e.Mod, e.FloorDiv, e.FloorMod, e.Min, e.Max,
    e.BitAnd, e.BitOr, e.BitXor, e.ShiftLeft, e.ShiftRight,
)  # fmt: skip
_COMPARISONS = (e.Equal, e.NotEqual, e.Less, e.LessEqual, e.Greater, e.GreaterEqual)


class ExpressionMaker:
    """Makes expressions over a scope. ``allowed`` says which constructs may occur."""

    def __init__(self, chance: Chance, dtypes: Sequence[DType], allowed: Callable[[str], bool]) -> None:
        self.chance = chance
        self.dtypes = tuple(dtypes)
        self.integers = tuple(dtype for dtype in dtypes if dtype.is_integer)
        self.floats = tuple(dtype for dtype in dtypes if dtype.is_float)
        self.allowed = allowed
        self.scope = Scope()
        self.place = Place()
        self.helpers: list[Helper] = []
        self.within_indices = 0
        self.mathematics_in: frozenset[DType] = frozenset()

    # Leaves -----------------------------------------------------------------------------------------------------------

    def constant(self, dtype: DType) -> e.Expr:
        return const(self.chance.value(dtype.element), dtype)

    def leaf(self, dtype: DType) -> e.Expr:
        """A constant, a variable, or an element of memory; converted from another type where there is none."""
        found: list[tuple[float, Callable[[], e.Expr]]] = [(1.0, lambda: self.constant(dtype))]
        variables = [var for var in self.scope.variables if var.type == dtype]
        if variables:
            found.append((3.0, lambda: self.chance.pick(variables)))
        readable = [memory for memory in self.scope.memory if memory.readable and memory.dtype == dtype.element]
        if readable:
            found.append((4.0, lambda: self.load(self.chance.pick(readable), dtype)))
        if dtype == INT64 and self.scope.positions:
            found.append((3.0, lambda: self.chance.pick(self.scope.positions)[0]))
        if dtype.lanes > 1:
            found.append((1.0, lambda: e.Broadcast(self.leaf(dtype.element), dtype.lanes)))
            if dtype.is_integer:
                found.append((1.0, lambda: e.Ramp(self.leaf(dtype.element), self.leaf(dtype.element), dtype.lanes)))
        elif len(found) == 1:
            others = [var for var in self.scope.variables if not var.type.is_vector]
            if others and self.chance.happens(0.6):
                return cast(self.chance.pick(others), dtype)
        return self.chance.weighted(found)()

    # Memory -----------------------------------------------------------------------------------------------------------

    def index(self, size: e.Expr) -> e.Expr:
        """An index for a dimension of that size."""
        positions = [var for var, bound in self.scope.positions if bound is size or _same(bound, size)]
        choices: list[tuple[float, Callable[[], e.Expr]]] = []
        if positions:
            choices.append((5.0, lambda: self.chance.pick(positions)))
        if isinstance(size, e.IntImm):
            choices.append((1.0, lambda: size_of(self.chance.number(0, size.value - 1))))
        else:
            choices.append((0.5, lambda: size_of(0)))
            choices.append((0.5, lambda: e.Sub(size, size_of(1))))
        if self.within_indices < 2:  # else elements are indexed by elements without end
            choices.append((1.0, lambda: e.FloorMod(self.whole(1), size)))
            choices.append((0.7, lambda: e.Max(e.Min(self.whole(1), e.Sub(size, size_of(1))), size_of(0))))
        self.within_indices += 1
        found = self.chance.weighted(choices)()
        self.within_indices -= 1
        return found

    def whole(self, depth: int) -> e.Expr:
        """Any int64."""
        if self.within_indices > 2:
            return self.constant(INT64)
        if self.integers:
            return cast(self.make(self.chance.pick(self.integers), depth), INT64)
        return self.leaf(INT64)

    def indices(self, memory: Memory, lanes: int = 1) -> tuple[e.Expr, ...]:
        """Indices of an element, or of a vector of elements of the last dimension."""
        sizes = memory.buffer.shape
        found = [self.index(size) for size in sizes]
        if memory.first is not None:
            found[0] = memory.first
        if lanes > 1 and (len(sizes) > 1 or memory.first is None):
            found[-1] = self.vector_index(sizes[-1], lanes)
        return tuple(found)

    def vector_index(self, size: e.Expr, lanes: int) -> e.Expr:
        """A vector of indices: neighbours, steps, backwards, or scattered."""
        if isinstance(size, e.IntImm) and size.value >= lanes and self.chance.happens(0.7):
            steps = [step for step in (1, 1, 1, 2, 3, -1, -2) if abs(step) * (lanes - 1) < size.value]
            step = self.chance.pick(steps)
            reach = abs(step) * (lanes - 1)
            base = self.chance.number(0, size.value - 1 - reach) + (reach if step < 0 else 0)
            return e.Ramp(size_of(base), size_of(step), lanes)
        self.within_indices += 1
        ramp = e.Ramp(self.whole(0), size_of(self.chance.pick((0, 1, 3))), lanes)
        self.within_indices -= 1
        return e.FloorMod(ramp, e.Broadcast(size, lanes))

    def load(self, memory: Memory, dtype: DType) -> e.Expr:
        """An element, or a vector of elements."""
        if dtype.lanes == 1:
            return e.Load(memory.buffer, self.indices(memory))
        indices = self.indices(memory, dtype.lanes) if not memory.is_scalar else ()
        if indices and indices[-1].dtype.lanes == dtype.lanes:
            return e.Load(memory.buffer, indices)
        return e.Broadcast(e.Load(memory.buffer, indices), dtype.lanes)

    # Operations -------------------------------------------------------------------------------------------------------

    def make(self, dtype: DType, depth: int) -> e.Expr:
        """An expression of that type, nested at most so deep."""
        if depth <= 0 or self.chance.happens(0.12):
            return self.leaf(dtype)
        if self.chance.happens(0.1):
            return self.choice(dtype, depth - 1)
        if self.chance.happens(0.12):
            return self.conversion(dtype, depth - 1)
        if dtype.lanes == 1 and self.chance.happens(0.1):
            found = self.helper_call(dtype, depth - 1)
            if found is not None:
                return found
        if self.allowed("vector") and self.chance.happens(0.12 if dtype.lanes > 1 else 0.01):
            return self.shuffle(dtype, depth - 1)
        if dtype.is_bool:
            return self.boolean(dtype, depth - 1)
        return self.floating(dtype, depth - 1) if dtype.is_float else self.integer(dtype, depth - 1)

    def integer(self, dtype: DType, depth: int) -> e.Expr:
        roll = self.chance.random()
        if roll < 0.8:
            kind = self.chance.pick(_INTEGER_BINARY)
            return kind(self.make(dtype, depth), self.make(dtype, depth))
        if roll < 0.9:
            return self.chance.pick((e.Negate, e.BitNot))(self.make(dtype, depth))
        name = self.chance.pick((*_BITS, "dot4", "dot4_mixed") if dtype.bits == 32 else _BITS)
        return call(name, *(self.make(dtype, depth) for _ in range(OPS[name].arity)))

    def floating(self, dtype: DType, depth: int) -> e.Expr:
        roll = self.chance.random()
        if roll < 0.5:
            kind = self.chance.pick((e.Add, e.Sub, e.Mul))
            return kind(self.make(dtype, depth), self.make(dtype, depth))
        if roll < 0.62:
            lesser = self.chance.pick((e.Min, e.Max))(self.make(dtype, depth), self.make(dtype, depth))
            # Of zeros of two signs either may be the result; adding 0 makes it the positive one.
            return e.Add(lesser, const(0.0, dtype))
        if roll < 0.7:
            return e.Negate(self.make(dtype, depth))
        if roll < 0.86:
            return call(self.chance.pick(("floor", "ceil", "round", "trunc", "abs")), self.make(dtype, depth))
        if roll < 0.9 and self.allowed("fmod") and dtype.element in self.mathematics_in:
            return call("fmod", self.make(dtype, depth), self.make(dtype, depth))
        # The library has fma of the types that CPUs compute in.
        if roll < 0.95 and self.allowed("fma") and dtype.bits >= 32:
            return call("fma", *(self.make(dtype, depth) for _ in range(3)))
        return call("copysign", self.make(dtype, depth), self.no_nan(self.make(dtype, depth)))

    def no_nan(self, found: e.Expr) -> e.Expr:
        """The value, or 1 for a NaN, whose sign and bits are nobody's promise."""
        return e.Select(call("isnan", found), const(1.0, found.dtype), found)

    def boolean(self, dtype: DType, depth: int) -> e.Expr:
        roll = self.chance.random()
        others = [other for other in self.dtypes if not other.is_bool] or [INT32]
        if roll < 0.6:
            other = self.chance.pick(others).with_lanes(dtype.lanes)
            return self.chance.pick(_COMPARISONS)(self.make(other, depth), self.make(other, depth))
        if roll < 0.8:
            return self.chance.pick((e.And, e.Or))(self.make(dtype, depth), self.make(dtype, depth))
        if roll < 0.86:
            return e.Not(self.make(dtype, depth))
        if roll < 0.9:
            return self.chance.pick((e.BitAnd, e.BitOr, e.BitXor))(self.make(dtype, depth), self.make(dtype, depth))
        if roll < 0.92:
            return call("likely", self.make(dtype, depth))
        if roll < 0.95 or not self.floats:
            return self.chance.pick((e.Equal, e.NotEqual))(self.make(dtype, depth), self.make(dtype, depth))
        other = self.chance.pick(self.floats).with_lanes(dtype.lanes)
        return call(self.chance.pick(("isnan", "isinf", "isfinite")), self.make(other, depth))

    def choice(self, dtype: DType, depth: int) -> e.Expr:
        if dtype.lanes > 1 and self.chance.happens(0.5):
            condition = self.make(BOOL.with_lanes(dtype.lanes), depth)
            return e.Select(condition, self.make(dtype, depth), self.make(dtype, depth))
        kind = self.chance.pick((e.Select, e.IfThenElse))
        return kind(self.make(BOOL, depth), self.make(dtype, depth), self.make(dtype, depth))

    def conversion(self, dtype: DType, depth: int) -> e.Expr:
        """From another type: by value, or by bits where the widths are equal."""
        if not dtype.is_bool and self.chance.happens(0.3):
            same_width = [
                other
                for other in self.dtypes
                if other.bits == dtype.bits and not other.is_bool and other != dtype.element
            ]
            # The bits of a number may be a denormal's.
            if same_width and (self.allowed("denormals") or not dtype.is_float):
                source = self.make(self.chance.pick(same_width).with_lanes(dtype.lanes), depth)
                return e.Reinterpret(dtype, self.no_nan(source) if source.dtype.is_float else source)
            lanes = dtype.lanes * dtype.bits
            parts = [other for other in self.integers if other.bits < dtype.bits and lanes // other.bits <= 32]
            if parts and dtype.is_integer and self.allowed("vector") and self.chance.happens(0.5):
                part = self.chance.pick(parts)
                return e.Reinterpret(dtype, self.make(part.with_lanes(lanes // part.bits), min(depth, 1)))
        source_type = self.chance.pick(self.dtypes)
        if source_type == dtype.element:
            return self.make(dtype, depth)
        return e.Cast(dtype, self.make(source_type.with_lanes(dtype.lanes), depth))

    def shuffle(self, dtype: DType, depth: int) -> e.Expr:
        element = dtype.element
        vectors = [
            self.make(element.with_lanes(self.chance.pick((1, 2, 4))), depth) for _ in range(self.chance.number(1, 3))
        ]
        total = sum(vector.dtype.lanes for vector in vectors)
        return e.Shuffle(tuple(vectors), tuple(self.chance.number(0, total - 1) for _ in range(dtype.lanes)))

    def helper_call(self, dtype: DType, depth: int) -> e.Expr | None:
        """A call of a pure helper with that result."""
        found = [
            helper
            for helper in self.helpers
            if helper.is_pure and helper.function.returns == dtype and helper.cost * self.place.cost <= STEPS_AT_MOST
        ]
        if not found:
            return None
        helper = self.chance.pick(found)
        self.place = _spent(self.place, helper.cost)
        return e.CallFunction(helper.function.name, self.arguments(helper, min(depth, 1)), dtype)

    def arguments(self, helper: Helper, depth: int) -> tuple[e.Expr, ...]:
        args: list[e.Expr] = []
        for number, param in enumerate(helper.function.params):
            assert isinstance(param, e.Var)
            if number == 0 and helper.takes_depth:
                args.append(e.FloorMod(self.make(param.type, 1), const(4, param.type)))
            else:
                args.append(self.make(param.type, depth))
        return tuple(args)

    # Bounded results --------------------------------------------------------------------------------------------------

    def bounded(self, dtype: DType, mathematics: bool) -> e.Expr:
        """A division or mathematical operation on exact operands, perhaps negated or chosen: its error stays as it is."""
        operands = [self.make(dtype, 2) for _ in range(2)]
        names = [*(MATHEMATICS if mathematics and self.allowed("mathematics") else ()), "divide", "sqrt"]
        if mathematics and self.allowed("mathematics"):
            names.append("pow")
        name = self.chance.pick(names)
        if name == "divide":
            found: e.Expr = e.Div(operands[0], operands[1])
        elif name == "pow":
            found = call("pow", *operands)
        else:
            found = call(name, operands[0])
        if self.chance.happens(0.2):
            found = e.Negate(found)
        if self.chance.happens(0.2):
            kind = self.chance.pick((e.Select, e.IfThenElse))
            found = kind(self.make(BOOL, 1), found, self.make(dtype, 1))
        return found


def _same(a: e.Expr, b: e.Expr) -> bool:
    return isinstance(a, e.IntImm) and isinstance(b, e.IntImm) and a.value == b.value


def _spent(place: Place, cost: int) -> Place:
    # A call here and a few more in the same statement: the cost of the place grows.
    return replace(place, cost=place.cost + place.cost * cost // 8)
