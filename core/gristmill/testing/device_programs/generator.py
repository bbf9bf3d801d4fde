"""Random functions of several kernels: host loops and branches, device temporaries, helpers, early returns between them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from gristmill.ir import expr as e
from gristmill.ir import stmt as s
from gristmill.ir.build import cast, sequence
from gristmill.ir.dtype import BOOL, INT64, VOID, DType
from gristmill.ir.memory import Buffer, Scope
from gristmill.ir.module import Function, FunctionFacts, Module
from gristmill.testing.device_programs.atomics import AtomicKernelMaker
from gristmill.testing.device_programs.device_helpers import DeviceHelper, device_helper
from gristmill.testing.device_programs.exchanges import ExchangeMaker
from gristmill.testing.device_programs.program import RandomDeviceProgram
from gristmill.testing.programs.chance import Chance
from gristmill.testing.programs.generator import CPU_DTYPES
from gristmill.testing.programs.scope import STEPS_AT_MOST, Helper, Memory, Place, extent_bound, size_of
from gristmill.testing.programs.scope import Scope as Names

DEVICE_CONSTRUCTS = frozenset(
    {"vector", "vectorized", "block", "view", "helper", "mathematics", "fmod", "fma"}
    | {"assert", "thread assert", "early return", "reduction", "dynamic", "host helper", "device helper", "warp"}
    | {"exchange", "denormals", "atomic"}
)
"""What may be left out of programs for devices, for back ends and passes that do not have it."""

ON_EVERY_DEVICE = DEVICE_CONSTRUCTS - {"exchange"}
"""What every device has."""


def random_device_program(
    seed: int,
    *,
    dtypes: Sequence[DType] = CPU_DTYPES,
    constructs: Collection[str] = ON_EVERY_DEVICE,
    mathematics_in: Collection[DType] = (),
    warp_size: int = 32,
) -> RandomDeviceProgram:
    """The program of a seed: a function ``main`` of host code and kernels that are bound to threads.

    ``dtypes`` are the scalar types that it uses (int64 besides, for indices), ``constructs`` a choice of
    :data:`DEVICE_CONSTRUCTS`, ``mathematics_in`` the float types in which exp and the like, and fmod, may occur,
    ``warp_size`` (8 or more) the widest exchange.
    """
    unknown = set(constructs) - DEVICE_CONSTRUCTS
    if unknown:
        raise ValueError(f"there are no constructs {sorted(unknown)}; there are {sorted(DEVICE_CONSTRUCTS)}")
    return _DeviceProgramMaker(seed, tuple(dtypes), frozenset(constructs), frozenset(mathematics_in), warp_size).make()


class _HostMaker(ExchangeMaker, AtomicKernelMaker):
    """Makes host code around kernels. Expressions of the host see names and no memory."""

    parts: Sequence[Function] = ()
    """Functions with kernels that the host may call."""

    def expression(self, dtype: DType, depth: int) -> e.Expr:
        """A value that the host knows."""
        memory, place = list(self.scope.memory), self.place
        self.scope.memory[:] = [m for m in memory if m.is_scalar]
        found = self.make(dtype, depth)
        self.scope.memory[:] = memory
        self.place = place
        return found

    def host_body(self, most: int, least: int = 1) -> s.Stmt:
        """Kernels, names, temporaries, loops and branches, one after the other."""
        with self.scope.nested():
            return sequence(*(self.host_statement() for _ in range(self.chance.number(least, most))))

    def host_statement(self) -> s.Stmt:
        choices: list[tuple[float, Callable[[], s.Stmt | None]]] = [
            (8.0, self.kernel),
            (1.5, self.host_name),
            (1.5, self.host_scalar),
            (1.5, self.temporary),
        ]
        if self.place.depth < 2:
            choices += [(1.5, self.host_loop), (1.5, self.host_branch)]
        if self.allowed("host assert"):
            choices.append((0.5, self.host_assertion))
        if self.allowed("early return"):
            choices.append((0.4, self.host_return))
        if self.parts:
            choices.append((1.5, self.call_of_part))
        while True:
            found = self.chance.weighted(choices)()
            if found is not None:
                return found

    def kernel(self) -> s.Stmt:
        # Values of the host's scalars go into a kernel by name: threads have instances of their own of local memory.
        scalars = [m for m in self.scope.memory if m.is_scalar]
        if not scalars or self.chance.happens(0.4):
            return super().kernel()
        chosen = self.chance.pick(scalars)
        var = e.Var(self.name("v"), chosen.dtype)
        with self.scope.nested():
            self.scope.variables.append(var)
            return sequence(s.Bind(var, e.Load(chosen.buffer, ())), super().kernel())

    def host_name(self) -> s.Stmt:
        dtype = self.chance.pick(self.dtypes)
        value = self.expression(dtype, 2)
        var = e.Var(self.name("v"), dtype)
        self.scope.variables.append(var)
        return s.Bind(var, value)

    def host_scalar(self) -> s.Stmt:
        """A local scalar of the host: a new one, or another value for one that there is."""
        scalars = [m for m in self.scope.memory if m.is_scalar]
        if scalars and self.chance.happens(0.6):
            chosen = self.chance.pick(scalars)
            return s.Store(chosen.buffer, (), self.expression(chosen.dtype, 2))
        dtype = self.chance.pick(self.dtypes)
        value = self.expression(dtype, 2)
        buffer = self.new_buffer("x", dtype, (), Scope.LOCAL)
        self.scope.memory.append(Memory(buffer))
        return s.Seq((s.Allocate(buffer), s.Store(buffer, (), value)))

    def temporary(self) -> s.Stmt | None:
        """Memory of the device, filled by a kernel."""
        sizes = [m.buffer.shape[0] for m in self.scope.memory if m.buffer.shape]
        size = self.chance.pick([*sizes, size_of(self.chance.number(1, 20))])
        if extent_bound(size) * self.place.cost * 2 > STEPS_AT_MOST:
            return None
        buffer = self.new_buffer("temporary", self.chance.pick(self.dtypes), (size,))
        grid = self.grid(size)
        with self.in_threads((), grid.number, [grid.number], self.threads_of(grid), size):
            self.scope.positions.append((grid.number, size))
            store = s.Store(buffer, (grid.number,), self.make(buffer.dtype, 2))
        fill = self.launched(grid, self.guarded(grid, store))
        self.scope.memory.append(Memory(buffer))
        return s.Seq((s.Allocate(buffer), fill))

    def host_loop(self) -> s.Stmt | None:
        times = self.chance.number(0, 3)
        extent: e.Expr = size_of(times)
        if self.chance.happens(0.5):
            extent, times = (
                e.FloorMod(cast(self.expression(self.chance.pick(self.integers or (INT64,)), 1), INT64), size_of(3)),
                2,
            )
        outer = self.place
        if outer.cost * max(times, 1) > 8:
            return None
        var = e.Var(self.name("t"), INT64)
        self.place = Place(cost=outer.cost * max(times, 1), depth=outer.depth + 1)
        with self.scope.nested():
            self.scope.variables.append(var)
            body = self.host_body(2)
        self.place = outer
        return s.For(var, size_of(0), extent, s.LoopKind.SERIAL, body)

    def host_branch(self) -> s.Stmt:
        condition = self.expression(BOOL, 2)
        outer = self.place
        self.place = Place(cost=outer.cost, depth=outer.depth + 1)
        then = self.host_body(2)
        otherwise = self.host_body(2) if self.chance.happens(0.4) else None
        self.place = outer
        return s.If(condition, then, otherwise)

    def host_assertion(self) -> s.Stmt:
        value = self.expression(self.chance.pick(self.integers or (INT64,)), 1)
        condition = e.Or(e.NotEqual(value, value + 1), e.Equal(value, value))
        return s.Assert(condition, "ValueError", ("the value ", value, " is not itself"))

    def host_return(self) -> s.Stmt:
        value = None if self.returns.is_void else self.expression(self.returns, 1)
        return s.If(self.expression(BOOL, 2), s.Return(value))

    def call_of_part(self) -> s.Stmt | None:
        """A call of a function with kernels."""
        part = self.chance.pick(self.parts)
        target = part.params[0]
        buffers = [
            m
            for m in self.writable(scalar=False)
            if len(m.buffer.shape) == 1 and m.readable and m.dtype == target.dtype and m.buffer.scope is Scope.GLOBAL
        ]
        if not buffers or self.place.cost > 3:
            return None
        rest = tuple(self.expression(param.dtype, 1) for param in part.params[1:])
        args = (e.BufferRef(self.chance.pick(buffers).buffer), *rest)
        return s.Evaluate(e.CallFunction(part.name, args, VOID))


class _DeviceProgramMaker:
    def __init__(
        self,
        seed: int,
        dtypes: tuple[DType, ...],
        constructs: frozenset[str],
        mathematics_in: frozenset[DType],
        warp_size: int,
    ) -> None:
        self.seed = seed
        self.chance = Chance(f"device program {seed}")
        self.chance.denormals = "denormals" in constructs
        self.all_dtypes = dtypes
        kept = [dtype for dtype in dtypes if self.chance.happens(0.4)] or [self.chance.pick(dtypes)]
        self.dtypes = tuple(kept)
        self.constructs = constructs
        self.mathematics_in = mathematics_in
        self.warp_size = warp_size
        self.helpers: list[Helper] = []
        self.device_helpers: list[DeviceHelper] = []
        self.parts: list[Function] = []

    def allowed(self, construct: str) -> bool:
        # The makers of statements of threads know one name for what host and threads have.
        named = {"host assert": "assert", "assert": "thread assert"}
        return named.get(construct, construct) in self.constructs

    def maker(self, returns: DType) -> _HostMaker:
        found = _HostMaker(self.chance, self.dtypes, self.allowed)
        found.returns = returns
        found.mathematics_in = self.mathematics_in
        found.warp_size = self.warp_size
        found.helpers = list(self.helpers)
        found.device_helpers = tuple(self.device_helpers)
        return found

    def make(self) -> RandomDeviceProgram:
        if "helper" in self.constructs:
            for number in range(self.chance.number(0, 2)):
                self.helpers.append(self.scalar_helper(number))
        if "device helper" in self.constructs and self.chance.happens(0.5):
            for number in range(self.chance.number(1, 2)):
                before = self.device_helpers[-1] if self.device_helpers else None
                dtype = before.dtype if before is not None else self.chance.pick(self.dtypes)
                inner = before if self.chance.happens(0.6) else None
                self.device_helpers.append(device_helper(self.maker(dtype), f"together{number}", dtype, inner))
        if "host helper" in self.constructs and self.chance.happens(0.4):
            self.parts.append(self.part())
        entry, bounded = self.entry()
        scalars, together = (helper.function for helper in self.helpers), (h.function for h in self.device_helpers)
        functions = [*scalars, *together, *self.parts, entry]
        return RandomDeviceProgram(Module(tuple(functions)), entry.name, bounded, self.seed, self.chance.denormals)

    def scalar_helper(self, number: int) -> Helper:
        """A pure function of a few scalars, which host and threads may call."""
        returns = self.chance.pick(self.dtypes)
        maker = self.maker(returns)
        params = tuple(e.Var(f"p{count}", self.chance.pick(self.dtypes)) for count in range(self.chance.number(0, 3)))
        maker.scope = Names(list(params))
        local, _ = maker.filled("t", self.chance.pick(self.dtypes), (size_of(self.chance.number(1, 4)),))
        body = maker.body(Place(cost=40), self.chance.number(1, 3))
        function = Function(f"helper{number}", params, (), returns, sequence(local, body, maker.return_statement()))
        return Helper(function, cost=40)

    def part(self) -> Function:
        """A private function of host code with kernels over an array of any size."""
        dtype = self.chance.pick(self.dtypes)
        maker = self.maker(VOID)
        size = e.Var("size", INT64)
        buffer = maker.new_buffer("target", dtype, (size,))
        params = tuple(e.Var(f"p{count}", self.chance.pick(self.dtypes)) for count in range(self.chance.number(0, 2)))
        maker.scope = Names([size, *params], [Memory(buffer)])
        maker.place = Place(cost=3, depth=1)
        body = maker.host_body(2)
        return Function("part", (buffer, *params), (size,), VOID, body)

    def entry(self) -> tuple[Function, frozenset[str]]:
        chance = self.chance
        returns = chance.pick((VOID, VOID, VOID, chance.pick(self.dtypes)))
        maker = self.maker(returns)
        maker.parts = self.parts
        n, m = e.Var("n", INT64), e.Var("m", INT64)
        maker.positive = frozenset({m})
        scalars = [e.Var(f"p{count}", chance.pick(self.all_dtypes)) for count in range(chance.number(0, 5))]
        memory: list[Memory] = []
        bounded: set[str] = set()
        for _ in range(chance.number(2, 5)):
            shape = chance.pick(((n,), (n,), (m,), (n, m), (m, n), (size_of(chance.number(1, 17)),), (n, size_of(4))))
            buffer = maker.new_buffer("b", chance.pick(self.dtypes), shape)
            memory.append(Memory(buffer, writable=chance.happens(0.7)))
        memory.append(Memory(maker.new_buffer("out", chance.pick(self.dtypes), (n,))))
        memory.append(Memory(maker.new_buffer("sums", chance.pick(self.dtypes), (m,))))
        floats = [dtype for dtype in self.dtypes if dtype.is_float]
        if floats and chance.happens(0.5):
            buffer = maker.new_buffer("near", chance.pick(floats), chance.pick(((n,), (m,), (size_of(8),))))
            memory.append(Memory(buffer, readable=False))
            bounded.add(buffer.name)
        maker.scope = Names([n, m, *scalars], memory)
        body = maker.host_body(5, least=2)
        end = None if returns.is_void else s.Return(maker.expression(returns, 1))
        params: list[e.Var | Buffer] = [*(found.buffer for found in memory), *scalars]
        order = sorted(params, key=lambda _: chance.random())
        found = [
            size for param in order if isinstance(param, Buffer) for size in param.shape if isinstance(size, e.Var)
        ]
        facts = FunctionFacts(symbol="main", signature="main(...)")
        sizes = tuple(dict.fromkeys(found))
        return Function("main", tuple(order), sizes, returns, sequence(body, end), facts), frozenset(bounded)
