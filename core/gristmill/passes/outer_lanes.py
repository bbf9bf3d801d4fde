"""Whether the iterations of a loop over other loops may run as lanes of vectors, and whether that is worthwhile.

Each iteration must touch memory of its own. That is known of one buffer from its indices; that two buffers do not lie
over one another is left to be asked at run time, of the pairs in :attr:`OuterLanes.apart`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from gristmill.arith.simplify import Simplifier
from gristmill.ir import operators as _operators
from gristmill.ir.build import constant_value
from gristmill.ir.expr import (
    Broadcast,
    Call,
    Cast,
    Expr,
    FloatImm,
    IntImm,
    Load,
    Reinterpret,
    Var,
)
from gristmill.ir.functor import EXPRESSIONS, walk
from gristmill.ir.memory import Buffer
from gristmill.ir.module import Function
from gristmill.ir.node import Node
from gristmill.ir.op import Operands
from gristmill.ir.stmt import Allocate, Bind, For, If, LoopHints, LoopKind, Seq, Stmt, Store
from gristmill.passes.independence import new_memory
from gristmill.passes.lane_steps import LaneSteps

PAIRS_AT_MOST = 8
"""With more pairs of buffers to tell apart at run time, a loop stays as it is."""
NODES_AT_MOST = 500
"""A loop with a larger body stays as it is, since there would be three of it."""
PRIVATE_BYTES_AT_MOST = 256
"""The most memory of its own that an iteration may have: all lanes of a vector have it at once."""
UNROLLED_NODES = 400
"""An inner loop of constant extent whose copies have no more nodes is left to the code generator, which unrolls it and
then sees one loop of plain vectors."""

_EXPRESSIONS = (
    *(kind for kind in EXPRESSIONS if kind.__module__ == _operators.__name__),
    *(Broadcast, Call, Cast, FloatImm, IntImm, Load, Reinterpret, Var),
)
_STATEMENTS = (Allocate, Bind, For, If, Seq, Store)
_ALLOWED = frozenset((*_EXPRESSIONS, *_STATEMENTS, Buffer))


@dataclass
class OuterLanes:
    """What is known of a loop that may run as lanes."""

    apart: list[tuple[Buffer, Buffer]] = field(default_factory=list)
    """Pairs of buffers that must not overlap."""
    widest: int = 1
    """Bytes of the widest element that the body works on."""
    scalars: int = 0
    """How many values an iteration keeps for itself."""


def outer_lanes(loop: For, function: Function, simplifier: Simplifier) -> OuterLanes | None:
    """What is known of a serial loop, if its iterations may run as lanes; else None. :func:`is_reduction` says if it pays."""
    if loop.kind is not LoopKind.SERIAL or loop.hints != LoopHints() or loop.var.dtype.bits < 32:
        return None
    if not all(count <= NODES_AT_MOST and _is_allowed(node) for count, node in enumerate(walk(loop.body), 1)):
        return None
    steps = LaneSteps(loop, simplifier)
    found = OuterLanes()
    if not _private_fits(loop, found) or not _shared_fits(loop, function, steps, found):
        return None
    return found


def _is_allowed(node: Node) -> bool:
    if type(node) not in _ALLOWED:
        return False
    if isinstance(node, For):
        return node.kind in (LoopKind.SERIAL, LoopKind.UNROLLED)
    if isinstance(node, Call):
        return node.op.pure and node.op.operands is not Operands.ANY
    return not isinstance(node, Broadcast)


# Whether it pays ------------------------------------------------------------------------------------------------------


def is_reduction(loop: For) -> bool:
    """Whether this is an innermost loop of which code generators make no vectors: each iteration waits for the last.

    Sums of floats are such, since their order may not change. Sums of integers may be reordered; they are such only if
    what they sum up does not lie side by side.
    """
    if loop.kind is not LoopKind.SERIAL:
        return False
    inside: list[Node] = []
    for node in walk(loop.body):
        if isinstance(node, For):
            return False
        inside.append(node)
    stores = [node for node in inside if isinstance(node, Store)]
    if not any(_reads_itself(store) for store in stores):
        return False
    moving = _moving(loop.body, {loop.var})
    own = {node.buffer for node in inside if isinstance(node, Allocate)}
    carried = [store for store in stores if store.buffer not in own and _is_carried(store, moving)]
    trips = constant_value(loop.extent)
    if not carried or (trips is not None and trips * len(inside) <= UNROLLED_NODES):
        return False
    if any(store.buffer.dtype.is_float for store in carried):
        return True
    return any(_jumps(node, loop.var, moving) for node in inside if isinstance(node, Load))


def _moving(body: Stmt, variables: set[Var]) -> set[Var]:
    """Given variables, those of loops in the body, and the names in it that may change with them."""
    found = set(variables)
    for node in walk(body):
        moves = isinstance(node, Bind) and any(isinstance(part, Load) or part in found for part in walk(node.value))
        if isinstance(node, For) or (isinstance(node, Bind) and moves):
            found.add(node.var)
    return found


def _is_carried(store: Store, moving: set[Var]) -> bool:
    """Whether the store puts into one element, in all iterations, what it makes of that element."""
    if any(isinstance(part, Load) or part in moving for index in store.indices for part in walk(index)):
        return False
    return _reads_itself(store)


def _reads_itself(store: Store) -> bool:
    return any(isinstance(part, Load) and part.buffer is store.buffer for part in walk(store.value))


def _jumps(load: Load, var: Var, moving: set[Var]) -> bool:
    """Whether the iterations of an inner loop read elements that may not lie side by side."""
    if any(part in moving for index in load.indices[:-1] for part in walk(index)):
        return True
    return any(part in moving and part is not var for index in load.indices[-1:] for part in walk(index))


# Whether it is right --------------------------------------------------------------------------------------------------


def _private_fits(loop: For, found: OuterLanes) -> bool:
    """Whether what the body allocates is small, of constant size and of one dimension at most."""
    total = 0
    for node in walk(loop.body):
        if not isinstance(node, Allocate):
            continue
        buffer = node.buffer
        size = constant_value(buffer.shape[0]) if buffer.shape else 1
        if buffer.rank > 1 or buffer.strides or buffer.offset is not None or buffer.dtype.is_vector or size is None:
            return False
        total += int(size) * buffer.dtype.bytes
        found.scalars += int(size)
        found.widest = max(found.widest, buffer.dtype.bytes)
    return total <= PRIVATE_BYTES_AT_MOST


@dataclass
class _Accesses:
    """How one piece of memory is reached from the body."""

    buffers: set[Buffer] = field(default_factory=set)
    last_indices: list[Expr] = field(default_factory=list)
    uniform: bool = False
    written: bool = False


def _shared_fits(loop: For, function: Function, steps: LaneSteps, found: OuterLanes) -> bool:
    """Whether no lane sees what another one writes to memory that they share; what is left to ask goes to ``found``."""
    memory: dict[Var, _Accesses] = {}
    for node in walk(loop.body):
        if isinstance(node, (Load, Store)):
            if node.buffer in steps.private:
                if any(steps.varies(index) for index in node.indices):
                    return False
            elif not _record(node, steps, memory):
                return False
        elif isinstance(node, Cast) and _is_of_data(node):
            found.widest = max(found.widest, node.type.bytes)
    for accesses in memory.values():
        found.widest = max(found.widest, *(buffer.dtype.bytes for buffer in accesses.buffers))
        if accesses.written and not _each_lane_its_own(accesses, loop, steps):
            return False
    return _tell_apart(memory, function, found)


def _is_of_data(cast: Cast) -> bool:
    return any(isinstance(part, Load) for part in walk(cast.value))


def _record(node: Load | Store, steps: LaneSteps, memory: dict[Var, _Accesses]) -> bool:
    """Note an access; False if lanes reach neither one element nor elements side by side."""
    buffer, indices = node.buffer, node.indices
    if buffer.strides or buffer.offset is not None or buffer.dtype.is_vector:
        return False
    if any(steps.varies(index) for index in indices[:-1]):
        return False
    step = steps.index_step(indices[-1]) if indices else 0
    if step is None:
        return False
    accesses = memory.setdefault(buffer.data, _Accesses())
    accesses.buffers.add(buffer)
    accesses.uniform = accesses.uniform or step == 0
    accesses.written = accesses.written or isinstance(node, Store)
    if indices:
        accesses.last_indices.append(indices[-1])
    return True


def _each_lane_its_own(accesses: _Accesses, loop: For, steps: LaneSteps) -> bool:
    """Whether each lane keeps to one value of the last index, another one than all other lanes.

    The other indices may be any: elements with unequal last indices are not the same element.
    """
    if accesses.uniform or len(accesses.buffers) > 1:
        return False
    moving = _moving(loop.body, set())
    indices = [steps.of_loop_variable(index) for index in accesses.last_indices]
    first = indices[0]
    if any(isinstance(part, Load) or part in moving for part in walk(first)):
        return False
    simplifier = steps.simplifier
    return all(simplifier.same(simplifier.simplify(index), simplifier.simplify(first)) for index in indices[1:])


def _tell_apart(memory: dict[Var, _Accesses], function: Function, found: OuterLanes) -> bool:
    """Collect the pairs of buffers of which it is not known that they are apart; False if there are too many."""
    if function.facts.no_alias:
        return True
    new = new_memory(function)
    arrays = [(data, accesses) for data, accesses in memory.items() if data not in new]
    for place, (_, one) in enumerate(arrays):
        for _, other in arrays[place + 1 :]:
            if one.written or other.written:
                # Of several buffers over one memory, the whole memory would have to be asked of.
                if len(one.buffers) > 1 or len(other.buffers) > 1:
                    return False
                found.apart.append((next(iter(one.buffers)), next(iter(other.buffers))))
    if any(
        isinstance(part, Load)
        for pair in found.apart
        for buffer in pair
        for size in buffer.shape
        for part in walk(size)
    ):
        return False
    return len(found.apart) <= PAIRS_AT_MOST
