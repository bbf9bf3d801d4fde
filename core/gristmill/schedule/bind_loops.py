"""Bind what a device must run to threads: the recipe that makes plain loops right on every device.

Before::

    for y in range(h):
        for x in range(w):
            out[y, x] = f(src[y, x])
    out[0, 0] = 0.0

After (with blocks of 256 threads)::

    total = h * w
    if disjoint(src, out):
        for bx in blockIdx.x((total + 255) // 256):
            for tx in threadIdx.x(256):
                number = bx * 256 + tx
                if number < total:
                    y = number // w
                    x = number % w
                    out[y, x] = f(src[y, x])
    else:
        for tx in threadIdx.x(1):
            ...                                 ; the loops as they were
    for tx in threadIdx.x(1):
        out[0, 0] = 0.0

Everything of a public function that touches memory of the device is brought under loops over threads. Loops with
independent iterations are fused and spread over blocks and threads; loops that reduce in an order that is free are shared
by the threads of a block (:mod:`gristmill.schedule.teams`); other loops, and single statements, are run by one thread;
conditions of the device around loops are moved into them (:mod:`gristmill.schedule.device_conditions`); loops around
several nests and branches stay on the host if it knows their conditions. What comes after another stays after it, since
each is a launch of its own. Values of the host that device code writes move to the device. Private functions that the
host calls for their effect on arrays are host code too. What is bound already stays as it is.

Requires: blocks are not lowered yet; thread reductions and barriers are lowered and put in later. Ensures: no access to
device memory is left outside of loops over threads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Any

from gristmill.arith.interval import Interval
from gristmill.arith.simplify import Simplifier
from gristmill.errors import Diagnostic, UserError
from gristmill.ir.build import sequence
from gristmill.ir.expr import CallFunction, Load, Var
from gristmill.ir.functor import Mutator, walk
from gristmill.ir.memory import Buffer, Scope
from gristmill.ir.module import CallingConvention, Function, Module
from gristmill.ir.stmt import Allocate, Bind, Block, For, If, LoopKind, Return, Seq, Stmt, View, While
from gristmill.passes.manager import Pass
from gristmill.passes.renewal import renewed
from gristmill.plugin.protocols import PassContext
from gristmill.schedule.bindings import LaunchShape, TeamMaker, many_threads, one_thread, team_of_threads, where_apart
from gristmill.schedule.called_by_threads import called_by_host, refuse_recursion, with_copies_for_threads
from gristmill.schedule.device_conditions import with_conditions_inside
from gristmill.schedule.memory_roots import memory_roots
from gristmill.schedule.nests import NestFinder
from gristmill.schedule.placement import Placed, Placement, Where, is_only_of_host, touches_device
from gristmill.schedule.scratch import Moved, moved_to_device, put_into_threads

THREADS = 256
"""Threads of a block where the device has no lower limit: enough to hide latency, and few enough for every device."""
ACCESS = 16
"""Bytes of the widest load that devices have: with it, copies reach the bandwidth of their memory."""
LARGEST_GRID = (1 << 31) - 1
"""With so many blocks a launch has more threads than memories have bytes, so that no loop of strides is needed."""


@dataclass(frozen=True)
class BindLoops(Pass):
    """Bind what a device must run to threads: independent loops to many, everything else to one."""

    threads: int = 0
    """Threads of a block; 0 leaves everything as it is, for targets that are no devices."""
    blocks: int = 0
    """The most blocks of a grid along x; 0: no limit."""
    access: int = 0
    """Bytes that a thread best accesses at once; 0: those of one element."""
    check_overlap: bool = True
    """Ask before a launch whether arrays overlap, where that would change the result."""

    @classmethod
    def values_for(cls, context: PassContext) -> Mapping[str, Any]:
        found = context.capabilities
        if not found.is_device:
            return {"threads": 0}
        limits = [limit for limit in (THREADS, found.max_threads_per_block, found.max_block_size[0]) if limit > 0]
        blocks = found.max_grid_size[0]
        return {"threads": min(limits), "blocks": blocks if blocks < LARGEST_GRID else 0, "access": ACCESS}

    def run(self, module: Module) -> Module:
        if not self.threads:
            return module
        recipe = _Recipe(module, LaunchShape(self.threads, self.blocks, self.access), self.check_overlap)
        bound: dict[str, Function] = {}
        waiting = [found.name for found in module.public if found.facts.convention is CallingConvention.PLAIN]
        seen = set(waiting)
        while waiting:
            function = recipe.functions[waiting.pop()]
            found = _Binding(recipe, function).bound()
            if found is not function:
                bound[function.name] = found
            more = [name for name in called_by_host(found) if name in recipe.functions and name not in seen]
            seen.update(more)
            waiting += more
        result, copies = with_copies_for_threads(module, bound, seen)
        refuse_recursion(result, copies)
        return result


class _Recipe:
    """What is the same for all functions of a module."""

    def __init__(self, module: Module, shape: LaunchShape, check_overlap: bool) -> None:
        self.module = module
        self.shape = shape
        self.check_overlap = check_overlap
        self.functions = {function.name: function for function in module.functions}
        self._gets_kernels: dict[str, bool] = {}

    def gets_kernels(self, name: str) -> bool:
        """Whether a function is better host code, perhaps with kernels, than code of one thread."""
        function = self.functions.get(name)
        if function is None:
            return False
        if name not in self._gets_kernels:
            # What touches nothing leaves nothing to do for threads. False for calls of itself.
            self._gets_kernels[name] = not touches_device(function.body)
            if not self._gets_kernels[name]:
                try:
                    found = self.placed(self.prepared(function))
                    self._gets_kernels[name] = found.is_worthwhile or self.reduces(function)
                except UserError:
                    self._gets_kernels[name] = False
        return self._gets_kernels[name]

    def reduces(self, function: Function) -> bool:
        """Whether a function has work that the threads of a block can share."""
        return self.finder(function).reductions.in_any_loop(function.body)

    def finder(self, function: Function) -> NestFinder:
        """What knows the loops of a function."""
        return NestFinder(self.module, function, self.check_overlap)

    def prepared(self, function: Function, values: AbstractSet[Var] = frozenset()) -> Function:
        """The function with conditions that only the device knows inside of the loops that they are about.

        ``values`` are names and data of local memory that only the device knows.
        """
        return with_conditions_inside(function, self.finder(function), values)

    def placed(self, function: Function) -> Placed:
        """Where the statements of a function run."""
        return _with_returns(Placement(self.module, function, self.check_overlap, self.gets_kernels), function)


class _Binding:
    """Binds one function."""

    def __init__(self, recipe: _Recipe, function: Function) -> None:
        self.recipe = recipe
        self.function = function
        self.alone: set[Var] = set()
        """The variables of the loops over one thread."""
        self.simplifier = Simplifier()
        for param in function.params:
            if isinstance(param, Buffer):
                for size in param.shape:
                    if isinstance(size, Var):
                        self.simplifier.bounds.set(size, Interval(0, size.dtype.maximum))

    def bound(self) -> Function:
        """The function bound; the same object if there was nothing to do."""
        if not touches_device(self.function.body):
            return self.function
        moved, placed, values = self.placed(self.function)
        prepared = self.recipe.prepared(self.function, values)
        if prepared is not self.function:
            moved, placed, _ = self.placed(prepared)
        if not placed.regions():
            return self.function
        self.finder = self.recipe.finder(moved.function)
        self.teams = TeamMaker(self.finder, self.simplifier)
        body = put_into_threads(self.emitted(placed), moved.origins)
        return self.function.with_body(_Sharing(self).visit(body))

    def placed(self, function: Function) -> tuple[Moved, Placed, set[Var]]:
        """The function with values that device code makes on the device, where its statements run, and those values."""
        values: set[Var] = set()
        while True:
            moved = moved_to_device(function, values)
            placed = self.recipe.placed(moved.function)
            more = _values_of_device(placed, moved.function) - values
            if not more:
                return moved, placed, values
            values |= more

    def one_thread(self, node: Stmt) -> Stmt:
        """A launch of one thread, which may become one of several later."""
        found = one_thread(node)
        self.alone.update(part.var for part in walk(found) if isinstance(part, For) and part.kind is LoopKind.THREAD)
        return found

    def emitted(self, placed: Placed) -> Stmt:
        """The statement with its regions under loops over threads."""
        node = placed.node
        if placed.where is Where.HOST:
            return node
        if placed.where is Where.THREAD:
            return self.one_thread(node)
        if placed.nest is not None:
            return many_threads(placed.nest, self.recipe.shape, self.simplifier, self.teams)
        if isinstance(node, Seq):
            return sequence(*self.grouped(placed.parts), span=node.span)
        parts = [self.emitted(part) for part in placed.parts]
        if isinstance(node, If):
            return replace(node, then=parts[0], otherwise=parts[1] if len(parts) > 1 else None)
        if isinstance(node, Block):
            init, body = parts if len(parts) > 1 else (None, parts[0])
            return replace(node, init=init, body=body)
        assert isinstance(node, (For, While))
        return replace(node, body=parts[0])

    def grouped(self, parts: Sequence[Placed]) -> Iterator[Stmt]:
        """The statements of a sequence; neighbours that one thread runs are one region. Names between come before it."""
        waiting: list[Stmt] = []
        for part in parts:
            if part.where is Where.THREAD:
                waiting.append(part.node)
                continue
            if waiting and not _moves_up(part):
                yield self.one_thread(sequence(*waiting))
                waiting = []
            yield self.emitted(part)
        if waiting:
            yield self.one_thread(sequence(*waiting))


class _Sharing(Mutator):
    """Lets several threads share what one would do, where that pays."""

    def __init__(self, binding: _Binding) -> None:
        super().__init__()
        self.binding = binding

    def visit_For(self, node: For) -> Any:
        if node.var not in self.binding.alone:
            return node if node.kind is LoopKind.THREAD else self.generic(node)
        team = team_of_threads(node, self.binding.teams, self.binding.recipe.shape)
        pairs = None if team is None else self.binding.finder.pairs(node.body)
        return node if team is None or pairs is None else where_apart(pairs, renewed(team), node)


def _moves_up(part: Placed) -> bool:
    """Whether a statement of the host may as well be run before the region that comes before it."""
    node = part.node
    if part.where is not Where.HOST:
        return False
    if isinstance(node, (Allocate, View)):
        return True
    return isinstance(node, Bind) and not any(isinstance(n, CallFunction) or is_only_of_host(n) for n in walk(node))


def _with_returns(placement: Placement, function: Function) -> Placed:
    """The body placed. From a return that only the device decides about on, one thread runs all of the rest."""
    body = function.body if isinstance(function.body, Seq) else Seq((function.body,))
    parts: list[Placed] = []
    for place, statement in enumerate(body.body):
        part = placement.place(statement)
        returns = [node for thread in part.threads() for node in walk(thread) if isinstance(node, Return)]
        if returns:
            rest = Seq(body.body[place:])
            _check_rest(function, rest, returns[0])
            parts.append(Placed(Where.THREAD, rest))
            break
        parts.append(part)
    return Placed(Where.CONTROL, Seq(body.body), tuple(parts))


def _check_rest(function: Function, rest: Seq, returns: Return) -> None:
    """Refuse what the host would have to know from the device. Raises UserError (GM0640)."""
    place = None if returns.span is None else returns.span.place
    name = function.name
    if function.returns_value:
        raise UserError(
            Diagnostic(
                "GM0640",
                f"what `{name}` returns here is only known on the device",
                place,
                label="depends on memory of the device",
                hint="store the result into a buffer of one element, and read that after the call",
            )
        )
    if any(is_only_of_host(node) for node in walk(rest)):
        raise UserError(
            Diagnostic(
                "GM0640",
                f"whether `{name}` returns here is only known on the device, and kernels follow",
                place,
                label="depends on memory of the device",
                hint="put what follows under the opposite condition, inside of the kernels",
            )
        )


def _values_of_device(placed: Placed, function: Function) -> set[Var]:
    """What the host has and device code makes: data of local memory that regions write, names of values of the device."""
    roots = memory_roots(function)
    found: set[Var] = set()
    for region in placed.regions():
        own = set(_allocated(region))
        for node in walk(region):
            buffer = getattr(node, "buffer", None)
            if isinstance(node, Allocate) or not isinstance(buffer, Buffer) or buffer.scope is not Scope.LOCAL:
                continue
            root = roots.get(buffer.data, buffer.data)
            if root not in own and (buffer.rank or not isinstance(node, Load) or root is not buffer.data):
                found.add(root)
        found |= {root for root in _pointers(region, roots) if root not in own}
    _names_of_device(placed, found)
    return found


def _allocated(region: Stmt) -> Iterator[Var]:
    for node in walk(region):
        if isinstance(node, Allocate):
            yield node.buffer.data
        elif isinstance(node, Block):
            yield from (buffer.data for buffer in node.allocations)


def _pointers(region: Stmt, roots: Mapping[Var, Var]) -> set[Var]:
    """Local memory that a region reaches through a pointer or a view."""
    found = set()
    for node in walk(region):
        data: Var | None = None
        if isinstance(node, Var) and node.pointer is not None and node.pointer.scope is Scope.LOCAL:
            data = node
        elif isinstance(node, View) and node.buffer.scope is Scope.LOCAL:
            data = node.buffer.data
        if data is not None:
            found.add(roots.get(data, data))
    return found


def _names_of_device(placed: Placed, found: set[Var]) -> None:
    """Add the names that stand beside a region and whose values only the device knows."""
    if placed.where is Where.THREAD and isinstance(placed.node, Bind):
        found.add(placed.node.var)
    for part in placed.parts:
        _names_of_device(part, found)
