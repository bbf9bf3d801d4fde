"""Random programs: the same for the same seed, valid, ending, without races, and sure of every exact bit."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from gristmill.ir import expr as e
from gristmill.ir import stmt as s
from gristmill.ir.build import const, sequence
from gristmill.ir.dtype import BOOL, FLOAT32, FLOAT64, INT32, INT64, SIGNED, UNSIGNED, VOID, DType
from gristmill.ir.memory import Buffer
from gristmill.ir.module import Function, FunctionFacts, Module
from gristmill.testing.programs.chance import Chance
from gristmill.testing.programs.program import RandomProgram
from gristmill.testing.programs.scope import Helper, Memory, Place, size_of
from gristmill.testing.programs.scope import Scope as Names
from gristmill.testing.programs.statements import StatementMaker

CPU_DTYPES: tuple[DType, ...] = (*SIGNED, *UNSIGNED, BOOL, FLOAT32, FLOAT64)

CONSTRUCTS = frozenset(
    {"vector", "vectorized", "parallel", "block", "view", "assert", "helper", "recursion", "mathematics", "fmod", "fma"}
    | {"result", "denormals", "atomic"}
)
"""What may be left out of programs, for back ends that do not have it. Without ``denormals`` no float that a program begins
with is one of float32; views still read any bits."""


def random_program(
    seed: int,
    *,
    dtypes: Sequence[DType] = CPU_DTYPES,
    constructs: Collection[str] = CONSTRUCTS,
    mathematics_in: Collection[DType] = (FLOAT32, FLOAT64),
) -> RandomProgram:
    """The program of a seed.

    ``dtypes`` are the scalar types that it uses (int64 besides, for indices), ``constructs`` a choice of
    :data:`CONSTRUCTS`, ``mathematics_in`` the float types in which exp and the like, and fmod, may occur.
    """
    unknown = set(constructs) - CONSTRUCTS
    if unknown:
        raise ValueError(f"there are no constructs {sorted(unknown)}; there are {sorted(CONSTRUCTS)}")
    return _ProgramMaker(seed, tuple(dtypes), frozenset(constructs), frozenset(mathematics_in)).make()


class _ProgramMaker:
    def __init__(
        self, seed: int, dtypes: tuple[DType, ...], constructs: frozenset[str], mathematics_in: frozenset[DType]
    ) -> None:
        self.seed = seed
        self.chance = Chance(f"program {seed}")
        self.chance.denormals = "denormals" in constructs
        # A few types a program, so that values of one type meet each other.
        kept = [dtype for dtype in dtypes if self.chance.happens(0.45)] or [self.chance.pick(dtypes)]
        self.dtypes = tuple(kept)
        self.constructs = constructs
        self.mathematics_in = mathematics_in
        self.helpers: list[Helper] = []

    def maker(self, returns: DType) -> StatementMaker:
        found = StatementMaker(self.chance, self.dtypes, self.constructs.__contains__)
        found.returns = returns
        found.mathematics_in = self.mathematics_in
        found.helpers = list(self.helpers)
        return found

    def make(self) -> RandomProgram:
        if "helper" in self.constructs:
            for number in range(self.chance.number(0, 3)):
                self.helpers.append(self.scalar_helper(number))
            if self.chance.happens(0.4):
                self.helpers.append(self.buffer_helper())
            if "recursion" in self.constructs and self.chance.happens(0.4):
                self.helpers.append(self.recursive_helper())
        entry, bounded = self.entry()
        functions = [*(helper.function for helper in self.helpers), entry]
        return RandomProgram(Module(tuple(functions)), entry.name, bounded, self.seed, self.chance.denormals)

    # Helpers ----------------------------------------------------------------------------------------------------------

    def result_type(self) -> DType:
        return self.chance.pick(self.dtypes)

    def scalar_helper(self, number: int) -> Helper:
        """A pure function of a few scalars, with locals, loops and early returns."""
        returns = self.result_type()
        maker = self.maker(returns)
        params = tuple(e.Var(f"p{count}", self.chance.pick(self.dtypes)) for count in range(self.chance.number(0, 3)))
        maker.scope = Names(list(params))
        local, _ = maker.filled("t", self.chance.pick(self.dtypes), (size_of(self.chance.number(1, 4)),))
        body = maker.body(Place(cost=40), self.chance.number(1, 4))
        end = None if self.chance.happens(0.1) else maker.return_statement()
        function = Function(f"helper{number}", params, (), returns, sequence(local, body, end))
        return Helper(function, cost=40)

    def recursive_helper(self) -> Helper:
        """A function that calls itself, one less deep each time."""
        integers = [dtype for dtype in self.dtypes if dtype.is_integer] or [INT32]
        depth = e.Var("depth", self.chance.pick(integers))
        returns = self.result_type()
        maker = self.maker(returns)
        others = tuple(e.Var(f"p{count}", self.chance.pick(self.dtypes)) for count in range(self.chance.number(0, 2)))
        maker.scope = Names([depth, *others])
        maker.place = Place(cost=40)
        base = s.If(e.LessEqual(depth, const(0, depth.type)), s.Return(maker.make(returns, 2)))
        less_deep = e.Sub(depth, const(1, depth.type))
        again = e.CallFunction("recursive", (less_deep, *(maker.make(other.type, 1) for other in others)), returns)
        var = e.Var("again", returns)
        maker.scope.variables.append(var)
        end = s.Return(maker.make(returns, 2))
        body = s.Seq((base, s.Bind(var, again), end))
        return Helper(Function("recursive", (depth, *others), (), returns, body), cost=100, takes_depth=True)

    def buffer_helper(self) -> Helper:
        """A function that writes to a buffer of any size, and gives nothing back or a number."""
        dtype = self.chance.pick(self.dtypes)
        returns = self.chance.pick((VOID, self.result_type()))
        maker = self.maker(returns)
        size = e.Var("size", INT64)
        buffer = maker.new_buffer("target", dtype, (size,))
        params = tuple(e.Var(f"p{count}", self.chance.pick(self.dtypes)) for count in range(self.chance.number(0, 2)))
        maker.scope = Names([size, *params], [Memory(buffer)])
        body = maker.body(Place(cost=40), 3)
        end = None if returns.is_void else maker.return_statement()
        function = Function("fill", (buffer, *params), (size,), returns, sequence(body, end))
        return Helper(function, cost=120)

    # Entry ------------------------------------------------------------------------------------------------------------

    def entry(self) -> tuple[Function, frozenset[str]]:
        chance = self.chance
        returns = chance.pick((VOID, VOID, self.result_type()))
        if "result" not in self.constructs:
            returns = VOID
        maker = self.maker(returns)
        n, m = e.Var("n", INT64), e.Var("m", INT64)
        scalars = [e.Var(f"p{count}", chance.pick(self.dtypes)) for count in range(chance.number(0, 3))]
        memory: list[Memory] = []
        bounded: set[str] = set()
        floats = [dtype for dtype in self.dtypes if dtype.is_float]
        for _ in range(chance.number(2, 5)):
            shape = chance.pick(
                ((n,), (n,), (m,), (n, m), (size_of(chance.number(1, 17)),), (n, size_of(4)), (size_of(16),))
            )
            buffer = maker.new_buffer("b", chance.pick(self.dtypes), shape)
            memory.append(Memory(buffer, writable=chance.happens(0.6)))
        memory.append(Memory(maker.new_buffer("out", chance.pick(self.dtypes), (n,))))
        for _ in range(chance.number(1, 2) if floats else 0):
            shape = chance.pick(((n,), (n, m), (size_of(8),)))
            buffer = maker.new_buffer("near", chance.pick(floats), shape)
            memory.append(Memory(buffer, readable=False))
            bounded.add(buffer.name)
        used = {size for found in memory for size in found.buffer.shape if isinstance(size, e.Var)}
        sizes = [size for size in (n, m) if size in used]
        maker.scope = Names([*sizes, *scalars], memory)
        body = maker.body(Place(may_return=True), chance.number(3, 8))
        end = None if returns.is_void else maker.return_statement()
        params: list[e.Var | Buffer] = [*(found.buffer for found in memory), *scalars]
        order = sorted(params, key=lambda _: chance.random())
        facts = FunctionFacts(symbol="main", signature="main(...)")
        function = Function("main", tuple(order), _in_order(order, sizes), returns, sequence(body, end), facts)
        return function, frozenset(bounded)


def _in_order(params: Sequence[e.Var | Buffer], sizes: Sequence[e.Var]) -> tuple[e.Var, ...]:
    """The sizes in the order of their first occurrence in the parameters."""
    found: dict[e.Var, None] = {}
    for param in params:
        if isinstance(param, Buffer):
            for size in param.shape:
                if size in sizes and isinstance(size, e.Var):
                    found[size] = None
    return tuple(found)
